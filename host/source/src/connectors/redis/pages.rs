//! Entries of a range, a page at a time.

use super::id::EntryId;
use super::look::text;
use millstream_client::redis::{Connection, RedisError, Value};

/// How many entries the first page has.
const FIRST: usize = 250;
/// No page has more.
const MOST: usize = 8000;
/// About how many bytes a page should have, at least and at most.
const BYTES: (usize, usize) = (512 << 10, 4 << 20);

/// An entry.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) id: EntryId,
    /// Names and values of its fields in turn.
    pub(super) fields: Vec<Vec<u8>>,
}

impl Entry {
    fn size(&self) -> usize {
        self.fields.iter().map(|part| part.len() + 8).sum::<usize>() + 16
    }
}

/// How large pages are: larger for small entries, smaller for large ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageSize(usize);

impl PageSize {
    pub(super) fn first() -> Self {
        Self(FIRST)
    }

    /// How many entries the next page has, when so many are still wanted.
    pub(super) fn entries(self, wanted: u64) -> usize {
        usize::try_from(wanted).unwrap_or(usize::MAX).min(self.0).max(1)
    }

    /// After a page of so many bytes.
    fn after(self, bytes: usize) -> Self {
        Self(match bytes {
            few if few < BYTES.0 => (self.0 * 2).min(MOST),
            many if many > BYTES.1 => (self.0 / 2).max(1),
            _ => self.0,
        })
    }

    /// After a page, which is only a measure when it is full.
    pub(super) fn adapt(&mut self, page: &[Entry]) {
        if page.len() >= self.0 {
            *self = self.after(page.iter().map(Entry::size).sum());
        }
    }
}

/// The first entries behind `after`, up to `until`.
pub(super) fn page(
    connection: &mut Connection,
    stream: &str,
    (after, until): (EntryId, EntryId),
    most: usize,
) -> Result<Vec<Entry>, RedisError> {
    let Some(from) = after.next().filter(|from| *from <= until) else { return Ok(Vec::new()) };
    let (from, until, most) = (from.to_string(), until.to_string(), most.to_string());
    let answer = connection.ask(&[
        b"XRANGE",
        stream.as_bytes(),
        from.as_bytes(),
        until.as_bytes(),
        b"COUNT",
        most.as_bytes(),
    ])?;
    entries(answer).ok_or_else(|| connection.strange("what it gives for entries of a stream is not understood"))
}

fn entries(answer: Value) -> Option<Vec<Entry>> {
    let Value::Array(entries) = answer else { return None };
    entries.into_iter().map(entry).collect()
}

fn entry(value: Value) -> Option<Entry> {
    let Value::Array(parts) = value else { return None };
    let mut parts = parts.into_iter();
    let (Some(id), Some(Value::Array(fields)), None) = (parts.next(), parts.next(), parts.next()) else { return None };
    let bytes = |value| match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    };
    let fields: Vec<Vec<u8>> = fields.into_iter().map(bytes).collect::<Option<_>>()?;
    fields.len().is_multiple_of(2).then_some(Entry { id: text(&id)?.parse().ok()?, fields })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn entries_are_taken_out_of_an_answer() {
        let answer = |fields: Vec<Value>| Value::Array(vec![Value::Array(vec![bulk("5-1"), Value::Array(fields)])]);
        let found = entries(answer(vec![bulk("a"), bulk("1")])).unwrap();
        assert_eq!(found, [Entry { id: "5-1".parse().unwrap(), fields: vec![b"a".to_vec(), b"1".to_vec()] }]);
        assert_eq!(entries(Value::Array(vec![])), Some(vec![]));
        for strange in [answer(vec![bulk("a")]), answer(vec![Value::Nil, Value::Nil]), Value::Nil, bulk("x")] {
            assert_eq!(entries(strange), None);
        }
    }

    #[test]
    fn pages_grow_over_small_entries_and_shrink_over_large_ones() {
        let size = PageSize::first();
        assert_eq!((size.entries(10), size.entries(u64::MAX), size.entries(0)), (10, FIRST, 1));
        assert_eq!(size.after(100).0, 2 * FIRST);
        assert_eq!(size.after(1 << 20), size);
        assert_eq!(size.after(1 << 30).0, FIRST / 2);
        assert_eq!((PageSize(MOST).after(0).0, PageSize(1).after(1 << 30).0), (MOST, 1));
        let mut size = PageSize::first();
        size.adapt(&[Entry { id: EntryId::ZERO, fields: vec![vec![0; 9 << 20]] }]);
        assert_eq!(size, PageSize::first(), "a page that is not full is no measure");
    }
}
