//! Files of this machine. A folder that has not changed since it was read is not read again.

use super::{FoundFile, Sieve, io_failed, is_entered};
use crate::SourceError;
use crate::connectors::file::config::FileConfig;
use crate::connectors::file::patterns::{Part, is_hidden};
use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A folder that changed this long before it was read may have changed once more in the same tick of its clock.
const TICK_MS: i64 = 2_000;
/// All folders are read again after this time: not every file system tells the times of folders well.
const TRUSTED_MS: i64 = 60_000;

/// What is known of the folders since the last time that all were read.
#[derive(Debug, Default)]
pub(super) struct Folders {
    known: HashMap<PathBuf, Known>,
    all_read_at_ms: i64,
}

#[derive(Debug)]
struct Known {
    modified: SystemTime,
    /// The folders in it that are entered.
    below: Vec<PathBuf>,
}

impl Folders {
    /// Adds the files that are there.
    pub(super) fn list(
        &mut self,
        name: &str,
        config: &FileConfig,
        now_ms: i64,
        sieve: &mut Sieve<'_>,
    ) -> Result<(), SourceError> {
        if now_ms.saturating_sub(self.all_read_at_ms) >= TRUSTED_MS {
            self.known.clear();
            self.all_read_at_ms = now_ms;
        }
        let is_pattern = config.places.fixed().is_none();
        for root in roots(name, config)? {
            let fail = |error| io_failed(name, "list", &root.display().to_string(), error);
            let metadata = match fs::metadata(&root) {
                // A pattern names what may be there; and what was there a moment ago may be gone by now.
                Err(error) if is_pattern && is_absent(&error) => continue,
                other => other.map_err(fail)?,
            };
            if metadata.is_dir() {
                self.walk(name, config, &root, now_ms, sieve).map_err(fail)?;
            } else if let Some(file) = found(name, &root, &metadata)
                && sieve.is_wanted(&file.path)
            {
                sieve.keep(&file.path, file.modified_ms, file.bytes);
            }
        }
        Ok(())
    }

    fn walk(
        &mut self,
        name: &str,
        config: &FileConfig,
        root: &Path,
        now_ms: i64,
        sieve: &mut Sieve<'_>,
    ) -> io::Result<()> {
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            let modified = match fs::metadata(&folder).and_then(|metadata| metadata.modified()) {
                // Removed between the listing and the look at it.
                Err(error) if error.kind() == ErrorKind::NotFound && folder != root => continue,
                other => other?,
            };
            if let Some(known) = self.known.get(&folder).filter(|known| known.modified == modified) {
                folders.extend(known.below.iter().cloned());
                continue;
            }
            let below = read_folder(name, config, &folder, sieve)?;
            folders.extend(below.iter().cloned());
            if now_ms.saturating_sub(milliseconds(modified)) >= TICK_MS {
                self.known.insert(folder, Known { modified, below });
            } else {
                self.known.remove(&folder);
            }
        }
        Ok(())
    }
}

/// Adds the files of one folder; answers the folders in it that are entered.
fn read_folder(name: &str, config: &FileConfig, folder: &Path, sieve: &mut Sieve<'_>) -> io::Result<Vec<PathBuf>> {
    let mut below = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let file_name = entry.file_name();
        if is_hidden(&file_name.to_string_lossy()) {
            continue;
        }
        let path = entry.path();
        // A file that was taken before needs no look: for most files of a large folder that is all.
        let kind = entry.file_type()?;
        if kind.is_file() && !path.to_str().is_some_and(|path| sieve.is_wanted(path)) {
            if path.to_str().is_none() {
                tracing::warn!(source = name, file = %path.display(), "a file is ignored: its name is no UTF-8");
            }
            continue;
        }
        let metadata = match fs::metadata(&path) {
            // Moved away between the listing and the look at it.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            other => other?,
        };
        if metadata.is_file() {
            if let Some(file) = found(name, &path, &metadata)
                && sieve.is_wanted(&file.path)
            {
                sieve.keep(&file.path, file.modified_ms, file.bytes);
            }
        } else if metadata.is_dir() && !kind.is_symlink() {
            let folder = file_name.to_string_lossy();
            match is_entered(config, &folder) {
                true => below.push(path),
                false => sieve.pass_over(&folder),
            }
        }
    }
    Ok(below)
}

/// The path that is read, or all files and folders that fit its pattern and perhaps some that are not there, in the order of
/// their names.
pub(in super::super) fn roots(name: &str, config: &FileConfig) -> Result<Vec<PathBuf>, SourceError> {
    if let Some(path) = config.places.fixed() {
        return Ok(vec![path.into()]);
    }
    let mut roots = Vec::new();
    for place in config.places.each() {
        let mut open = vec![PathBuf::from("/")];
        for part in place {
            let mut next = Vec::new();
            for folder in open {
                match part {
                    Part::Name(part) => next.push(folder.join(part)),
                    pattern => {
                        let fitting = fitting(name, &folder, pattern);
                        let fail = |error| io_failed(name, "list", &folder.display().to_string(), error);
                        next.extend(fitting.map_err(fail)?);
                    }
                }
            }
            open = next;
        }
        roots.extend(open);
    }
    roots.sort();
    roots.dedup();
    Ok(roots)
}

/// What in a folder fits a part of a pattern; nothing, where there is no folder.
fn fitting(name: &str, folder: &Path, part: &Part) -> io::Result<Vec<PathBuf>> {
    let mut fitting = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if is_absent(&error) => return Ok(fitting),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        match entry.file_name().to_str() {
            Some(file_name) if part.matches(file_name) => fitting.push(entry.path()),
            Some(_) => {}
            None => {
                let file = entry.path();
                tracing::warn!(source = name, file = %file.display(), "a file is ignored: its name is no UTF-8");
            }
        }
    }
    Ok(fitting)
}

/// Whether there is nothing at a path.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn found(name: &str, path: &Path, metadata: &fs::Metadata) -> Option<FoundFile> {
    let Some(text) = path.to_str() else {
        tracing::warn!(source = name, file = %path.display(), "a file is ignored: its name is no UTF-8");
        return None;
    };
    let modified_ms = metadata.modified().map_or(0, milliseconds);
    Some(FoundFile { path: text.into(), modified_ms, bytes: metadata.len() })
}

fn milliseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis() as i64
}
