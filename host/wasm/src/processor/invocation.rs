//! What a call takes: keys, and everything that is known about them.

use arrow::array::ArrayRef;
use std::ops::Range;

/// What a call is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Initial rows, before the first batch.
    Initialise,
    /// The rows of a batch.
    Process,
    /// Timers that are due, after the rows of the batch.
    Expire(Timers),
}

/// Timers of the keys of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timers {
    /// For each timer the key it belongs to, ascending.
    pub key_of_timer: Vec<u32>,
    /// When it is due, in milliseconds since 1970, ascending within a key.
    pub due_ms: Vec<i64>,
}

impl Timers {
    /// Appends a timer.
    pub fn push(&mut self, key: u32, due_ms: i64) {
        self.key_of_timer.push(key);
        self.due_ms.push(due_ms);
    }

    /// The timers, key and time.
    pub fn iter(&self) -> impl Iterator<Item = (u32, i64)> {
        self.key_of_timer.iter().copied().zip(self.due_ms.iter().copied())
    }

    /// Those of some of the keys, numbered from the first of them.
    pub(crate) fn of_keys(&self, keys: &Range<usize>) -> Self {
        let place = places(&self.key_of_timer, keys);
        Self { key_of_timer: shifted(&self.key_of_timer[place.clone()], keys), due_ms: self.due_ms[place].to_vec() }
    }

    pub(crate) fn append(&mut self, other: Self, first_key: u32) {
        self.key_of_timer.extend(other.key_of_timer.into_iter().map(|key| key + first_key));
        self.due_ms.extend(other.due_ms);
    }
}

/// Rows of one state variable, by key.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    /// For each entry the key it belongs to, ascending.
    pub key_of_entry: Vec<u32>,
    /// The map keys, for a map; no columns otherwise.
    pub map_keys: Vec<ArrayRef>,
    /// The columns of the rows.
    pub columns: Vec<ArrayRef>,
}

impl Entries {
    fn of_keys(&self, keys: &Range<usize>) -> Self {
        let place = places(&self.key_of_entry, keys);
        Self {
            key_of_entry: shifted(&self.key_of_entry[place.clone()], keys),
            map_keys: sliced(&self.map_keys, &place),
            columns: sliced(&self.columns, &place),
        }
    }
}

/// The keys of one call and everything that is known about them.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The number of keys.
    pub key_count: usize,
    /// The columns of the keys, one row each.
    pub keys: Vec<ArrayRef>,
    /// For each row the key it belongs to, ascending. Rows of one key stand in the order in which they came.
    pub key_of_row: Vec<u32>,
    /// The columns of the rows; no rows when timers are due.
    pub rows: Vec<ArrayRef>,
    /// For each variable its entries under these keys.
    pub state: Vec<Entries>,
    /// The timers that these keys have, due ones among them.
    pub timers: Timers,
    /// The time of the batch, in milliseconds since 1970.
    pub batch_time_ms: i64,
    /// The watermark of the input, in milliseconds since 1970; none when there is no watermark.
    pub watermark_ms: Option<i64>,
}

impl Invocation {
    /// A call for some of the keys.
    pub fn of_keys(&self, keys: &Range<usize>) -> Self {
        let place = places(&self.key_of_row, keys);
        Self {
            key_count: keys.len(),
            keys: sliced(&self.keys, keys),
            key_of_row: shifted(&self.key_of_row[place.clone()], keys),
            rows: sliced(&self.rows, &place),
            state: self.state.iter().map(|entries| entries.of_keys(keys)).collect(),
            timers: self.timers.of_keys(keys),
            batch_time_ms: self.batch_time_ms,
            watermark_ms: self.watermark_ms,
        }
    }

    /// The rows of some of the keys, as places among all rows.
    pub fn rows_of(&self, keys: &Range<usize>) -> Range<usize> {
        places(&self.key_of_row, keys)
    }
}

/// Where the numbers of `keys` stand among ascending ones.
fn places(key_of: &[u32], keys: &Range<usize>) -> Range<usize> {
    let before = |key: usize| key_of.partition_point(|of| (*of as usize) < key);
    before(keys.start)..before(keys.end)
}

fn shifted(key_of: &[u32], keys: &Range<usize>) -> Vec<u32> {
    // Keys are numbered by 32 bits, so the first one of a range that has any fits.
    key_of.iter().map(|key| key - keys.start as u32).collect()
}

fn sliced(columns: &[ArrayRef], rows: &Range<usize>) -> Vec<ArrayRef> {
    columns.iter().map(|column| column.slice(rows.start, rows.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;
    use std::sync::Arc;

    fn numbers(values: &[i64]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    #[test]
    fn a_call_for_some_keys_has_what_belongs_to_them_numbered_anew() {
        let mut timers = Timers::default();
        [(0, 5), (1, 1), (1, 9), (3, 2)].into_iter().for_each(|(key, due)| timers.push(key, due));
        let entries = Entries { key_of_entry: vec![1, 2, 2], map_keys: vec![], columns: vec![numbers(&[10, 20, 21])] };
        let whole = Invocation {
            key_count: 4,
            keys: vec![numbers(&[0, 1, 2, 3])],
            key_of_row: vec![0, 0, 2, 3],
            rows: vec![numbers(&[7, 8, 9, 6])],
            state: vec![entries],
            timers,
            batch_time_ms: 3,
            watermark_ms: None,
        };
        let part = whole.of_keys(&(1..3));
        let column = |column: &ArrayRef| column.as_primitive::<Int64Type>().values().to_vec();
        assert_eq!((part.key_count, column(&part.keys[0])), (2, vec![1, 2]));
        assert_eq!((part.key_of_row.clone(), column(&part.rows[0])), (vec![1], vec![9]));
        assert_eq!(part.state[0].key_of_entry, [0, 1, 1]);
        assert_eq!(part.timers.iter().collect::<Vec<_>>(), [(0, 1), (0, 9)]);
        assert_eq!(whole.rows_of(&(0..1)), 0..2);
        assert!(whole.of_keys(&(2..2)).key_of_row.is_empty());
    }
}
