//! How a command ends when it does not end well: lines on standard error and an exit code.

use crate::output;
use millstream_common::{ClosedOutput, Fault, Hint, describe_chain};
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
        if ClosedOutput::is_behind(error) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;
    use std::{fmt, io};

    #[derive(Debug)]
    struct Lost(Box<dyn Error + Send + Sync>);

    impl fmt::Display for Lost {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the batch cannot be written")
        }
    }

    impl Error for Lost {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self.0.as_ref())
        }
    }

    impl Hint for Lost {
        fn fault(&self) -> Fault {
            Fault::Outside
        }
    }

    #[test]
    fn only_a_reader_of_the_output_may_go_away_without_a_word() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        let screen = Failure::of(&Lost(ClosedOutput::or(broken())));
        assert_eq!((screen.code, screen.message), (0, None));
        let broker = Failure::of(&Lost(Box::new(broken())));
        assert_eq!((broker.code, broker.message.is_some()), (2, true), "a connection that breaks is a failure");
    }
}
