// Scalar and table functions: from declared types to columns, and the loop over the rows.

import { CallError, textOf } from "./errors.js";
import { DEFINITION, sqlName } from "./offered.js";
import { Columns, Reader, Type, bytes, looper, split } from "./types.js";

/** The arguments of a function: names, types, and which of them take nulls. */
export class Arguments {
  constructor(fields, where) {
    this.fields = Object.entries(fields).map(([name, type]) => [sqlName(name), ...split(type, `${where}.${name}`)]);
    const required = this.fields.flatMap(([, , nullable], at) => (nullable ? [] : [at]));
    // The host leaves out rows with nulls that nobody asked for; where somebody did, that is done here.
    this.seesNulls = required.length < this.fields.length;
    // Nulls inside of lists and structs are for nobody else to see.
    const guarded = required.filter((at) => this.seesNulls || this.fields[at][1].isNested);
    this.loop = looper(this.fields.map(([name]) => name), guarded);
  }

  nodes() {
    return this.fields.flatMap(([name, type, nullable]) => type.nodes(name, nullable));
  }

  read(batch) {
    const reader = new Reader(batch.buffers);
    return this.fields.map(([, type]) => type.read(reader, batch.rows));
  }

  /** Calls `call` for each row; where one throws, `failed` gets the row and the message, and the rest goes on. */
  each(batch, call, failed) {
    const columns = this.read(batch);
    const made = [];
    for (;;) {
      try {
        this.loop(call, columns, batch.rows, made);
        return made;
      } catch (error) {
        if (error instanceof CallError) throw error;
        failed(made.length, textOf(error));
        made.push(null);
      }
    }
  }
}

/** One value per row as a column. Values that do not fit become row errors and nulls. */
export function encode(type, values, errors) {
  try {
    const buffers = [];
    type.write(values, true, buffers);
    return buffers;
  } catch {
    // Below, one by one.
  }
  const failed = new Set(errors.map(({ row }) => row));
  for (let row = 0; row < values.length; row++) {
    try {
      if (!failed.has(row)) type.write([values[row]], true, []);
    } catch (error) {
      errors.push({ row, message: misfit(error) });
      values[row] = null;
    }
  }
  errors.sort((a, b) => a.row - b.row);
  const buffers = [];
  type.write(values, true, buffers);
  return buffers;
}

function misfit(error) {
  return `${error.name}: the result does not fit its type: ${error.message}`;
}

class Scalar {
  kind = "function";
  isTable = false;

  constructor(types, result, call, options, batch) {
    this.arguments = new Arguments(types, "arguments");
    // The result may be null whatever its type says: rows fail.
    [this.result] = split(result, "result");
    this.function = call;
    this.name = options?.name;
    this.volatile = options?.volatile === true;
    this.batch = batch;
  }

  results() {
    return this.result.nodes("value", true);
  }

  call(batch) {
    const errors = [];
    let values;
    if (this.batch) {
      const columns = this.arguments.read(batch);
      const named = Object.fromEntries(this.arguments.fields.map(([name], at) => [name, columns[at]]));
      values = this.function(named, batch.rows);
      if (values?.length !== batch.rows) throw new RangeError(`${values?.length} values were returned for ${batch.rows} rows`);
      if (errors.length === 0 && !Array.isArray(values) && !ArrayBuffer.isView(values)) values = Array.from(values);
    } else {
      values = this.arguments.each(batch, this.function, (row, message) => errors.push({ row, message }));
    }
    return { values: { rows: batch.rows, buffers: encode(this.result, values, errors) }, rowErrors: errors };
  }
}

class Table {
  kind = "function";
  isTable = true;

  constructor(types, columns, call, options) {
    this.arguments = new Arguments(types, "arguments");
    this.columns = new Columns(columns, "columns");
    this.columns.fields.forEach(([name]) => sqlName(name));
    this.single = this.columns.fields.length === 1;
    this.function = call;
    this.name = options?.name;
    this.volatile = options?.volatile === true;
  }

  results() {
    return this.columns.nodes();
  }

  #write(values) {
    const buffers = [];
    if (this.single) {
      const [, type, nullable] = this.columns.fields[0];
      type.write(values, nullable, buffers);
    } else {
      if (values.includes(null) || values.includes(undefined)) throw new TypeError("null is no row");
      this.columns.write(values, buffers);
    }
    return buffers;
  }

  call(batch) {
    const errors = [];
    const call = this.function;
    const collect = (row) => {
      const made = call(row);
      return made === null || made === undefined || Array.isArray(made) ? made : Array.from(made);
    };
    let parts = this.arguments.each(batch, collect, (row, message) => errors.push({ row, message }));
    let buffers;
    try {
      buffers = this.#write(flat(parts));
    } catch {
      parts = parts.map((part, row) => {
        try {
          this.#write(part ?? []);
          return part;
        } catch (error) {
          errors.push({ row, message: misfit(error) });
          return null;
        }
      });
      errors.sort((a, b) => a.row - b.row);
      buffers = this.#write(flat(parts));
    }
    const rows = parts.reduce((rows, part) => rows + (part?.length ?? 0), 0);
    const numbers = new Uint32Array(rows);
    let at = 0;
    parts.forEach((part, row) => {
      for (let left = part?.length ?? 0; left > 0; left--) numbers[at++] = row;
    });
    return { inputRows: bytes(numbers), rows: { rows, buffers }, rowErrors: errors };
  }
}

function flat(parts) {
  const values = [];
  for (const part of parts) if (part) for (const value of part) values.push(value);
  return values;
}

/** A function that stays one, and knows how SQL calls it. */
function defined(call, definition) {
  if (typeof call !== "function") throw new TypeError(`${String(call)} is no function`);
  const itself = (...row) => call(...row);
  itself[DEFINITION] = definition;
  return itself;
}

/** A function of one row: n rows in, n values out. */
export function scalar(types, result, call, options) {
  return defined(call, new Scalar(types, result, call, options, false));
}

/** The same of many rows at once: it gets an object of columns and their length, and returns as many values. */
scalar.batch = (types, result, call, options) => defined(call, new Scalar(types, result, call, options, true));

/**
 * A function of one row that returns or yields any number of rows: of one column the values themselves, of more objects.
 */
export function table(types, columns, call, options) {
  if (columns instanceof Type) throw new TypeError("the columns of a table function have names: { word: utf8 }");
  return defined(call, new Table(types, columns, call, options));
}
