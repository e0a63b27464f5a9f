//! Durable files that name the steps of a swap as they pass, and die at one of them.
//!
//! ```text
//!   order ──► asked ──► border: the swap log is written … the border is committed ──► after: the first batch … committed
//! ```
//! A step is a write: phase, what is written, and whether it has happened: `border: offsets, after`. Writes of the thread
//! that migrates state beside the query are steps of their own.

use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Strike;

/// Called once, when the step has come.
pub(super) type OnStrike = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Quiet,
    Asked,
    Border,
    After,
}

struct State {
    phase: Phase,
    strike: Option<Strike>,
    struck: Option<String>,
}

/// Files that die at a step.
pub(super) struct StepFiles {
    inner: Arc<dyn DurableFiles>,
    state: Mutex<State>,
    on_strike: OnStrike,
}

impl fmt::Debug for StepFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepFiles").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl StepFiles {
    /// Passes everything on until a strike comes.
    pub(super) fn new(inner: Arc<dyn DurableFiles>, on_strike: OnStrike) -> Self {
        Self { inner, state: Mutex::new(State { phase: Phase::Quiet, strike: None, struck: None }), on_strike }
    }

    /// A swap is asked for, and the host is to die at that step.
    pub(super) fn ask(&self, strike: Option<Strike>) {
        let mut state = self.lock();
        state.phase = Phase::Asked;
        state.strike = strike;
    }

    /// The step at which it died.
    pub(super) fn struck(&self) -> Option<String> {
        self.lock().struck.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(
        &self,
        path: &str,
        action: &'static str,
        write: impl FnOnce() -> Result<(), DurableError>,
    ) -> Result<(), DurableError> {
        let kind = kind(path);
        self.pass(kind, "before", path, action)?;
        let written = write();
        if written.is_ok() {
            self.pass(kind, "after", path, action)?;
        }
        written
    }

    /// A step passes, or is the one.
    fn pass(&self, kind: Option<&str>, moment: &str, path: &str, action: &'static str) -> Result<(), DurableError> {
        let mut state = self.lock();
        if state.struck.is_some() {
            return Err(dead(action, path));
        }
        let Some(kind) = kind else { return Ok(()) };
        if kind == "swap log" && moment == "before" {
            state.phase = Phase::Border;
        }
        let phase = match state.phase {
            Phase::Quiet => return Ok(()),
            Phase::Asked => "asked",
            Phase::Border => "border",
            Phase::After => "after",
        };
        let step = format!("{phase}: {kind}, {moment}");
        if kind == "commit" && moment == "after" {
            state.phase = match state.phase {
                Phase::Border => Phase::After,
                Phase::After => Phase::Quiet,
                phase => phase,
            };
        }
        match &mut state.strike {
            Some(strike) if strike.step == step && strike.passes == 0 => {}
            Some(strike) if strike.step == step => {
                strike.passes -= 1;
                return Ok(());
            }
            _ => return Ok(()),
        }
        state.struck = Some(step.clone());
        drop(state);
        (self.on_strike)(&step);
        Err(dead(action, path))
    }

    fn alive(&self, action: &'static str, path: &str) -> Result<(), DurableError> {
        if self.lock().struck.is_some() { Err(dead(action, path)) } else { Ok(()) }
    }
}

/// What a file is to the protocol of a swap.
fn kind(path: &str) -> Option<&'static str> {
    let is_beside = std::thread::current().name() == Some("migration");
    match path.split_once('/')? {
        ("output", _) => Some("rows"),
        ("checkpoint", path) => match path.split('/').next()? {
            "plugins" => Some("component"),
            "swaps" => Some("swap log"),
            "offsets" => Some("offsets"),
            "commits" => Some("commit"),
            "state" if is_beside => Some("state beside"),
            "state" => Some("state"),
            _ => None,
        },
        _ => None,
    }
}

fn dead(action: &'static str, path: &str) -> DurableError {
    DurableError::Storage { action, path: path.to_owned(), source: "the host is dead".into() }
}

impl DurableFiles for StepFiles {
    fn put_new(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.write(path, "write", || self.inner.put_new(path, bytes))
    }
    fn put_over(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.write(path, "write", || self.inner.put_over(path, bytes))
    }
    fn get(&self, path: &str) -> Result<Bytes, DurableError> {
        self.alive("read", path)?;
        self.inner.get(path)
    }
    fn list(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        self.alive("list", folder)?;
        self.inner.list(folder)
    }
    fn list_folders(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        self.alive("list", folder)?;
        self.inner.list_folders(folder)
    }
    fn delete(&self, path: &str) -> Result<(), DurableError> {
        self.alive("delete", path)?;
        self.inner.delete(path)
    }
    fn location(&self) -> String {
        self.inner.location()
    }
    fn local_folder(&self) -> Option<PathBuf> {
        self.inner.local_folder()
    }
}
