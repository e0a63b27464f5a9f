//! Which files there are now.

use super::config::{FileConfig, is_glob};
use crate::SourceError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A file as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub(super) path: String,
    pub(super) modified_ms: i64,
    pub(super) bytes: u64,
}

/// All files that the options name, oldest first; equal times by path.
pub(super) fn list(name: &str, config: &FileConfig) -> Result<Vec<FoundFile>, SourceError> {
    let fail = |place: &Path, source: io::Error| SourceError::Unavailable {
        name: name.to_owned(),
        action: "list",
        place: place.display().to_string(),
        source: Box::new(source),
    };
    let mut found = Vec::new();
    for root in roots(name, config)? {
        let metadata = match fs::metadata(&root) {
            // What a pattern named a moment ago may be gone by now.
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_glob(&config.path) => continue,
            other => other.map_err(|error| fail(&root, error))?,
        };
        if metadata.is_dir() {
            walk(name, config, &root, &mut found).map_err(|error| fail(&root, error))?;
        } else if metadata.is_file() {
            keep(name, config, &root, &metadata, &mut found);
        }
    }
    found.sort_by(|a, b| a.modified_ms.cmp(&b.modified_ms).then_with(|| a.path.cmp(&b.path)));
    found.dedup_by(|a, b| a.path == b.path);
    Ok(found)
}

fn roots(name: &str, config: &FileConfig) -> Result<Vec<PathBuf>, SourceError> {
    if !is_glob(&config.path) {
        return Ok(vec![PathBuf::from(&config.path)]);
    }
    let fail = |place: String, source: Box<dyn std::error::Error + Send + Sync>| SourceError::Unavailable {
        name: name.to_owned(),
        action: "list",
        place,
        source,
    };
    let options =
        glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };
    let paths = glob::glob_with(&config.path, options).map_err(|error| fail(config.path.clone(), Box::new(error)))?;
    let mut roots = Vec::new();
    for path in paths {
        match path {
            Ok(path) => roots.push(path),
            Err(error) if error.error().kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error.path().display().to_string(), Box::new(error))),
        }
    }
    Ok(roots)
}

fn walk(name: &str, config: &FileConfig, root: &Path, found: &mut Vec<FoundFile>) -> io::Result<()> {
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let file_name = entry.file_name();
            if is_hidden(&file_name.to_string_lossy()) {
                continue;
            }
            let path = entry.path();
            let metadata = match fs::metadata(&path) {
                // Moved away between the listing and the look at it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            if metadata.is_file() {
                keep(name, config, &path, &metadata, found);
            } else if metadata.is_dir() && config.recursive && !entry.file_type()?.is_symlink() {
                folders.push(path);
            }
        }
    }
    Ok(())
}

fn keep(name: &str, config: &FileConfig, path: &Path, metadata: &fs::Metadata, found: &mut Vec<FoundFile>) {
    let Some(file_name) = path.file_name().map(|name| name.to_string_lossy()) else { return };
    if is_hidden(&file_name) || config.name_filter.as_ref().is_some_and(|filter| !filter.matches(&file_name)) {
        return;
    }
    let Some(text) = path.to_str() else {
        tracing::warn!(source = name, file = %path.display(), "a file is ignored: its name is no UTF-8");
        return;
    };
    let modified_ms = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |since| since.as_millis() as i64);
    found.push(FoundFile { path: text.to_owned(), modified_ms, bytes: metadata.len() });
}

/// Names that begin with `_` or `.` belong to somebody's bookkeeping or are not finished.
fn is_hidden(file_name: &str) -> bool {
    file_name.starts_with(['_', '.'])
}
