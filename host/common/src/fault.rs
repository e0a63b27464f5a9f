//! Who must act: the categories of everything that can go wrong, and the advice that goes with an error.
//!
//! An error type says with `Display` what could not be done, with `source` why, with [`Hint::hint`] what to
//! do next, and with [`Hint::fault`] whose turn it is. The runtime looks at nothing else.

use serde::{Deserialize, Serialize};

/// Who must act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The query's author: unsupported output mode, bad SQL, unknown option. Never retried.
    Query,
    /// The data's owner: a cast failed, a row is malformed. Never retried.
    Data,
    /// The plugin's author: trap, deadline, memory limit, garbage returned.
    Plugin,
    /// The world: object store, broker or network not available.
    Outside,
    /// The checkpoint's owner: checksum wrong, entry missing, unknown format. Nothing more is written.
    Corrupt,
    /// Us: a broken invariant.
    Bug,
}

impl Fault {
    /// The exit code of the command line: 1 when the query, its data or a plugin is at fault, 2 otherwise.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Query | Self::Data | Self::Plugin => 1,
            Self::Outside | Self::Corrupt | Self::Bug => 2,
        }
    }
}

/// An error that knows who must act and what to do.
pub trait Hint: std::error::Error {
    /// Who must act.
    fn fault(&self) -> Fault;
    /// Whether the same batch may go well when it is simply run again. What is outside may come back; not so where it
    /// was already waited for as long as the options say.
    fn may_pass(&self) -> bool {
        self.fault() == Fault::Outside
    }
    /// What to do next, in the imperative; `None` when the message says it all.
    fn hint(&self) -> Option<String> {
        None
    }
}

/// The first error of a type among an error and its causes.
pub fn find_cause<'a, E: std::error::Error + 'static>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The messages of an error and its causes, outermost first, joined by `: `; repeated texts are left out.
pub fn describe_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let message = cause.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        next = cause.source();
    }
    text
}
