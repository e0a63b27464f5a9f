// Sources: objects that rows come from, by ranges of offsets that they make up themselves.

import { DEFINITION } from "./offered.js";
import { columnsOf } from "./types.js";

/** A text, or an error that says what is none. */
function text(value, what, name) {
  if (typeof value !== "string") throw new TypeError(`\`${name}\` gave the ${what} ${String(value)}, which is no text`);
  return value;
}

class Source {
  kind = "source";

  constructor(definition) {
    const { name, columns, options = [] } = definition;
    for (const method of ["initialOffset", "latestOffset", "read"]) {
      if (typeof definition[method] !== "function") throw new TypeError(`a source has a method ${method}`);
    }
    this.name = name;
    this.columns = columnsOf(columns, "columns");
    this.itself = definition;
    // An option whose name ends in `?` may be left out.
    this.options = options.map((option) => ({ name: option.replace(/\?$/, ""), required: !option.endsWith("?") }));
  }

  initialOffset(options) {
    return text(this.itself.initialOffset(Object.fromEntries(options)), "offset", this.name);
  }

  latestOffset(options, start, { until, maxRows }) {
    // Large numbers may arrive as either kind.
    const limits = { until: until ?? null, maxRows: maxRows == null ? null : BigInt(maxRows) };
    return text(this.itself.latestOffset(Object.fromEntries(options), start, limits), "offset", this.name);
  }

  read(options, start, end, cursor) {
    const made = this.itself.read(Object.fromEntries(options), start, end, cursor ?? null);
    const { rows, next = null } = Array.isArray(made) ? { rows: made } : made;
    const buffers = [];
    this.columns.write(rows, buffers);
    return { rows: { rows: rows.length, buffers }, next: next === null ? null : text(next, "cursor", this.name) };
  }

  commit(options, offset) {
    this.itself.commit?.(Object.fromEntries(options), offset);
  }
}

/**
 * A source. Offsets are texts that only it understands; the rows of a range are the same rows whenever it is read. What it
 * returns is what it got: its methods are tested as they are.
 */
export function source(definition) {
  return { ...definition, [DEFINITION]: new Source(definition) };
}
