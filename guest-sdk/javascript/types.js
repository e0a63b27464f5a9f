// Types of columns: as fields of a schema, and as buffers.
//
// A column is read as an array with `null` where it is null (a typed array where there can be none), and written from
// one. Layout: Arrow's, see `wit/README.md`.

import { decodeTexts, encodeTexts } from "./text.js";

/** The buffers of a batch, from the first. */
export class Reader {
  #buffers;
  #next = 0;

  constructor(buffers) {
    this.#buffers = buffers;
  }

  buffer() {
    return this.#buffers[this.#next++];
  }

  /** The next buffer as `length` numbers. */
  numbers(Array, length) {
    const bytes = this.buffer();
    return numbers(Array, bytes, length);
  }
}

/** Bytes as `length` numbers. Bytes that do not begin where such numbers may are copied. */
export function numbers(Array, bytes, length) {
  if (length === 0 || bytes.length === 0) return new Array(0);
  const aligned = bytes.byteOffset % Array.BYTES_PER_ELEMENT === 0 ? bytes : bytes.slice();
  return new Array(aligned.buffer, aligned.byteOffset, length);
}

/** The bytes of numbers. */
export function bytes(numbers) {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}

function validity(values) {
  return values.includes(null) || values.includes(undefined) ? bitmap(values, (value) => value != null) : new Uint8Array(0);
}

function bitmap(values, isSet) {
  const bits = new Uint8Array((values.length + 7) >> 3);
  for (let row = 0; row < values.length; row++) if (isSet(values[row])) bits[row >> 3] |= 1 << (row & 7);
  return bits;
}

function withNulls(values, valid) {
  if (valid.length === 0) return values;
  const read = Array.from(values);
  for (let row = 0; row < read.length; row++) if (!((valid[row >> 3] >> (row & 7)) & 1)) read[row] = null;
  return read;
}

function notNull(values, nullable) {
  if (!nullable && (values.includes(null) || values.includes(undefined))) throw new TypeError("null where no null may be");
}

function shown(value) {
  return typeof value === "bigint" ? `${value}n` : typeof value === "string" ? JSON.stringify(value.slice(0, 40)) : String(value);
}

/** A type of a column. */
export class Type {
  isNested = false;

  constructor(format) {
    this.format = format;
  }

  /** The fields in pre-order. */
  nodes(name, nullable) {
    return [{ name, format: this.format, nullable, children: 0 }];
  }
}

/** Numbers of a width that typed arrays know. */
class Fixed extends Type {
  constructor(format, Array, fits, what) {
    super(format);
    this.Array = Array;
    this.fits = fits;
    this.what = what;
  }

  read(reader, rows) {
    const valid = reader.buffer();
    return withNulls(reader.numbers(this.Array, rows), valid);
  }

  write(values, nullable, out) {
    if (values instanceof this.Array) {
      out.push(new Uint8Array(0), bytes(values));
      return;
    }
    const fits = this.fits;
    const data = new this.Array(values.length);
    let nulls = false;
    for (let row = 0; row < values.length; row++) {
      const value = values[row];
      if (fits(value)) data[row] = value;
      else if (value === null || value === undefined) nulls = true;
      else throw new TypeError(`${shown(value)} is not ${this.what}`);
    }
    if (nulls) notNull(values, nullable);
    out.push(nulls ? validity(values) : new Uint8Array(0), bytes(data));
  }
}

const integer = (format, Array, least, most) =>
  new Fixed(
    format,
    Array,
    (value) => typeof value === "number" && value >= least && value <= most && Number.isInteger(value),
    `an integer from ${least} to ${most}`,
  );
const big = (format, Array, least, most) =>
  new Fixed(
    format,
    Array,
    (value) => typeof value === "bigint" && value >= least && value <= most,
    `a bigint from ${least} to ${most}`,
  );
const float = (format, Array) => new Fixed(format, Array, (value) => typeof value === "number", "a number");

const LEAST = -(2n ** 63n);
const MOST = 2n ** 63n - 1n;

export const int8 = integer("c", Int8Array, -128, 127);
export const int16 = integer("s", Int16Array, -32768, 32767);
export const int32 = integer("i", Int32Array, -2147483648, 2147483647);
export const int64 = big("l", BigInt64Array, LEAST, MOST);
export const uint8 = integer("C", Uint8Array, 0, 255);
export const uint16 = integer("S", Uint16Array, 0, 65535);
export const uint32 = integer("I", Uint32Array, 0, 4294967295);
export const uint64 = big("L", BigUint64Array, 0n, 2n ** 64n - 1n);
export const float32 = float("f", Float32Array);
export const float64 = float("g", Float64Array);
/** Days since 1970. */
export const date = integer("tdD", Int32Array, -2147483648, 2147483647);
/** Microseconds since 1970, UTC. */
export const timestamp = big("tsu:UTC", BigInt64Array, LEAST, MOST);
/** Microseconds since 1970, of a clock on some wall. */
export const localTimestamp = big("tsu:", BigInt64Array, LEAST, MOST);

class Bool extends Type {
  read(reader, rows) {
    const valid = reader.buffer();
    const bits = reader.buffer();
    const values = new Array(rows);
    for (let row = 0; row < rows; row++) values[row] = ((bits[row >> 3] >> (row & 7)) & 1) === 1;
    return withNulls(values, valid);
  }

  write(values, nullable, out) {
    notNull(values, nullable);
    for (const value of values) {
      if (value != null && typeof value !== "boolean") throw new TypeError(`${shown(value)} is not a boolean`);
    }
    out.push(validity(values), bitmap(values, (value) => value === true));
  }
}

export const bool = new Bool("b");

class Utf8 extends Type {
  read(reader, rows) {
    const valid = reader.buffer();
    const ends = reader.numbers(Int32Array, rows + 1);
    const data = reader.buffer();
    return rows === 0 ? [] : withNulls(decodeTexts(data, ends, rows), valid);
  }

  write(values, nullable, out) {
    let nulls = false;
    for (let row = 0; row < values.length; row++) {
      const value = values[row];
      if (typeof value === "string") continue;
      if (value !== null && value !== undefined) throw new TypeError(`${shown(value)} is not a string`);
      nulls = true;
    }
    if (nulls) notNull(values, nullable);
    const [ends, data] = encodeTexts(nulls ? values.map((value) => value ?? "") : values);
    out.push(nulls ? validity(values) : new Uint8Array(0), bytes(ends), data);
  }
}

export const utf8 = new Utf8("u");

class Binary extends Type {
  read(reader, rows) {
    const valid = reader.buffer();
    const ends = reader.numbers(Int32Array, rows + 1);
    const data = reader.buffer();
    const values = new Array(rows);
    for (let row = 0; row < rows; row++) values[row] = data.slice(ends[row], ends[row + 1]);
    return withNulls(values, valid);
  }

  write(values, nullable, out) {
    notNull(values, nullable);
    const ends = new Int32Array(values.length + 1);
    let end = 0;
    for (let row = 0; row < values.length; row++) {
      const value = values[row];
      if (value != null && !(value instanceof Uint8Array)) throw new TypeError(`${shown(value)} is not a Uint8Array`);
      end += value == null ? 0 : value.length;
      ends[row + 1] = end;
    }
    const data = new Uint8Array(end);
    for (let row = 0; row < values.length; row++) if (values[row] != null) data.set(values[row], ends[row]);
    out.push(validity(values), bytes(ends), data);
  }
}

export const binary = new Binary("z");

class Decimal extends Type {
  constructor(precision, scale) {
    super(`d:${precision},${scale}`);
    this.limit = 10n ** BigInt(precision);
  }

  read(reader, rows) {
    const valid = reader.buffer();
    const words = reader.numbers(BigInt64Array, 2 * rows);
    const values = new Array(rows);
    for (let row = 0; row < rows; row++) values[row] = (words[2 * row + 1] << 64n) | BigInt.asUintN(64, words[2 * row]);
    return withNulls(values, valid);
  }

  write(values, nullable, out) {
    notNull(values, nullable);
    const words = new BigInt64Array(2 * values.length);
    for (let row = 0; row < values.length; row++) {
      const value = values[row];
      if (value == null) continue;
      if (typeof value !== "bigint" || value <= -this.limit || value >= this.limit) {
        throw new TypeError(`${shown(value)} is not a bigint that fits ${this.format}`);
      }
      words[2 * row] = BigInt.asIntN(64, value);
      words[2 * row + 1] = value >> 64n;
    }
    out.push(validity(values), bytes(words));
  }
}

/**
 * So many digits, so many of them behind the point. A value is a bigint in units of the last digit: of `decimal(9, 2)`,
 * 1.50 is `150n`.
 */
export function decimal(precision, scale) {
  if (!(precision >= 1 && precision <= 38 && scale >= 0 && scale <= precision)) {
    throw new RangeError(`there is no decimal(${precision}, ${scale})`);
  }
  return new Decimal(precision, scale);
}

class Nullable extends Type {
  constructor(inner) {
    super(inner.format);
    this.inner = inner;
  }
}

/** The type, or null. */
export function nullable(type) {
  if (!(type instanceof Type)) throw new TypeError(`${String(type)} is no type of SQL`);
  return type instanceof Nullable ? type : new Nullable(type);
}

/** A type without its `nullable`, and whether there was one. */
export function split(type, where) {
  if (type instanceof Nullable) return [type.inner, true];
  if (type instanceof Type) return [type, false];
  throw new TypeError(`${where}: ${String(type)} is no type of SQL`);
}

class List extends Type {
  isNested = true;

  constructor(element) {
    super("+l");
    [this.element, this.nullable] = split(element, "list");
  }

  nodes(name, nullable) {
    // In SQL any array may have a null; one that does is null where elements cannot be.
    return [{ name, format: "+l", nullable, children: 1 }, ...this.element.nodes("item", true)];
  }

  read(reader, rows) {
    const valid = reader.buffer();
    const ends = reader.numbers(Int32Array, rows + 1);
    const elements = this.element.read(reader, rows === 0 ? 0 : ends[rows]);
    const values = new Array(rows);
    // Copies: lists of different rows do not share memory.
    for (let row = 0; row < rows; row++) {
      const value = Array.from(elements.slice(ends[row], ends[row + 1]));
      values[row] = !this.nullable && value.includes(null) ? null : value;
    }
    return withNulls(values, valid);
  }

  write(values, nullable, out) {
    notNull(values, nullable);
    const ends = new Int32Array(values.length + 1);
    const elements = [];
    for (let row = 0; row < values.length; row++) {
      const value = values[row];
      if (value != null) {
        if (typeof value === "string" || typeof value[Symbol.iterator] !== "function") {
          throw new TypeError(`${shown(value)} is not an array`);
        }
        for (const element of value) elements.push(element);
      }
      ends[row + 1] = elements.length;
    }
    out.push(validity(values), bytes(ends));
    this.element.write(elements, this.nullable, out);
  }
}

/** Any number of values of a type. */
export function list(element) {
  return new List(element);
}

class Struct extends Type {
  isNested = true;

  constructor(fields) {
    super("+s");
    this.columns = new Columns(fields, "struct");
  }

  nodes(name, nullable) {
    return [{ name, format: "+s", nullable, children: this.columns.fields.length }, ...this.columns.nodes()];
  }

  read(reader, rows) {
    const valid = reader.buffer();
    return withNulls(this.columns.read(reader, rows), valid);
  }

  write(values, nullable, out) {
    notNull(values, nullable);
    out.push(validity(values));
    this.columns.write(values, out);
  }
}

/** An object of so many fields. */
export function struct(fields) {
  return new Struct(fields);
}

/** Objects as columns: one column per field. */
export class Columns {
  constructor(fields, where) {
    this.fields = Object.entries(fields).map(([name, type]) => [name, ...split(type, `${where}.${name}`)]);
    if (this.fields.length === 0) throw new TypeError(`${where} has no fields`);
    this.object = maker(this.fields.map(([name]) => name));
  }

  nodes() {
    return this.fields.flatMap(([name, type, nullable]) => type.nodes(name, nullable));
  }

  read(reader, rows) {
    const columns = this.fields.map(([, type]) => type.read(reader, rows));
    const values = this.object(columns, rows);
    this.fields.forEach(([, , nullable], at) => {
      // An object is null where a field is that cannot be.
      if (nullable || !columns[at].includes(null)) return;
      for (let row = 0; row < rows; row++) if (columns[at][row] === null) values[row] = null;
    });
    return values;
  }

  /** Nothing is asked of the fields of null objects. */
  write(values, out) {
    for (const value of values) {
      if (value != null && typeof value !== "object") throw new TypeError(`${shown(value)} is not an object`);
    }
    const nulls = values.some((value) => value == null);
    for (const [name, type, nullable] of this.fields) {
      const column = values.map((value) => value?.[name] ?? null);
      if (nulls && !nullable && values.some((value, row) => value != null && column[row] === null)) {
        throw new TypeError(`null in ${name}, where no null may be`);
      }
      type.write(column, nullable || nulls, out);
    }
  }
}

/** Objects of whatever fields there are. */
class AnyStruct extends Type {
  isNested = true;

  constructor(fields) {
    super("+s");
    this.fields = fields;
  }

  read(reader, rows) {
    const valid = reader.buffer();
    const columns = this.fields.map(([name, type]) => [name, type.read(reader, rows)]);
    const made = Array.from({ length: rows }, (_, row) => Object.fromEntries(columns.map(([name, of]) => [name, of[row]])));
    return withNulls(made, valid);
  }
}

const ANY = Object.fromEntries(
  [int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, date, timestamp, localTimestamp, bool, utf8, binary]
    .map((type) => [type.format, type]),
);

/** The types of fields in pre-order, for reading. */
export function typesOfNodes(nodes) {
  let next = 0;
  const field = () => {
    const { name, format, children } = nodes[next++];
    const inner = Array.from({ length: children }, field);
    if (format === "+l") return [name, new List(nullable(inner[0][1]))];
    if (format === "+s") return [name, new AnyStruct(inner)];
    if (format.startsWith("d:")) return [name, decimal(...format.slice(2).split(",").map(Number))];
    return [name, ANY[format]];
  };
  const fields = [];
  while (next < nodes.length) fields.push(field());
  return fields;
}

/** One type as a single column, or an object of types as several. */
export function columnsOf(types, where) {
  if (types instanceof Type) {
    const [type, nullable] = split(types, where);
    return {
      nodes: () => type.nodes("value", nullable),
      read: (reader, rows) => type.read(reader, rows),
      write: (values, out) => type.write(values, nullable, out),
    };
  }
  return new Columns(types, where);
}

/** A function that makes one object per row of columns with these names: written out, which is several times faster. */
function maker(names) {
  const fields = names.map((name, at) => `${JSON.stringify(name)}: c${at}[row]`).join(", ");
  const columns = names.map((_, at) => `c${at}`).join(", ");
  return new Function(
    "columns",
    "rows",
    `const [${columns}] = columns; const made = new Array(rows);
     for (let row = 0; row < rows; row++) made[row] = { ${fields} };
     return made;`,
  );
}

/**
 * A function that calls another one for each row from `made.length` on and pushes what it returns. `required` are the
 * places of columns that must not be null: rows where one is get null.
 */
export function looper(names, required) {
  const fields = names.map((name, at) => `${JSON.stringify(name)}: c${at}[row]`).join(", ");
  const columns = names.map((_, at) => `c${at}`).join(", ");
  const skip = required.map((at) => `c${at}[row] === null`).join(" || ");
  const call = `made.push(call({ ${fields} }));`;
  return new Function(
    "call",
    "columns",
    "rows",
    "made",
    `const [${columns}] = columns;
     for (let row = made.length; row < rows; row++) ${skip ? `if (${skip}) made.push(null); else ` : ""}${call}`,
  );
}
