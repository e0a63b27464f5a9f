//! What commands write: data to standard output, everything for people to standard error.

use crate::failure::Failure;
use std::io::{ErrorKind, IsTerminal, Write};
use tracing_subscriber::EnvFilter;

const LOG_FILTER: &str = "MILLSTREAM_LOG";

/// Writes text to standard output. A reader that has gone away ends the command without noise.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::closed_pipe(),
        _ => Failure::outside(format!("cannot write to standard output: {error}"), None),
    })
}

/// Writes a line for people. Nobody is told when that fails: there is no other way to tell.
pub(crate) fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A line on a terminal that is written over and over; nothing where standard error is no terminal.
#[derive(Debug)]
pub(crate) struct LiveLine {
    is_terminal: bool,
    is_shown: bool,
}

impl LiveLine {
    /// A line that shows nothing yet.
    pub(crate) fn new(wanted: bool) -> Self {
        Self { is_terminal: wanted && std::io::stderr().is_terminal(), is_shown: false }
    }

    /// Shows a text in place of the last one.
    pub(crate) fn show(&mut self, text: &str) {
        if self.is_terminal {
            self.is_shown = true;
            let mut stderr = std::io::stderr();
            let _ = write!(stderr, "\r\x1b[2K{text}").and_then(|()| stderr.flush());
        }
    }

    /// Ends the line, so that others can write below it.
    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = writeln!(std::io::stderr());
        }
    }
}

/// Logs go to standard error; `MILLSTREAM_LOG` says which.
pub(crate) fn start_logging() -> Result<(), Failure> {
    let wanted = std::env::var(LOG_FILTER).unwrap_or_default();
    let wanted = if wanted.trim().is_empty() { "warn" } else { &*wanted };
    let filter = EnvFilter::try_new(wanted).map_err(|error| {
        Failure::query(
            format!("environment variable `{LOG_FILTER}` cannot be `{wanted}`: {error}"),
            Some("write a level, or levels of modules: `info`, `millstream_runtime=debug`"),
        )
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_not_wanted_is_never_shown() {
        let mut line = LiveLine::new(false);
        line.show("batch 1");
        assert!(!line.is_shown);
    }
}
