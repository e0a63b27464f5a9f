//! Rows to messages. The id of a message tells query, batch and content, and which one it is among those with the same content:
//! when a batch comes again its rows may have another order, and each still has its id.

use super::columns::{Columns, Parts};
use crate::SinkError;
use crate::message_columns::SharedBytes;
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use millstream_client::nats::{Outgoing, is_subject};
use millstream_common::{BatchId, Digest, QueryId};
use std::collections::HashMap;

/// About what the headers take that all messages have, beside the names in them.
const OWN_HEADERS: usize = 128;
/// What stands around a header.
const ENDS: usize = 4;

/// What tells a message from all others of its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Id {
    /// The first half of a digest of its content.
    content: u128,
    /// Which one of those with this content.
    number: u32,
}

/// The messages of a batch.
pub(super) struct Messages<'a> {
    stream: &'a str,
    /// The subject of all, if they have one.
    subject: Option<&'a str>,
    /// What the ids begin with.
    prefix: String,
    parts: Vec<(Parts<'a>, SharedBytes)>,
    /// Where each message is: in which part, which row.
    places: Vec<(u32, u32)>,
    ids: Vec<Id>,
    /// No message has more bytes than that, about.
    largest: usize,
}

impl<'a> Messages<'a> {
    /// Those of some rows; inside, which row can be none, and why.
    ///
    /// # Errors
    /// When the columns do not fit.
    pub(super) fn new(
        (query, batch): (QueryId, BatchId),
        (stream, subject): (&'a str, Option<&'a str>),
        (schema, rows): (&Schema, &'a [RecordBatch]),
    ) -> Result<Result<Self, String>, SinkError> {
        let columns = Columns::of(schema, subject)?;
        let prefix = format!("{query}.{batch}.");
        let (parts, places, ids) = (Vec::new(), Vec::new(), Vec::new());
        let mut messages = Self { stream, subject, prefix, parts, places, ids, largest: 0 };
        Ok(messages.add(&columns, rows).map(|()| messages))
    }

    fn add(&mut self, columns: &Columns, rows: &'a [RecordBatch]) -> Result<(), String> {
        let (mut known, mut lengths) = (HashMap::<u128, u32>::new(), Vec::new());
        for (part, rows) in (0_u32..).zip(rows) {
            let parts = columns.read(rows)?;
            for (at, row) in (0_u32..).zip(0..rows.num_rows()) {
                let subject = parts.subject(row)?.or(self.subject).unwrap_or_default();
                if !is_subject(subject) {
                    return Err(format!("a row has `{}` as its `subject`, which is none", subject.escape_debug()));
                }
                let headers = parts.headers(row)?;
                if !headers.is_empty() {
                    // Only to see whether they can be.
                    let mut message = Outgoing::new(subject, self.stream, "", bytes::Bytes::new());
                    headers.iter().try_for_each(|(name, value)| message.add_header(name, value))?;
                }
                let mut content = vec![subject.as_bytes(), parts.data.get(row).unwrap_or_default()];
                content.extend(headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
                let size = content.iter().skip(1).map(|part| part.len() + ENDS).sum::<usize>();
                self.largest = self.largest.max(size + self.stream.len() + self.prefix.len() + OWN_HEADERS);
                // With the lengths, no two of them are the same bytes.
                lengths.clear();
                lengths.extend(content.iter().flat_map(|part| (part.len() as u64).to_be_bytes()));
                content.push(&lengths);
                let content = half(Digest::of_parts(&content));
                let number = known.entry(content).and_modify(|number| *number += 1).or_insert(0);
                self.ids.push(Id { content, number: *number });
                self.places.push((part, at));
            }
            let shared = parts.data.shared();
            self.parts.push((parts, shared));
        }
        Ok(())
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// A message, as it goes out.
    pub(super) fn get(&self, number: usize) -> Result<Outgoing, String> {
        let (part, row) = self.places[number];
        let (parts, shared) = &self.parts[part as usize];
        let row = row as usize;
        let Id { content, number } = self.ids[number];
        let id = format!("{}{content:032x}.{number}", self.prefix);
        let subject = parts.subject(row)?.or(self.subject).unwrap_or_default();
        let data = shared.part(parts.data.get(row).unwrap_or_default());
        let mut message = Outgoing::new(subject, self.stream, &id, data);
        parts.headers(row)?.iter().try_for_each(|(name, value)| message.add_header(name, value))?;
        Ok(message)
    }

    /// The size of a message that has more than `most` bytes, if there is one.
    pub(super) fn size_beyond(&self, most: usize) -> Option<usize> {
        let sizes = || (0..self.len()).filter_map(|number| Some(self.get(number).ok()?.size()));
        (self.largest > most).then(|| sizes().find(|size| *size > most)).flatten()
    }

    /// Finds messages by their ids.
    pub(super) fn finder(&self) -> Finder<'_> {
        Finder { prefix: &self.prefix, numbers: self.ids.iter().enumerate().map(|(at, id)| (*id, at)).collect() }
    }
}

/// Finds messages of a batch by their ids.
pub(super) struct Finder<'a> {
    prefix: &'a str,
    numbers: HashMap<Id, usize>,
}

impl Finder<'_> {
    /// The number of the message that has an id; `None` when none of the batch has it.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        let (content, number) = id.strip_prefix(self.prefix)?.split_once('.')?;
        let content = u128::from_str_radix(content, 16).ok()?;
        self.numbers.get(&Id { content, number: number.parse().ok()? }).copied()
    }
}

/// The first half of a digest.
fn half(digest: Digest) -> u128 {
    let bytes = digest.into_bytes();
    bytes[..16].iter().fold(0, |all, byte| all << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, StringArray};
    use std::sync::Arc;
    use uuid::Uuid;

    fn rows(pairs: &[(&str, &str)]) -> RecordBatch {
        let column = |at: fn(&(&str, &str)) -> String| -> ArrayRef {
            Arc::new(pairs.iter().map(|pair| Some(at(pair))).collect::<StringArray>())
        };
        let columns = [("subject", column(|pair| pair.0.into()), true), ("value", column(|pair| pair.1.into()), true)];
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    fn with<T>(batch: u64, pairs: &[(&str, &str)], look: impl FnOnce(&Messages<'_>) -> T) -> Result<T, String> {
        let rows = [rows(pairs)];
        let ids = (QueryId(Uuid::nil()), BatchId(batch));
        Messages::new(ids, ("S", None), (&rows[0].schema(), &rows)).unwrap().map(|messages| look(&messages))
    }

    fn ids(messages: &Messages<'_>) -> Vec<String> {
        messages
            .ids
            .iter()
            .map(|Id { content, number }| format!("{}{content:032x}.{number}", messages.prefix))
            .collect()
    }

    #[test]
    fn an_id_goes_with_the_content_and_not_with_the_place() {
        let first = with(7, &[("a", "1"), ("b", "1"), ("a", "1"), ("ab", "")], ids).unwrap();
        let again = with(7, &[("ab", ""), ("a", "1"), ("a", "1"), ("b", "1")], ids).unwrap();
        let sorted = |mut ids: Vec<String>| {
            ids.sort();
            ids
        };
        assert_eq!(sorted(first.clone()), sorted(again));
        let mut different = first.clone();
        different.extend(with(8, &[("a", "1")], ids).unwrap());
        different.extend(with(7, &[("a", "b"), ("", "")], ids).into_iter().flatten());
        let count = different.len();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), count, "no two messages have one id");
        assert!(
            first[2].starts_with("00000000-0000-0000-0000-000000000000.7.") && first[2].ends_with(".1"),
            "{first:?}"
        );
    }

    #[test]
    fn messages_are_found_by_their_ids() {
        let pairs = [("a", "1"), ("a", "1"), ("b", "2")];
        with(7, &pairs, |messages| {
            let finder = messages.finder();
            for (at, id) in ids(messages).iter().enumerate() {
                assert_eq!(finder.find(id), Some(at));
                assert!(messages.get(at).unwrap().size() > id.len());
            }
            let other = ids(messages)[0].replace(".7.", ".8.");
            assert!(["", "x", &other].iter().all(|id| finder.find(id).is_none()));
            assert_eq!(messages.len(), 3);
        })
        .unwrap();
    }

    #[test]
    fn a_row_that_can_be_no_message_is_named() {
        assert!(with(0, &[("a.*", "1")], |_| ()).unwrap_err().contains("`a.*`"));
        assert!(with(0, &[("a b", "1")], |_| ()).unwrap_err().contains("`a b`"));
        assert!(with(0, &[("", "1")], |_| ()).unwrap_err().contains("which is none"));
    }
}
