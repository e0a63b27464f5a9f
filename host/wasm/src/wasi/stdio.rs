//! Command line, terminal and output of the empty world: there is no command line and no terminal; what the guest
//! prints are lines of its log, stdout as `info`, stderr as `warn`.
//!
//! Rule of its life: a line is written when it is whole, or when its call ends. The last lines of stderr are kept during
//! a call, because a runtime writes its traceback there before it traps.

use std::collections::VecDeque;

use wasmtime::component::Resource;
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::cli::{
    environment, exit, stderr, stdin, stdout, terminal_input, terminal_output, terminal_stderr, terminal_stdin,
    terminal_stdout,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use super::streams::{STDERR, STDIN, STDOUT};
use crate::limits::HostState;
use crate::log::{LOG_LINE, say};
use crate::wire::Level;

/// Bytes of a line that is not yet whole.
const PARTIAL: usize = 4 * LOG_LINE;
/// Lines that are kept for the message of a trap, and their bytes.
const LAST_LINES: usize = 16;
const LAST_BYTES: usize = 2 << 10;

/// One output on its way to lines.
#[derive(Debug, Default)]
pub(super) struct Output {
    partial: Vec<u8>,
    last: VecDeque<String>,
    last_bytes: usize,
}

impl Output {
    /// Takes what was written and gives the lines that are whole now.
    fn take(&mut self, written: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut rest = written;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.append(&rest[..end]);
            lines.extend(self.flush());
            rest = &rest[end + 1..];
        }
        self.append(rest);
        lines
    }

    /// Adds to the line; what is longer than a line may be is lost.
    fn append(&mut self, bytes: &[u8]) {
        let room = PARTIAL.saturating_sub(self.partial.len()).min(bytes.len());
        self.partial.extend_from_slice(&bytes[..room]);
    }

    /// The line that is not yet whole.
    fn flush(&mut self) -> Option<String> {
        let bytes = std::mem::take(&mut self.partial);
        let line: String = String::from_utf8_lossy(&bytes).trim_end().chars().take(LOG_LINE).collect();
        (!line.is_empty()).then_some(line)
    }

    fn keep(&mut self, line: &str) {
        let line: String = line.chars().take(LAST_BYTES / 4).collect();
        self.last_bytes += line.len();
        self.last.push_back(line);
        while self.last.len() > LAST_LINES || self.last_bytes > LAST_BYTES {
            self.last_bytes -= self.last.pop_front().map_or(0, |line| line.len());
        }
    }

    pub(super) fn forget(&mut self) {
        self.last.clear();
        self.last_bytes = 0;
    }

    pub(super) fn last_lines(&self) -> Option<String> {
        let lines: Vec<&str> = self.last.iter().map(|line| line.trim()).collect();
        (!lines.is_empty()).then(|| lines.join(" | "))
    }
}

impl HostState {
    /// The guest wrote to one of its outputs.
    pub(super) fn print(&mut self, stream: u32, written: &[u8]) {
        let world = self.world();
        let lines = if stream == STDERR { &mut world.stderr } else { &mut world.stdout }.take(written);
        self.say_lines(stream, &lines);
    }

    /// Writes lines that the guest did not end; its call is over.
    pub(crate) fn flush_output(&mut self) {
        let Some(world) = &mut self.wasi else { return };
        let (out, err) = (world.stdout.flush(), world.stderr.flush());
        self.say_lines(STDOUT, out.as_slice());
        self.say_lines(STDERR, err.as_slice());
    }

    fn say_lines(&mut self, stream: u32, lines: &[String]) {
        for line in lines {
            if stream == STDERR {
                self.world().stderr.keep(line);
                say(self, Level::Warn, line);
            } else {
                say(self, Level::Info, line);
            }
        }
    }
}

impl environment::Host for HostState {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(None)
    }
}

impl exit::Host for HostState {
    fn exit(&mut self, status: Result<(), ()>) -> wasmtime::Result<()> {
        Err(I32Exit(i32::from(status.is_err())).into())
    }

    fn exit_with_code(&mut self, status: u8) -> wasmtime::Result<()> {
        Err(I32Exit(status.into()).into())
    }
}

impl stdin::Host for HostState {
    fn get_stdin(&mut self) -> wasmtime::Result<Resource<DynInputStream>> {
        self.count_stream()?;
        Ok(Resource::new_own(STDIN))
    }
}

impl stdout::Host for HostState {
    fn get_stdout(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.count_stream()?;
        Ok(Resource::new_own(STDOUT))
    }
}

impl stderr::Host for HostState {
    fn get_stderr(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.count_stream()?;
        Ok(Resource::new_own(STDERR))
    }
}

impl terminal_input::Host for HostState {}

impl terminal_input::HostTerminalInput for HostState {
    fn drop(&mut self, _terminal: Resource<terminal_input::TerminalInput>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl terminal_output::Host for HostState {}

impl terminal_output::HostTerminalOutput for HostState {
    fn drop(&mut self, _terminal: Resource<terminal_output::TerminalOutput>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl terminal_stdin::Host for HostState {
    fn get_terminal_stdin(&mut self) -> wasmtime::Result<Option<Resource<terminal_stdin::TerminalInput>>> {
        Ok(None)
    }
}

impl terminal_stdout::Host for HostState {
    fn get_terminal_stdout(&mut self) -> wasmtime::Result<Option<Resource<terminal_stdout::TerminalOutput>>> {
        Ok(None)
    }
}

impl terminal_stderr::Host for HostState {
    fn get_terminal_stderr(&mut self) -> wasmtime::Result<Option<Resource<terminal_stderr::TerminalOutput>>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_and_cut_to_size() {
        let mut output = Output::default();
        assert_eq!(output.take(b"one\ntw"), ["one"]);
        assert_eq!(output.take(b"o\r\n\n\xff!"), ["two"]);
        assert_eq!(output.flush().unwrap(), "\u{fffd}!");
        assert_eq!(output.flush(), None);
        let flood = vec![b'x'; 10 * PARTIAL];
        assert!(output.take(&flood).is_empty());
        assert_eq!(output.partial.len(), PARTIAL);
        assert_eq!(output.take(b"\n")[0].len(), LOG_LINE);
    }

    #[test]
    fn the_last_lines_are_kept_within_bounds() {
        let mut output = Output::default();
        assert_eq!(output.last_lines(), None);
        (0..100).for_each(|n| output.keep(&format!("  line {n}")));
        let told = output.last_lines().unwrap();
        assert!(told.starts_with("line 84 | line 85") && told.ends_with("line 99"), "{told}");
        (0..100).for_each(|_| output.keep(&"ä".repeat(10_000)));
        assert!(output.last_lines().unwrap().len() <= LAST_BYTES + 3 * LAST_LINES);
    }
}
