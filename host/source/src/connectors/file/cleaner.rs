//! What becomes of files whose rows are committed. Best effort: what fails is logged and left.

use super::bucket::Bucket;
use super::config::CleanSource;
use super::input::to_io;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Archives or deletes a file.
pub(super) fn clean(name: &str, how: &CleanSource, bucket: Option<&Arc<Bucket>>, path: &str) {
    let done = match (how, bucket) {
        (CleanSource::Off, _) => return,
        (how, Some(bucket)) => clean_object(how, bucket, path).map_err(to_io),
        (CleanSource::Delete, None) => fs::remove_file(path),
        (CleanSource::Archive(folder), None) => archive(Path::new(folder), Path::new(path)),
    };
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(source = name, file = path, %error, "a committed file could not be cleaned up");
        }
        _ => {}
    }
}

fn clean_object(how: &CleanSource, bucket: &Bucket, location: &str) -> Result<(), object_store::Error> {
    let key = bucket.key(location)?;
    if let CleanSource::Archive(folder) = how {
        bucket.copy(&key, &bucket.key(&format!("{folder}/{key}"))?)?;
    }
    bucket.delete(&key)
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
