//! The files of one version, read and verified: snapshot first, then changelogs.
//!
//! Opening a store and merging a snapshot both read this way.
//!
//! Rule of its life: nothing of a file is used before its length, its checksums and its place in the chain are
//! as the manifest and the file before it say. Each changelog names the version and checksum of the changelog
//! that it was written after, so that files of two histories never mix.

use super::frame::{Frame, Lineage};
use crate::{StateError, StateFile, StateFileKind, StateManifest};
use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles};

/// Where a chain of files has come to.
#[derive(Debug)]
pub(super) struct Chain<'a> {
    files: &'a dyn DurableFiles,
    place: String,
    /// The version of the snapshot, while only parts of it have come.
    snapshot: Option<u64>,
    begun: bool,
    lineage: Lineage,
}

impl<'a> Chain<'a> {
    pub(super) fn new(files: &'a dyn DurableFiles) -> Self {
        Self { files, place: files.location(), snapshot: None, begun: false, lineage: Lineage::default() }
    }

    pub(super) fn lineage(&self) -> Lineage {
        self.lineage
    }

    pub(super) fn damaged(&self, file: &str, reason: impl Into<String>) -> StateError {
        StateError::Damaged { place: self.place.clone(), file: file.to_owned(), reason: reason.into() }
    }

    /// Reads the bytes of the next file.
    pub(super) fn get(&self, file: &StateFile) -> Result<Bytes, StateError> {
        let name = &file.name;
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
            return Err(self.damaged(name, "the manifest gives it a name that no state file has"));
        }
        self.files.get(name).map_err(|source| match source {
            DurableError::Missing { .. } => {
                StateError::Missing { place: self.place.clone(), file: name.clone(), version: file.version }
            }
            source => StateError::Files { place: self.place.clone(), source },
        })
    }

    /// Verifies the next file and moves on to it.
    pub(super) fn next<'b>(&mut self, file: &StateFile, bytes: &'b Bytes) -> Result<Frame<'b>, StateError> {
        self.verify(file, bytes).map_err(|reason| self.damaged(&file.name, reason))
    }

    fn verify<'b>(&mut self, file: &StateFile, bytes: &'b Bytes) -> Result<Frame<'b>, String> {
        if bytes.len() as u64 != file.bytes {
            return Err(format!("it has {} bytes, the manifest says {}", bytes.len(), file.bytes));
        }
        let (frame, crc) = Frame::read(bytes)?;
        if crc != file.crc {
            return Err(format!("its checksum is {crc:08x}, the manifest says {:08x}", file.crc));
        }
        if (frame.kind, frame.version) != (file.kind, file.version) {
            return Err(format!(
                "it is a {:?} of version {}, the manifest says {:?} of version {}",
                frame.kind, frame.version, file.kind, file.version
            ));
        }
        match frame.kind {
            StateFileKind::Snapshot if !self.begun => {
                self.lineage = frame.lineage;
                self.snapshot = Some(frame.version);
            }
            StateFileKind::Snapshot if (self.snapshot, self.lineage) == (Some(frame.version), frame.lineage) => {}
            StateFileKind::Snapshot => return Err("a snapshot follows another file".into()),
            StateFileKind::Changelog => {
                self.snapshot = None;
                if frame.lineage != self.lineage {
                    return Err(format!(
                        "it follows version {} with checksum {:08x}, the files before it end with version {} and checksum {:08x}",
                        frame.lineage.version, frame.lineage.crc, self.lineage.version, self.lineage.crc
                    ));
                }
                if frame.version <= self.lineage.version {
                    return Err(format!("version {} follows version {}", frame.version, self.lineage.version));
                }
                self.lineage = Lineage { version: frame.version, crc };
            }
        }
        self.begun = true;
        Ok(frame)
    }

    /// Checks that the files end no later than the manifest's version.
    pub(super) fn end(&self, manifest: &StateManifest) -> Result<(), StateError> {
        if manifest.version == u64::MAX {
            return Err(self.damaged("manifest", "no version can follow it"));
        }
        match manifest.files.last() {
            Some(last) if last.version > manifest.version => Err(self.damaged(
                &last.name,
                format!("it leads to version {}, the manifest to version {}", last.version, manifest.version),
            )),
            _ => Ok(()),
        }
    }
}
