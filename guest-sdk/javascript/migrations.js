// Migrations: how state that older code wrote becomes state of this code.

import { CallError, InvalidInput, textOf } from "./errors.js";
import { DEFINITION } from "./offered.js";
import { Columns, Reader } from "./types.js";

class Migration {
  kind = "migration";

  constructor({ state, fromId, from, toId, to, migrate }) {
    if (typeof migrate !== "function") throw new TypeError("a migration has a method migrate");
    this.state = state;
    this.fromId = fromId;
    this.toId = toId;
    this.from = new Columns(from, "from");
    this.to = new Columns(to, "to");
    this.function = migrate;
  }

  migrate(batch) {
    const rowErrors = [];
    const rows = this.from.read(new Reader(batch.buffers), batch.rows).map((old, row) => {
      try {
        const made = this.function(old);
        this.to.write([made], []);
        return made;
      } catch (error) {
        if (error instanceof CallError) throw error;
        rowErrors.push({ row, message: textOf(error) });
        return null;
      }
    });
    // A failed row has the place of any other that did not: it is not looked at.
    const good = rows.find((row) => row !== null);
    if (good === undefined && rows.length > 0) throw new InvalidInput(rowErrors[0].message);
    const buffers = [];
    this.to.write(rows.map((row) => row ?? good), buffers);
    return { rows: { rows: rows.length, buffers }, rowErrors };
  }
}

/** One step from one meaning of a piece of state to another. `state` names an aggregate function, or `processor.variable`. */
export function migration(definition) {
  return { ...definition, [DEFINITION]: new Migration(definition) };
}
