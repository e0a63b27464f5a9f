//! What guests say: lines of the `log` import and of captured output, on their way to the operator's log.
//!
//! Called from inside the guest; [`HostState`] counts what a call has written.
//!
//! Rule of its life: a line is shortened, made harmless to a terminal, and counted before it is written; what is
//! beyond the limit of the call is dropped and its number told once.
//!
//! It writes to `tracing` only, target `millstream::plugin`.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, WasmStr};

use crate::limits::HostState;
use crate::wire;

/// Characters of one line of a guest's log.
pub(crate) const LOG_LINE: usize = 4 << 10;

/// Links `log` and the types that all interfaces use.
pub(crate) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    for version in wire::VERSIONS {
        linker.instance(&wire::interface(wire::TYPES, version))?;
        linker.instance(&wire::interface(wire::LOG, version))?.func_wrap("log", log)?;
    }
    Ok(())
}

fn log(mut store: StoreContextMut<'_, HostState>, (level, message): (wire::Level, WasmStr)) -> wasmtime::Result<()> {
    // What will not be written is not read: a flood costs as little as it can.
    if level != wire::Level::Error && store.data_mut().is_log_full() {
        store.data_mut().admit_log(0);
        return Ok(());
    }
    let line: String = {
        let text = message.to_str(&store)?;
        text.chars().take(LOG_LINE).collect()
    };
    let state = store.data_mut();
    if level == wire::Level::Error {
        state.last_error = Some(line.clone());
    }
    say(state, level, &line);
    Ok(())
}

/// Writes one line for the guest, if its call may still write.
pub(crate) fn say(state: &mut HostState, level: wire::Level, line: &str) {
    if !state.admit_log(line.len()) {
        return;
    }
    let plugin = state.plugin.as_str();
    let line = harmless(line);
    match level {
        wire::Level::Error => tracing::error!(target: "millstream::plugin", plugin, "{line}"),
        wire::Level::Warn => tracing::warn!(target: "millstream::plugin", plugin, "{line}"),
        wire::Level::Info => tracing::info!(target: "millstream::plugin", plugin, "{line}"),
        wire::Level::Debug => tracing::debug!(target: "millstream::plugin", plugin, "{line}"),
        wire::Level::Trace => tracing::trace!(target: "millstream::plugin", plugin, "{line}"),
    }
}

/// A line without control characters: one line stays one line, and nothing steers the terminal that shows it.
fn harmless(line: &str) -> std::borrow::Cow<'_, str> {
    if !line.contains(char::is_control) {
        return line.into();
    }
    let safe = |c: char| match c {
        '\n' => '⏎',
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    line.trim_end().chars().map(safe).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn a_line_cannot_pretend_to_be_two_or_steer_a_terminal() {
        assert_eq!(harmless("plain ünd fine"), "plain ünd fine");
        assert_eq!(harmless("a\nERROR b\x1b[2J\n"), "a⏎ERROR b\u{fffd}[2J");
    }
}
