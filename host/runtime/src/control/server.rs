//! The side of the running query.

use super::protocol::{Accepted, Answer, Request, RunningQuery, SwapTerms, Taken, read_line, write_line};
use super::{LINE_TIME, REQUEST_BYTES, RunDir, failed};
use crate::query_file::QueryFileError;
use crate::verdict::{Verdict, VerdictReport};
use crate::{Remake, RuntimeError, StreamingQuery, SwapGrounds, Swapped};
use millstream_common::{Digest, Hint, describe_chain};
use millstream_package::PackageReference;
use std::io::{BufReader, ErrorKind, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Clients that are served at the same time.
const CLIENTS: usize = 16;
/// How often the server looks for clients and for the end of the query.
const LOOK: Duration = Duration::from_millis(20);
/// How long the end of the server waits for answers that are being written.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Listens for as long as a query runs. Dropping it closes the socket.
#[derive(Debug)]
pub struct ControlServer {
    socket: PathBuf,
    closing: Arc<AtomicBool>,
    clients: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl ControlServer {
    /// Listens on the query's socket. The socket of a process that died is replaced. `file` is the query file, by which
    /// clients may look for the query.
    ///
    /// # Errors
    /// When the folder is not safe, or another process listens there.
    pub fn start(query: Arc<StreamingQuery>, dir: &RunDir, file: Option<&Path>) -> Result<Self, RuntimeError> {
        dir.ensure()?;
        let socket = dir.socket(query.id())?;
        let listener = bind(&socket)?;
        let unusable = |error| failed(format!("cannot listen on `{}`: {error}", socket.display()), None);
        listener.set_nonblocking(true).map_err(unusable)?;
        let (closing, clients) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let serving = Serving {
            query,
            file: file.map(Path::to_owned),
            closing: Arc::clone(&closing),
            clients: Arc::clone(&clients),
        };
        let thread = std::thread::Builder::new()
            .name("control".into())
            .spawn(move || serving.accept(&listener))
            .map_err(unusable)?;
        Ok(Self { socket, closing, clients, thread: Some(thread) })
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the control thread panicked");
        }
        let deadline = Instant::now() + LAST_ANSWERS;
        while self.clients.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
        if let Err(error) = std::fs::remove_file(&self.socket)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!("cannot remove the control socket `{}`: {error}", self.socket.display());
        }
    }
}

fn bind(socket: &Path) -> Result<UnixListener, RuntimeError> {
    let fail = |error: std::io::Error| failed(format!("cannot listen on `{}`: {error}", socket.display()), None);
    match UnixListener::bind(socket) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {}
        bound => return bound.map_err(fail),
    }
    if UnixStream::connect(socket).is_ok() {
        let reason = format!("another process listens on `{}`", socket.display());
        return Err(failed(reason, Some("stop that process first")));
    }
    std::fs::remove_file(socket).map_err(fail)?;
    UnixListener::bind(socket).map_err(fail)
}

/// Reads the file of a component, or pulls its package.
fn component_of(query: &StreamingQuery, named: &Path) -> Result<Vec<u8>, Answer> {
    let text = named.to_string_lossy();
    if !named.is_absolute() && !PackageReference::is_meant(&text) {
        let reason = format!("the path `{}` is not absolute", named.display());
        return Err(Answer::Refused { reason, hint: None });
    }
    let refused = |error: QueryFileError| Answer::Refused { reason: describe_chain(&error), hint: Hint::hint(&error) };
    query.component(&text).map_err(refused)
}

fn refused(error: &RuntimeError) -> Answer {
    Answer::Refused { reason: describe_chain(error), hint: error.hint() }
}

/// Why a component cannot begin with a share of the keys.
fn refused_canary(report: &VerdictReport) -> Option<Answer> {
    if report.migration.is_empty() && !report.restores {
        return None;
    }
    // Rows that are written under migrated keys could not be taken back by the code that knows the old ones.
    let reason = "there is no canary of a component whose state is made anew".to_owned();
    let hint = "let it run beside the query with `--shadow N`, then swap it for all keys".to_owned();
    Some(Answer::Refused { reason, hint: Some(hint) })
}

struct Serving {
    query: Arc<StreamingQuery>,
    file: Option<PathBuf>,
    closing: Arc<AtomicBool>,
    clients: Arc<AtomicUsize>,
}

impl Serving {
    fn is_over(&self) -> bool {
        self.closing.load(Ordering::SeqCst) || !self.query.is_active()
    }

    fn accept(self, listener: &UnixListener) {
        let serving = Arc::new(self);
        while !serving.is_over() {
            match listener.accept() {
                Ok((stream, _)) => Self::admit(&serving, stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK),
                Err(error) => {
                    tracing::warn!("cannot take a control connection: {error}");
                    std::thread::sleep(LOOK);
                }
            }
        }
    }

    /// Serves a client on a thread of its own, so that one that waits for a swap keeps nobody out.
    fn admit(serving: &Arc<Self>, stream: UnixStream) {
        if serving.clients.fetch_add(1, Ordering::SeqCst) >= CLIENTS {
            serving.clients.fetch_sub(1, Ordering::SeqCst);
            tracing::warn!("a control connection was closed: {CLIENTS} are open");
            return;
        }
        let served = Arc::clone(serving);
        let spawned = std::thread::Builder::new().name("control-client".into()).spawn(move || {
            if let Err(error) = served.serve(&stream) {
                tracing::debug!("a control connection failed: {}", describe_chain(&error));
            }
            served.clients.fetch_sub(1, Ordering::SeqCst);
        });
        if let Err(error) = spawned {
            serving.clients.fetch_sub(1, Ordering::SeqCst);
            tracing::warn!("no thread for a control connection: {error}");
        }
    }

    fn serve(&self, stream: &UnixStream) -> Result<(), RuntimeError> {
        let unusable = |error| failed(format!("cannot use a connection: {error}"), None);
        stream.set_nonblocking(false).map_err(unusable)?;
        stream.set_read_timeout(Some(LINE_TIME)).map_err(unusable)?;
        stream.set_write_timeout(Some(LINE_TIME)).map_err(unusable)?;
        let mut reader = BufReader::new(stream);
        let mut writer = stream;
        let request = match read_line::<Request>(&mut reader, REQUEST_BYTES) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) => return write_line(&mut writer, &Answer::Refused { reason: error.to_string(), hint: None }),
        };
        match request {
            Request::Status {} => write_line(&mut writer, &Answer::Status(Box::new(self.status()))),
            Request::Stop {} => {
                tracing::info!("stopping: a client asked for it");
                self.query.ask_to_stop();
                write_line(&mut writer, &Answer::Stopping {})
            }
            Request::Swap { plugin, component, terms } => {
                self.swap(&mut writer, || Ok((plugin, component_of(&self.query, &component)?)), ("swap", &terms))
            }
            Request::EndCanary {} => self.end_canary(&mut writer),
            Request::Rollback { plugin, to, terms } => {
                let earlier = || self.earlier(plugin, to.as_deref()).map_err(|error| refused(&error));
                self.swap(&mut writer, earlier, ("rollback", &terms))
            }
        }
    }

    fn status(&self) -> RunningQuery {
        let status = self.query.status();
        RunningQuery {
            id: self.query.id(),
            run: self.query.run_id(),
            name: self.query.name().map(str::to_owned),
            file: self.file.clone(),
            pid: std::process::id(),
            message: status.message,
            is_data_available: status.is_data_available,
            is_trigger_active: status.is_trigger_active,
            last_progress: self.query.last_progress(),
        }
    }

    /// Says what the checks say of a component, and when they admit it lets it wait for the next border.
    fn swap(
        &self,
        writer: &mut &UnixStream,
        component: impl FnOnce() -> Result<(String, Vec<u8>), Answer>,
        (by, terms): (&str, &SwapTerms),
    ) -> Result<(), RuntimeError> {
        let (plugin, bytes) = match component() {
            Ok(named) => named,
            Err(refused) => return write_line(writer, &refused),
        };
        if let Some((canary, _)) = self.query.running_canary().filter(|(canary, _)| *canary == plugin) {
            let reason = format!("plugin `{canary}` has a canary");
            let hint = "wait until it has ended, or end it with `millstream rollback --canary`".to_owned();
            return write_line(writer, &Answer::Refused { reason, hint: Some(hint) });
        }
        let mut restores = terms.restore;
        let asked = match restores {
            true => self.query.verdict_of_restoring(&plugin, &bytes, terms.batches),
            false => self.query.verdict(&plugin, &bytes, terms.batches),
        };
        let asked = match asked {
            // There is no way back for what is stored: it is made again.
            Ok(report) if by == "rollback" && report.is_rejected_for_its_state() => {
                restores = true;
                self.query.verdict_of_restoring(&plugin, &bytes, terms.batches)
            }
            asked => asked,
        };
        let report = match asked {
            Ok(report) => report,
            Err(error) => return write_line(writer, &refused(&error)),
        };
        write_line(writer, &Answer::Verdict(Box::new(report.clone())))?;
        if !report.admits(terms.approve) {
            let error = RuntimeError::Refused { report: Box::new(report) };
            self.query.note_refused(&plugin, &describe_chain(&error));
            return write_line(writer, &refused(&error));
        }
        let report = match terms.shadow {
            0 => report,
            batches => match self.query.shadow(report, &bytes, batches) {
                Ok(report) => {
                    write_line(writer, &Answer::Shadow(Box::new(report.clone())))?;
                    if !report.admits(terms.approve) {
                        let error = RuntimeError::Refused { report: Box::new(report) };
                        self.query.note_refused(&plugin, &describe_chain(&error));
                        return write_line(writer, &refused(&error));
                    }
                    report
                }
                Err(error) => return write_line(writer, &refused(&error)),
            },
        };
        if let Some(answer) = terms.canary.as_ref().and_then(|_| refused_canary(&report)) {
            return write_line(writer, &answer);
        }
        let digest = Digest::of(&bytes);
        let remake = match (restores, report.migration.is_empty()) {
            (true, _) => Some(Remake::Restore),
            (false, false) => Some(Remake::Migrate),
            (false, true) => None,
        };
        let grounds = SwapGrounds::of(by, &report, terms.approve && report.verdict == Verdict::NeedsApproval);
        let queued = match &terms.canary {
            Some(canary) => self.query.canary(&plugin, bytes, grounds, canary.clone()),
            None => self.query.swap_on(&plugin, bytes, grounds, remake),
        };
        match queued {
            Ok(answer) => {
                write_line(writer, &Answer::Accepted(Accepted { digest }))?;
                self.tell_outcome(writer, &answer)
            }
            Err(error) => write_line(writer, &refused(&error)),
        }
    }

    /// Lets the running code compute all keys again.
    fn end_canary(&self, writer: &mut &UnixStream) -> Result<(), RuntimeError> {
        let Some((plugin, digest)) = self.query.running_canary() else {
            return write_line(writer, &Answer::Refused { reason: "the query has no canary".into(), hint: None });
        };
        match self.query.end_canary(&plugin) {
            Ok(answer) => {
                write_line(writer, &Answer::Accepted(Accepted { digest }))?;
                self.tell_outcome(writer, &answer)
            }
            Err(error) => write_line(writer, &refused(&error)),
        }
    }

    /// The component that a plugin goes back to.
    fn earlier(&self, plugin: Option<String>, to: Option<&str>) -> Result<(String, Vec<u8>), RuntimeError> {
        let plugins = self.query.plugins();
        let plugin = match (plugin, &*plugins) {
            (Some(plugin), _) => plugin,
            (None, [only]) => only.clone(),
            (None, _) => {
                let reason = format!("the query has {} plugins", plugins.len());
                let hint = (!plugins.is_empty()).then(|| format!("say which: {}", plugins.join(", ")));
                return Err(RuntimeError::Invalid { reason, hint });
            }
        };
        let (_, bytes) = self.query.earlier_component(&plugin, to)?;
        Ok((plugin, bytes))
    }

    /// Waits for the border, as long as the client does: on an idle query that may be long, and others want to be served.
    fn tell_outcome(
        &self,
        writer: &mut &UnixStream,
        answer: &Receiver<Result<Swapped, String>>,
    ) -> Result<(), RuntimeError> {
        loop {
            let is_over = self.is_over();
            let outcome = match answer.recv_timeout(LOOK) {
                Ok(Ok(swapped)) => Answer::Taken(Taken { batch: swapped.batch.0, from: swapped.from, to: swapped.to }),
                Ok(Err(reason)) => Answer::Refused { reason, hint: None },
                Err(RecvTimeoutError::Timeout) if !is_over => match has_left(writer) {
                    true => return Ok(()),
                    false => continue,
                },
                Err(_) => {
                    let hint = "swap again when it runs, or name the new component in the query file".to_owned();
                    Answer::Refused { reason: "the query has stopped".into(), hint: Some(hint) }
                }
            };
            return write_line(writer, &outcome);
        }
    }
}

/// Whether a client that has nothing more to say has closed its side.
fn has_left(mut stream: &UnixStream) -> bool {
    let read = stream.set_nonblocking(true).and_then(|()| stream.read(&mut [0; 64]));
    let is_blocking = stream.set_nonblocking(false).is_ok();
    let is_there = match read {
        Ok(bytes) => bytes > 0,
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    };
    !(is_there && is_blocking)
}
