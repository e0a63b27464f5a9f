// The exports of the component. Whatever a plugin throws becomes an answer with the plugin's own words.

import { log as write } from "millstream:plugin/log@0.2.0";
import { CallError, textOf } from "./errors.js";
import { setWriter } from "./log.js";
import { offered } from "./offered.js";

export { offer } from "./offered.js";

setWriter(write);

/** What the interface calls an error: it is thrown, and reaches the host as the call's answer. */
function answering(call) {
  return (...given) => {
    try {
      return call(...given);
    } catch (error) {
      throw { tag: error instanceof CallError ? error.tag : "internal", val: textOf(error) };
    }
  };
}

function numbered(kind, number) {
  const found = offered[kind][number];
  if (!found) throw new CallError(`there is no number ${number}`);
  return found;
}

const nulls = (definition) => (definition.arguments.seesNulls ? "passed" : "skipped");

export const describe = {
  describe: () =>
    offered.function.map((definition) => ({
      name: definition.name,
      kind: definition.isTable ? "table" : "scalar",
      arguments: definition.arguments.nodes(),
      results: definition.results(),
      volatility: definition.volatile ? "volatile" : "immutable",
      nulls: nulls(definition),
    })),
};

export const scalar = { call: answering((number, batch) => numbered("function", number).call(batch)) };

export const table = { call: answering((number, batch) => numbered("function", number).call(batch)) };

export const aggregate = {
  describe: () =>
    offered.aggregate.map((definition) => ({
      name: definition.name,
      arguments: definition.arguments.nodes(),
      result: definition.results(),
      state: definition.state.nodes(),
      stateId: definition.stateId,
      nulls: nulls(definition),
      retracts: definition.retracts,
    })),
  accumulate: answering((number, groups, groupOfRow, batch) =>
    numbered("aggregate", number).accumulate(groups, groupOfRow, batch),
  ),
  merge: answering((number, groups, groupOfRow, states) => numbered("aggregate", number).merge(groups, groupOfRow, states)),
  retract: answering((number, states, groupOfRow, batch) =>
    numbered("aggregate", number).retract(states, groupOfRow, batch),
  ),
  evaluate: answering((number, states) => numbered("aggregate", number).evaluate(states)),
};

export const processor = {
  describe: () =>
    offered.processor.map((definition) => ({
      name: definition.name,
      key: definition.key.nodes(),
      input: definition.input.nodes(),
      output: definition.output.nodes(),
      initial: definition.initial?.nodes() ?? [],
      variables: definition.variables.map((variable) => ({
        name: variable.name,
        kind: variable.kind,
        mapKey: variable.mapKey?.nodes() ?? [],
        columns: variable.columns.nodes(),
        stateId: variable.stateId,
        ttlMs: variable.ttlMs,
      })),
      timeMode: { none: "none", processing: "processing-time", event: "event-time" }[definition.time],
      outputModes: Object.fromEntries(
        ["append", "update", "complete"].map((mode) => [mode, definition.outputModes.includes(mode)]),
      ),
    })),
  process: answering((number, call) => {
    const definition = numbered("processor", number);
    return definition.run(call, "process", definition.input);
  }),
  expire: answering((number, call, due) => numbered("processor", number).run(call, "expire", null, due)),
  initialise: answering((number, call) => {
    const definition = numbered("processor", number);
    return definition.run(call, "initialise", definition.initial);
  }),
};

export const source = {
  describe: () =>
    offered.source.map((definition) => ({
      name: definition.name,
      columns: definition.columns.nodes(),
      options: definition.options,
    })),
  initialOffset: answering((number, options) => numbered("source", number).initialOffset(options)),
  latestOffset: answering((number, options, start, limits) =>
    numbered("source", number).latestOffset(options, start, limits),
  ),
  read: answering((number, options, start, end, cursor) => numbered("source", number).read(options, start, end, cursor)),
  commit: answering((number, options, offset) => numbered("source", number).commit(options, offset)),
};

export const migration = {
  describe: () =>
    offered.migration.map((definition) => ({
      state: definition.state,
      fromId: definition.fromId,
      fromColumns: definition.from.nodes(),
      toId: definition.toId,
      toColumns: definition.to.nodes(),
    })),
  migrate: answering((number, keys, rows) => numbered("migration", number).migrate(rows)),
};
