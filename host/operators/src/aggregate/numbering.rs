//! Numbers the distinct keys among the rows of a batch, in the order in which they come.
//!
//! ```text
//!   a b a c  ──►  0 1 0 2     kept: a b c
//! ```
//!
//! Stands between the flat columns of [`keys`](super::keys) and the accumulators, for columns of the types that keys
//! mostly have; for others DataFusion's tables do it. Here the hash of a row is made over all columns in one go, the
//! verdict on a row is one probe, and all memory but that of the keys is kept for the next batch.
//!
//! Rule of its life: a number is given once; emitting the keys forgets all of them. NULL is a key like any other.

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, BooleanArray, StringArray, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{
    DataType, Date32Type, DurationMicrosecondType, Float64Type, Int32Type, Int64Type, Schema, TimeUnit,
    TimestampMicrosecondType, UInt64Type,
};
use arrow::error::ArrowError;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hasher};

/// No more room than for so many values is kept for the next batch.
const MOST_ROOM: usize = 65_536;

/// The distinct keys of a batch.
#[derive(Debug)]
pub(crate) struct Numbering {
    hasher: DefaultHashBuilder,
    /// Hash and number of each key.
    table: HashTable<(u64, usize)>,
    kept: Vec<Kept>,
    window: Option<WindowColumns>,
    /// What all windows of the batch have in common, as long as they have it.
    common: Common,
    /// Of the rows that are being numbered; kept for its memory.
    hashes: Vec<u64>,
}

/// Where a window stands among the columns: its end follows its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowColumns {
    /// Whether it is there, if it may be missing.
    pub(crate) presence: Option<usize>,
    /// Its start.
    pub(crate) start: usize,
}

/// What all windows have in common. Mostly they are all there and equally long, and then the start says everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Common {
    /// There are none so far.
    Unknown,
    /// All are there and so long.
    Length(i64),
    Nothing,
}

/// One column of the keys that have a number.
#[derive(Debug)]
struct Kept {
    kind: DataType,
    valid: Vec<bool>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    /// Values of eight bytes.
    Long(Vec<i64>),
    /// Values of four bytes.
    Short(Vec<i32>),
    Flag(Vec<bool>),
    Text {
        ends: Vec<i32>,
        bytes: Vec<u8>,
    },
}

/// One column of the rows that are being numbered.
struct Seen<'a> {
    nulls: Option<&'a NullBuffer>,
    values: SeenValues<'a>,
}

enum SeenValues<'a> {
    Long(&'a [i64]),
    Short(&'a [i32]),
    Flag(&'a BooleanArray),
    Text(&'a StringArray),
}

impl Numbering {
    /// For keys of these columns; `None` when one has another type than the usual ones.
    pub(crate) fn try_new(columns: &Schema, window: Option<WindowColumns>) -> Option<Self> {
        let kept = columns.fields().iter().map(|field| Kept::try_new(field.data_type())).collect::<Option<Vec<_>>>()?;
        Some(Self {
            hasher: DefaultHashBuilder::default(),
            table: HashTable::new(),
            kept,
            window,
            common: Common::Unknown,
            hashes: Vec::new(),
        })
    }

    /// How many keys have a number.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// The number of the key of each row.
    pub(crate) fn number(&mut self, columns: &[ArrayRef], numbers: &mut Vec<usize>) -> Result<(), ArrowError> {
        let rows = columns.first().map_or(0, |column| column.len());
        let seen = columns.iter().map(Seen::try_new).collect::<Option<Vec<_>>>();
        let fits =
            |seen: &[Seen<'_>]| seen.len() == self.kept.len() && columns.iter().all(|column| column.len() == rows);
        let Some(seen) = seen.filter(|seen| fits(seen)) else {
            let found: Vec<_> = columns.iter().map(|column| column.data_type().to_string()).collect();
            return Err(ArrowError::InvalidArgumentError(format!("keys of {} cannot be numbered", found.join(", "))));
        };
        self.common = match self.window {
            Some(window) if rows > 0 => self.common.with(window, &seen),
            _ => self.common,
        };
        let told_by_start = |column: usize| self.window.is_some_and(|window| window.is_told_by_start(column));
        // Windows that begin together nearly always end together: equal hashes of those that do not are no harm.
        let hashed: Vec<&Seen<'_>> =
            seen.iter().enumerate().filter(|(column, _)| !told_by_start(*column)).map(|(_, seen)| seen).collect();
        let compared: Vec<usize> = (0..seen.len())
            .filter(|column| !(told_by_start(*column) && matches!(self.common, Common::Length(_))))
            .collect();
        self.hashes.clear();
        self.hashes.extend((0..rows).map(|row| {
            let mut state = self.hasher.build_hasher();
            hashed.iter().for_each(|column| column.hash(row, &mut state));
            state.finish()
        }));
        numbers.clear();
        numbers.reserve(rows);
        for row in 0..rows {
            let hash = self.hashes[row];
            let is_same = |(other, number): &(u64, usize)| {
                *other == hash && compared.iter().all(|&column| self.kept[column].is(*number, &seen[column], row))
            };
            let number = match self.table.find(hash, is_same) {
                Some((_, number)) => *number,
                None => {
                    let number = self.table.len();
                    for (kept, seen) in self.kept.iter_mut().zip(&seen) {
                        kept.push(seen, row)?;
                    }
                    self.table.insert_unique(hash, (hash, number), |(hash, _)| *hash);
                    number
                }
            };
            numbers.push(number);
        }
        Ok(())
    }

    /// The keys in the order of their numbers. They have none from now on.
    pub(crate) fn emit(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        self.table.clear();
        self.common = Common::Unknown;
        self.kept.iter_mut().map(Kept::emit).collect()
    }
}

impl WindowColumns {
    /// Whether a column says nothing more than the start, if all windows are there and equally long.
    fn is_told_by_start(&self, column: usize) -> bool {
        column == self.start + 1 || self.presence == Some(column)
    }
}

impl Common {
    /// What the windows so far have in common with those of more rows.
    fn with(self, window: WindowColumns, seen: &[Seen<'_>]) -> Self {
        let is_there = |presence: usize| match &seen[presence].values {
            SeenValues::Flag(flags) => seen[presence].nulls.is_none() && flags.true_count() == flags.len(),
            _ => false,
        };
        let (Some(start), Some(end)) = (seen.get(window.start), seen.get(window.start + 1)) else {
            return Self::Nothing;
        };
        let (SeenValues::Long(starts), SeenValues::Long(ends)) = (&start.values, &end.values) else {
            return Self::Nothing;
        };
        let all_there = start.nulls.is_none() && end.nulls.is_none() && window.presence.is_none_or(is_there);
        let length = match (self, starts.first().zip(ends.first())) {
            (Self::Length(length), _) => length,
            (Self::Unknown, Some((start, end))) => end.wrapping_sub(*start),
            _ => return Self::Nothing,
        };
        let is_common = all_there && starts.iter().zip(*ends).all(|(start, end)| end.wrapping_sub(*start) == length);
        if is_common { Self::Length(length) } else { Self::Nothing }
    }
}

impl Kept {
    fn try_new(kind: &DataType) -> Option<Self> {
        let values = match kind {
            DataType::Int64
            | DataType::UInt64
            | DataType::Float64
            | DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Duration(TimeUnit::Microsecond) => Values::Long(Vec::new()),
            DataType::Int32 | DataType::Date32 => Values::Short(Vec::new()),
            DataType::Boolean => Values::Flag(Vec::new()),
            DataType::Utf8 => Values::Text { ends: Vec::new(), bytes: Vec::new() },
            _ => return None,
        };
        Some(Self { kind: kind.clone(), valid: Vec::new(), values })
    }

    /// Whether the key with that number has the value of a row.
    fn is(&self, number: usize, seen: &Seen<'_>, row: usize) -> bool {
        let is_valid = seen.is_valid(row);
        if self.valid[number] != is_valid {
            return false;
        }
        !is_valid
            || match (&self.values, &seen.values) {
                (Values::Long(kept), SeenValues::Long(seen)) => kept[number] == seen[row],
                (Values::Short(kept), SeenValues::Short(seen)) => kept[number] == seen[row],
                (Values::Flag(kept), SeenValues::Flag(seen)) => kept[number] == seen.value(row),
                (Values::Text { ends, bytes }, SeenValues::Text(seen)) => {
                    let start = if number == 0 { 0 } else { ends[number - 1] as usize };
                    bytes[start..ends[number] as usize] == *seen.value(row).as_bytes()
                }
                _ => false,
            }
    }

    fn push(&mut self, seen: &Seen<'_>, row: usize) -> Result<(), ArrowError> {
        let is_valid = seen.is_valid(row);
        match (&mut self.values, &seen.values) {
            (Values::Long(kept), SeenValues::Long(seen)) => kept.push(seen[row]),
            (Values::Short(kept), SeenValues::Short(seen)) => kept.push(seen[row]),
            (Values::Flag(kept), SeenValues::Flag(seen)) => kept.push(is_valid && seen.value(row)),
            (Values::Text { ends, bytes }, SeenValues::Text(seen)) => {
                if is_valid {
                    bytes.extend_from_slice(seen.value(row).as_bytes());
                }
                let end = i32::try_from(bytes.len());
                ends.push(end.map_err(|_| ArrowError::OffsetOverflowError(bytes.len()))?);
            }
            _ => {
                let reason = format!("a key of {} has a value of another type", self.kind);
                return Err(ArrowError::InvalidArgumentError(reason));
            }
        }
        self.valid.push(is_valid);
        Ok(())
    }

    fn emit(&mut self) -> Result<ArrayRef, ArrowError> {
        let nulls = self.valid.contains(&false).then(|| NullBuffer::from(&*self.valid));
        let data = ArrayData::builder(self.kind.clone()).len(self.valid.len()).nulls(nulls);
        let data = match &mut self.values {
            Values::Long(values) => data.add_buffer(Buffer::from_vec(take(values))),
            Values::Short(values) => data.add_buffer(Buffer::from_vec(take(values))),
            Values::Flag(values) => data.add_buffer(BooleanBuffer::from(&**values).into_inner()),
            Values::Text { ends, bytes } => {
                let offsets = Buffer::from_iter(std::iter::once(0).chain(ends.drain(..)));
                data.add_buffer(offsets).add_buffer(Buffer::from_vec(take(bytes)))
            }
        };
        let column = make_array(data.build()?);
        self.valid.clear();
        if let Values::Flag(values) = &mut self.values {
            values.clear();
        }
        Ok(column)
    }
}

/// Takes values out and leaves room for the keys of the next batch, which are about as many.
fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = values.len().min(MOST_ROOM);
    std::mem::replace(values, Vec::with_capacity(room))
}

impl<'a> Seen<'a> {
    fn try_new(column: &'a ArrayRef) -> Option<Self> {
        let values = match column.data_type() {
            DataType::Int64 => SeenValues::Long(column.as_primitive::<Int64Type>().values()),
            DataType::UInt64 => SeenValues::Long(column.as_primitive::<UInt64Type>().values().inner().typed_data()),
            DataType::Float64 => SeenValues::Long(column.as_primitive::<Float64Type>().values().inner().typed_data()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                SeenValues::Long(column.as_primitive::<TimestampMicrosecondType>().values())
            }
            DataType::Duration(TimeUnit::Microsecond) => {
                SeenValues::Long(column.as_primitive::<DurationMicrosecondType>().values())
            }
            DataType::Int32 => SeenValues::Short(column.as_primitive::<Int32Type>().values()),
            DataType::Date32 => SeenValues::Short(column.as_primitive::<Date32Type>().values()),
            DataType::Boolean => SeenValues::Flag(column.as_boolean()),
            DataType::Utf8 => SeenValues::Text(column.as_string()),
            _ => return None,
        };
        Some(Self { nulls: column.nulls().filter(|nulls| nulls.null_count() > 0), values })
    }

    fn is_valid(&self, row: usize) -> bool {
        self.nulls.is_none_or(|nulls| nulls.is_valid(row))
    }

    fn hash(&self, row: usize, state: &mut impl Hasher) {
        if !self.is_valid(row) {
            return state.write_u8(2);
        }
        match &self.values {
            SeenValues::Long(values) => state.write_i64(values[row]),
            SeenValues::Short(values) => state.write_i32(values[row]),
            SeenValues::Flag(values) => state.write_u8(u8::from(values.value(row))),
            SeenValues::Text(values) => state.write(values.value(row).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Date32Array, Float64Array, Int64Array, TimestampMicrosecondArray};
    use arrow::datatypes::Field;
    use std::sync::Arc;

    fn columns() -> Vec<ArrayRef> {
        let times = TimestampMicrosecondArray::from(vec![Some(1), Some(1), None, Some(1), Some(2), None]);
        vec![
            Arc::new(times.with_timezone("UTC")),
            Arc::new(StringArray::from(vec![Some("a"), Some(""), Some("a"), Some("a"), None, Some("a")])),
            Arc::new(BooleanArray::from(vec![Some(true), Some(true), None, Some(true), Some(false), None])),
            Arc::new(Date32Array::from(vec![Some(7), Some(7), None, Some(7), Some(7), None])),
            Arc::new(Float64Array::from(vec![Some(0.5), Some(0.5), None, Some(0.5), Some(-0.5), None])),
        ]
    }

    fn schema(columns: &[ArrayRef]) -> Schema {
        let field = |column: &ArrayRef| Field::new("k", column.data_type().clone(), true);
        Schema::new(columns.iter().map(field).collect::<Vec<_>>())
    }

    #[test]
    fn equal_keys_have_one_number_and_come_back_in_the_order_of_numbers() {
        let columns = columns();
        let mut numbering = Numbering::try_new(&schema(&columns), None).unwrap();
        let mut numbers = vec![99];
        for _ in 0..2 {
            numbering.number(&columns, &mut numbers).unwrap();
            assert_eq!(numbers, [0, 1, 2, 0, 3, 2]);
            let tail: Vec<ArrayRef> = columns.iter().map(|column| column.slice(3, 3)).collect();
            numbering.number(&tail, &mut numbers).unwrap();
            assert_eq!((&*numbers, numbering.len()), (&[0, 3, 2][..], 4));
            let kept = numbering.emit().unwrap();
            for (kept, column) in kept.iter().zip(&columns) {
                assert_eq!((kept.slice(0, 3), kept.slice(3, 1)), (column.slice(0, 3), column.slice(4, 1)));
            }
            assert_eq!(numbering.len(), 0, "after the keys have left, numbers begin again");
        }
    }

    #[test]
    fn windows_are_told_apart_whether_or_not_they_are_equally_long() {
        let times = |times: &[Option<i64>]| Arc::new(TimestampMicrosecondArray::from(times.to_vec())) as ArrayRef;
        let windows = |rows: &[(bool, i64, i64, &str)]| -> Vec<ArrayRef> {
            let part = |part: fn(&(bool, i64, i64, &str)) -> i64| {
                rows.iter().map(|row| row.0.then_some(part(row))).collect::<Vec<_>>()
            };
            vec![
                Arc::new(BooleanArray::from(rows.iter().map(|row| row.0).collect::<Vec<_>>())),
                times(&part(|row| row.1)),
                times(&part(|row| row.2)),
                Arc::new(StringArray::from(rows.iter().map(|row| row.3).collect::<Vec<_>>())),
            ]
        };
        let equal = windows(&[(true, 0, 10, "a"), (true, 10, 20, "a"), (true, 0, 10, "a"), (true, 0, 10, "b")]);
        let longer = windows(&[(true, 0, 20, "a"), (true, 0, 10, "a"), (false, 0, 0, "a"), (true, 0, 20, "a")]);
        let window = WindowColumns { presence: Some(0), start: 1 };
        let mut numbering = Numbering::try_new(&schema(&equal), Some(window)).unwrap();
        let mut number = |columns: &[ArrayRef], wanted: &[usize]| {
            let mut numbers = Vec::new();
            numbering.number(columns, &mut numbers).unwrap();
            assert_eq!(numbers, wanted);
            if wanted.len() == 1 { numbering.emit().unwrap() } else { Vec::new() }
        };
        for _ in 0..2 {
            number(&equal, &[0, 1, 0, 2]);
            number(&equal, &[0, 1, 0, 2]);
            number(&longer, &[3, 0, 4, 3]);
            number(&equal, &[0, 1, 0, 2]);
            let kept = number(&windows(&[(true, 0, 20, "a")]), &[3]);
            assert_eq!(
                kept,
                windows(&[
                    (true, 0, 10, "a"),
                    (true, 10, 20, "a"),
                    (true, 0, 10, "b"),
                    (true, 0, 20, "a"),
                    (false, 0, 0, "a")
                ])
            );
        }
    }

    #[test]
    fn many_keys_in_several_pieces_are_told_apart() {
        let mut numbering =
            Numbering::try_new(&Schema::new(vec![Field::new("k", DataType::Int64, true)]), None).unwrap();
        let (mut numbers, mut all) = (Vec::new(), Vec::new());
        for piece in 0..10_i64 {
            let keys = Int64Array::from_iter_values((0..1000).map(|row| (row * 37 + piece * 500) % 4000));
            numbering.number(&[Arc::new(keys.clone())], &mut numbers).unwrap();
            all.extend(numbers.iter().copied().zip(keys.values().iter().copied()));
        }
        let kept = numbering.emit().unwrap();
        let kept = kept[0].as_primitive::<Int64Type>();
        assert_eq!(kept.len(), 4000);
        assert!(all.iter().all(|(number, key)| kept.value(*number) == *key));
    }

    #[test]
    fn columns_of_other_types_or_lengths_are_left_to_others() {
        let list = DataType::new_list(DataType::Int64, true);
        assert!(Numbering::try_new(&Schema::new(vec![Field::new("k", list, true)]), None).is_none());
        let mut numbering =
            Numbering::try_new(&Schema::new(vec![Field::new("k", DataType::Int64, true)]), None).unwrap();
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        assert!(numbering.number(&[text], &mut Vec::new()).is_err());
    }
}
