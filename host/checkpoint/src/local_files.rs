//! Durable files in a folder of this machine.
//!
//! A write goes to a temporary file in `.tmp` below the root, is synced, and gets its name by a hard link, which
//! fails when the name is taken; then the folder is synced too.
//!
//! ```text
//!   .tmp/<uuid>  ──write, fsync──►  link(offsets/7)  ──fsync offsets/──►  unlink(.tmp/<uuid>)
//! ```
//!
//! Rule of its life: names that begin with a dot are not files of the checkpoint. What a killed process left in
//! `.tmp` is removed at `open` once it is old; a younger one may be a living process's.

use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use uuid::Uuid;

const TEMPORARY: &str = ".tmp";
/// No write takes as long; what is older is left over.
const LEFT_OVER_AFTER: Duration = Duration::from_secs(600);

/// A folder of this machine. It is made with the first write.
#[derive(Debug)]
pub struct LocalFiles {
    root: PathBuf,
    /// Folders that are known to be there and durable.
    made: Mutex<HashSet<PathBuf>>,
}

impl LocalFiles {
    /// The folder `root`, which need not exist. Removes what killed processes left over.
    ///
    /// # Errors
    /// When the working directory, which a relative path needs, is not known.
    pub fn open(root: impl AsRef<Path>) -> io::Result<Self> {
        let files = Self { root: std::path::absolute(root)?, made: Mutex::default() };
        files.remove_left_over();
        Ok(files)
    }

    fn remove_left_over(&self) {
        let Ok(entries) = fs::read_dir(self.root.join(TEMPORARY)) else {
            return;
        };
        for entry in entries.flatten() {
            let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|time| time.elapsed());
            if matches!(age, Ok(Ok(age)) if age > LEFT_OVER_AFTER)
                && let Err(error) = fs::remove_file(entry.path())
            {
                tracing::warn!(%error, path = %entry.path().display(), "cannot remove a left-over temporary file");
            }
        }
    }

    /// The path below the root; refuses every path that could leave it or be taken for a temporary file.
    fn path(&self, path: &str) -> io::Result<PathBuf> {
        let mut full = self.root.clone();
        for part in path.split('/').filter(|_| !path.is_empty()) {
            if part.is_empty() || part.starts_with('.') || part.contains(['\\', '\0']) {
                let reason = "it is no relative path of plain names";
                return Err(io::Error::new(ErrorKind::InvalidInput, reason));
            }
            full.push(part);
        }
        Ok(full)
    }

    fn file(&self, path: &str) -> io::Result<PathBuf> {
        if path.is_empty() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the name is empty"));
        }
        self.path(path)
    }

    /// Makes a folder and the folders above it, each durable in the one above.
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.contains(folder) {
            return Ok(());
        }
        let mut missing = vec![folder];
        while let Some(parent) = missing[missing.len() - 1].parent() {
            if made.contains(parent) || (parent.exists() && !parent.starts_with(&self.root)) {
                break;
            }
            missing.push(parent);
        }
        for folder in missing.into_iter().rev() {
            let created = match fs::create_dir(folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                created => created.is_ok(),
            };
            // Below the root another process may have made it and not synced it yet.
            if let Some(parent) = folder.parent().filter(|parent| created || parent.starts_with(&self.root)) {
                sync_folder(parent)?;
            }
            made.insert(folder.to_owned());
        }
        Ok(())
    }

    /// Writes a temporary file and lets `place` give it its name.
    fn put(&self, path: &str, bytes: &[u8], place: impl Fn(&Path, &Path) -> io::Result<()>) -> io::Result<()> {
        let target = self.file(path)?;
        let folder = target.parent().unwrap_or(&self.root);
        let temporary_folder = self.root.join(TEMPORARY);
        let attempt = || {
            self.make_folder(folder)?;
            self.make_folder(&temporary_folder)?;
            let temporary = temporary_folder.join(Uuid::new_v4().to_string());
            let written = File::create_new(&temporary).and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            });
            let placed = written.and_then(|()| place(&temporary, &target));
            match fs::remove_file(&temporary) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(%error, path = %temporary.display(), "cannot remove a temporary file");
                }
                _ => {}
            }
            placed?;
            sync_folder(folder)
        };
        match attempt() {
            // Somebody removed a folder behind our back: look again, once.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.made.lock().unwrap_or_else(PoisonError::into_inner).clear();
                attempt()
            }
            result => result,
        }
    }

    fn names(&self, folder: &str, folders: bool) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.path(folder)?) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            // A link counts as what it leads to.
            let is_folder = fs::metadata(entry.path()).map_or(entry.file_type()?.is_dir(), |data| data.is_dir());
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_folder == folders && !name.starts_with('.') {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

/// Gives a written file its name, unless the name is taken.
fn link(temporary: &Path, target: &Path) -> io::Result<()> {
    fs::hard_link(temporary, target).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::Unsupported => {
            io::Error::new(error.kind(), format!("the file system must know hard links: {error}"))
        }
        _ => error,
    })
}

/// Makes the names in a folder durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn storage(action: &'static str, path: &str) -> impl FnOnce(io::Error) -> DurableError {
    let path = path.to_owned();
    move |source| DurableError::Storage { action, path, source: Box::new(source) }
}

impl DurableFiles for LocalFiles {
    fn put_new(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.put(path, &bytes, link).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => DurableError::Exists { path: path.to_owned() },
            _ => storage("write", path)(error),
        })
    }

    fn put_over(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.put(path, &bytes, |temporary, target| fs::rename(temporary, target)).map_err(storage("write", path))
    }

    fn get(&self, path: &str) -> Result<Bytes, DurableError> {
        self.file(path).and_then(fs::read).map(Bytes::from).map_err(|error| match error.kind() {
            ErrorKind::NotFound => DurableError::Missing { path: path.to_owned() },
            _ => storage("read", path)(error),
        })
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        self.names(folder, false).map_err(storage("list", folder))
    }

    fn list_folders(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        self.names(folder, true).map_err(storage("list", folder))
    }

    fn delete(&self, path: &str) -> Result<(), DurableError> {
        let removed = self.file(path).and_then(fs::remove_file);
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(storage("delete", path)(error)),
            _ => Ok(()),
        }
    }

    fn location(&self) -> String {
        self.root.display().to_string()
    }

    fn local_folder(&self) -> Option<PathBuf> {
        Some(self.root.clone())
    }
}
