//! Columns to bytes and back: the form in which keys and values lie in a state store.
//!
//! The form is Arrow's row format with every column ascending, nulls first: one byte string per row, equal rows have equal
//! bytes. It stands between the operators and the stores; [`FORMAT`] is part of every schema id, so that a
//! change of the form refuses old state instead of misreading it, and a test holds the bytes fixed.
//!
//! It does not know which columns are keys, and trusts the store that bytes come back as they were.

use crate::fixed_rows::FixedRows;
use arrow::array::{Array as _, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, Rows, SortField};
use millstream_state::ByteRows;

/// The name of the form.
pub(crate) const FORMAT: &str = "arrow-row-1";

/// Turns columns of fixed types to bytes and back.
pub(crate) struct RowCodec {
    types: Vec<DataType>,
    form: Form,
}

/// Who makes the bytes: the same, whoever does.
enum Form {
    /// There are no columns: every row is the empty string.
    Empty,
    /// All columns are plain numbers.
    Fixed(FixedRows),
    /// Any columns.
    Rows(RowConverter),
}

/// Rows as bytes.
pub(crate) enum EncodedRows {
    /// Rows of columns.
    Rows(Rows),
    /// Rows of equal length, one after the other.
    Fixed {
        /// All of them.
        bytes: Vec<u8>,
        /// The length of one.
        width: usize,
    },
    /// Rows without columns.
    Empty,
}

impl EncodedRows {
    /// The bytes of row `index`.
    pub(crate) fn row(&self, index: usize) -> &[u8] {
        match self {
            Self::Rows(rows) => rows.row(index).data(),
            Self::Fixed { bytes, width } => &bytes[index * width..][..*width],
            Self::Empty => &[],
        }
    }

    /// Bytes of all rows together, about.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.size(),
            Self::Fixed { bytes, .. } => bytes.len(),
            Self::Empty => 0,
        }
    }

    /// All of `len` rows, as a store takes them.
    pub(crate) fn into_byte_rows(self, len: usize) -> ByteRows {
        if let Self::Fixed { bytes, width } = self {
            return ByteRows::of_width(bytes, width);
        }
        let mut rows = ByteRows::with_capacity(len, self.size());
        (0..len).for_each(|row| rows.push(self.row(row)));
        rows
    }
}

impl RowCodec {
    pub(crate) fn try_new(types: Vec<DataType>) -> Result<Self, ArrowError> {
        let form = match FixedRows::try_new(&types) {
            _ if types.is_empty() => Form::Empty,
            Some(fixed) => Form::Fixed(fixed),
            None => Form::Rows(RowConverter::new(types.iter().cloned().map(SortField::new).collect())?),
        };
        Ok(Self { types, form })
    }

    /// The types of the columns.
    pub(crate) fn types(&self) -> &[DataType] {
        &self.types
    }

    /// The columns with exactly the types of the codec: nested fields may have other names or nullability.
    pub(crate) fn conform(&self, columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>, ArrowError> {
        if columns.len() != self.types.len() {
            let (has, wants) = (columns.len(), self.types.len());
            return Err(ArrowError::InvalidArgumentError(format!("{has} columns of state instead of {wants}")));
        }
        columns
            .into_iter()
            .zip(&self.types)
            .map(|(column, kind)| if column.data_type() == kind { Ok(column) } else { cast(&column, kind) })
            .collect()
    }

    /// The bytes of each row; the columns have the codec's types.
    pub(crate) fn encode(&self, columns: &[ArrayRef]) -> Result<EncodedRows, ArrowError> {
        Ok(match &self.form {
            Form::Rows(converter) => EncodedRows::Rows(converter.convert_columns(columns)?),
            Form::Fixed(fixed) => EncodedRows::Fixed { bytes: fixed.encode(columns)?, width: fixed.width() },
            Form::Empty => EncodedRows::Empty,
        })
    }

    /// The columns of rows that `encode` made.
    pub(crate) fn decode<'a>(&self, rows: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>, ArrowError> {
        match &self.form {
            Form::Rows(converter) => {
                let parser = converter.parser();
                let rows: Vec<&[u8]> = rows.collect();
                converter.convert_rows(rows.iter().map(|row| parser.parse(row)))
            }
            Form::Fixed(fixed) => fixed.decode(&rows.collect::<Vec<_>>()),
            Form::Empty => Ok(Vec::new()),
        }
    }
}

/// A 64-bit hash of a row that never changes: FNV-1a over the bytes, then a finishing mix so that every bit counts.
/// It decides the partition of a key and with it where state lies on disk.
pub(crate) fn stable_hash(row: &[u8]) -> u64 {
    let mut hash = row
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

/// The partition of a row among `partitions`.
pub(crate) fn partition_of(row: &[u8], partitions: u32) -> usize {
    ((u128::from(stable_hash(row)) * u128::from(partitions)) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringArray, TimestampMicrosecondArray};
    use arrow::datatypes::TimeUnit;
    use std::sync::Arc;

    #[test]
    fn the_bytes_of_a_row_and_its_partition_never_change() {
        let time = DataType::Timestamp(TimeUnit::Microsecond, None);
        let codec = RowCodec::try_new(vec![DataType::Int64, DataType::Utf8, time]).unwrap();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(-2), None])),
            Arc::new(StringArray::from(vec![Some("ab"), Some("")])),
            Arc::new(TimestampMicrosecondArray::from(vec![Some(1), None])),
        ];
        let rows = codec.encode(&columns).unwrap();
        let hex = |row: &[u8]| row.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(rows.row(0)), "017ffffffffffffffe02616200000000000002018000000000000001");
        assert_eq!(hex(rows.row(1)), "00000000000000000001000000000000000000");
        assert_eq!(stable_hash(b""), 17058014651485797458);
        assert_eq!(stable_hash(rows.row(0)), 1526635606476752024);
        let back = codec.decode([rows.row(0), rows.row(1)].into_iter()).unwrap();
        assert_eq!(back, columns);
    }

    #[test]
    fn partitions_share_the_keys_evenly() {
        let mut counts = [0; 5];
        for key in 0..10_000_u64 {
            counts[partition_of(&key.to_be_bytes(), 5)] += 1;
        }
        assert!(counts.iter().all(|&count| (1_800..2_200).contains(&count)), "{counts:?}");
    }
}
