// Sources: offsets, pages, and what does not fit.

import assert from "node:assert/strict";
import { test } from "node:test";

import { int64, nullable, source, utf8 } from "../index.js";
import { DEFINITION } from "../offered.js";
import { Reader } from "../types.js";

const numbers = source({
  name: "numbers",
  columns: { n: int64, text: nullable(utf8) },
  options: ["count", "page?"],
  initialOffset: () => "0",
  latestOffset(options, start, { until, maxRows }) {
    const end = BigInt(until ?? options.count);
    const most = maxRows === null ? end : BigInt(start) + maxRows;
    return String(most < end ? most : end);
  },
  read(options, start, end, cursor) {
    const begin = Number(cursor ?? start);
    const last = Math.min(begin + 2, Number(end));
    const rows = [];
    for (let n = begin; n < last; n++) rows.push({ n: BigInt(n), text: n % 2 ? null : `${n}` });
    return last < Number(end) ? { rows, next: String(last) } : rows;
  },
});
const definition = numbers[DEFINITION];

test("a source is described by its columns and options", () => {
  assert.deepEqual(definition.options, [{ name: "count", required: true }, { name: "page", required: false }]);
  assert.deepEqual(definition.columns.nodes().map(({ name }) => name), ["n", "text"]);
});

test("pages lead to each other", () => {
  const options = [["count", "5"]];
  assert.equal(definition.initialOffset(options), "0");
  assert.equal(definition.latestOffset(options, "0", { maxRows: 3 }), "3");
  assert.equal(definition.latestOffset(options, "0", { until: "4", maxRows: null }), "4");
  const rows = [];
  let cursor = null;
  do {
    const page = definition.read(options, "0", "5", cursor);
    rows.push(...definition.columns.read(new Reader(page.rows.buffers), page.rows.rows));
    cursor = page.next;
  } while (cursor !== null);
  assert.deepEqual(rows.map(({ n }) => n), [0n, 1n, 2n, 3n, 4n]);
  assert.deepEqual(rows.map(({ text }) => text), ["0", null, "2", null, "4"]);
  definition.commit(options, "3");
});

test("what is no offset is told", () => {
  const wrong = source({ ...numbers, initialOffset: () => 0, read: () => ({ rows: [], next: 7 }) })[DEFINITION];
  assert.throws(() => wrong.initialOffset([]), /gave the offset 0, which is no text/);
  assert.throws(() => wrong.read([], "0", "1"), /gave the cursor 7/);
  assert.throws(() => source({ columns: { n: int64 } }), /has a method initialOffset/);
});
