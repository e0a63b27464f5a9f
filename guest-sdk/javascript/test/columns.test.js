// Columns go to buffers and come back.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as sdk from "../index.js";
import { Reader, split } from "../types.js";

const { nullable, list, struct, decimal } = sdk;

function write(type, values, isNullable = true) {
  const buffers = [];
  split(type, "test")[0].write(values, isNullable, buffers);
  return buffers;
}

function back(type, values) {
  const reader = new Reader(write(type, values));
  const read = Array.from(split(type, "test")[0].read(reader, values.length));
  assert.equal(reader.buffer(), undefined, "a buffer was not read");
  return read;
}

test("every type comes back over its full range", () => {
  const everything = struct({
    flag: sdk.bool,
    text: nullable(sdk.utf8),
    numbers: list(nullable(sdk.int64)),
    inner: struct({ at: sdk.timestamp, bytes: sdk.binary }),
  });
  const one = { flag: true, text: null, numbers: [1n, null], inner: { at: 3n, bytes: new Uint8Array([7]) } };
  const two = { flag: false, text: "é", numbers: [], inner: { at: -1n, bytes: new Uint8Array(0) } };
  const nines = 10n ** 38n - 1n;
  for (const [type, values] of [
    [sdk.bool, [true, false, null, true, false, true, true, true, false]],
    [sdk.int8, [-128, 127, null]],
    [sdk.int16, [-32768, 32767]],
    [sdk.int32, [-2147483648, null, 2147483647]],
    [sdk.int64, [-(2n ** 63n), 2n ** 63n - 1n, null, 9007199254740993n]],
    [sdk.uint8, [0, 255]],
    [sdk.uint16, [0, 65535]],
    [sdk.uint32, [0, 4294967295]],
    [sdk.uint64, [0n, 2n ** 64n - 1n]],
    [sdk.float32, [0.5, -0, Infinity, null]],
    [sdk.float64, [0.1, -0, NaN, -Infinity, 5e-324]],
    [sdk.utf8, ["", null, "plain", "日本 🦀", "\0", "\ufeffmark"]],
    [sdk.binary, [new Uint8Array([255, 0]), null, new Uint8Array(0)]],
    [sdk.date, [-2147483648, 2147483647]],
    [sdk.timestamp, [-(2n ** 63n), 2n ** 63n - 1n]],
    [decimal(38, 10), [nines, -nines, null, 0n, -1n, 1n << 64n, -(1n << 64n)]],
    [list(nullable(sdk.utf8)), [["a", null], null, [], ["bc"]]],
    [list(nullable(list(nullable(sdk.float64)))), [[[1, null], null, []], null]],
    [everything, [one, null, two]],
    [list(nullable(everything)), [[null, one], null, [], [two]]],
  ]) {
    assert.deepEqual(back(type, values), values);
    assert.deepEqual(back(type, []), []);
  }
});

test("values that do not fit are refused", () => {
  for (const [type, value] of [
    [sdk.int8, 128],
    [sdk.int64, 2n ** 63n],
    [sdk.int64, 1],
    [sdk.int32, 1n],
    [sdk.int32, 1.5],
    [sdk.uint64, -1n],
    [sdk.float64, "1"],
    [sdk.utf8, 1],
    [sdk.utf8, "\ud800"],
    [sdk.bool, 1],
    [sdk.binary, "text"],
    [decimal(3, 1), 1000n],
    [list(sdk.int32), [null]],
    [list(sdk.utf8), "text"],
    [struct({ a: sdk.int32 }), { b: 1 }],
  ]) {
    assert.throws(() => write(type, [value]), `${type.format} ${String(value)}`);
  }
  assert.throws(() => write(sdk.int32, [null], false));
});

test("buffers are those of the interface's document", () => {
  const [valid, ends, bytes] = write(sdk.utf8, ["to be", null, "or"]);
  assert.deepEqual([...valid], [5]);
  assert.deepEqual([...new Int32Array(ends.buffer, ends.byteOffset, 4)], [0, 5, 5, 7]);
  assert.equal(new TextDecoder().decode(bytes), "to beor");
});

test("buffers that begin anywhere are read", () => {
  const shifted = write(sdk.int64, [1n, 2n]).map((bytes) => {
    const moved = new Uint8Array(bytes.length + 3).subarray(3);
    moved.set(bytes);
    return moved;
  });
  assert.deepEqual(Array.from(sdk.int64.read(new Reader(shifted), 2)), [1n, 2n]);
});

test("what is no type is told", () => {
  assert.throws(() => sdk.scalar({ x: "int" }, sdk.int64, (row) => row.x), /arguments.x: int is no type of SQL/);
  assert.throws(() => decimal(39, 0));
  assert.throws(() => nullable(7));
});
