// The plugin of `tests/languages` in TypeScript.
import {
  type Handles,
  InvalidInput,
  RowError,
  type Type,
  Unavailable,
  aggregate,
  binary,
  bool,
  date,
  decimal,
  float32,
  float64,
  int8,
  int16,
  int32,
  int64,
  list,
  listState,
  localTimestamp,
  log,
  mapState,
  nullable,
  processor,
  scalar,
  source,
  struct,
  table,
  timestamp,
  uint8,
  uint16,
  uint32,
  uint64,
  utf8,
  valueState,
} from "millstream-sdk";

const everything = {
  flag: bool,
  small: nullable(int8),
  text: nullable(utf8),
  numbers: list(int64),
  inner: struct({ at: timestamp, bytes: binary }),
};

const echo = <T>(type: Type<T>) => scalar({ x: nullable(type) }, nullable(type), ({ x }) => x);

export const echo_bool = echo(bool);
export const echo_i8 = echo(int8);
export const echo_u8 = echo(uint8);
export const echo_i16 = echo(int16);
export const echo_u16 = echo(uint16);
export const echo_i32 = echo(int32);
export const echo_u32 = echo(uint32);
export const echo_i64 = echo(int64);
export const echo_u64 = echo(uint64);
export const echo_f32 = echo(float32);
export const echo_f64 = echo(float64);
export const echo_decimal = echo(decimal(38, 10));
export const echo_utf8 = echo(utf8);
export const echo_binary = echo(binary);
export const echo_date = echo(date);
export const echo_timestamp = echo(timestamp);
export const echo_local_timestamp = echo(localTimestamp);
export const echo_list = echo(list(nullable(utf8)));
export const echo_lists = echo(list(nullable(list(nullable(float64)))));
export const echo_struct = echo(struct(everything));
export const echo_structs = echo(list(nullable(struct(everything))));

export const add = scalar({ a: int64, b: int64 }, int64, ({ a, b }) => {
  const sum = a + b;
  if (BigInt.asIntN(64, sum) !== sum) throw new RowError(`${a} + ${b} does not fit`);
  return sum;
});

export const heat = scalar(
  { level: int64, visits: int64 },
  float64,
  ({ level, visits }) => 0.1 * Number(level) + 0.9 * Number(visits),
);

export const shout = scalar({ text: utf8 }, utf8, ({ text }) => text.replace(/[a-z]+/g, (s) => s.toUpperCase()) + "!");

const codePoints = (text: string): number => {
  let count = 0;
  for (const _ of text) count++;
  return count;
};

export const length = scalar({ text: utf8 }, int64, ({ text }) => BigInt(codePoints(text)));

export const reversed = scalar({ x: binary }, binary, ({ x }) => x.reverse());

export const negate = scalar({ x: decimal(38, 10) }, decimal(38, 10), ({ x }) => -x);

export const total = scalar({ numbers: list(nullable(int64)) }, nullable(int64), ({ numbers }) => {
  const there = numbers.filter((number) => number !== null);
  return there.length === 0 ? null : there.reduce((a, b) => a + b);
});

export const orZero = scalar({ x: nullable(int64) }, int64, ({ x }) => x ?? 0n);

export const nullIfOdd = scalar({ x: int64 }, nullable(int64), ({ x }) => (x % 2n === 0n ? x : null));

export const seven = scalar({}, int32, () => 7);

export const repeated = scalar({ n: int64 }, utf8, ({ n }) => "x".repeat(Number(n)));

export const picky = scalar({ x: int64 }, int64, ({ x }) => {
  if (x === 13n) throw new RowError("13 is refused");
  return x;
});

export const throws = scalar({ x: int64 }, int64, ({ x }) => {
  if (x === 13n) throw new Error("thrown on purpose: 13");
  return x;
});

export const refuses = scalar({ x: int64 }, int64, ({ x }) => {
  if (x === 13n) throw new Unavailable("the world is away");
  return x;
});

export const loops = scalar({ x: int64 }, int64, ({ x }) => {
  while (x === 13n);
  return x;
});

export const eats = scalar({ x: int64 }, int64, ({ x }) => {
  const eaten: Uint8Array[] = [];
  while (x === 13n) eaten.push(new Uint8Array(1 << 20).fill(13));
  return x;
});

const deeper = (x: bigint): bigint => deeper(x + 1n) + 1n;

export const dives = scalar({ x: int64 }, int64, ({ x }) => (x === 13n ? deeper(x) : x));

export const logs = scalar({ text: utf8 }, int64, ({ text }) => {
  log.info(text);
  return BigInt(codePoints(text));
});

const split = (line: string): string[] => line.split(" ").filter((word) => word !== "");

export const words = table({ line: utf8 }, { word: utf8 }, ({ line }) => split(line));

export const numbered = table({ line: utf8 }, { position: int32, word: nullable(utf8) }, ({ line }) =>
  split(line).map((word, position) => ({ position, word: word === "null" ? null : word })),
);

export const elements = table(
  { numbers: list(nullable(int64)) },
  { element: nullable(int64) },
  ({ numbers }) => numbers,
);

export const countdown = table({ n: int64 }, { value: int64 }, function* ({ n }) {
  if (n < 0n) throw new RowError(`${n} is negative`);
  for (let value = n; value > 0n; value--) yield value;
});

export const echo_rows = table({ x: struct(everything) }, everything, ({ x }) => [x]);

export const mean = aggregate({
  arguments: { x: float64 },
  result: nullable(float64),
  state: { count: int64, sum: float64 },
  initial: () => ({ count: 0n, sum: 0 }),
  accumulate(state, { x }) {
    state.count++;
    state.sum += x;
  },
  merge(state, other) {
    state.count += other.count;
    state.sum += other.sum;
  },
  retract(state, { x }) {
    state.count--;
    state.sum -= x;
  },
  evaluate: ({ count, sum }) => (count === 0n ? null : sum / Number(count)),
});

export const longest = aggregate({
  arguments: { text: utf8 },
  result: nullable(utf8),
  state: { text: nullable(utf8) },
  initial: () => ({ text: null }),
  accumulate(state, { text }) {
    if (state.text === null || codePoints(text) > codePoints(state.text)) state.text = text;
  },
  merge(state, { text }) {
    if (text !== null) this.accumulate(state, { text });
  },
  evaluate: ({ text }) => text,
});

export const strictSum = aggregate({
  arguments: { x: int64 },
  result: int64,
  state: { sum: int64 },
  initial: () => ({ sum: 0n }),
  accumulate(state, { x }) {
    if (x < 0n) throw new RowError(`${x} is negative`);
    state.sum += x;
  },
  merge(state, { sum }) {
    state.sum += sum;
  },
  evaluate: ({ sum }) => sum,
});

const state = {
  visits: valueState({ n: int64 }),
  history: listState({ page: utf8 }),
  perPage: mapState({ page: utf8 }, { n: int64 }),
};

const row = (event: string, { visits, history, perPage }: Handles<typeof state>) => ({
  event,
  visits: visits.get()?.n ?? 0n,
  pages: BigInt(perPage.size),
  last: history.at(-1)?.page ?? null,
});

export const visits = processor({
  key: { user: utf8 },
  input: { page: utf8, at: timestamp },
  output: { event: utf8, visits: int64, pages: int64, last: nullable(utf8) },
  initial: { visits: int64 },
  state,
  time: "event",
  *process({ user }, rows, state, context) {
    let latest = rows[0].at;
    for (const { page, at } of rows) {
      if (page === "boom") throw new RowError(`${user} met boom`);
      state.visits.set({ n: (state.visits.get()?.n ?? 0n) + 1n });
      state.history.append({ page });
      state.perPage.put({ page }, { n: (state.perPage.get({ page })?.n ?? 0n) + 1n });
      if (at > latest) latest = at;
    }
    for (const timer of context.timers) context.deleteTimer(timer);
    const down = latest < 0n && latest % 1000n !== 0n ? 1n : 0n;
    context.registerTimer(latest / 1000n - down + 10_000n);
    yield row("seen", state);
  },
  *expire(key, due, state) {
    const last = row("gone", state);
    state.visits.clear();
    state.history.clear();
    state.perPage.clear();
    yield last;
  },
  initialise(key, rows, state) {
    state.visits.set({ n: rows[rows.length - 1].visits });
  },
});

export const ledger = source({
  columns: { n: int64, label: nullable(utf8), at: timestamp },
  options: ["rows", "away?"],
  initialOffset: () => "0",
  latestOffset(options, start, { until, maxRows }) {
    const end = BigInt(until ?? options.rows);
    const most = maxRows === null ? end : BigInt(start) + maxRows;
    return String(most < end ? most : end);
  },
  read({ away }, start, end, cursor) {
    const begin = BigInt(cursor ?? start);
    const last = BigInt(end) < begin + 1000n ? BigInt(end) : begin + 1000n;
    if (away !== undefined && begin <= BigInt(away) && BigInt(away) < last) throw new Unavailable(`row ${away} is away`);
    const rows: { n: bigint; label: string | null; at: bigint }[] = [];
    for (let n = begin; n < last; n++) {
      rows.push({ n, label: n % 3n === 0n ? null : `row ${n}`, at: n * 1_000_000n });
    }
    return { rows, next: last < BigInt(end) ? String(last) : null };
  },
  commit({ rows }, offset) {
    if (BigInt(offset) > BigInt(rows)) throw new InvalidInput(`there are ${rows} rows, not ${offset}`);
  },
});
