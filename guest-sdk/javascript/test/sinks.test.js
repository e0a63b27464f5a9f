// Sinks, with a host that is made of arrays.
import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidInput, RowError, int64, list, nullable, sink, struct, toBytes, toText, utf8 } from "../index.js";
import { DEFINITION } from "../offered.js";
import { columnsOf } from "../types.js";

const columns = { id: int64, item: nullable(utf8) };
const target = { queryId: "q", partition: 2, batch: 7n, options: { url: "u" }, mode: "append" };

function batch(types, values) {
  const buffers = [];
  columnsOf(types, "test").write(values, buffers);
  return { rows: values.length, buffers };
}

let told = [];
const definition = {
  name: "orders",
  columns,
  options: { url: true },
  initial: () => ({ lines: [] }),
  open(self, { partition, batch, options }) {
    self.lines.push(`${partition}/${batch} ${options.url}`);
    return options.skip === undefined;
  },
  process(self, { id, item }) {
    if (item === null) throw new RowError("no item");
    if (item === "worst") throw new InvalidInput("the worst row");
    self.lines.push(`${id} ${item}`);
  },
  close(self, failure) {
    told = [...self.lines, `close ${failure}`];
  },
};

test("a sink is opened, given each row and closed", () => {
  const session = sink(definition)[DEFINITION].begin();
  assert.equal(session.open(target, []), true);
  const rows = [{ id: 1n, item: "tea" }, { id: 2n, item: null }];
  assert.deepEqual(session.process(batch(columns, rows)), [{ row: 1, message: "no item" }]);
  session.close(null);
  assert.deepEqual(told, ["2/7 u", "1 tea", "close null"]);
  assert.throws(() => session.process(batch(columns, [{ id: 3n, item: "worst" }])), InvalidInput);
});

test("each partition begins anew", () => {
  const made = sink(definition)[DEFINITION];
  for (const partition of [0, 1]) {
    const session = made.begin();
    session.open({ ...target, partition, options: { url: "u", skip: "" } }, []);
    session.close("why");
    assert.deepEqual(told, [`${partition}/7 u`, "close why"]);
  }
});

test("a sink without columns takes any", () => {
  const rows = [];
  const any = sink({ ...definition, columns: undefined, process: (_, row) => void rows.push(row) })[DEFINITION];
  const types = { a: nullable(int64), l: list(nullable(struct({ t: utf8 }))) };
  const session = any.begin();
  const given = [
    { a: 1n, l: [{ t: "x" }, null] },
    { a: null, l: [] },
  ];
  assert.deepEqual(any.nodes(), []);
  session.open(target, columnsOf(types, "test").nodes());
  assert.deepEqual(session.process(batch(types, given)), []);
  assert.deepEqual(rows, given);
});

test("two phases are three methods", () => {
  const methods = { prepare: ({ lines }) => toBytes(lines.join()), commit() {}, abort() {} };
  const made = sink({ ...definition, ...methods })[DEFINITION];
  assert.equal(made.isTransactional, true);
  const session = made.begin();
  session.open(target, []);
  assert.equal(toText(session.prepare()), "2/7 u");
  assert.throws(() => sink({ ...definition, prepare: methods.prepare }), TypeError);
  assert.throws(() => sink({ ...definition, modes: ["sometimes"] }), TypeError);
});
