//! The lines that cross the socket.

use super::failed;
use crate::verdict::VerdictReport;
use crate::{CanaryTerms, Progress, RuntimeError};
use millstream_common::{Digest, QueryId, RunId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Read, Write};
use std::path::PathBuf;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Request {
    /// Put the component of a file in the place of a plugin.
    Swap {
        /// The plugin's name in the query.
        plugin: String,
        /// The component's file, absolute, or a reference to a package.
        component: PathBuf,
        /// How it is to be done.
        #[serde(default)]
        terms: SwapTerms,
    },
    /// Put the component that ran before in the place of a plugin.
    Rollback {
        /// The plugin's name in the query; may be left out when there is only one.
        plugin: Option<String>,
        /// The beginning of the digest to go back to; the one before the last swap when left out.
        to: Option<String>,
        /// How it is to be done.
        #[serde(default)]
        terms: SwapTerms,
    },
    /// End the canary that runs.
    EndCanary {},
    /// Say what the query does.
    Status {},
    /// Stop after the running batch.
    Stop {},
}

/// How a swap is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SwapTerms {
    /// Whether a verdict that needs approval has it.
    pub approve: bool,
    /// How many of the last batches are run again before; as many as the query's settings say when left out.
    pub batches: Option<u64>,
    /// Whether the batches since the code last ran are run again with it, so that the state is as if it had never stopped.
    pub restore: bool,
    /// How many live batches the candidate has to run beside the query before.
    pub shadow: u64,
    /// That it computes a share of the keys first, and takes over by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryTerms>,
}

/// What the server says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
pub(super) enum Answer {
    /// What the checks say of a component.
    Verdict(Box<VerdictReport>),
    /// What the candidate made of live batches.
    Shadow(Box<VerdictReport>),
    /// The component passed its checks and waits for the next border between batches.
    Accepted(Accepted),
    /// The component is in place.
    Taken(Taken),
    /// It was not done.
    Refused {
        /// Why.
        reason: String,
        /// The way out.
        hint: Option<String>,
    },
    /// What the query does.
    Status(Box<RunningQuery>),
    /// It stops after the running batch.
    Stopping {},
}

/// A component that passed its checks and waits for the next border between batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The component that is to run.
    pub digest: Digest,
}

/// A component that is in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// The first batch that it runs.
    pub batch: u64,
    /// The component before.
    pub from: Digest,
    /// The component now.
    pub to: Digest,
}

/// A query that runs in some process of this machine and user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunningQuery {
    /// Its identity.
    pub id: QueryId,
    /// The identity of this run.
    pub run: RunId,
    /// Its name.
    pub name: Option<String>,
    /// Its query file, absolute.
    pub file: Option<PathBuf>,
    /// Its process.
    pub pid: u32,
    /// What it does right now, for people.
    pub message: String,
    /// Whether the last look found new rows.
    pub is_data_available: bool,
    /// Whether a batch is running.
    pub is_trigger_active: bool,
    /// Its last batch.
    pub last_progress: Option<Progress>,
}

impl RunningQuery {
    /// What people call it.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{name} ({})", self.id),
            None => self.id.to_string(),
        }
    }
}

/// Writes a line.
pub(super) fn write_line(to: &mut impl Write, value: &impl Serialize) -> Result<(), RuntimeError> {
    let mut line = serde_json::to_vec(value).map_err(|error| failed(format!("cannot encode a line: {error}"), None))?;
    line.push(b'\n');
    to.write_all(&line).and_then(|()| to.flush()).map_err(|error| failed(format!("cannot send a line: {error}"), None))
}

/// Reads a line of at most `limit` bytes; `None` at the end.
pub(super) fn read_line<T: DeserializeOwned>(from: &mut impl BufRead, limit: u64) -> Result<Option<T>, ReadError> {
    let mut line = Vec::new();
    from.take(limit + 1).read_until(b'\n', &mut line).map_err(ReadError::Io)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        let reason = if line.len() as u64 > limit { "it is too long" } else { "it has no end" };
        return Err(ReadError::Malformed(reason.into()));
    }
    serde_json::from_slice(&line).map(Some).map_err(|error| ReadError::Malformed(error.to_string()))
}

/// Why there is no line.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The socket failed, or nothing came in time.
    Io(std::io::Error),
    /// The line is not one of the protocol.
    Malformed(String),
}

impl ReadError {
    /// Whether the other side was only slow.
    pub(super) fn is_timeout(&self) -> bool {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        matches!(self, Self::Io(error) if matches!(error.kind(), TimedOut | WouldBlock))
    }
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Malformed(reason) => write!(f, "the line is not one of the protocol: {reason}"),
        }
    }
}
