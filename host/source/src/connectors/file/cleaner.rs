//! What becomes of files whose rows are committed. Best effort: what fails is logged and left.

use super::config::CleanSource;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Archives or deletes a file.
pub(super) fn clean(name: &str, how: &CleanSource, path: &str) {
    let done = match how {
        CleanSource::Off => return,
        CleanSource::Delete => fs::remove_file(path),
        CleanSource::Archive(folder) => archive(folder, Path::new(path)),
    };
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(source = name, file = path, %error, "a committed file could not be cleaned up");
        }
        _ => {}
    }
}

/// Moves a file below `folder`, keeping its whole path there.
fn archive(folder: &Path, path: &Path) -> io::Result<()> {
    let inside: PathBuf = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    let target = folder.join(inside);
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    if fs::rename(path, &target).is_ok() {
        return Ok(());
    }
    // Another file system: copy, then delete.
    fs::copy(path, &target)?;
    fs::remove_file(path)
}
