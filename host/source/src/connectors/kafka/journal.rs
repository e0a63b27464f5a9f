//! What the source writes down in the checkpoint: where the query began, and which topic of a name it reads.
//!
//! ```text
//!   0   {"offsets": where the query began, "ids": {"clicks": "Wq1t…"}}
//!   1   {"ids": {"clicks": "NVCW…"}, "restarts": [{"topic": "clicks", "was": {"0": 500}, "until": {"0": 20}}]}
//! ```
//!
//! A topic that was removed and made again begins at its start, although the offsets of the log say otherwise: a restart
//! says between which offsets the log has that step. It is written before the offsets are answered. Once such a range was
//! read, the file `1.read` is there: then an equal offset of the new topic is one of the new topic.

use super::offset::{Positions, TopicPartition, first_of};
use crate::{SourceError, sealed};
use millstream_common::{DurableError, DurableFiles};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Offsets of one topic, by partition.
pub(super) type TopicOffsets = BTreeMap<i32, i64>;

/// A file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Entry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offsets: Option<Value>,
    #[serde(default)]
    ids: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    restarts: Vec<Restart>,
}

/// From a topic to another of its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Restart {
    pub(super) topic: String,
    /// How far the old one was read.
    pub(super) was: TopicOffsets,
    /// How far the new one is read at first, from its start.
    pub(super) until: TopicOffsets,
}

/// The files, read.
#[derive(Debug)]
pub(super) struct Journal {
    name: String,
    files: Arc<dyn DurableFiles>,
    initial: Option<Positions>,
    ids: BTreeMap<String, String>,
    /// With the number of the file, and whether the range was read.
    restarts: Vec<(u64, Restart, bool)>,
    next: u64,
}

impl Journal {
    pub(super) fn open(name: &str, files: Arc<dyn DurableFiles>) -> Result<Self, SourceError> {
        let mut journal =
            Self { name: name.to_owned(), files, initial: None, ids: BTreeMap::new(), restarts: Vec::new(), next: 0 };
        while let Some(body) = sealed::read(name, journal.files.as_ref(), &journal.next.to_string())? {
            let number = journal.next.to_string();
            let damaged = |reason: String| sealed::damaged(name, journal.files.as_ref(), &number, &reason);
            let entry: Entry = serde_json::from_str(&body).map_err(|error| damaged(error.to_string()))?;
            if let Some(offsets) = &entry.offsets {
                journal.initial = Some(super::offset::parse(offsets, 0).map_err(damaged)?);
            }
            let is_read = sealed::read(name, journal.files.as_ref(), &format!("{number}.read"))?.is_some();
            journal.keep(entry, is_read);
        }
        Ok(journal)
    }

    fn keep(&mut self, entry: Entry, is_read: bool) {
        self.ids.extend(entry.ids);
        self.restarts.extend(entry.restarts.into_iter().map(|restart| (self.next, restart, is_read)));
        self.next += 1;
    }

    /// Where the query began.
    pub(super) fn initial(&self) -> Option<&Positions> {
        self.initial.as_ref()
    }

    /// Which topic of a name is read, as far as known.
    pub(super) fn id(&self, topic: &str) -> Option<&str> {
        self.ids.get(topic).map(String::as_str)
    }

    /// Writes down where the query begins.
    pub(super) fn begin(&mut self, at: Positions, ids: BTreeMap<String, String>) -> Result<(), SourceError> {
        self.add(Entry { offsets: Some(super::offset::to_json(&at)), ids, restarts: Vec::new() })?;
        self.initial = Some(at);
        Ok(())
    }

    /// Writes down ids that were not known, and restarts.
    pub(super) fn note(&mut self, ids: BTreeMap<String, String>, restarts: Vec<Restart>) -> Result<(), SourceError> {
        if ids.is_empty() && restarts.is_empty() {
            return Ok(());
        }
        self.add(Entry { offsets: None, ids, restarts })
    }

    fn add(&mut self, entry: Entry) -> Result<(), SourceError> {
        let body = serde_json::to_string(&entry).map_err(|error| {
            sealed::damaged(&self.name, self.files.as_ref(), &self.next.to_string(), &error.to_string())
        })?;
        sealed::write(&self.name, self.files.as_ref(), &self.next.to_string(), &body)?;
        self.keep(entry, false);
        Ok(())
    }

    /// The restart of a topic that was answered from these offsets on, and of which no range was read: it may not be in the
    /// offset log.
    pub(super) fn unread(&self, topic: &str, at: &TopicOffsets) -> Option<&Restart> {
        let (_, last, is_read) = self.restarts.iter().rev().find(|(_, restart, _)| restart.topic == topic)?;
        (!is_read && last.was == *at).then_some(last)
    }

    /// Whether the range between these offsets is the first of a new topic.
    pub(super) fn is_restart(&self, topic: &str, from: &TopicOffsets, until: &TopicOffsets) -> bool {
        self.restarts.iter().any(|(_, restart, _)| is(restart, topic, from, until))
    }

    /// Notes that the range between these offsets is read: it is in the offset log.
    pub(super) fn read(&mut self, topic: &str, from: &TopicOffsets, until: &TopicOffsets) -> Result<(), SourceError> {
        for (number, restart, is_read) in &mut self.restarts {
            if !*is_read && is(restart, topic, from, until) {
                match sealed::write(&self.name, self.files.as_ref(), &format!("{number}.read"), "") {
                    // Others of the same file.
                    Ok(()) | Err(SourceError::Log { source: DurableError::Exists { .. }, .. }) => *is_read = true,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

fn is(restart: &Restart, topic: &str, from: &TopicOffsets, until: &TopicOffsets) -> bool {
    restart.topic == topic && restart.was == *from && restart.until == *until
}

/// The offsets of one topic.
pub(super) fn of_topic(positions: &Positions, topic: &str) -> TopicOffsets {
    let of = positions.range(first_of(topic)..).take_while(|(place, _)| &*place.topic == topic);
    of.map(|(place, offset)| (place.partition, *offset)).collect()
}

/// The offsets at which a new topic is left after its first range: never those at which the old one was, or nobody could
/// see the step.
pub(super) fn distinct(was: &TopicOffsets, begin: &TopicOffsets, mut until: TopicOffsets) -> TopicOffsets {
    if until == *was {
        let begin = |partition| begin.get(partition).copied().unwrap_or(0);
        if let Some((_, offset)) = until.iter_mut().find(|(partition, offset)| **offset > begin(*partition)) {
            *offset -= 1;
        }
    }
    until
}

/// All places of a topic at its offsets.
pub(super) fn places(topic: &str, offsets: &TopicOffsets) -> Positions {
    offsets.iter().map(|(partition, offset)| (TopicPartition::new(topic, *partition), *offset)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_common::MemoryFiles;

    fn offsets(offsets: &[i64]) -> TopicOffsets {
        (0..).zip(offsets.iter().copied()).collect()
    }

    #[test]
    fn what_was_written_is_there_after_a_restart() {
        let files: Arc<dyn DurableFiles> = Arc::new(MemoryFiles::default());
        let mut journal = Journal::open("s", Arc::clone(&files)).unwrap();
        assert_eq!(journal.initial(), None);
        journal.begin(places("t", &offsets(&[5, 0])), BTreeMap::from([("t".into(), "one".into())])).unwrap();
        let restart = Restart { topic: "t".into(), was: offsets(&[50, 10]), until: offsets(&[7, 3]) };
        journal.note(BTreeMap::from([("t".into(), "two".into())]), vec![restart.clone()]).unwrap();

        let mut journal = Journal::open("s", Arc::clone(&files)).unwrap();
        assert_eq!(journal.initial(), Some(&places("t", &offsets(&[5, 0]))));
        assert_eq!(journal.id("t"), Some("two"));
        assert_eq!(journal.unread("t", &offsets(&[50, 10])), Some(&restart));
        assert_eq!(journal.unread("t", &offsets(&[50, 11])), None);
        assert!(journal.is_restart("t", &offsets(&[50, 10]), &offsets(&[7, 3])));
        assert!(!journal.is_restart("t", &offsets(&[50, 10]), &offsets(&[60, 10])));
        journal.read("t", &offsets(&[50, 10]), &offsets(&[7, 3])).unwrap();
        assert_eq!(journal.unread("t", &offsets(&[50, 10])), None);

        let journal = Journal::open("s", files).unwrap();
        assert_eq!(journal.unread("t", &offsets(&[50, 10])), None, "that it was read is kept");
    }

    #[test]
    fn a_damaged_file_is_named() {
        let files = MemoryFiles::default();
        files.put_new("0", sealed::seal("{\"offsets\":{\"t\":{\"0\":-7}}}")).unwrap();
        let error = Journal::open("s", Arc::new(files)).unwrap_err();
        assert!(matches!(error, SourceError::Damaged { .. }), "{error}");
    }

    #[test]
    fn a_new_topic_is_not_left_where_the_old_one_was() {
        let (was, begin) = (offsets(&[10, 4]), offsets(&[0, 4]));
        assert_eq!(distinct(&was, &begin, offsets(&[9, 4])), offsets(&[9, 4]));
        assert_eq!(distinct(&was, &begin, offsets(&[10, 4])), offsets(&[9, 4]));
        assert_eq!(distinct(&begin, &begin, offsets(&[0, 4])), offsets(&[0, 4]), "nothing was in either");
    }
}
