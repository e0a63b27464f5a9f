//! A test instrument: durable files that crash at a chosen write.
//!
//! A test runs a query over [`FaultyFiles`] once to learn how many durable writes it makes, then once per write with
//! a crash before and after it, and each time restarts on the files below. A write cannot be torn: whole or not
//! at all is what every implementation of [`DurableFiles`] promises and is tested for on its own.
//!
//! Writes are numbered in the order in which they come. What writes from a thread of its own, as snapshots of state
//! do, makes that order vary: such a test sets snapshots off or counts what it got from [`FaultyFiles::history`].
//!
//! Rule of its life: after the crash every call fails, also reads, as if the process were gone.
//!
//! ```
//! use millstream_checkpoint::faulty::{Counted, FaultyFiles, Moment};
//! use millstream_checkpoint::open_files;
//! use millstream_common::DurableFiles;
//! use std::sync::Arc;
//!
//! let inner = open_files("memory:///", &[])?;
//! let faulty = FaultyFiles::new(Arc::clone(&inner), Counted::ALL).crash_at(2, Moment::Before);
//! assert!(faulty.put_new("a", "1".into()).is_ok());
//! assert!(faulty.put_new("b", "2".into()).is_err());
//! assert!(faulty.get("a").is_err());
//! assert_eq!(inner.list("")?, ["a"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which calls count as a durable write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// `put_new`.
    pub put_new: bool,
    /// `put_over`.
    pub put_over: bool,
    /// `delete`.
    pub delete: bool,
}

impl Counted {
    /// All three.
    pub const ALL: Self = Self { put_new: true, put_over: true, delete: true };
    /// New files only.
    pub const PUT_NEW: Self = Self { put_new: true, put_over: false, delete: false };
}

/// On which side of the write the crash is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The write does not happen.
    Before,
    /// The write is durable, but the process dies before it learns so.
    After,
}

#[derive(Debug, Default)]
struct Progress {
    writes: Vec<String>,
    crashed: bool,
}

/// Durable files with a crash in them.
#[derive(Debug)]
pub struct FaultyFiles {
    inner: Arc<dyn DurableFiles>,
    counted: Counted,
    crash: Option<(usize, Moment)>,
    progress: Mutex<Progress>,
}

impl FaultyFiles {
    /// Counts the writes and passes everything on.
    pub fn new(inner: Arc<dyn DurableFiles>, counted: Counted) -> Self {
        Self { inner, counted, crash: None, progress: Mutex::default() }
    }

    /// Crashes at the `write`-th counted write, from 1.
    #[must_use]
    pub fn crash_at(mut self, write: usize, moment: Moment) -> Self {
        self.crash = Some((write, moment));
        self
    }

    /// How many counted writes were tried.
    pub fn writes(&self) -> usize {
        self.progress().writes.len()
    }

    /// The counted writes that were tried, in order: `put_new offsets/0`.
    pub fn history(&self) -> Vec<String> {
        self.progress().writes.clone()
    }

    /// Whether the crash has happened.
    pub fn crashed(&self) -> bool {
        self.progress().crashed
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn alive(&self, action: &'static str, path: &str) -> Result<(), DurableError> {
        if self.progress().crashed { Err(crashed(action, path)) } else { Ok(()) }
    }

    fn write(
        &self,
        counted: bool,
        (kind, action, path): (&str, &'static str, &str),
        write: impl FnOnce() -> Result<(), DurableError>,
    ) -> Result<(), DurableError> {
        let mut progress = self.progress();
        if progress.crashed {
            return Err(crashed(action, path));
        }
        if !counted {
            drop(progress);
            return write();
        }
        progress.writes.push(format!("{kind} {path}"));
        let Some((_, moment)) = self.crash.filter(|(at, _)| *at == progress.writes.len()) else {
            drop(progress);
            return write();
        };
        progress.crashed = true;
        if moment == Moment::After {
            // Whatever it answers, nobody is there to hear it.
            let _ = write();
        }
        Err(crashed(action, path))
    }
}

fn crashed(action: &'static str, path: &str) -> DurableError {
    DurableError::Storage { action, path: path.to_owned(), source: "crashed".into() }
}

impl DurableFiles for FaultyFiles {
    fn put_new(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.write(self.counted.put_new, ("put_new", "write", path), || self.inner.put_new(path, bytes))
    }
    fn put_over(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.write(self.counted.put_over, ("put_over", "write", path), || self.inner.put_over(path, bytes))
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
        self.write(self.counted.delete, ("delete", "delete", path), || self.inner.delete(path))
    }
    fn location(&self) -> String {
        self.inner.location()
    }
    fn local_folder(&self) -> Option<PathBuf> {
        self.inner.local_folder()
    }
}
