// What can go wrong in a plugin, by who must act, and how it is told.

// A message for a person: what is longer is cut.
const MESSAGE = 4000;
const FRAMES = 12;

/** This row cannot be computed. Its text is the message, without a trace. */
export class RowError extends Error {
  name = "RowError";
}

/** The whole call is refused: throw one of its subclasses. */
export class CallError extends Error {
  tag = "internal";
}

/** The owner of the data must act: these rows cannot be processed. */
export class InvalidInput extends CallError {
  tag = "invalid-input";
}

/** The world must act: something is not there now, the same call may succeed later. */
export class Unavailable extends CallError {
  tag = "unavailable";
}

/** The author of the plugin must act. */
export class Internal extends CallError {}

/** What an error says: its text, and where it came from unless it was meant. */
export function textOf(error) {
  if (error instanceof RowError || error instanceof CallError) {
    return (error.message || error.constructor.name).slice(0, MESSAGE);
  }
  if (!(error instanceof Error)) return String(error).slice(0, MESSAGE);
  const lines = [`${error.name}: ${error.message}`.slice(0, MESSAGE)];
  const trace = String(error.stack ?? "").split("\n").map((line) => line.trim()).filter((line) => line.startsWith("at "));
  for (const line of trace.slice(0, FRAMES)) lines.push(`  ${line}`);
  if (trace.length > FRAMES) lines.push(`  … ${trace.length - FRAMES} more`);
  return lines.join("\n");
}
