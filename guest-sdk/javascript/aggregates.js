// Aggregate functions: methods over a state that the host keeps.

import { CallError, textOf } from "./errors.js";
import { Arguments, encode } from "./functions.js";
import { DEFINITION } from "./offered.js";
import { Columns, Reader, numbers, split } from "./types.js";

class Aggregate {
  kind = "aggregate";

  constructor(definition) {
    for (const method of ["initial", "accumulate", "merge", "evaluate"]) {
      if (typeof definition[method] !== "function") throw new TypeError(`an aggregate function has a method ${method}`);
    }
    this.itself = definition;
    this.name = definition.name;
    this.stateId = definition.stateId ?? "1";
    this.arguments = new Arguments(definition.arguments, "arguments");
    this.state = new Columns(definition.state, "state");
    [this.result] = split(definition.result, "result");
    this.retracts = typeof definition.retract === "function";
  }

  results() {
    return this.result.nodes("value", true);
  }

  accumulate(groups, groupOfRow, batch) {
    const anew = () => Array.from({ length: groups }, () => this.itself.initial());
    return this.#overRows("accumulate", anew, groupOfRow, batch);
  }

  retract(states, groupOfRow, batch) {
    return this.#overRows("retract", () => this.state.read(new Reader(states.buffers), states.rows), groupOfRow, batch);
  }

  #overRows(method, anew, groupOfRow, batch) {
    const groupOf = numbers(Uint32Array, groupOfRow, batch.rows);
    // One object of arguments per row, null for rows with a null that the function does not take.
    const rows = this.arguments.each(batch, (row) => row, () => {});
    const states = anew();
    const rowErrors = [];
    const failed = new Set();
    for (let row = 0; row < batch.rows; row++) {
      if (rows[row] === null) continue;
      const group = groupOf[row];
      try {
        this.itself[method](states[group], rows[row]);
      } catch (error) {
        if (error instanceof CallError) throw error;
        rowErrors.push({ row, message: textOf(error) });
        failed.add(row);
        // The state as if the failed rows were not there: the method may have changed half of it.
        const again = anew()[group];
        for (let before = 0; before < row; before++) {
          if (groupOf[before] === group && rows[before] !== null && !failed.has(before)) {
            this.itself[method](again, rows[before]);
          }
        }
        states[group] = again;
      }
    }
    return { states: this.#batch(states), rowErrors };
  }

  merge(groups, groupOfRow, batch) {
    const groupOf = numbers(Uint32Array, groupOfRow, batch.rows);
    const states = new Array(groups).fill(null);
    this.state.read(new Reader(batch.buffers), batch.rows).forEach((other, row) => {
      const group = groupOf[row];
      if (states[group] === null) states[group] = other;
      else this.itself.merge(states[group], other);
    });
    return { states: this.#batch(states), rowErrors: [] };
  }

  evaluate(batch) {
    const errors = [];
    const values = this.state.read(new Reader(batch.buffers), batch.rows).map((state, row) => {
      try {
        return this.itself.evaluate(state) ?? null;
      } catch (error) {
        if (error instanceof CallError) throw error;
        errors.push({ row, message: textOf(error) });
        return null;
      }
    });
    return { values: { rows: batch.rows, buffers: encode(this.result, values, errors) }, rowErrors: errors };
  }

  #batch(states) {
    const buffers = [];
    this.state.write(states, buffers);
    return { rows: states.length, buffers };
  }
}

/** Many rows in, one value out. What it returns is what it got: its methods are tested as they are. */
export function aggregate(definition) {
  return { ...definition, [DEFINITION]: new Aggregate(definition) };
}
