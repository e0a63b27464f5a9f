// Sinks: methods that take the rows of a result out into the world.

import { CallError, textOf } from "./errors.js";
import { DEFINITION } from "./offered.js";
import { Columns, Reader, typesOfNodes } from "./types.js";

const MODES = ["append", "update", "complete"];

class Sink {
  kind = "sink";

  constructor(definition) {
    for (const method of ["open", "process", "close"]) {
      if (typeof definition[method] !== "function") throw new TypeError(`a sink has a method ${method}`);
    }
    const twoPhases = ["prepare", "commit", "abort"].filter((method) => typeof definition[method] === "function");
    if (twoPhases.length !== 0 && twoPhases.length !== 3) {
      throw new TypeError("a sink has prepare, commit and abort, or none of them");
    }
    this.itself = definition;
    this.name = definition.name;
    this.isTransactional = twoPhases.length === 3;
    this.columns = definition.columns ? new Columns(definition.columns, "columns") : null;
    this.options = Object.entries(definition.options ?? {}).map(([name, required]) => ({ name, required: required === true }));
    this.modes = definition.modes ?? MODES;
    if (this.modes.length === 0 || this.modes.some((mode) => !MODES.includes(mode))) {
      throw new TypeError(`modes are some of ${MODES.join(", ")}`);
    }
  }

  nodes() {
    return this.columns?.nodes() ?? [];
  }

  begin() {
    return new Session(this);
  }
}

/** One partition of one batch. */
class Session {
  #sink;
  #self;
  #columns;

  constructor(sink) {
    this.#sink = sink;
    this.#columns = sink.columns;
  }

  open(target, nodes) {
    const { itself, name } = this.#sink;
    this.#columns ??= new AnyColumns(nodes);
    this.#self = itself.initial?.(target) ?? {};
    const wanted = itself.open(this.#self, target);
    if (typeof wanted !== "boolean") {
      throw new TypeError(`${name}.open returns ${String(wanted)}: it returns true, or false for rows that it does not want`);
    }
    return wanted;
  }

  process(batch) {
    const rowErrors = [];
    const rows = this.#columns.read(new Reader(batch.buffers), batch.rows);
    for (let row = 0; row < batch.rows; row++) {
      if (rows[row] === null) {
        rowErrors.push({ row, message: "it has a null in a column that does not take nulls" });
        continue;
      }
      try {
        this.#sink.itself.process(this.#self, rows[row]);
      } catch (error) {
        if (error instanceof CallError) throw error;
        rowErrors.push({ row, message: textOf(error) });
      }
    }
    return rowErrors;
  }

  prepare() {
    const token = this.#sink.itself.prepare(this.#self);
    if (!(token instanceof Uint8Array)) throw new TypeError(`${this.#sink.name}.prepare returns a Uint8Array`);
    return token;
  }

  close(failure) {
    this.#sink.itself.close(this.#self, failure);
  }
}

/** Rows of whatever columns there are, as objects. */
class AnyColumns {
  #fields;

  constructor(nodes) {
    this.#fields = typesOfNodes(nodes);
  }

  read(reader, rows) {
    const columns = this.#fields.map(([name, type]) => [name, type.read(reader, rows)]);
    return Array.from({ length: rows }, (_, row) => Object.fromEntries(columns.map(([name, values]) => [name, values[row]])));
  }
}

/** Rows on their way out (Spark's `ForeachWriter`). What it returns is what it got: its methods are tested as they are. */
export function sink(definition) {
  return { ...definition, [DEFINITION]: new Sink(definition) };
}
