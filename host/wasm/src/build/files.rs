//! Files of a build: written aside and renamed, listed, digested.

use std::path::{Path, PathBuf};

use millstream_common::Digest;

use super::BuildError;

/// Folders that are made by tools and are no source.
const MADE: [&str; 7] = ["node_modules", "target", "__pycache__", ".git", ".venv", ".pytest_cache", ".zig-cache"];
/// Files of a plugin that are read to tell whether it changed.
const MOST_FILES: usize = 20_000;

/// The error of a file.
pub(super) fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> BuildError {
    let path = path.to_owned();
    move |source| BuildError::File { path, source }
}

/// Writes a file and the folders above it. A reader sees the old file or the new one; a file that has these bytes already
/// is left alone.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if std::fs::read(path).is_ok_and(|before| before == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed(folder))?;
    }
    let aside = path.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&aside, bytes).map_err(failed(&aside))?;
    std::fs::rename(&aside, path).map_err(failed(path))
}

/// A path that means the same from every folder.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, BuildError> {
    std::path::absolute(path).map_err(failed(path))
}

/// The digest of everything that a build depends on: files of folders, and texts.
pub(super) fn fingerprint(folders: &[&Path], texts: &[&str]) -> Result<Digest, BuildError> {
    let mut lines = String::new();
    for text in texts {
        lines.push_str(&format!("{:?}\n", text));
    }
    for folder in folders {
        let mut files = Vec::new();
        list(folder, &mut files)?;
        files.sort();
        for file in files {
            let bytes = std::fs::read(&file).map_err(failed(&file))?;
            let name = file.strip_prefix(folder).unwrap_or(&file);
            lines.push_str(&format!("{name:?} {}\n", Digest::of(&bytes)));
        }
    }
    Ok(Digest::of(lines.as_bytes()))
}

/// Copies the sources of a folder, for tools that would write beside them.
pub(super) fn copy_sources(from: &Path, to: &Path) -> Result<(), BuildError> {
    let mut files = Vec::new();
    list(from, &mut files)?;
    for file in files {
        let bytes = std::fs::read(&file).map_err(failed(&file))?;
        write(&to.join(file.strip_prefix(from).unwrap_or(&file)), &bytes)?;
    }
    Ok(())
}

/// The sources below a folder: no components, nothing that tools make. Links are not followed.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), BuildError> {
    for entry in std::fs::read_dir(folder).map_err(failed(folder))? {
        let entry = entry.map_err(failed(folder))?;
        let kind = entry.file_type().map_err(failed(folder))?;
        let name = entry.file_name();
        if kind.is_dir() && !MADE.iter().any(|made| name == *made) {
            list(&entry.path(), files)?;
        } else if kind.is_file() && entry.path().extension().is_none_or(|extension| extension != "wasm") {
            files.push(entry.path());
        }
        if files.len() > MOST_FILES {
            let source = std::io::Error::other(format!("more than {MOST_FILES} files"));
            return Err(BuildError::File { path: folder.to_owned(), source });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_changes_with_sources_and_texts_only() {
        let folder = tempfile::tempdir().unwrap();
        let now = |texts: &[&str]| fingerprint(&[folder.path()], texts).unwrap();
        write(&folder.path().join("src/a.py"), b"1").unwrap();
        let first = now(&["x"]);
        let copy = tempfile::tempdir().unwrap();
        copy_sources(folder.path(), copy.path()).unwrap();
        assert_eq!(fingerprint(&[copy.path()], &["x"]).unwrap(), first);
        write(&folder.path().join("node_modules/b/b.js"), b"2").unwrap();
        write(&folder.path().join("plugin.wasm"), b"3").unwrap();
        assert_eq!(now(&["x"]), first);
        assert_ne!(now(&["x", ""]), first);
        assert_ne!(now(&["y"]), first);
        write(&folder.path().join("src/a.py"), b"2").unwrap();
        assert_ne!(now(&["x"]), first);
    }
}
