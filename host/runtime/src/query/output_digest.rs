//! A checksum of what a batch gave to the sink: rows in order, columns in order, whatever batches they came in.
//!
//! Kept with each commit entry, so that a batch that is run again can be held against the first time. Each column is
//! hashed as it lies in memory, eight bytes a step; nested columns by way of their rows. Null slots count as nulls,
//! whatever lies in them.
//!
//! Rule of its life: equal rows in equal order have the same digest on every machine; it is no defence against somebody
//! who looks for two outputs of one digest.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use millstream_checkpoint::OutputPin;

/// The digest of rows.
///
/// # Errors
/// When a column has a type that has no byte form.
pub(crate) fn output_digest(schema: &SchemaRef, rows: &[RecordBatch]) -> Result<OutputPin, ArrowError> {
    let mut whole = Mix::new(schema.fields().len() as u64);
    for (index, field) in schema.fields().iter().enumerate() {
        let mut column = Column::new(field.data_type());
        for batch in rows {
            column.add(batch.column(index))?;
        }
        column.end(&mut whole);
    }
    let count = rows.iter().map(RecordBatch::num_rows).sum::<usize>() as u64;
    whole.word(count);
    Ok(OutputPin { rows: count, digest: whole.text() })
}

/// One column on its way into a digest: lengths, bytes and places of nulls are apart, so that it does not matter where one
/// batch ends and the next begins.
struct Column {
    rows: u64,
    bytes: Mix,
    lengths: Mix,
    nulls: Mix,
    converter: Option<RowConverter>,
}

impl Column {
    fn new(data_type: &DataType) -> Self {
        let plain = data_type.primitive_width().is_some()
            || matches!(data_type, DataType::Utf8 | DataType::Binary | DataType::Boolean | DataType::Null);
        let converter = if plain { None } else { RowConverter::new(vec![SortField::new(data_type.clone())]).ok() };
        Self { rows: 0, bytes: Mix::new(1), lengths: Mix::new(2), nulls: Mix::new(3), converter }
    }

    fn add(&mut self, column: &ArrayRef) -> Result<(), ArrowError> {
        if let Some(converter) = &self.converter {
            let rows = converter.convert_columns(&[ArrayRef::clone(column)])?;
            for row in rows.iter() {
                self.lengths.word(row.data().len() as u64);
                self.bytes.write(row.data());
            }
            self.rows += column.len() as u64;
            return Ok(());
        }
        let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
        if let Some(nulls) = nulls {
            (0..).zip(nulls.iter()).filter(|(_, valid)| !valid).for_each(|(row, _)| self.nulls.word(self.rows + row));
        }
        let is_valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
        match column.data_type() {
            DataType::Null => {}
            DataType::Boolean => {
                let values = column.as_boolean().values();
                (0..column.len()).for_each(|row| self.bytes.write(&[u8::from(is_valid(row) && values.value(row))]));
            }
            DataType::Utf8 => {
                let text = column.as_string::<i32>();
                self.variable(column.len(), |row| if is_valid(row) { text.value(row).as_bytes() } else { &[] });
            }
            DataType::Binary => {
                let binary = column.as_binary::<i32>();
                self.variable(column.len(), |row| if is_valid(row) { binary.value(row) } else { &[] });
            }
            other => {
                let width = other.primitive_width().ok_or_else(|| {
                    ArrowError::NotYetImplemented(format!("a digest of a column of type {other}"))
                })?;
                let data = column.to_data();
                let all = &data.buffers()[0].as_slice()[data.offset() * width..][..column.len() * width];
                match nulls {
                    None => self.bytes.write(all),
                    Some(nulls) => {
                        let valid = all.chunks_exact(width).zip(nulls.iter()).filter(|(_, valid)| *valid);
                        valid.for_each(|(value, _)| self.bytes.write(value));
                    }
                }
            }
        }
        self.rows += column.len() as u64;
        Ok(())
    }

    fn variable<'a>(&mut self, rows: usize, value: impl Fn(usize) -> &'a [u8]) {
        for row in 0..rows {
            let value = value(row);
            self.lengths.word(value.len() as u64);
            self.bytes.write(value);
        }
    }

    fn end(mut self, whole: &mut Mix) {
        for part in [&mut self.bytes, &mut self.lengths, &mut self.nulls] {
            let (one, other) = part.end();
            whole.word(one);
            whole.word(other);
        }
    }
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

    fn word(&mut self, word: u64) {
        let fold = |value: u64, by: u64| {
            let product = u128::from(value) * u128::from(by);
            (product as u64) ^ ((product >> 64) as u64)
        };
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
        let schema = Schema::new(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("w", DataType::Utf8, true),
        ]);
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
        RecordBatch::try_new(Arc::new(schema), vec![numbers, Arc::new(StringArray::from(words.to_vec()))]).unwrap()
    }

    fn digest(batches: &[RecordBatch]) -> OutputPin {
        output_digest(&batches[0].schema(), batches).unwrap()
    }

    #[test]
    fn where_batches_end_does_not_matter_and_everything_else_does() {
        let all = rows(&[Some(1), None, Some(3), Some(4)], &[Some("a"), Some("bc"), None, Some("")]);
        let whole = digest(std::slice::from_ref(&all));
        assert_eq!(whole.rows, 4);
        for cut in 0..=4 {
            assert_eq!(digest(&[all.slice(0, cut), all.slice(cut, 4 - cut)]), whole, "cut at {cut}");
        }
        let others = [
            rows(&[Some(1), None, Some(4), Some(3)], &[Some("a"), Some("bc"), None, Some("")]),
            rows(&[Some(1), Some(0), Some(3), Some(4)], &[Some("a"), Some("bc"), None, Some("")]),
            rows(&[None, Some(1), Some(3), Some(4)], &[Some("a"), Some("bc"), None, Some("")]),
            rows(&[Some(1), None, Some(3), Some(4)], &[Some("ab"), Some("c"), None, Some("")]),
            rows(&[Some(1), None, Some(3), Some(4)], &[Some("a"), Some("bc"), Some(""), None]),
            rows(&[Some(1), None, Some(3)], &[Some("a"), Some("bc"), None]),
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
            output_digest(&schema, &[RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(column)]).unwrap()]).unwrap()
        };
        assert_eq!(of(5), of(6));
    }
}
