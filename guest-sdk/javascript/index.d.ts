// The types of the SDK. What each thing means stands in README.md.

/** A type of a column whose values are `T`. */
export interface Type<T> {
  readonly format: string;
  readonly " value"?: T;
}

/** Types by name: arguments, columns, fields. */
export type Fields = Record<string, Type<any>>;
/** The object that `Fields` describe. */
export type Row<F extends Fields> = { [Name in keyof F]: F[Name] extends Type<infer T> ? T : never };
/** The columns that `Fields` describe: typed arrays where there can be no nulls, arrays otherwise. */
export type ColumnsOf<F extends Fields> = { [Name in keyof F]: F[Name] extends Type<infer T> ? ArrayLike<T> : never };

export const bool: Type<boolean>;
export const int8: Type<number>;
export const int16: Type<number>;
export const int32: Type<number>;
export const int64: Type<bigint>;
export const uint8: Type<number>;
export const uint16: Type<number>;
export const uint32: Type<number>;
export const uint64: Type<bigint>;
export const float32: Type<number>;
export const float64: Type<number>;
export const utf8: Type<string>;
export const binary: Type<Uint8Array>;
/** Days since 1970. */
export const date: Type<number>;
/** Microseconds since 1970, UTC. */
export const timestamp: Type<bigint>;
/** Microseconds since 1970, of a clock on some wall. */
export const localTimestamp: Type<bigint>;
/** A bigint in units of the last digit: of `decimal(9, 2)`, 1.50 is `150n`. */
export function decimal(precision: number, scale: number): Type<bigint>;
export function nullable<T>(type: Type<T>): Type<T | null>;
export function list<T>(element: Type<T>): Type<T[]>;
export function struct<F extends Fields>(fields: F): Type<Row<F>>;

export interface Options {
  /** The name in SQL; the name of the export, in snake_case, when left out. */
  name?: string;
  /** Calls may not be moved or left out. */
  volatile?: boolean;
}

/** n rows in, n values out. The result of any function may be null. */
export const scalar: {
  <F extends Fields, T>(
    types: F,
    result: Type<T>,
    call: (row: Row<F>) => T | null,
    options?: Options,
  ): (row: Row<F>) => T | null;
  /** The same of many rows at once. */
  batch<F extends Fields, T>(
    types: F,
    result: Type<T>,
    call: (columns: ColumnsOf<F>, rows: number) => ArrayLike<T | null>,
    options?: Options,
  ): (columns: ColumnsOf<F>, rows: number) => ArrayLike<T | null>;
};

type Single<F extends Fields> = keyof F extends infer Name ? (Name extends keyof F ? Row<F>[Name] : never) : never;
type IsUnion<T, U = T> = T extends unknown ? ([U] extends [T] ? false : true) : never;
/** A row of a table function: of one column the value itself, of more an object. */
export type TableRow<F extends Fields> = IsUnion<keyof F> extends true ? Row<F> : Single<F>;

/** One row in, any number of rows out. */
export function table<A extends Fields, C extends Fields>(
  types: A,
  columns: C,
  call: (row: Row<A>) => Iterable<TableRow<C>> | null,
  options?: Options,
): (row: Row<A>) => Iterable<TableRow<C>> | null;

export interface AggregateDefinition<A extends Fields, S extends Fields, T> {
  name?: string;
  arguments: A;
  result: Type<T>;
  state: S;
  /** Names what the fields of the state mean: give another one when that changes. `1` when left out. */
  stateId?: string;
  initial(): Row<S>;
  /** Changes the state. */
  accumulate(state: Row<S>, row: Row<A>): void;
  /** Changes the state. */
  merge(state: Row<S>, other: Row<S>): void;
  /** Takes a row back. */
  retract?(state: Row<S>, row: Row<A>): void;
  evaluate(state: Row<S>): T | null;
}

/** Many rows in, one value out; the state is the host's. */
export function aggregate<A extends Fields, S extends Fields, T>(
  definition: AggregateDefinition<A, S, T>,
): AggregateDefinition<A, S, T>;

export interface StateOptions {
  stateId?: string;
  /** How long an entry lives after it was last written, in milliseconds of processing time. */
  ttlMs?: number;
}

/** Types by name, or one type as a single column. */
export type Columns = Fields | Type<any>;
/** What one row of `Columns` is. */
export type RowOf<C> = C extends Type<infer T> ? T : C extends Fields ? Row<C> : never;

export interface ValueState<T> {
  get(): T | null;
  set(row: T): void;
  clear(): void;
}
export interface ListState<T> extends Iterable<T> {
  readonly length: number;
  at(index: number): T | null;
  append(row: T): void;
  clear(): void;
}
export interface MapState<K, T> extends Iterable<[K, T]> {
  readonly size: number;
  get(mapKey: K): T | null;
  has(mapKey: K): boolean;
  put(mapKey: K, row: T): void;
  remove(mapKey: K): void;
  clear(): void;
}
/** A state variable whose handle in a call is `H`. */
export interface Variable<H> {
  readonly kind: "value" | "list" | "map";
  readonly " handle"?: H;
}

export function valueState<C extends Columns>(columns: C, options?: StateOptions): Variable<ValueState<RowOf<C>>>;
export function listState<C extends Columns>(columns: C, options?: StateOptions): Variable<ListState<RowOf<C>>>;
export function mapState<K extends Columns, C extends Columns>(
  mapKey: K,
  columns: C,
  options?: StateOptions,
): Variable<MapState<RowOf<K>, RowOf<C>>>;

export interface Context {
  /** The time of the batch, in milliseconds since 1970. */
  readonly batchTimeMs: bigint;
  /** The watermark, in milliseconds since 1970; null before there is one. */
  readonly watermarkMs: bigint | null;
  /** When the timers of this key are due, in milliseconds since 1970, ascending. */
  readonly timers: bigint[];
  registerTimer(dueMs: bigint): void;
  deleteTimer(dueMs: bigint): void;
}

export type Variables = Record<string, Variable<any>>;
export type Handles<V extends Variables> = { [Name in keyof V]: V[Name] extends Variable<infer H> ? H : never };

export interface ProcessorDefinition<
  K extends Columns,
  I extends Columns,
  O extends Columns,
  V extends Variables,
  N extends Columns = Columns,
> {
  name?: string;
  key: K;
  input: I;
  output: O;
  /** The columns of initial rows; without, it takes none. */
  initial?: N;
  state: V;
  /** Which time timers go by; `none` when left out. */
  time?: "none" | "processing" | "event";
  /** `append` and `update` when left out. */
  outputModes?: ("append" | "update" | "complete")[];
  process(key: RowOf<K>, rows: RowOf<I>[], state: Handles<V>, context: Context): Iterable<RowOf<O>> | void;
  expire?(key: RowOf<K>, due: bigint[], state: Handles<V>, context: Context): Iterable<RowOf<O>> | void;
  initialise?(key: RowOf<K>, rows: RowOf<N>[], state: Handles<V>, context: Context): Iterable<RowOf<O>> | void;
}

/** All rows of a key together with what was stored under that key before. */
export function processor<
  K extends Columns,
  I extends Columns,
  O extends Columns,
  V extends Variables,
  N extends Columns,
>(definition: ProcessorDefinition<K, I, O, V, N>): ProcessorDefinition<K, I, O, V, N>;

/** Options of a stream, by the names that the source gave them. */
export type SourceOptions = Record<string, string>;

/** How far a batch may go. */
export interface Limits {
  /** Not beyond this offset, which an earlier call answered; null: as far as there are rows. */
  readonly until: string | null;
  /** At most about so many rows; one step of the source is always allowed. Null: any number. */
  readonly maxRows: bigint | null;
}

export interface SourceDefinition<C extends Columns> {
  name?: string;
  columns: C;
  /** The options that a query may give; one whose name ends in `?` may be left out. */
  options?: string[];
  /** Where a query begins that has read nothing yet. */
  initialOffset(options: SourceOptions): string;
  /** The end of a batch that begins at `start`: `start` itself when nothing is new. */
  latestOffset(options: SourceOptions, start: string, limits: Limits): string;
  /** The rows after `start` up to `end`, or a page of them; the next page is asked for with its `next`. */
  read(
    options: SourceOptions,
    start: string,
    end: string,
    cursor: string | null,
  ): RowOf<C>[] | { rows: RowOf<C>[]; next?: string | null };
  /** The query has what comes before, for good. */
  commit?(options: SourceOptions, offset: string): void;
}

/** Rows by ranges of offsets that the source makes up; the rows of a range are always the same rows. */
export function source<C extends Columns>(definition: SourceDefinition<C>): SourceDefinition<C>;

export interface MigrationDefinition<F extends Fields, T extends Fields> {
  /** The name of an aggregate function, or `processor.variable`. */
  state: string;
  fromId: string;
  from: F;
  toId: string;
  to: T;
  migrate(row: Row<F>): Row<T>;
}

/** One step from one meaning of a piece of state to another. */
export function migration<F extends Fields, T extends Fields>(
  definition: MigrationDefinition<F, T>,
): MigrationDefinition<F, T>;

/** This row cannot be computed. Its text is the message, without a trace. */
export class RowError extends Error {}
/** The whole call is refused: throw one of its subclasses. */
export class CallError extends Error {}
/** The owner of the data must act. */
export class InvalidInput extends CallError {}
/** The world must act; the same call may succeed later. */
export class Unavailable extends CallError {}
/** The author of the plugin must act. */
export class Internal extends CallError {}

/** Lines for the operator's log. */
export const log: Record<"error" | "warn" | "info" | "debug" | "trace", (message: string) => void>;
