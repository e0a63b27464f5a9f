// Stateful processors: methods that see all rows of a key together with what they stored under that key before.

import { CallError, textOf } from "./errors.js";
import { DEFINITION, snake, sqlName } from "./offered.js";
import { Reader, bytes, columnsOf, numbers } from "./types.js";

class Variable {
  constructor(kind, columns, mapKey, options) {
    this.kind = kind;
    this.columns = columnsOf(columns, "columns");
    this.mapKey = mapKey === null ? null : columnsOf(mapKey, "map key");
    this.stateId = options?.stateId ?? "1";
    this.ttlMs = options?.ttlMs ?? null;
  }
}

/** One row or none per key. */
export const valueState = (columns, options) => new Variable("value", columns, null, options);
/** Any number of rows per key, in the order in which they were appended. */
export const listState = (columns, options) => new Variable("list", columns, null, options);
/** Any number of rows per key, each under a map key of its own. */
export const mapState = (mapKey, columns, options) => new Variable("map", columns, mapKey, options);

/** A value of one key. */
class ValueState {
  #row;
  #cleared = false;
  #put = false;

  constructor(entries) {
    this.#row = entries.length > 0 ? entries[0][1] : null;
  }

  get() {
    return this.#row;
  }

  set(row) {
    if (row === null || row === undefined) throw new TypeError("null is no row: use clear()");
    this.#row = row;
    this.#put = true;
  }

  clear() {
    this.#row = null;
    this.#put = false;
    this.#cleared = true;
  }

  changes() {
    return { cleared: this.#cleared, removed: [], put: this.#put ? [[null, this.#row]] : [] };
  }
}

/** A list of one key. */
class ListState {
  #rows;
  #cleared = false;
  #appended = [];

  constructor(entries) {
    this.#rows = entries.map(([, row]) => row);
  }

  get length() {
    return this.#rows.length;
  }

  at(index) {
    return this.#rows.at(index) ?? null;
  }

  [Symbol.iterator]() {
    return this.#rows[Symbol.iterator]();
  }

  append(row) {
    this.#rows.push(row);
    this.#appended.push([null, row]);
  }

  clear() {
    this.#rows = [];
    this.#appended = [];
    this.#cleared = true;
  }

  changes() {
    return { cleared: this.#cleared, removed: [], put: this.#appended };
  }
}

/** A map of one key. Map keys are equal when their fields are. */
class MapState {
  #rows = new Map();
  #cleared = false;
  #removed = new Map();
  #put = new Map();

  constructor(entries) {
    for (const [mapKey, row] of entries) this.#rows.set(frozen(mapKey), [mapKey, row]);
  }

  get size() {
    return this.#rows.size;
  }

  get(mapKey) {
    return this.#rows.get(frozen(mapKey))?.[1] ?? null;
  }

  has(mapKey) {
    return this.#rows.has(frozen(mapKey));
  }

  [Symbol.iterator]() {
    return [...this.#rows.values()][Symbol.iterator]();
  }

  put(mapKey, row) {
    const key = frozen(mapKey);
    this.#rows.set(key, [mapKey, row]);
    this.#removed.delete(key);
    this.#put.set(key, [mapKey, row]);
  }

  remove(mapKey) {
    const key = frozen(mapKey);
    if (!this.#rows.delete(key)) return;
    this.#put.delete(key);
    this.#removed.set(key, mapKey);
  }

  clear() {
    this.#rows.clear();
    this.#removed.clear();
    this.#put.clear();
    this.#cleared = true;
  }

  changes() {
    return { cleared: this.#cleared, removed: [...this.#removed.values()], put: [...this.#put.values()] };
  }
}

function frozen(value) {
  return JSON.stringify(value, (_, part) =>
    typeof part === "bigint" ? `${part}n` : part instanceof Uint8Array ? Array.from(part) : part,
  );
}

const STATES = { value: ValueState, list: ListState, map: MapState };

/** The times of a call, and the timers of its key. */
class Context {
  #before;
  #timers;

  constructor(batchTimeMs, watermarkMs, timers) {
    this.batchTimeMs = batchTimeMs;
    this.watermarkMs = watermarkMs;
    this.#before = new Set(timers);
    this.#timers = new Set(timers);
  }

  /** When the timers of this key are due, ascending. */
  get timers() {
    return ascending(this.#timers);
  }

  registerTimer(dueMs) {
    if (typeof dueMs !== "bigint") throw new TypeError(`${String(dueMs)} is not a bigint`);
    this.#timers.add(BigInt.asIntN(64, dueMs));
  }

  deleteTimer(dueMs) {
    this.#timers.delete(dueMs);
  }

  changes() {
    const without = (these, those) => ascending([...these].filter((timer) => !those.has(timer)));
    return { deleted: without(this.#before, this.#timers), registered: without(this.#timers, this.#before) };
  }
}

const ascending = (timers) => [...timers].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));

/**
 * 64-bit numbers of the interface itself come as whatever the engine's bindings make of them; times in milliseconds fit
 * all of that.
 */
const milliseconds = (value) => (value === null || value === undefined ? null : BigInt(value));

class Processor {
  kind = "processor";

  constructor(definition) {
    if (typeof definition.process !== "function") throw new TypeError("a processor has a method process");
    this.itself = definition;
    this.name = definition.name;
    this.key = columnsOf(definition.key, "key");
    this.input = columnsOf(definition.input, "input");
    this.output = columnsOf(definition.output, "output");
    this.initial = definition.initial ? columnsOf(definition.initial, "initial") : null;
    this.time = definition.time ?? "none";
    if (!["none", "processing", "event"].includes(this.time)) throw new TypeError("time is none, processing or event");
    this.outputModes = definition.outputModes ?? ["append", "update"];
    this.variables = Object.entries(definition.state ?? {}).map(([property, variable]) => {
      if (!(variable instanceof Variable)) throw new TypeError(`${property} is no state variable`);
      variable.property = property;
      variable.name = sqlName(snake(property));
      return variable;
    });
  }

  run(call, method, columns, due) {
    const keys = this.key.read(new Reader(call.keys.buffers), call.keys.rows);
    const rows = perKey(keys, call.keyOfRow, columns ? columns.read(new Reader(call.rows.buffers), call.rows.rows) : []);
    const timers = timersOf(keys, call.timers);
    const dueOf = due ? timersOf(keys, due) : null;
    const state = this.variables.map((variable, at) => entriesOf(keys, variable, call.state[at]));
    const outcome = {
      rows: [],
      keyOfRow: [],
      changes: this.variables.map(() => ({ cleared: [], removed: [], put: [] })),
      deleted: [],
      registered: [],
      keyErrors: [],
    };
    for (let number = 0; number < keys.length; number++) {
      const handles = this.variables.map((variable, at) => new STATES[variable.kind](state[at][number]));
      const byName = Object.fromEntries(this.variables.map((variable, at) => [variable.property, handles[at]]));
      const given = dueOf ? dueOf[number] : rows[number];
      // The host deletes what is due: for the call it is not there any more.
      const waiting = dueOf ? timers[number].filter((timer) => !given.includes(timer)) : timers[number];
      const context = new Context(milliseconds(call.batchTimeMs), milliseconds(call.watermarkMs), waiting);
      try {
        const made = [...(this.itself[method](keys[number], given, byName, context) ?? [])];
        this.#add(outcome, number, made, handles, context);
      } catch (error) {
        if (error instanceof CallError) throw error;
        outcome.keyErrors.push({ row: number, message: textOf(error) });
      }
    }
    return this.#answer(outcome);
  }

  /** Everything of one key, or, when something does not fit its columns, nothing. */
  #add(outcome, number, made, handles, context) {
    this.output.write(made, []);
    const changes = this.variables.map((variable, at) => {
      const { cleared, removed, put } = handles[at].changes();
      variable.columns.write(put.map(([, row]) => row), []);
      variable.mapKey?.write([...put.map(([mapKey]) => mapKey), ...removed], []);
      return { cleared, removed, put };
    });
    const { deleted, registered } = context.changes();
    for (const row of made) {
      outcome.rows.push(row);
      outcome.keyOfRow.push(number);
    }
    changes.forEach(({ cleared, removed, put }, at) => {
      const to = outcome.changes[at];
      if (cleared) to.cleared.push(number);
      for (const mapKey of removed) to.removed.push([number, mapKey]);
      for (const [mapKey, row] of put) to.put.push([number, mapKey, row]);
    });
    for (const due of deleted) outcome.deleted.push([number, due]);
    for (const due of registered) outcome.registered.push([number, due]);
  }

  #answer(outcome) {
    const batch = (columns, rows) => {
      const buffers = [];
      columns.write(rows, buffers);
      return { rows: rows.length, buffers };
    };
    const none = { rows: 0, buffers: [] };
    const u32 = (numbers) => bytes(Uint32Array.from(numbers));
    const timers = (timers) => ({
      keyOfTimer: u32(timers.map(([key]) => key)),
      dueMs: bytes(BigInt64Array.from(timers, ([, due]) => due)),
    });
    return {
      rows: batch(this.output, outcome.rows),
      keyOfRow: u32(outcome.keyOfRow),
      changes: outcome.changes.map(({ cleared, removed, put }, at) => {
        const { columns, mapKey } = this.variables[at];
        return {
          cleared: u32(cleared),
          keyOfRemoved: u32(removed.map(([key]) => key)),
          removed: mapKey ? batch(mapKey, removed.map(([, key]) => key)) : none,
          put: {
            keyOfEntry: u32(put.map(([key]) => key)),
            mapKeys: mapKey ? batch(mapKey, put.map(([, key]) => key)) : none,
            columns: batch(columns, put.map(([, , row]) => row)),
          },
        };
      }),
      deletedTimers: timers(outcome.deleted),
      registeredTimers: timers(outcome.registered),
      keyErrors: outcome.keyErrors,
    };
  }
}

function perKey(keys, keyOf, values) {
  const of = keys.map(() => []);
  const key = numbers(Uint32Array, keyOf, values.length);
  for (let at = 0; at < values.length; at++) of[key[at]].push(values[at]);
  return of;
}

function timersOf(keys, { keyOfTimer, dueMs }) {
  return perKey(keys, keyOfTimer, numbers(BigInt64Array, dueMs, dueMs.length / 8));
}

function entriesOf(keys, variable, entries) {
  const { rows, buffers } = entries.columns;
  const values = variable.columns.read(new Reader(buffers), rows);
  const mapKeys = variable.mapKey?.read(new Reader(entries.mapKeys.buffers), rows);
  return perKey(keys, entries.keyOfEntry, Array.from(values, (value, at) => [mapKeys ? mapKeys[at] : null, value]));
}

/** A stateful processor. What it returns is what it got: its methods are tested as they are. */
export function processor(definition) {
  return { ...definition, [DEFINITION]: new Processor(definition) };
}
