//! The log of the file source in the checkpoint: which files offset N stands for.
//!
//! File `N` holds the files of N; every tenth file is `N.compact` instead and holds all files up to N, so that
//! a restart reads few files. Each line is an object with `path`, `timestamp` (modification, milliseconds)
//! and `batchId` (the N). Files are sealed with a checksum and written once; the ones that a compacted file
//! replaces are deleted.
//!
//! Rule of its life: the log holds what can still be asked for. A compacted file leaves out files of offsets that no batch is
//! retained of and that are too old to be taken again; its first line then says `forgottenBefore`, the time before which
//! every file counts as taken.

use crate::SourceError;
use crate::sealed;
use millstream_common::DurableFiles;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Every how many entries the log is compacted.
const COMPACT_INTERVAL: i64 = 10;

/// A file of an offset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileEntry {
    #[serde(with = "shared_text")]
    pub(super) path: Arc<str>,
    /// When the file was last modified, in milliseconds since 1970.
    pub(super) timestamp: i64,
    /// The offset that took it.
    #[serde(rename = "batchId")]
    pub(super) batch_id: i64,
}

/// The first line of a compacted file that left something out.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Forgotten {
    #[serde(rename = "forgottenBefore")]
    before_ms: i64,
}

/// A path that the log and the files that were seen share.
mod shared_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::sync::Arc;

    pub(super) fn serialize<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        Ok(String::deserialize(deserializer)?.into())
    }
}

/// The log, as far back as it is kept, in memory.
#[derive(Debug)]
pub(super) struct FileLog {
    name: String,
    files: Arc<dyn DurableFiles>,
    entries: BTreeMap<i64, Vec<FileEntry>>,
    latest: i64,
    /// How many offsets are kept whatever the age of their files.
    retained: i64,
    forgotten_before_ms: i64,
}

impl FileLog {
    /// Reads the log; the files of the last `retained` offsets are never left out.
    pub(super) fn open(name: &str, files: Arc<dyn DurableFiles>, retained: u64) -> Result<Self, SourceError> {
        let names = files.list("").map_err(|source| SourceError::Log { name: name.to_owned(), source })?;
        let numbers = |suffix: &str| {
            let mut found: Vec<i64> =
                names.iter().filter_map(|file| file.strip_suffix(suffix)?.parse().ok()).filter(|n| *n >= 0).collect();
            found.sort_unstable();
            found
        };
        let compacted = numbers(".compact").last().copied();
        let mut log = Self {
            name: name.to_owned(),
            files,
            entries: BTreeMap::new(),
            latest: -1,
            retained: i64::try_from(retained).unwrap_or(i64::MAX),
            forgotten_before_ms: i64::MIN,
        };
        if let Some(number) = compacted {
            log.load(&format!("{number}.compact"), 0..=number)?;
            log.latest = number;
        }
        for number in numbers("").into_iter().filter(|number| compacted.is_none_or(|compacted| *number > compacted)) {
            let path = number.to_string();
            if number != log.latest + 1 {
                let reason = format!("entry {} before it is missing", log.latest + 1);
                return Err(sealed::damaged(name, log.files.as_ref(), &path, &reason));
            }
            log.load(&path, number..=number)?;
            log.latest = number;
        }
        Ok(log)
    }

    fn load(&mut self, path: &str, range: std::ops::RangeInclusive<i64>) -> Result<(), SourceError> {
        let damaged = |reason: &str| sealed::damaged(&self.name, self.files.as_ref(), path, reason);
        let body = sealed::read(&self.name, self.files.as_ref(), path)?.ok_or_else(|| damaged("it vanished"))?;
        for (at, line) in body.lines().enumerate() {
            if at == 0
                && let Ok(forgotten) = serde_json::from_str::<Forgotten>(line)
            {
                self.forgotten_before_ms = forgotten.before_ms;
                continue;
            }
            let entry: FileEntry = serde_json::from_str(line).map_err(|error| damaged(&error.to_string()))?;
            if !range.contains(&entry.batch_id) {
                return Err(damaged("it holds an entry of another offset"));
            }
            self.entries.entry(entry.batch_id).or_default().push(entry);
        }
        Ok(())
    }

    /// The newest offset in the log; -1 when it is empty.
    pub(super) fn latest(&self) -> i64 {
        self.latest
    }

    /// The time before which files that the log does not have count as taken.
    pub(super) fn forgotten_before_ms(&self) -> i64 {
        self.forgotten_before_ms
    }

    /// The oldest offset that is kept whatever the age of its files.
    pub(super) fn first_retained(&self) -> i64 {
        self.latest.saturating_sub(self.retained)
    }

    /// All entries, oldest first.
    pub(super) fn all(&self) -> impl Iterator<Item = &FileEntry> {
        self.entries.values().flatten()
    }

    /// The files of offset `number`.
    pub(super) fn get(&self, number: i64) -> Option<&[FileEntry]> {
        self.entries.get(&number).map(Vec::as_slice)
    }

    /// Takes files below one folder for those of the same names below another one. Nothing is written.
    pub(super) fn relocate(&mut self, from: &str, to: &str) {
        for entry in self.entries.values_mut().flatten() {
            let below = entry.path.strip_prefix(from).filter(|below| below.is_empty() || below.starts_with('/'));
            if let Some(below) = below {
                entry.path = format!("{to}{below}").into();
            }
        }
    }

    /// Writes the entry after the newest one; answers its offset. Files that are older than `too_old_ms` would not be taken
    /// any more.
    pub(super) fn add(
        &mut self,
        files: impl Iterator<Item = (Arc<str>, i64)>,
        too_old_ms: i64,
    ) -> Result<i64, SourceError> {
        let number = self.latest + 1;
        let entry: Vec<FileEntry> =
            files.map(|(path, timestamp)| FileEntry { path, timestamp, batch_id: number }).collect();
        if (number + 1) % COMPACT_INTERVAL != 0 {
            sealed::write(&self.name, self.files.as_ref(), &number.to_string(), body(None, entry.iter()))?;
            self.entries.insert(number, entry);
            self.latest = number;
            return Ok(number);
        }
        let first = number.saturating_sub(self.retained);
        let is_kept = |entry: &&FileEntry| entry.batch_id >= first || entry.timestamp >= too_old_ms;
        let left_out = self.all().any(|entry| !is_kept(&entry));
        let forgotten = if left_out { too_old_ms.max(self.forgotten_before_ms) } else { self.forgotten_before_ms };
        let header = (forgotten > i64::MIN).then_some(Forgotten { before_ms: forgotten });
        let text = body(header, self.all().filter(is_kept).chain(&entry));
        sealed::write(&self.name, self.files.as_ref(), &format!("{number}.compact"), &text)?;
        self.forgotten_before_ms = forgotten;
        for entries in self.entries.values_mut() {
            entries.retain(|entry| is_kept(&entry));
        }
        self.entries.retain(|_, entries| !entries.is_empty());
        self.entries.insert(number, entry);
        self.latest = number;
        self.delete_before(number);
        Ok(number)
    }

    /// Deletes the files that `number.compact` replaces. One that stays is skipped by the next start.
    fn delete_before(&self, number: i64) {
        let previous = number - COMPACT_INTERVAL;
        let names = (previous + 1..number).map(|n| n.to_string());
        for name in names.chain((previous >= 0).then(|| format!("{previous}.compact"))) {
            if let Err(error) = self.files.delete(&name) {
                tracing::warn!(source = self.name, file = name, %error, "a replaced log file could not be deleted");
            }
        }
    }
}

fn body<'a>(header: Option<Forgotten>, entries: impl Iterator<Item = &'a FileEntry>) -> String {
    let mut body = String::new();
    if let Some(header) = header {
        body.push_str(&serde_json::to_string(&header).expect("a number always has a JSON form"));
        body.push('\n');
    }
    for entry in entries {
        body.push_str(&serde_json::to_string(entry).expect("text and numbers always have a JSON form"));
        body.push('\n');
    }
    body
}
