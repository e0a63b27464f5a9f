//! How a command ends when it does not end well: lines on standard error and an exit code.

use crate::output;
use millstream_common::{Fault, Hint, describe_chain};
use std::error::Error;
use std::io::ErrorKind;
use std::process::ExitCode;

/// The exit code of a command that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// The end of a command.
#[derive(Debug)]
pub(crate) struct Failure {
    /// `None` when there is nobody left to tell: standard output was closed, or all was said.
    message: Option<String>,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// A failure of the query's author, or of whoever typed.
    pub(crate) fn query(message: impl Into<String>, hint: Option<&str>) -> Self {
        Self { message: Some(message.into()), hint: hint.map(str::to_owned), code: Fault::Query.exit_code() }
    }

    /// A failure of the world.
    pub(crate) fn outside(message: impl Into<String>, hint: Option<&str>) -> Self {
        Self { message: Some(message.into()), hint: hint.map(str::to_owned), code: Fault::Outside.exit_code() }
    }

    /// Somebody wanted it to end before its time.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), hint: None, code: INTERRUPTED }
    }

    /// Everything has been said; only the exit code is left.
    pub(crate) fn said(fault: Fault) -> Self {
        Self { message: None, hint: None, code: fault.exit_code() }
    }

    /// What an error says.
    pub(crate) fn of(error: &(impl Hint + 'static)) -> Self {
        if is_closed_pipe(error) {
            return Self::closed_pipe();
        }
        Self { message: Some(describe_chain(error)), hint: error.hint(), code: error.fault().exit_code() }
    }

    /// Whoever read our output has enough: that is a good end.
    pub(crate) fn closed_pipe() -> Self {
        Self { message: None, hint: None, code: 0 }
    }

    /// Prints the lines.
    pub(crate) fn report(self) -> ExitCode {
        if let Some(message) = self.message {
            output::note(&format!("error: {message}"));
        }
        if let Some(hint) = self.hint {
            output::note(&format!("hint: {hint}"));
        }
        ExitCode::from(self.code)
    }
}

impl<E: Hint + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::of(&error)
    }
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            return true;
        }
        next = error.source();
    }
    false
}
