//! Columns of plain numbers to bytes and back, where every row is equally long.
//!
//! ```text
//!   [1] [value, ordered as bytes]   [0] [zeros]      one byte says whether the value is there
//!   ╰──────── column 1 ────────╯   ╰─ column 2 ─╯
//! ```
//!
//! Behind [`RowCodec`](crate::row_codec::RowCodec), which takes it when it can: states of counts, sums and extremes,
//! and keys that are numbers. The bytes are those of Arrow's row format, and a test holds the two together. That all offsets are
//! known before the first row is read is worth a general codec's time several times over.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use std::sync::Arc;

/// The places of columns in rows that are all equally long.
#[derive(Debug)]
pub(crate) struct FixedRows {
    columns: Vec<(DataType, usize)>,
    width: usize,
}

/// A value whose bytes compare as the values do.
trait Ordered: Copy {
    /// An array of bytes.
    type Bytes: AsRef<[u8]> + for<'a> TryFrom<&'a [u8]>;
    fn to_ordered(self) -> Self::Bytes;
    fn from_ordered(bytes: Self::Bytes) -> Self;
}

macro_rules! ordered {
    ($($native:ty: |$value:ident| $to:expr, $from:expr;)*) => {$(
        impl Ordered for $native {
            type Bytes = [u8; size_of::<$native>()];
            fn to_ordered(self) -> Self::Bytes {
                let $value = self;
                $to.to_be_bytes()
            }
            fn from_ordered(bytes: Self::Bytes) -> Self {
                let $value = <$native>::from_be_bytes(bytes);
                $from
            }
        }
    )*};
}

ordered! {
    u8: |value| value, value;
    u16: |value| value, value;
    u32: |value| value, value;
    u64: |value| value, value;
    i8: |value| (value ^ Self::MIN), value ^ Self::MIN;
    i16: |value| (value ^ Self::MIN), value ^ Self::MIN;
    i32: |value| (value ^ Self::MIN), value ^ Self::MIN;
    i64: |value| (value ^ Self::MIN), value ^ Self::MIN;
    i128: |value| (value ^ Self::MIN), value ^ Self::MIN;
}

impl Ordered for f32 {
    type Bytes = [u8; 4];
    fn to_ordered(self) -> Self::Bytes {
        let bits = self.to_bits() as i32;
        (bits ^ (((bits >> 31) as u32) >> 1) as i32).to_ordered()
    }
    fn from_ordered(bytes: Self::Bytes) -> Self {
        let bits = i32::from_ordered(bytes);
        Self::from_bits((bits ^ (((bits >> 31) as u32) >> 1) as i32) as u32)
    }
}

impl Ordered for f64 {
    type Bytes = [u8; 8];
    fn to_ordered(self) -> Self::Bytes {
        let bits = self.to_bits() as i64;
        (bits ^ (((bits >> 63) as u64) >> 1) as i64).to_ordered()
    }
    fn from_ordered(bytes: Self::Bytes) -> Self {
        let bits = i64::from_ordered(bytes);
        Self::from_bits((bits ^ (((bits >> 63) as u64) >> 1) as i64) as u64)
    }
}

/// Calls a function with the Arrow type of a plain number.
macro_rules! with_type {
    ($kind:expr, $function:ident($($argument:expr),*), $other:expr) => {
        match $kind {
            DataType::Int8 => $function::<Int8Type>($($argument),*),
            DataType::Int16 => $function::<Int16Type>($($argument),*),
            DataType::Int32 => $function::<Int32Type>($($argument),*),
            DataType::Int64 => $function::<Int64Type>($($argument),*),
            DataType::UInt8 => $function::<UInt8Type>($($argument),*),
            DataType::UInt16 => $function::<UInt16Type>($($argument),*),
            DataType::UInt32 => $function::<UInt32Type>($($argument),*),
            DataType::UInt64 => $function::<UInt64Type>($($argument),*),
            DataType::Float32 => $function::<Float32Type>($($argument),*),
            DataType::Float64 => $function::<Float64Type>($($argument),*),
            DataType::Date32 => $function::<Date32Type>($($argument),*),
            DataType::Timestamp(TimeUnit::Microsecond, _) => $function::<TimestampMicrosecondType>($($argument),*),
            DataType::Duration(TimeUnit::Microsecond) => $function::<DurationMicrosecondType>($($argument),*),
            DataType::Decimal128(..) => $function::<Decimal128Type>($($argument),*),
            _ => $other,
        }
    };
}

impl FixedRows {
    /// `None` when a column is no plain number, or when there are none.
    pub(crate) fn try_new(types: &[DataType]) -> Option<Self> {
        let (mut columns, mut width) = (Vec::with_capacity(types.len()), 0);
        for kind in types {
            columns.push((kind.clone(), width));
            width += 1 + match kind {
                DataType::Boolean => 1,
                kind => with_type!(kind, width_of(), return None),
            };
        }
        (width > 0).then_some(Self { columns, width })
    }

    /// Bytes of a row.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The bytes of all rows, one after the other.
    pub(crate) fn encode(&self, columns: &[ArrayRef]) -> Result<Vec<u8>, ArrowError> {
        let rows = columns.first().map_or(0, |column| column.len());
        let fits = columns.len() == self.columns.len()
            && columns
                .iter()
                .zip(&self.columns)
                .all(|(column, (kind, _))| column.len() == rows && column.data_type() == kind);
        if !fits {
            let found: Vec<_> = columns.iter().map(|column| column.data_type()).collect();
            return Err(ArrowError::InvalidArgumentError(format!("columns {found:?} instead of {:?}", self.columns)));
        }
        let mut bytes = vec![0; rows * self.width];
        for (column, (kind, at)) in columns.iter().zip(&self.columns) {
            match kind {
                DataType::Boolean => put_booleans(column.as_boolean(), &mut bytes, self.width, *at),
                kind => with_type!(kind, put(column, &mut bytes, self.width, *at), {}),
            }
        }
        Ok(bytes)
    }

    /// The columns of rows that `encode` made.
    pub(crate) fn decode(&self, rows: &[&[u8]]) -> Result<Vec<ArrayRef>, ArrowError> {
        if let Some(row) = rows.iter().find(|row| row.len() != self.width) {
            let reason = format!("a row of state has {} bytes instead of {}", row.len(), self.width);
            return Err(ArrowError::ParseError(reason));
        }
        let column = |(kind, at): &(DataType, usize)| {
            let there = || BooleanBuffer::collect_bool(rows.len(), |row| rows[row][*at] != 0);
            let nulls = rows.iter().any(|row| row[*at] == 0).then(|| NullBuffer::new(there()));
            match kind {
                DataType::Boolean => {
                    let values = BooleanBuffer::collect_bool(rows.len(), |row| rows[row][at + 1] != 0);
                    Ok(Arc::new(BooleanArray::new(values, nulls)) as ArrayRef)
                }
                kind => with_type!(kind, take(kind, rows, *at, nulls), Err(wrong(kind))),
            }
        };
        self.columns.iter().map(column).collect()
    }
}

fn wrong(kind: &DataType) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("{kind} is no plain number"))
}

fn width_of<T: ArrowPrimitiveType>() -> usize {
    size_of::<T::Native>()
}

fn put_booleans(column: &BooleanArray, bytes: &mut [u8], width: usize, at: usize) {
    for (row, bytes) in bytes.chunks_exact_mut(width).enumerate() {
        if column.is_valid(row) {
            bytes[at] = 1;
            bytes[at + 1] = u8::from(column.value(row));
        }
    }
}

fn put<T: ArrowPrimitiveType<Native: Ordered>>(column: &ArrayRef, bytes: &mut [u8], width: usize, at: usize) {
    let column = column.as_primitive::<T>();
    let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
    for (row, (bytes, value)) in bytes.chunks_exact_mut(width).zip(column.values()).enumerate() {
        if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
            bytes[at] = 1;
            bytes[at + 1..][..size_of::<T::Native>()].copy_from_slice(value.to_ordered().as_ref());
        }
    }
}

fn take<T: ArrowPrimitiveType<Native: Ordered>>(
    kind: &DataType,
    rows: &[&[u8]],
    at: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let value = |row: &&[u8]| {
        let bytes = <T::Native as Ordered>::Bytes::try_from(&row[at + 1..][..size_of::<T::Native>()]);
        bytes.map_or_else(|_| T::default_value(), T::Native::from_ordered)
    };
    let values: Vec<T::Native> = rows.iter().map(value).collect();
    Ok(Arc::new(PrimitiveArray::<T>::try_new(values.into(), nulls)?.with_data_type(kind.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        Date32Array, Decimal128Array, DurationMicrosecondArray, Float32Array, Float64Array, Int8Array, Int16Array,
        Int32Array, Int64Array, StringArray, TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array,
        UInt64Array,
    };
    use arrow::row::{RowConverter, SortField};

    fn columns() -> Vec<ArrayRef> {
        let decimals = Decimal128Array::from(vec![Some(i128::MIN), None, Some(-7), Some(i128::MAX)]);
        let times = TimestampMicrosecondArray::from(vec![Some(0), Some(-1), None, Some(i64::MAX)]);
        vec![
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)])),
            Arc::new(Int8Array::from(vec![Some(i8::MIN), Some(-1), None, Some(i8::MAX)])),
            Arc::new(Int16Array::from(vec![Some(i16::MIN), Some(-1), None, Some(i16::MAX)])),
            Arc::new(Int32Array::from(vec![Some(i32::MIN), Some(-1), None, Some(i32::MAX)])),
            Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(-1), None, Some(i64::MAX)])),
            Arc::new(UInt8Array::from(vec![Some(0), Some(1), None, Some(u8::MAX)])),
            Arc::new(UInt16Array::from(vec![Some(0), Some(1), None, Some(u16::MAX)])),
            Arc::new(UInt32Array::from(vec![Some(0), Some(1), None, Some(u32::MAX)])),
            Arc::new(UInt64Array::from(vec![0, 1, 2, u64::MAX])),
            Arc::new(Float32Array::from(vec![Some(-0.0), Some(f32::NEG_INFINITY), None, Some(f32::NAN)])),
            Arc::new(Float64Array::from(vec![Some(-0.0), Some(f64::NEG_INFINITY), None, Some(-1.5)])),
            Arc::new(Date32Array::from(vec![Some(i32::MIN), Some(-1), None, Some(i32::MAX)])),
            Arc::new(times.with_timezone("UTC")),
            Arc::new(DurationMicrosecondArray::from(vec![Some(5), None, None, Some(-5)])),
            Arc::new(decimals.with_precision_and_scale(38, 2).unwrap()),
        ]
    }

    fn types(columns: &[ArrayRef]) -> Vec<DataType> {
        columns.iter().map(|column| column.data_type().clone()).collect()
    }

    #[test]
    fn the_bytes_are_those_of_arrows_row_format_and_come_back_as_columns() {
        let all = columns();
        for columns in [&all[..], &all[4..5], &all[1..3]] {
            let fixed = FixedRows::try_new(&types(columns)).unwrap();
            let converter = types(columns).into_iter().map(SortField::new).collect();
            let wanted = RowConverter::new(converter).unwrap().convert_columns(columns).unwrap();
            let bytes = fixed.encode(columns).unwrap();
            let rows: Vec<&[u8]> = bytes.chunks(fixed.width()).collect();
            assert_eq!(rows, wanted.iter().map(|row| row.data().to_vec()).collect::<Vec<_>>());
            assert_eq!(fixed.decode(&rows).unwrap(), columns);
            let part: Vec<ArrayRef> = columns.iter().map(|column| column.slice(1, 2)).collect();
            assert_eq!(fixed.encode(&part).unwrap(), rows[1..3].concat());
        }
    }

    #[test]
    fn what_is_no_plain_number_and_rows_of_another_length_are_refused() {
        assert!(FixedRows::try_new(&[]).is_none());
        assert!(FixedRows::try_new(&[DataType::Int64, DataType::Utf8]).is_none());
        let fixed = FixedRows::try_new(&[DataType::Int64]).unwrap();
        assert!(fixed.decode(&[&[1; 9], &[1; 8]]).unwrap_err().to_string().contains("8 bytes instead of 9"));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        assert!(fixed.encode(&[text]).is_err());
    }
}
