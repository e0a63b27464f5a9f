// Functions over columns: nulls, rows that fail, batches.
import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidInput, RowError, float64, int64, list, nullable, scalar, table, utf8 } from "../index.js";
import { DEFINITION, offer, offered, snake } from "../offered.js";
import { Columns, Reader, split } from "../types.js";

function batch(...columns) {
  const buffers = [];
  for (const [type, values] of columns) split(type, "test")[0].write(values, true, buffers);
  return { rows: columns[0][1].length, buffers };
}

function call(itself, ...columns) {
  const definition = itself[DEFINITION];
  const { values, rowErrors } = definition.call(batch(...columns));
  return [Array.from(definition.result.read(new Reader(values.buffers), values.rows)), rowErrors];
}

test("one value per row", () => {
  const heat = scalar({ level: int64, visits: int64 }, float64, ({ level, visits }) => 0.5 * Number(level) + Number(visits));
  assert.deepEqual(call(heat, [int64, [2n, 4n]], [int64, [1n, 0n]]), [[2, 2], []]);
  assert.equal(heat({ level: 2n, visits: 1n }), 2, "it stays an ordinary function");
});

test("a null gives null where the function has no use for it", () => {
  const either = scalar({ a: nullable(int64), b: int64 }, int64, ({ a, b }) => a ?? b);
  assert.deepEqual(call(either, [int64, [null, 1n, null]], [int64, [7n, null, null]]), [[7n, null, null], []]);
});

test("a list with a null is null where its elements cannot be", () => {
  const total = scalar({ x: list(int64) }, int64, ({ x }) => x.reduce((a, b) => a + b, 0n));
  assert.deepEqual(call(total, [list(nullable(int64)), [[1n, null], [2n, 3n], []]]), [[null, 5n, 0n], []]);
});

test("rows that fail are named and the others go on", () => {
  const picky = scalar({ x: int64 }, int64, ({ x }) => {
    if (x === 13n) throw new RowError("13 is refused");
    return 1n / x;
  });
  const [values, errors] = call(picky, [int64, [1n, 13n, 0n, 2n]]);
  assert.deepEqual(values, [1n, null, null, 0n]);
  assert.deepEqual(errors[0], { row: 1, message: "13 is refused" });
  assert.equal(errors[1].row, 2);
  assert.match(errors[1].message, /RangeError: Division by zero\n {2}at .*functions.test.js:\d+/s);
});

test("results that do not fit are rows that fail", () => {
  const double = scalar({ x: int64 }, int64, ({ x }) => 2n * x);
  const [values, errors] = call(double, [int64, [1n, 2n ** 62n, 3n]]);
  assert.deepEqual(values, [2n, null, 6n]);
  assert.equal(errors.length, 1);
  assert.match(errors[0].message, /does not fit/);
});

test("a refused call is refused as a whole", () => {
  const refuse = scalar({ x: int64 }, int64, () => {
    throw new InvalidInput("no");
  });
  assert.throws(() => call(refuse, [int64, [1n]]), InvalidInput);
});

test("a batch function gets columns", () => {
  const doubled = scalar.batch({ x: int64 }, int64, ({ x }, rows) => BigInt64Array.from(x, (value) => 2n * value).subarray(0, rows));
  assert.deepEqual(call(doubled, [int64, [1n, 2n, 3n]]), [[2n, 4n, 6n], []]);
  const short = scalar.batch({ x: int64 }, int64, () => [1n]);
  assert.throws(() => call(short, [int64, [1n, 2n]]), /1 values were returned for 2 rows/);
});

test("rows of a table know where they came from", () => {
  const words = table({ line: utf8 }, { position: float64, text: utf8 }, function* ({ line }) {
    if (line === "bad") {
      yield { position: 0, text: "lost" };
      throw new RowError("a bad line");
    }
    let position = 0;
    for (const text of line.split(" ")) yield { position: position++, text };
  });
  const definition = words[DEFINITION];
  const { inputRows, rows, rowErrors } = definition.call(batch([utf8, ["to be", "bad", "or"]]));
  assert.deepEqual([...new Uint32Array(inputRows.buffer)], [0, 0, 2]);
  assert.deepEqual(definition.columns.read(new Reader(rows.buffers), rows.rows), [
    { position: 0, text: "to" },
    { position: 1, text: "be" },
    { position: 0, text: "or" },
  ]);
  assert.deepEqual(rowErrors, [{ row: 1, message: "a bad line" }]);
});

test("a row that does not fit takes all rows of its argument with it", () => {
  const powers = table({ x: int64 }, { power: int64 }, ({ x }) => [x, x ** 40n]);
  const { inputRows, rowErrors } = powers[DEFINITION].call(batch([int64, [1n, 9n, 2n]]));
  assert.deepEqual([...new Uint32Array(inputRows.buffer)], [0, 0, 2, 2]);
  assert.deepEqual(rowErrors.map(({ row }) => row), [1]);
});

test("what a module exports is offered under names of SQL", () => {
  assert.deepEqual(["wordCount", "WordCount", "i64"].map(snake), ["word_count", "word_count", "i64"]);
  const one = scalar({ x: int64 }, int64, ({ x }) => x);
  const two = scalar({ x: int64 }, int64, ({ x }) => x, { name: "other" });
  offer({ oneOfThem: one, two, helper: () => 7, constant: 7 });
  assert.deepEqual(offered.function.map(({ name }) => name), ["one_of_them", "other"]);
  assert.throws(() => offer({ other: scalar({}, int64, () => 1n) }), /two functions `other`/);
});

test("columns of a struct are read as objects", () => {
  const columns = new Columns({ a: int64, "b c": utf8 }, "test");
  const buffers = [];
  columns.write([{ a: 1n, "b c": "x" }], buffers);
  assert.deepEqual(columns.read(new Reader(buffers), 1), [{ a: 1n, "b c": "x" }]);
});
