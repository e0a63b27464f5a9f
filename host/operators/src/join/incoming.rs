//! Rows of one side on their way into a partition: grouped by key, so that the store is asked once per key.

use super::side::{Keys, Side};
use crate::row_codec::partition_of;
use arrow::array::ArrayRef;
use hashbrown::HashMap;
use millstream_state::ByteRows;

/// Rows of one side that take part, with everything that is known of them.
pub(super) struct Incoming {
    /// The columns, with the types of the state.
    pub(super) columns: Vec<ArrayRef>,
    pub(super) keys: Keys,
    /// The times by which they will leave one by one; empty when they do not.
    pub(super) times: Vec<u64>,
    /// Which rows have found a match.
    pub(super) matched: Vec<bool>,
    /// Whether a key with a null can match.
    pub(super) nulls_match: bool,
}

/// The rows of one partition by key.
pub(super) struct Groups {
    /// The keys as the state has them, each once.
    pub(super) keys: ByteRows,
    /// Whether rows with that key can match at all.
    pub(super) can_match: Vec<bool>,
    /// The rows, group by group.
    pub(super) rows: Vec<u32>,
    /// Where the rows of each group begin, and where the last ones end.
    pub(super) starts: Vec<usize>,
}

impl Incoming {
    /// Whether the row's key has no null that keeps it from matching.
    fn can_match(&self, row: usize) -> bool {
        self.nulls_match || self.keys.known.as_ref().is_none_or(|known| known.is_valid(row))
    }

    /// Shares the rows out to the partitions that own their keys. Rows that cannot match stay only if they will come out
    /// unmatched.
    pub(super) fn share_out(&self, side: &Side, partitions: u32) -> Vec<Groups> {
        let mut shares: Vec<Vec<u32>> = vec![Vec::new(); partitions as usize];
        for row in 0..self.matched.len() {
            if side.is_preserved || self.can_match(row) {
                shares[partition_of(self.keys.encoded.row(row), partitions)].push(row as u32);
            }
        }
        shares.into_iter().map(|rows| self.group(rows)).collect()
    }

    fn group(&self, rows: Vec<u32>) -> Groups {
        let mut numbers: HashMap<&[u8], usize> = HashMap::with_capacity(rows.len());
        let mut group_of = Vec::with_capacity(rows.len());
        let mut groups = Groups {
            keys: ByteRows::with_capacity(rows.len(), rows.len() * 32),
            can_match: Vec::new(),
            rows: Vec::new(),
            starts: Vec::new(),
        };
        let mut sizes: Vec<usize> = Vec::new();
        for &row in &rows {
            let row = row as usize;
            let key = self.keys.encoded.row(row);
            let number = *numbers.entry(key).or_insert_with(|| {
                match self.keys.times.get(row) {
                    Some(time) => groups.keys.push_parts(&[&time.to_be_bytes(), key]),
                    None => groups.keys.push(key),
                }
                groups.can_match.push(self.can_match(row));
                sizes.push(0);
                sizes.len() - 1
            });
            sizes[number] += 1;
            group_of.push(number);
        }
        // Rows of a group keep their order.
        let mut next: Vec<usize> = sizes
            .iter()
            .scan(0, |end, size| {
                *end += size;
                Some(*end - size)
            })
            .collect();
        groups.starts.extend(&next);
        groups.starts.push(rows.len());
        groups.rows = vec![0; rows.len()];
        for (&row, &number) in rows.iter().zip(&group_of) {
            groups.rows[next[number]] = row;
            next[number] += 1;
        }
        groups
    }
}

impl Groups {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.can_match.len()
    }

    /// The rows of one group.
    pub(super) fn rows_of(&self, group: usize) -> &[u32] {
        &self.rows[self.starts[group]..self.starts[group + 1]]
    }
}
