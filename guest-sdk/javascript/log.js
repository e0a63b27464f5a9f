// Lines for the operator's log. Outside of a component, in tests, nothing is written.

let write = () => {};

/** For the component's exports only. */
export function setWriter(writer) {
  write = writer;
}

/** The host cuts long lines, and drops what is too much for one call. */
export const log = {
  /** Something failed. */
  error: (message) => write("error", String(message)),
  /** Something is odd, nothing is lost. */
  warn: (message) => write("warn", String(message)),
  /** For the operator. */
  info: (message) => write("info", String(message)),
  /** For the plugin's author. */
  debug: (message) => write("debug", String(message)),
  /** For the plugin's author, in bulk. */
  trace: (message) => write("trace", String(message)),
};
