//! The side of whoever wants something of a running query.

use super::protocol::{Accepted, Answer, Request, RunningQuery, SwapTerms, Taken, read_line, write_line};
use super::{ANSWER_BYTES, LINE_TIME, RunDir, failed};
use crate::RuntimeError;
use crate::verdict::VerdictReport;
use millstream_common::QueryId;
use millstream_package::PackageReference;
use std::io::{BufReader, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Reading and checking a component, with a dry run and a shadow, may take this long.
const CHECK_TIME: Duration = Duration::from_secs(1800);

/// A connection to one running query; one command goes over it.
#[derive(Debug)]
pub struct ControlClient {
    stream: BufReader<UnixStream>,
}

/// A swap whose verdict is known.
#[derive(Debug)]
pub struct AskedSwap {
    client: ControlClient,
    verdict: VerdictReport,
}

/// A swap that the query has accepted and not yet taken.
#[derive(Debug)]
pub struct PendingSwap {
    client: ControlClient,
    accepted: Accepted,
}

impl ControlClient {
    /// Connects to a query.
    ///
    /// # Errors
    /// When no such query runs.
    pub fn connect(dir: &RunDir, id: QueryId) -> Result<Self, RuntimeError> {
        let socket = dir.socket(id)?;
        let not_running = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                let reason = format!("no query {id} runs here: nothing listens on `{}`", socket.display());
                failed(reason, Some("start it with `millstream run`; MILLSTREAM_RUN_DIR must be the same for both"))
            }
            _ => failed(format!("cannot reach query {id} on `{}`: {error}", socket.display()), None),
        };
        if dir.folder().exists() {
            dir.check()?;
        }
        let stream = UnixStream::connect(&socket).map_err(not_running)?;
        let unusable = |error| failed(format!("cannot use the connection to query {id}: {error}"), None);
        stream.set_read_timeout(Some(LINE_TIME)).map_err(unusable)?;
        stream.set_write_timeout(Some(LINE_TIME)).map_err(unusable)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// All queries of this user that run and answer.
    ///
    /// # Errors
    /// When the folder of the sockets is not safe.
    pub fn running(dir: &RunDir) -> Result<Vec<RunningQuery>, RuntimeError> {
        if !dir.folder().exists() {
            return Ok(Vec::new());
        }
        dir.check()?;
        // A socket that nobody answers on is that of a dead process; its successor replaces it.
        Ok(dir.ids().into_iter().filter_map(|id| Self::connect(dir, id).ok()?.status().ok()).collect())
    }

    /// The one running query that `which` means: a query file, an id, or a name.
    ///
    /// # Errors
    /// When none or more than one fits.
    pub fn find(dir: &RunDir, which: &str) -> Result<RunningQuery, RuntimeError> {
        let running = Self::running(dir)?;
        let path = std::fs::canonicalize(which).ok().filter(|path| path.is_file());
        let fits = |query: &&RunningQuery| {
            let is_file = path.is_some() && query.file.as_deref().and_then(canonical) == path;
            is_file || query.id.to_string() == which || query.name.as_deref() == Some(which)
        };
        let found: Vec<&RunningQuery> = running.iter().filter(fits).collect();
        match found.as_slice() {
            [one] => Ok((*one).clone()),
            [] if running.is_empty() => {
                let hint = "start it with `millstream run`; MILLSTREAM_RUN_DIR must be the same for both";
                Err(failed(format!("no query `{which}` runs here: no query does"), Some(hint)))
            }
            [] => {
                let known = running.iter().map(RunningQuery::label).collect::<Vec<_>>().join(", ");
                Err(failed(format!("no query `{which}` runs here"), Some(&format!("there are {known}"))))
            }
            several => {
                let ids = several.iter().map(|query| query.id.to_string()).collect::<Vec<_>>().join(", ");
                let reason = format!("`{which}` means {} running queries", several.len());
                Err(failed(reason, Some(&format!("name one by its id: {ids}"))))
            }
        }
    }

    /// What the query does.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn status(mut self) -> Result<RunningQuery, RuntimeError> {
        match self.ask(&Request::Status {})? {
            Answer::Status(status) => Ok(*status),
            other => Err(unexpected(other)),
        }
    }

    /// Asks the query to stop after the running batch.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn stop(mut self) -> Result<(), RuntimeError> {
        match self.ask(&Request::Stop {})? {
            Answer::Stopping {} => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Asks for a swap; answers with the verdict, and when that admits the component it waits for the next border.
    ///
    /// # Errors
    /// When the path is not there, or the query refuses the component, with its reason.
    pub fn swap(self, plugin: &str, component: &Path, terms: &SwapTerms) -> Result<AskedSwap, RuntimeError> {
        // A reference is the same wherever one stands; the query pulls what it means, and checks it by its own rules.
        let component = match PackageReference::is_meant(&component.to_string_lossy()) {
            true => component.to_owned(),
            false => std::path::absolute(component)
                .map_err(|error| failed(format!("cannot use the path `{}`: {error}", component.display()), None))?,
        };
        self.ask_for_swap(&Request::Swap { plugin: plugin.to_owned(), component, terms: terms.clone() })
    }

    /// Asks to go back to the component before the last swap, or to the one whose digest begins with `to`.
    ///
    /// # Errors
    /// When there is none, or the query refuses it.
    pub fn rollback(
        self,
        plugin: Option<&str>,
        to: Option<&str>,
        terms: &SwapTerms,
    ) -> Result<AskedSwap, RuntimeError> {
        let (plugin, to) = (plugin.map(str::to_owned), to.map(str::to_owned));
        self.ask_for_swap(&Request::Rollback { plugin, to, terms: terms.clone() })
    }

    /// Asks to end the canary that runs.
    ///
    /// # Errors
    /// When the query has none.
    pub fn end_canary(mut self) -> Result<PendingSwap, RuntimeError> {
        match self.ask(&Request::EndCanary {})? {
            Answer::Accepted(accepted) => Ok(PendingSwap { client: self, accepted }),
            other => Err(unexpected(other)),
        }
    }

    fn ask_for_swap(mut self, request: &Request) -> Result<AskedSwap, RuntimeError> {
        self.wait_at_most(CHECK_TIME)?;
        match self.ask(request)? {
            Answer::Verdict(verdict) => Ok(AskedSwap { client: self, verdict: *verdict }),
            other => Err(unexpected(other)),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Answer, RuntimeError> {
        write_line(self.stream.get_mut(), request)?;
        self.next()
    }

    fn next(&mut self) -> Result<Answer, RuntimeError> {
        match read_line(&mut self.stream, ANSWER_BYTES) {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(gone()),
            Err(error) if error.is_timeout() => Err(failed("the query does not answer", None)),
            Err(error) => Err(failed(format!("cannot read the answer of the query: {error}"), None)),
        }
    }

    fn wait_at_most(&self, time: Duration) -> Result<(), RuntimeError> {
        let time = time.max(Duration::from_millis(1));
        let set = self.stream.get_ref().set_read_timeout(Some(time));
        set.map_err(|error| failed(format!("cannot use the connection: {error}"), None))
    }
}

impl AskedSwap {
    /// What the checks say.
    pub fn verdict(&self) -> &VerdictReport {
        &self.verdict
    }

    /// Waits until the component is queued for the next border; `shadow` gets the verdict after a shadow, if one was asked
    /// for.
    ///
    /// # Errors
    /// When the query refuses it.
    pub fn accepted(mut self, shadow: &mut dyn FnMut(&VerdictReport)) -> Result<PendingSwap, RuntimeError> {
        match self.client.next()? {
            Answer::Accepted(accepted) => Ok(PendingSwap { client: self.client, accepted }),
            Answer::Shadow(report) => {
                shadow(&report);
                self.accepted(shadow)
            }
            other => Err(unexpected(other)),
        }
    }
}

impl PendingSwap {
    /// What was accepted.
    pub fn accepted(&self) -> Accepted {
        self.accepted
    }

    /// Waits until the component is in place; `None` when that has not happened in time. It may still happen then: an
    /// idle query takes the component with its next batch.
    ///
    /// # Errors
    /// When the query refuses it after all, or stops.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Taken>, RuntimeError> {
        let deadline = Instant::now() + timeout;
        self.client.wait_at_most(deadline.saturating_duration_since(Instant::now()))?;
        match read_line(&mut self.client.stream, ANSWER_BYTES) {
            Ok(Some(Answer::Taken(taken))) => Ok(Some(taken)),
            Ok(Some(other)) => Err(unexpected(other)),
            Ok(None) => Err(gone()),
            Err(error) if error.is_timeout() => Ok(None),
            Err(error) => Err(failed(format!("cannot read the answer of the query: {error}"), None)),
        }
    }
}

fn canonical(path: &Path) -> Option<std::path::PathBuf> {
    std::fs::canonicalize(path).ok()
}

fn gone() -> RuntimeError {
    failed("the query has ended before it answered", None)
}

fn unexpected(answer: Answer) -> RuntimeError {
    match answer {
        Answer::Refused { reason, hint } => RuntimeError::Invalid { reason, hint },
        other => failed(format!("the query gave an answer that does not belong here: {other:?}"), None),
    }
}
