//! A folder of what was pulled, by digest: the next start needs no registry.
//!
//! ```text
//!   components/<digest>.wasm      manifests/<digest>.json      evidence/<digest of the component>.json
//! ```
//!
//! Rule of its life: a file is written aside and renamed, so readers see all of it or nothing. Components and manifests are
//! believed by their digest, evidence by the keys that it is checked against, so it is no matter who can write here:
//! what does not fit is as good as not there, and is had anew.

use crate::{Evidence, PackageError};
use millstream_common::Digest;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Signatures that are kept of one component.
const KEPT_EVIDENCE: usize = 16;
/// Bytes of a file of evidence that are read.
const EVIDENCE_BYTES: u64 = 32 << 20;

/// The folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageStore {
    folder: PathBuf,
}

/// What a folder of the store has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl PackageStore {
    /// A folder, which is made when something is kept.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// `millstream/packages` in the user's folder for caches; `None` when there is no such folder.
    pub fn of_user() -> Option<Self> {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        Some(Self::new(cache.or_else(home)?.join("millstream/packages")))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A component of at most `limit` bytes, if it is here and whole.
    pub fn component(&self, digest: Digest, limit: u64) -> Option<Vec<u8>> {
        read_whole(&self.component_file(digest), limit, digest)
    }

    /// A manifest, if it is here and whole.
    pub fn manifest(&self, digest: Digest) -> Option<Vec<u8>> {
        read_whole(&self.manifest_file(digest), crate::manifest::MANIFEST_BYTES, digest)
    }

    /// What vouches for a component, as far as it is known here.
    pub fn evidence(&self, component: Digest) -> Vec<Evidence> {
        let file = self.evidence_file(component);
        let bytes = read(&file, EVIDENCE_BYTES).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            if !bytes.is_empty() {
                tracing::warn!("`{}` has no evidence that can be read: {error}", file.display());
            }
            Vec::new()
        })
    }

    /// Keeps a package.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn keep(&self, manifest: &[u8], component: &[u8]) -> Result<(), PackageError> {
        write(&self.component_file(Digest::of(component)), component)?;
        write(&self.manifest_file(Digest::of(manifest)), manifest)
    }

    /// Keeps what vouches for a component, beside what is known already.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep_evidence(&self, component: Digest, evidence: Evidence) -> Result<(), PackageError> {
        let mut known = self.evidence(component);
        if known.contains(&evidence) {
            return Ok(());
        }
        known.insert(0, evidence);
        known.truncate(KEPT_EVIDENCE);
        let text = serde_json::to_vec_pretty(&known).expect("texts always have a JSON form");
        write(&self.evidence_file(component), &text)
    }

    /// How much is kept.
    pub fn held(&self) -> Held {
        let mut held = Held::default();
        for part in ["components", "manifests", "evidence"] {
            for file in fs::read_dir(self.folder.join(part)).into_iter().flatten().flatten() {
                if let Ok(metadata) = file.metadata() {
                    held.files += 1;
                    held.bytes += metadata.len();
                }
            }
        }
        held
    }

    /// Removes everything; what is needed is had anew.
    ///
    /// # Errors
    /// When a folder cannot be removed.
    pub fn clear(&self) -> Result<(), PackageError> {
        for part in ["components", "manifests", "evidence"] {
            let path = self.folder.join(part);
            match fs::remove_dir_all(&path) {
                Err(source) if source.kind() != ErrorKind::NotFound => {
                    return Err(PackageError::Io { doing: "remove", path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn component_file(&self, digest: Digest) -> PathBuf {
        self.folder.join(format!("components/{digest}.wasm"))
    }

    fn manifest_file(&self, digest: Digest) -> PathBuf {
        self.folder.join(format!("manifests/{digest}.json"))
    }

    fn evidence_file(&self, component: Digest) -> PathBuf {
        self.folder.join(format!("evidence/{component}.json"))
    }
}

/// A file's bytes when they have the digest.
fn read_whole(path: &Path, limit: u64, digest: Digest) -> Option<Vec<u8>> {
    let bytes = read(path, limit).ok()?;
    if Digest::of(&bytes) == digest {
        return Some(bytes);
    }
    tracing::warn!("`{}` is damaged and is not used", path.display());
    None
}

fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is too large"));
    }
    Ok(bytes)
}

/// Writes aside and renames.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), PackageError> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let failed = |source| PackageError::Io { doing: "write", path: path.to_owned(), source };
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    let write = WRITES.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{write}.tmp", std::process::id()));
    let aside = folder.join(name);
    let written = fs::write(&aside, bytes).and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_there_while_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let store = PackageStore::new(folder.path().join("packages"));
        let (component, manifest) = (Digest::of(b"component"), Digest::of(b"manifest"));
        assert_eq!((store.component(component, 100), store.held()), (None, Held::default()));
        store.keep(b"manifest", b"component").unwrap();
        assert_eq!(store.component(component, 100).unwrap(), b"component");
        assert!(store.component(component, 3).is_none(), "it is larger than that");
        assert_eq!(store.manifest(manifest).unwrap(), b"manifest");
        assert_eq!(store.held(), Held { files: 2, bytes: 17 });
        fs::write(store.component_file(component), "tampered").unwrap();
        assert!(store.component(component, 100).is_none());
        store.keep(b"manifest", b"component").unwrap();
        assert!(store.component(component, 100).is_some());
        store.clear().unwrap();
        assert!(store.component(component, 100).is_none());
    }

    #[test]
    fn evidence_gathers_and_has_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let store = PackageStore::new(folder.path().to_owned());
        let component = Digest::of(b"component");
        let evidence = |n: usize| Evidence::File { signature: n.to_string() };
        for n in 0..20 {
            store.keep_evidence(component, evidence(n)).unwrap();
            store.keep_evidence(component, evidence(n)).unwrap();
        }
        let kept = store.evidence(component);
        assert_eq!((kept.len(), &kept[0]), (KEPT_EVIDENCE, &evidence(19)));
        fs::write(store.evidence_file(component), "{").unwrap();
        assert!(store.evidence(component).is_empty());
    }
}
