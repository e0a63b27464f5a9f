//! The form of every small file of a checkpoint: one line of what it is, then JSON.
//!
//! ```text
//! millstream offset-log 1 crc32=5d3a90c1
//! {
//!   "batch": 41,
//!   …
//! }
//! ```
//!
//! The checksum covers everything after the first line. People may read the files; whoever edits one must be
//! sure, for the checksum then no longer fits and the file is refused.
//!
//! Rule of its life: reading names what is wrong in words: empty, torn, foreign, of another release.

use crate::{CheckpointError, json_lines};
use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What all documents begin with.
const PROGRAM: &str = "millstream";

/// A kind of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DocumentKind {
    /// The word in the first line.
    pub(crate) word: &'static str,
    /// The format version that is written, the newest that is read.
    pub(crate) version: u32,
    /// The oldest format version that is read: what later versions added has a default.
    pub(crate) oldest: u32,
}

impl DocumentKind {
    /// The bytes of a document.
    pub(crate) fn encode<T: Serialize>(self, place: &str, file: &str, content: &T) -> Result<Bytes, CheckpointError> {
        self.frame(place, file, json_lines::to_vec(content, 0))
    }

    /// The bytes of a document whose content has this JSON.
    pub(crate) fn frame(
        self,
        place: &str,
        file: &str,
        json: Result<Vec<u8>, serde_json::Error>,
    ) -> Result<Bytes, CheckpointError> {
        let json =
            json.map_err(|source| CheckpointError::Encode { place: place.to_owned(), file: file.to_owned(), source })?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&json);
        crc.update(b"\n");
        let head = format!("{PROGRAM} {} {} crc32={:08x}\n", self.word, self.version, crc.finalize());
        let mut bytes = Vec::with_capacity(head.len() + json.len() + 1);
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(&json);
        bytes.push(b'\n');
        Ok(bytes.into())
    }

    /// Reads a document of the folder; `Ok(None)` when the file is not there.
    pub(crate) fn read<T: DeserializeOwned>(
        self,
        files: &dyn DurableFiles,
        file: &str,
    ) -> Result<Option<T>, CheckpointError> {
        match files.get(file) {
            Ok(bytes) => self.decode(&files.location(), file, &bytes).map(Some),
            Err(DurableError::Missing { .. }) => Ok(None),
            Err(source) => Err(CheckpointError::files(files.location(), source)),
        }
    }

    /// The content of a document.
    pub(crate) fn decode<T: DeserializeOwned>(
        self,
        place: &str,
        file: &str,
        bytes: &[u8],
    ) -> Result<T, CheckpointError> {
        let damaged = |reason: String| CheckpointError::Damaged { place: place.into(), file: file.into(), reason };
        let foreign = |reason: &str| CheckpointError::Foreign {
            place: place.into(),
            file: file.into(),
            reason: reason.to_owned(),
        };
        if bytes.is_empty() {
            return Err(damaged("it is empty".into()));
        }
        let program = format!("{PROGRAM} ").into_bytes();
        if !bytes.starts_with(&program[..program.len().min(bytes.len())]) {
            return Err(foreign("its first line does not begin with `millstream`"));
        }
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            return Err(damaged("it ends within its first line".into()));
        };
        let (line, json) = (&bytes[..end], &bytes[end + 1..]);
        let line = std::str::from_utf8(line).map_err(|_| damaged("its first line is no text".into()))?;
        let mut words = line.split(' ').skip(1);
        let word = words.next().unwrap_or_default();
        if word != self.word {
            return Err(foreign(&format!("its first line says `{word}`, not `{}`", self.word)));
        }
        let version: u64 = words
            .next()
            .and_then(|version| version.parse().ok())
            .ok_or_else(|| damaged("its first line has no format version".into()))?;
        if !(u64::from(self.oldest)..=u64::from(self.version)).contains(&version) {
            return Err(CheckpointError::Version {
                place: place.into(),
                file: file.into(),
                found: version,
                known: self.version,
            });
        }
        let crc = words
            .next()
            .and_then(|word| word.strip_prefix("crc32="))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .filter(|_| words.next().is_none())
            .ok_or_else(|| damaged("its first line has no checksum".into()))?;
        let found = crc32fast::hash(json);
        if found != crc {
            let reason =
                format!("its checksum is {found:08x}, its first line says {crc:08x}: it is torn or was edited");
            return Err(damaged(reason));
        }
        serde_json::from_slice(json).map_err(|error| damaged(format!("its JSON is no {}: {error}", self.word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const KIND: DocumentKind = DocumentKind { word: "offset-log", version: 2, oldest: 1 };

    fn content() -> BTreeMap<String, i64> {
        BTreeMap::from([("a".to_owned(), 1), ("ü".to_owned(), -2)])
    }

    fn decode(bytes: &[u8]) -> Result<BTreeMap<String, i64>, CheckpointError> {
        KIND.decode("here", "offsets/1", bytes)
    }

    #[test]
    fn a_document_round_trips_and_can_be_read_by_people() {
        let bytes = KIND.encode("here", "offsets/1", &content()).unwrap();
        assert_eq!(decode(&bytes).unwrap(), content());
        let text = std::str::from_utf8(&bytes).unwrap();
        assert_eq!(text, "millstream offset-log 2 crc32=aab1a8c2\n{\n  \"a\": 1,\n  \"ü\": -2\n}\n");
    }

    #[test]
    fn every_truncation_is_told_as_damage() {
        let bytes = KIND.encode("here", "offsets/1", &content()).unwrap();
        for len in 0..bytes.len() {
            let error = decode(&bytes[..len]).unwrap_err();
            assert!(matches!(error, CheckpointError::Damaged { .. }), "{len}: {error}");
        }
    }

    #[test]
    fn every_changed_byte_is_refused() {
        let bytes = KIND.encode("here", "offsets/1", &content()).unwrap();
        for at in 0..bytes.len() {
            for change in [1, 0x20, 0x80] {
                let mut changed = bytes.to_vec();
                changed[at] ^= change;
                // A checksum digit in the other case is the same checksum.
                if let Ok(read) = decode(&changed) {
                    assert!(change == 0x20 && read == content(), "byte {at}");
                }
            }
        }
    }

    #[test]
    fn foreign_files_and_other_releases_are_told_apart() {
        assert!(matches!(decode(b"v1\n{}"), Err(CheckpointError::Foreign { .. })));
        let other = DocumentKind { word: "commit-log", ..KIND }.encode("", "", &content()).unwrap();
        let error = decode(&other).unwrap_err();
        assert!(error.to_string().contains("says `commit-log`, not `offset-log`"), "{error}");
        let older = DocumentKind { version: 1, ..KIND }.encode("", "", &content()).unwrap();
        assert_eq!(decode(&older).unwrap(), content());
        for version in [0, 3] {
            let other = DocumentKind { version, ..KIND }.encode("", "", &content()).unwrap();
            let error = decode(&other).unwrap_err();
            assert!(matches!(error, CheckpointError::Version { found, known: 2, .. } if found == u64::from(version)));
        }
        let wrong = KIND.encode("", "", &["not", "a", "map"]).unwrap();
        assert!(decode(&wrong).unwrap_err().to_string().contains("its JSON is no offset-log"));
    }
}
