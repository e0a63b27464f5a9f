//! A checksum of what a batch gave to the sink: rows whatever their order, columns in order.
//!
//! Kept with each commit entry, so that a batch that is run again can be held against the first time. The order of rows is
//! left out because it is nobody's promise: groups come out of a hash table in the order of its history. Each row is hashed
//! column by column, so that the work is a few instructions a value; nested columns by way of their rows. Null slots count
//! as nulls, whatever lies in them.
//!
//! Rule of its life: equal rows have the same digest on every machine; it is no defence against somebody who looks for two
//! outputs of one digest.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use millstream_checkpoint::OutputPin;

/// Stands for a null.
const NULL: u64 = 0x6c07_96d9_5f4a_7c15;

/// The digest of rows.
///
/// # Errors
/// When a column has a type that has no byte form.
pub(crate) fn output_digest(schema: &SchemaRef, rows: &[RecordBatch]) -> Result<OutputPin, ArrowError> {
    let (mut one, mut other, mut count) = (0_u64, 0_u64, 0_u64);
    let mut hashes: Vec<u64> = Vec::new();
    for batch in rows {
        hashes.clear();
        hashes.resize(batch.num_rows(), schema.fields().len() as u64);
        for column in batch.columns() {
            add(column, &mut hashes)?;
        }
        for hash in &hashes {
            one = one.wrapping_add(fold(*hash, 0xa076_1d64_78bd_642f));
            other = other.wrapping_add(fold(hash.rotate_left(23) ^ NULL, 0xe703_7ed1_a0b4_28db));
        }
        count += batch.num_rows() as u64;
    }
    Ok(OutputPin { rows: count, digest: format!("{one:016x}{other:016x}") })
}

fn fold(value: u64, by: u64) -> u64 {
    let product = u128::from(value) * u128::from(by);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Takes a value into the hash of a row.
fn take(hash: &mut u64, value: u64) {
    *hash = fold(*hash ^ value, 0x9e37_79b9_7f4a_7c15).wrapping_add(value.rotate_left(17));
}

/// Takes the values of a column into the hashes of their rows.
fn add(column: &ArrayRef, hashes: &mut [u64]) -> Result<(), ArrowError> {
    let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
    let is_valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    let mut of_bytes = |value: &dyn Fn(usize) -> u64| {
        for (row, hash) in hashes.iter_mut().enumerate() {
            take(hash, if is_valid(row) { value(row) } else { NULL });
        }
    };
    match column.data_type() {
        DataType::Null => of_bytes(&|_| NULL),
        DataType::Boolean => {
            let values = column.as_boolean();
            of_bytes(&|row| 2 + u64::from(values.value(row)));
        }
        DataType::Utf8 => {
            let text = column.as_string::<i32>();
            of_bytes(&|row| Mix::of(text.value(row).as_bytes()));
        }
        DataType::Binary => {
            let binary = column.as_binary::<i32>();
            of_bytes(&|row| Mix::of(binary.value(row)));
        }
        other => match other.primitive_width() {
            Some(width @ 1..=8) => {
                let data = column.to_data();
                let all = &data.buffers()[0].as_slice()[data.offset() * width..][..column.len() * width];
                let word = |value: &[u8]| {
                    let mut word = [0; 8];
                    word[..width].copy_from_slice(value);
                    u64::from_le_bytes(word)
                };
                match nulls {
                    None => {
                        hashes.iter_mut().zip(all.chunks_exact(width)).for_each(|(hash, value)| take(hash, word(value)))
                    }
                    Some(nulls) => {
                        for ((hash, value), valid) in hashes.iter_mut().zip(all.chunks_exact(width)).zip(nulls.iter()) {
                            take(hash, if valid { word(value) } else { NULL });
                        }
                    }
                }
            }
            _ => {
                let converter = RowConverter::new(vec![SortField::new(other.clone())])?;
                let rows = converter.convert_columns(&[ArrayRef::clone(column)])?;
                hashes.iter_mut().zip(rows.iter()).for_each(|(hash, row)| take(hash, Mix::of(row.data())));
            }
        },
    }
    Ok(())
}

/// Two multiply-and-fold chains over the words of a byte sequence.
struct Mix {
    one: u64,
    other: u64,
    /// Bytes that do not make a word yet, and how many there are.
    rest: [u8; 8],
    filled: usize,
    length: u64,
}

impl Mix {
    fn new(seed: u64) -> Self {
        Self {
            one: 0x9e37_79b9_7f4a_7c15 ^ seed,
            other: 0xc2b2_ae3d_27d4_eb4f_u64.wrapping_add(seed),
            rest: [0; 8],
            filled: 0,
            length: 0,
        }
    }

    /// One word of a byte string.
    fn of(bytes: &[u8]) -> u64 {
        let mut mix = Self::new(1);
        mix.write(bytes);
        mix.end().0
    }

    fn word(&mut self, word: u64) {
        self.one = fold(self.one ^ word, 0xa076_1d64_78bd_642f).wrapping_add(word);
        self.other = fold(self.other.rotate_left(23).wrapping_add(word), 0xe703_7ed1_a0b4_28db) ^ word;
    }

    fn write(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if self.filled > 0 {
            let take = bytes.len().min(8 - self.filled);
            self.rest[self.filled..self.filled + take].copy_from_slice(&bytes[..take]);
            self.filled += take;
            bytes = &bytes[take..];
            if self.filled < 8 {
                return;
            }
            self.word(u64::from_le_bytes(self.rest));
            self.filled = 0;
        }
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        self.rest[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
    }

    /// What was written, as two words.
    fn end(&mut self) -> (u64, u64) {
        let mut last = [0; 8];
        last[..self.filled].copy_from_slice(&self.rest[..self.filled]);
        self.word(u64::from_le_bytes(last));
        self.word(self.length);
        (self.one, self.other)
    }

    fn text(mut self) -> String {
        let (one, other) = self.end();
        format!("{one:016x}{other:016x}")
    }
}

/// A digest of keys and values, which come in ascending order.
pub(crate) struct EntriesDigest {
    mix: Mix,
    count: u64,
}

impl EntriesDigest {
    /// Of nothing.
    pub(crate) fn new() -> Self {
        Self { mix: Mix::new(7), count: 0 }
    }

    /// Adds a key and its value.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        for part in [key, value] {
            self.mix.write(&(part.len() as u64).to_le_bytes());
            self.mix.write(part);
        }
        self.count += 1;
    }

    /// How many there were, and their digest.
    pub(crate) fn end(self) -> (u64, String) {
        (self.count, self.mix.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::{Field, Schema};
    use std::sync::Arc;

    fn rows(numbers: &[Option<i64>], words: &[Option<&str>]) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, true), Field::new("w", DataType::Utf8, true)]);
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
        RecordBatch::try_new(Arc::new(schema), vec![numbers, Arc::new(StringArray::from(words.to_vec()))]).unwrap()
    }

    fn digest(batches: &[RecordBatch]) -> OutputPin {
        output_digest(&batches[0].schema(), batches).unwrap()
    }

    #[test]
    fn the_order_of_rows_and_where_batches_end_do_not_matter_and_everything_else_does() {
        let all = rows(&[Some(1), None, Some(3), Some(4)], &[Some("a"), Some("bc"), None, Some("")]);
        let whole = digest(std::slice::from_ref(&all));
        assert_eq!(whole.rows, 4);
        for cut in 0..=4 {
            assert_eq!(digest(&[all.slice(0, cut), all.slice(cut, 4 - cut)]), whole, "cut at {cut}");
            assert_eq!(digest(&[all.slice(cut, 4 - cut), all.slice(0, cut)]), whole, "cut at {cut}");
        }
        let others = [
            rows(&[Some(1), None, Some(4), Some(3)], &[Some("a"), Some("bc"), None, Some("")]),
            rows(&[Some(1), Some(0), Some(3), Some(4)], &[Some("a"), Some("bc"), None, Some("")]),
            rows(&[None, Some(1), Some(3), Some(4)], &[Some("a"), Some("bc"), None, Some("")]),
            rows(&[Some(1), None, Some(3), Some(4)], &[Some("ab"), Some("c"), None, Some("")]),
            rows(&[Some(1), None, Some(3), Some(4)], &[Some("a"), Some("bc"), Some(""), None]),
            rows(&[Some(1), None, Some(3)], &[Some("a"), Some("bc"), None]),
            rows(&[Some(1), None, Some(3), Some(4), Some(4)], &[Some("a"), Some("bc"), None, Some(""), Some("")]),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(digest(std::slice::from_ref(other)), whole, "{index}");
        }
    }

    #[test]
    fn what_lies_in_a_null_slot_is_not_seen() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        let of = |hidden: i64| {
            let nulls = arrow::buffer::NullBuffer::from(vec![true, false]);
            let column = Int64Array::new(vec![1, hidden].into(), Some(nulls));
            output_digest(&schema, &[RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(column)]).unwrap()])
                .unwrap()
        };
        assert_eq!(of(5), of(6));
    }
}
