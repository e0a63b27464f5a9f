//! Durable files into whose calls a test meddles: storage that is away for a while, and what others do meanwhile.

use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A call, of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// It is written.
    Write,
    /// It is read.
    Read,
    /// It is deleted.
    Delete,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is as always.
    Passes,
    /// Nothing is done, and it fails.
    Fails,
    /// It is done, and fails all the same.
    IsUnheard,
}

/// Says what becomes of a call of a file, and may do what it likes before; not with these files.
type Rule = Box<dyn FnMut(Call, &str) -> Fate + Send>;

/// Files with a rule. Lists are never meddled with.
pub struct MeddledFiles {
    inner: Arc<dyn DurableFiles>,
    rule: Mutex<Option<Rule>>,
}

impl fmt::Debug for MeddledFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeddledFiles").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl MeddledFiles {
    /// Passes everything on until there is a rule.
    pub fn new(inner: Arc<dyn DurableFiles>) -> Arc<Self> {
        Arc::new(Self { inner, rule: Mutex::new(None) })
    }

    /// From now on this is the rule.
    pub fn meddle(&self, rule: impl FnMut(Call, &str) -> Fate + Send + 'static) {
        *self.rule.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(rule));
    }

    /// The next such call of a file whose path ends so has that fate; all others pass.
    pub fn once(&self, call: Call, end: &'static str, fate: Fate) {
        let mut is_over = false;
        self.meddle(move |called, path| {
            let is_meant = !is_over && called == call && path.ends_with(end);
            is_over |= is_meant;
            if is_meant { fate } else { Fate::Passes }
        });
    }

    /// Everything passes again.
    pub fn leave_alone(&self) {
        *self.rule.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn call<T>(
        &self,
        (call, action, path): (Call, &'static str, &str),
        passed: impl FnOnce() -> Result<T, DurableError>,
    ) -> Result<T, DurableError> {
        let mut rule = self.rule.lock().unwrap_or_else(PoisonError::into_inner);
        let fate = rule.as_mut().map_or(Fate::Passes, |rule| rule(call, path));
        drop(rule);
        if fate == Fate::Passes {
            return passed();
        }
        if fate == Fate::IsUnheard {
            passed()?;
        }
        Err(DurableError::Storage { action, path: path.to_owned(), source: "the storage is away".into() })
    }
}

impl DurableFiles for MeddledFiles {
    fn put_new(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.call((Call::Write, "write", path), || self.inner.put_new(path, bytes))
    }
    fn put_over(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.call((Call::Write, "write", path), || self.inner.put_over(path, bytes))
    }
    fn get(&self, path: &str) -> Result<Bytes, DurableError> {
        self.call((Call::Read, "read", path), || self.inner.get(path))
    }
    fn list(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        self.inner.list(folder)
    }
    fn list_folders(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        self.inner.list_folders(folder)
    }
    fn delete(&self, path: &str) -> Result<(), DurableError> {
        self.call((Call::Delete, "delete", path), || self.inner.delete(path))
    }
    fn location(&self) -> String {
        self.inner.location()
    }
    fn local_folder(&self) -> Option<PathBuf> {
        self.inner.local_folder()
    }
}
