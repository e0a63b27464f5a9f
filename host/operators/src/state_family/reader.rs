//! Reads the bytes of a family: into columns for people, and to the partition that owns a key.

use super::{RowPart, StateFamily, StatePart};
use crate::OperatorError;
use crate::event_order::{NEVER, ordered};
use crate::row_codec::{FORMAT, RowCodec, partition_of};
use arrow::array::{
    ArrayRef, BinaryArray, ListBuilder, StringArray, StructArray, TimestampMicrosecondArray,
    TimestampMicrosecondBuilder, UInt8Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::{Field, FieldRef};
use arrow::error::ArrowError;
use millstream_state::ByteRows;
use std::sync::Arc;

/// Reads keys and values of one family.
pub struct FamilyReader {
    name: String,
    key: Parts,
    value: Parts,
}

impl FamilyReader {
    /// The reader of `family`.
    ///
    /// # Errors
    /// When the family has a form or a type that this program does not know.
    pub fn try_new(family: &StateFamily) -> Result<Self, OperatorError> {
        let parts = |parts: &[StatePart]| {
            Parts::try_new(parts).map_err(|reason| OperatorError::Misfit { operator: operator(&family.name), reason })
        };
        Ok(Self { name: family.name.clone(), key: parts(&family.key)?, value: parts(&family.value)? })
    }

    /// The columns of keys and of values.
    ///
    /// # Errors
    /// When bytes are not of the family's form.
    pub fn read(&self, keys: &ByteRows, values: &ByteRows) -> Result<(StructArray, StructArray), OperatorError> {
        let read = |parts: &Parts, rows: &ByteRows| parts.read(rows).map_err(|source| self.unreadable(source));
        Ok((read(&self.key, keys)?, read(&self.value, values)?))
    }

    /// The partition of each key among `partitions`; 0 for a family that is not spread.
    ///
    /// # Errors
    /// When bytes are not of the family's form.
    pub fn partitions(&self, keys: &ByteRows, partitions: u32) -> Result<Vec<usize>, OperatorError> {
        self.key.partitions(keys, partitions).map_err(|source| self.unreadable(source))
    }

    fn unreadable(&self, source: ArrowError) -> OperatorError {
        OperatorError::StateRow { operator: operator(&self.name), source }
    }
}

pub(super) fn operator(family: &str) -> String {
    format!("the reader of state family `{family}`")
}

/// The parts of a key or value, with where each one begins and ends.
pub(super) struct Parts {
    parts: Vec<Part>,
    /// Bytes of all parts with a width.
    fixed: usize,
    /// Whether a part takes what the others leave.
    fills: bool,
}

pub(super) struct Part {
    part: StatePart,
    /// Bytes before it, from the front, when no part that fills stands before it.
    before: Option<usize>,
    /// Bytes after it, from the back, when no part that fills stands after it.
    after: Option<usize>,
    codecs: Option<Codecs>,
}

/// A row's codec, and the columns that decide on the partition, with theirs, when they are not all.
struct Codecs {
    row: RowCodec,
    owners: Option<(Vec<usize>, RowCodec)>,
}

impl Codecs {
    fn try_new(row: &RowPart) -> Result<Self, String> {
        if row.form != FORMAT {
            return Err(format!("its rows have the form `{}`, and `{FORMAT}` is known", row.form));
        }
        let codec = |fields: &mut dyn Iterator<Item = &FieldRef>| {
            RowCodec::try_new(fields.map(|field| field.data_type().clone()).collect())
                .map_err(|error| error.to_string())
        };
        let owners = match &row.owners {
            None => None,
            Some(owners) => {
                if let Some(missing) = owners.iter().find(|owner| **owner >= row.columns.len()) {
                    return Err(format!("column {missing} decides on its partition and is not there"));
                }
                Some((owners.clone(), codec(&mut owners.iter().map(|owner| &row.columns[*owner]))?))
            }
        };
        Ok(Self { row: codec(&mut row.columns.iter())?, owners })
    }
}

impl Parts {
    pub(super) fn try_new(parts: &[StatePart]) -> Result<Self, String> {
        let widths: Vec<Option<usize>> = parts.iter().map(StatePart::width).collect();
        if widths.iter().filter(|width| width.is_none()).count() > 1 {
            return Err("two of its parts have no width".to_owned());
        }
        let sum = |widths: &[Option<usize>]| widths.iter().copied().sum::<Option<usize>>();
        let mut placed = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let codecs = match part {
                StatePart::Row(row) => Some(Codecs::try_new(row)?),
                _ => None,
            };
            let (before, after) = (sum(&widths[..index]), sum(&widths[index + 1..]));
            placed.push(Part { part: part.clone(), before, after, codecs });
        }
        let fills = widths.contains(&None);
        Ok(Self { parts: placed, fixed: widths.into_iter().flatten().sum(), fills })
    }

    /// The part that is a row, if there is one, and its codec.
    pub(super) fn row(&self) -> Option<(&Part, &RowCodec)> {
        self.parts.iter().find_map(|part| Some((part, &part.codecs.as_ref()?.row)))
    }

    /// Whether rows have the right lengths.
    pub(super) fn check(&self, rows: &ByteRows) -> Result<(), ArrowError> {
        let fits = |row: &[u8]| row.len() == self.fixed || self.fills && row.len() > self.fixed;
        match rows.iter().find(|row| !fits(row)) {
            Some(row) => Err(ArrowError::ParseError(format!(
                "it has {} bytes instead of {}{}",
                row.len(),
                if self.fills { "at least " } else { "" },
                self.fixed
            ))),
            None => Ok(()),
        }
    }

    fn read(&self, rows: &ByteRows) -> Result<StructArray, ArrowError> {
        self.check(rows)?;
        let (mut fields, mut columns): (Vec<FieldRef>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        for part in &self.parts {
            for (name, column) in part.read(rows)? {
                fields.push(Arc::new(Field::new(name, column.data_type().clone(), true)));
                columns.push(column);
            }
        }
        StructArray::try_new_with_length(fields.into(), columns, None, rows.len())
    }

    fn partitions(&self, keys: &ByteRows, partitions: u32) -> Result<Vec<usize>, ArrowError> {
        self.check(keys)?;
        let Some((part, codecs)) = self.parts.iter().find_map(|part| Some((part, part.codecs.as_ref()?))) else {
            return Ok(vec![0; keys.len()]);
        };
        let rows = keys.iter().map(|key| part.cut(key));
        let Some((owners, codec)) = &codecs.owners else {
            return Ok(rows.map(|row| partition_of(row, partitions)).collect());
        };
        let columns = codecs.row.decode(rows)?;
        let encoded =
            codec.encode(&codec.conform(owners.iter().map(|owner| Arc::clone(&columns[*owner])).collect())?)?;
        Ok((0..keys.len()).map(|row| partition_of(encoded.row(row), partitions)).collect())
    }
}

impl Part {
    /// Its bytes in a whole key or value, which is long enough.
    pub(super) fn cut<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let (start, end) = match (self.before, self.after, self.part.width()) {
            (Some(before), _, Some(width)) => (before, before + width),
            (None, Some(after), Some(width)) => (bytes.len() - after - width, bytes.len() - after),
            (before, after, _) => (before.unwrap_or(0), bytes.len() - after.unwrap_or(0)),
        };
        &bytes[start..end]
    }

    /// What stands before it and after it in a whole key or value.
    pub(super) fn around<'a>(&self, bytes: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        (&bytes[..self.before.unwrap_or(0)], &bytes[bytes.len() - self.after.unwrap_or(0)..])
    }

    fn read(&self, rows: &ByteRows) -> Result<Vec<(String, ArrayRef)>, ArrowError> {
        let cuts = || rows.iter().map(|row| self.cut(row));
        // Flipping the sign is its own inverse.
        let time = |prefix: u64| (prefix != NEVER).then(|| ordered(prefix as i64) as i64);
        let column: (&String, ArrayRef) = match &self.part {
            StatePart::EventTime(name) => {
                let times = cuts().map(|bytes| time(u64::from_be_bytes(fixed(bytes))));
                (name, Arc::new(times.collect::<TimestampMicrosecondArray>().with_timezone("UTC")))
            }
            StatePart::EventTimes(name) => {
                let mut lists = ListBuilder::new(TimestampMicrosecondBuilder::new().with_timezone("UTC"));
                for bytes in cuts() {
                    let (times, rest) = bytes.as_chunks::<8>();
                    if !rest.is_empty() {
                        let reason = format!("{} bytes are no list of event times", bytes.len());
                        return Err(ArrowError::ParseError(reason));
                    }
                    times.iter().for_each(|bytes| lists.values().append_option(time(u64::from_be_bytes(*bytes))));
                    lists.append(true);
                }
                (name, Arc::new(lists.finish()))
            }
            StatePart::U64(name) => {
                (name, Arc::new(UInt64Array::from_iter_values(cuts().map(|bytes| u64::from_be_bytes(fixed(bytes))))))
            }
            StatePart::U64LittleEndian(name) => {
                (name, Arc::new(UInt64Array::from_iter_values(cuts().map(|bytes| u64::from_le_bytes(fixed(bytes))))))
            }
            StatePart::U32(name) => {
                (name, Arc::new(UInt32Array::from_iter_values(cuts().map(|bytes| u32::from_be_bytes(fixed(bytes))))))
            }
            StatePart::U8(name) => (name, Arc::new(UInt8Array::from_iter_values(cuts().map(|bytes| bytes[0])))),
            StatePart::Bytes(name) => (name, Arc::new(BinaryArray::from_iter_values(cuts()))),
            StatePart::Text(name) => {
                let texts = cuts().map(|bytes| {
                    std::str::from_utf8(bytes).map_err(|error| ArrowError::ParseError(format!("no text: {error}")))
                });
                (name, Arc::new(StringArray::from_iter_values(texts.collect::<Result<Vec<_>, _>>()?)))
            }
            StatePart::Row(row) => {
                let codec = &self.codecs.as_ref().expect("a row has its codec").row;
                let columns = codec.decode(cuts())?;
                let names = row.columns.iter().map(|field| field.name().clone());
                return Ok(names.zip(columns).collect());
            }
        };
        Ok(vec![(column.0.clone(), column.1)])
    }
}

/// The bytes of a part that has a width.
fn fixed<const WIDTH: usize>(bytes: &[u8]) -> [u8; WIDTH] {
    bytes.try_into().expect("the part was cut to its width")
}
