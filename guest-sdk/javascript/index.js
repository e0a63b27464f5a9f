// Write Millstream plugins in JavaScript: functions with declared types that SQL can call. `README.md` is the guide.

export { aggregate } from "./aggregates.js";
export { CallError, Internal, InvalidInput, RowError, Unavailable } from "./errors.js";
export { scalar, table } from "./functions.js";
export { log } from "./log.js";
export { migration } from "./migrations.js";
export { listState, mapState, processor, valueState } from "./processors.js";
export { source } from "./sources.js";
export {
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
  localTimestamp,
  nullable,
  struct,
  timestamp,
  uint8,
  uint16,
  uint32,
  uint64,
  utf8,
} from "./types.js";
