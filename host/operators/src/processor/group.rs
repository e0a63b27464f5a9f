//! The rows of a batch by key, key by key in the order in which they first came.

use crate::float_identity::unify_floats;
use crate::row_codec::{RowCodec, partition_of};
use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take};
use arrow::error::ArrowError;
use hashbrown::HashMap;
use millstream_state::ByteRows;
use millstream_wasm::Slice;

/// Rows of one partition, by key.
#[derive(Default)]
pub(super) struct Group {
    /// The bytes of the keys.
    pub(super) keys: ByteRows,
    /// For each row the key it belongs to, ascending.
    pub(super) key_of_row: Vec<u32>,
    /// The rows, as places in the batch.
    rows: Vec<u32>,
    /// The first row of each key.
    firsts: Vec<u32>,
}

impl Group {
    /// The keys that are of a slice, or the others, with their rows.
    pub(super) fn of_lane(&self, slice: Slice, is_slice: bool) -> Self {
        let mut lane = Self::default();
        let mut numbers = vec![None; self.keys.len()];
        for (number, key) in self.keys.iter().enumerate().filter(|(_, key)| slice.has(key) == is_slice) {
            numbers[number] = Some(lane.firsts.len() as u32);
            lane.keys.push(key);
            lane.firsts.push(self.firsts[number]);
        }
        for (key, row) in self.key_of_row.iter().zip(&self.rows) {
            if let Some(number) = numbers[*key as usize] {
                lane.key_of_row.push(number);
                lane.rows.push(*row);
            }
        }
        lane
    }
}

/// The rows of a batch, shared out.
pub(super) struct Groups {
    whole: Option<RecordBatch>,
    key_columns: Vec<ArrayRef>,
    pub(super) partitions: Vec<Group>,
}

impl Groups {
    /// Shares rows out by their first `keys` columns.
    pub(super) fn of(
        batches: &[RecordBatch],
        keys: usize,
        codec: &RowCodec,
        partitions: u32,
    ) -> Result<Self, ArrowError> {
        let mut groups: Vec<Group> = (0..partitions).map(|_| Group::default()).collect();
        let Some(first) = batches.first() else {
            return Ok(Self { whole: None, key_columns: Vec::new(), partitions: groups });
        };
        let whole = concat_batches(&first.schema(), batches)?;
        let columns = whole.columns()[..keys].iter().map(unify_floats).collect::<Result<Vec<_>, _>>()?;
        let key_columns = codec.conform(columns)?;
        let encoded = codec.encode(&key_columns)?;
        let mut known: HashMap<&[u8], (usize, u32)> = HashMap::new();
        for row in 0..whole.num_rows() {
            let key = encoded.row(row);
            let (partition, number) = *known.entry(key).or_insert_with(|| {
                let partition = partition_of(key, partitions);
                let group = &mut groups[partition];
                group.keys.push(key);
                group.firsts.push(row as u32);
                (partition, group.firsts.len() as u32 - 1)
            });
            groups[partition].key_of_row.push(number);
            groups[partition].rows.push(row as u32);
        }
        for group in &mut groups {
            let mut order: Vec<usize> = (0..group.rows.len()).collect();
            order.sort_by_key(|place| group.key_of_row[*place]);
            group.key_of_row = order.iter().map(|place| group.key_of_row[*place]).collect();
            group.rows = order.iter().map(|place| group.rows[*place]).collect();
        }
        Ok(Self { whole: Some(whole), key_columns, partitions: groups })
    }

    /// The columns of the keys of a group, one row each.
    pub(super) fn key_columns(&self, group: &Group) -> Result<Vec<ArrayRef>, ArrowError> {
        let firsts = UInt32Array::from(group.firsts.clone());
        self.key_columns.iter().map(|column| take(column, &firsts, None)).collect()
    }

    /// Columns of the rows of a group, in the order of their keys.
    pub(super) fn columns(&self, group: &Group, of: std::ops::Range<usize>) -> Result<Vec<ArrayRef>, ArrowError> {
        let Some(whole) = &self.whole else { return Ok(Vec::new()) };
        let rows = UInt32Array::from(group.rows.clone());
        whole.columns()[of].iter().map(|column| take(column, &rows, None)).collect()
    }
}
