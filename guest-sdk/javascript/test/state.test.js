// Aggregates, processors and migrations, with a host that is made of arrays.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  RowError,
  aggregate,
  float64,
  int64,
  listState,
  mapState,
  migration,
  nullable,
  processor,
  utf8,
  valueState,
} from "../index.js";
import { DEFINITION } from "../offered.js";
import { Reader, bytes, columnsOf } from "../types.js";

function batch(types, values) {
  const buffers = [];
  columnsOf(types, "test").write(values, buffers);
  return { rows: values.length, buffers };
}

const read = (types, { rows, buffers }) => Array.from(columnsOf(types, "test").read(new Reader(buffers), rows));
const u32 = (...numbers) => bytes(Uint32Array.from(numbers));
const numbersOf = (buffer) => [...new Uint32Array(buffer.buffer, buffer.byteOffset, buffer.length / 4)];

const state = { count: int64, sum: float64 };
const mean = aggregate({
  arguments: { x: float64 },
  result: nullable(float64),
  state,
  initial: () => ({ count: 0n, sum: 0 }),
  accumulate(state, { x }) {
    state.count++;
    if (x < 0) throw new RowError("negative");
    state.sum += x;
  },
  merge(state, other) {
    state.count += other.count;
    state.sum += other.sum;
  },
  evaluate: ({ count, sum }) => (count === 0n ? null : sum / Number(count)),
});

test("groups are accumulated, merged and evaluated", () => {
  const definition = mean[DEFINITION];
  const { states, rowErrors } = definition.accumulate(3, u32(0, 2, 0), batch(float64, [1, 5, 3]));
  assert.deepEqual(rowErrors, []);
  assert.deepEqual(read(state, states), [
    { count: 2n, sum: 4 },
    { count: 0n, sum: 0 },
    { count: 1n, sum: 5 },
  ]);
  const merged = definition.merge(2, u32(1, 0, 1), states);
  const { values } = definition.evaluate(merged.states);
  assert.deepEqual(read(nullable(float64), values), [null, 3]);
});

test("a row that fails leaves no trace in the state", () => {
  const { states, rowErrors } = mean[DEFINITION].accumulate(1, u32(0, 0, 0, 0), batch(float64, [1, -1, 2, -2]));
  assert.deepEqual(read(state, states), [{ count: 2n, sum: 3 }]);
  assert.deepEqual(rowErrors.map(({ row }) => row), [1, 3]);
});

const page = { page: utf8 };
const visits = processor({
  key: { user: utf8 },
  input: page,
  output: { n: int64, pages: int64 },
  state: { count: valueState(int64), history: listState(page, { ttlMs: 5 }), perPage: mapState(page, int64) },
  time: "processing",
  *process({ user }, rows, { count, history, perPage }, context) {
    for (const row of rows) {
      if (row.page === "boom") throw new RowError(`${user} met boom`);
      count.set((count.get() ?? 0n) + 1n);
      history.append(row);
      perPage.put(row, (perPage.get(row) ?? 0n) + 1n);
    }
    if (rows[0].page === "forget") {
      count.clear();
      perPage.remove({ page: "a" });
    }
    for (const timer of context.timers) context.deleteTimer(timer);
    context.registerTimer(context.batchTimeMs + 10n);
    yield { n: count.get() ?? 0n, pages: BigInt(perPage.size) };
  },
  expire(key, due, state, context) {
    context.registerTimer(due.at(-1) + 1n);
    return [{ n: BigInt(due.length), pages: BigInt(context.timers.length) }];
  },
});

const none = { rows: 0, buffers: [] };
const timers = (...pairs) => ({
  keyOfTimer: u32(...pairs.map(([key]) => key)),
  dueMs: bytes(BigInt64Array.from(pairs, ([, due]) => due)),
});

function invocation(users, rows) {
  return {
    keys: batch({ user: utf8 }, users.map((user) => ({ user }))),
    keyOfRow: u32(...rows.map(([key]) => key)),
    rows: batch(page, rows.map(([, page]) => ({ page }))),
    state: [
      { keyOfEntry: u32(0), mapKeys: none, columns: batch(int64, [5n]) },
      { keyOfEntry: u32(0, 0), mapKeys: none, columns: batch(page, [{ page: "a" }, { page: "a" }]) },
      { keyOfEntry: u32(0), mapKeys: batch(page, [{ page: "a" }]), columns: batch(int64, [2n]) },
    ],
    timers: timers(...[[0, 7n], [0, 9n], [1, 8n]].filter(([key]) => key < users.length)),
    batchTimeMs: 100,
    watermarkMs: null,
  };
}

const run = (call, method = "process", due) =>
  visits[DEFINITION].run(call, method, due ? null : visits[DEFINITION].input, due);

test("each key sees its rows and its state", () => {
  const answer = run(invocation(["ann", "bob"], [[0, "a"], [0, "b"], [1, "a"]]));
  assert.deepEqual(read({ n: int64, pages: int64 }, answer.rows), [{ n: 7n, pages: 2n }, { n: 1n, pages: 1n }]);
  assert.deepEqual(numbersOf(answer.keyOfRow), [0, 1]);
  const [count, history, perPage] = answer.changes;
  assert.deepEqual(read(int64, count.put.columns), [7n, 1n]);
  assert.deepEqual(read(page, history.put.columns), [{ page: "a" }, { page: "b" }, { page: "a" }]);
  assert.deepEqual(read(page, perPage.put.mapKeys), [{ page: "a" }, { page: "b" }, { page: "a" }]);
  assert.deepEqual(read(int64, perPage.put.columns), [3n, 1n, 1n]);
  assert.deepEqual(numbersOf(answer.deletedTimers.keyOfTimer), [0, 0, 1]);
  assert.deepEqual(numbersOf(answer.registeredTimers.keyOfTimer), [0, 1]);
});

test("what is cleared and removed is told", () => {
  const [count, , perPage] = run(invocation(["ann"], [[0, "forget"]])).changes;
  assert.deepEqual([numbersOf(count.cleared), count.put.columns.rows], [[0], 0]);
  assert.deepEqual(read(page, perPage.removed), [{ page: "a" }]);
});

test("a key that fails changes nothing", () => {
  const answer = run(invocation(["ann", "bob"], [[0, "a"], [0, "boom"], [1, "a"]]));
  assert.deepEqual(answer.keyErrors, [{ row: 0, message: "ann met boom" }]);
  assert.deepEqual(numbersOf(answer.keyOfRow), [1]);
  for (const { put } of answer.changes) assert.deepEqual(numbersOf(put.keyOfEntry), [1]);
});

test("timers that are due are gone for the call", () => {
  const answer = run(invocation(["ann", "bob"], []), "expire", timers([0, 7n], [1, 8n]));
  assert.deepEqual(read({ n: int64, pages: int64 }, answer.rows), [{ n: 1n, pages: 2n }, { n: 1n, pages: 1n }]);
  assert.equal(answer.deletedTimers.dueMs.length, 0);
  assert.deepEqual([...new BigInt64Array(answer.registeredTimers.dueMs.buffer)], [8n, 9n]);
});

test("state is migrated row by row", () => {
  const grow = migration({
    state: "mean",
    fromId: "1",
    from: { n: int64 },
    toId: "2",
    to: { n: int64, at: nullable(int64) },
    migrate({ n }) {
      if (n === 0n) throw new RowError("nothing to grow");
      return { n: n + 1n, at: null };
    },
  });
  const { rows, rowErrors } = grow[DEFINITION].migrate(batch({ n: int64 }, [{ n: 1n }, { n: 0n }, { n: 3n }]));
  assert.deepEqual(rowErrors, [{ row: 1, message: "nothing to grow" }]);
  const made = read({ n: int64, at: nullable(int64) }, rows);
  assert.deepEqual([made[0], made[2]], [{ n: 2n, at: null }, { n: 4n, at: null }]);
});
