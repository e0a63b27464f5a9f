//! A column under construction that can be cut back: rows are decoded straight into it, and a record that
//! turns out to be malformed is taken out again by its length.

use super::DecodeError;
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, ListArray, MapArray, NullArray, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, FieldRef, Fields, TimeUnit};
use arrow::error::ArrowError;
use std::sync::Arc;

/// The values of a column, by type.
pub(crate) enum Values {
    Nothing,
    Bool(Vec<bool>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Decimal { values: Vec<i128>, precision: u8, scale: i8 },
    Text(Bytes),
    Binary(Bytes),
    Date(Vec<i32>),
    Timestamp { values: Vec<i64>, zone: Option<Arc<str>> },
    List { offsets: Vec<i32>, field: FieldRef, items: Box<Column> },
    Map { offsets: Vec<i32>, field: FieldRef, keys: Bytes, values: Box<Column>, sorted: bool },
    Struct { fields: Fields, children: Vec<Column> },
}

/// Values of variable length, back to back.
pub(crate) struct Bytes {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl Bytes {
    fn new() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }

    pub(crate) fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        // The input of one call is bounded so that the sum of all values fits.
        self.offsets.push(self.bytes.len() as i32);
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        self.offsets.truncate(rows + 1);
        self.bytes.truncate(self.offsets[rows] as usize);
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn parts(self) -> (OffsetBuffer<i32>, Buffer) {
        (OffsetBuffer::new(ScalarBuffer::from(self.offsets)), Buffer::from_vec(self.bytes))
    }
}

/// A column that grows row by row.
pub(crate) struct Column {
    pub(crate) values: Values,
    valid: Vec<bool>,
    nulls: usize,
}

impl Column {
    /// An empty column of a type; `name` is for the error.
    pub(crate) fn new(name: &str, data_type: &DataType) -> Result<Self, DecodeError> {
        let unsupported = || DecodeError::Type { column: name.to_owned(), data_type: data_type.to_string() };
        let values = match data_type {
            DataType::Null => Values::Nothing,
            DataType::Boolean => Values::Bool(vec![]),
            DataType::Int8 => Values::I8(vec![]),
            DataType::Int16 => Values::I16(vec![]),
            DataType::Int32 => Values::I32(vec![]),
            DataType::Int64 => Values::I64(vec![]),
            DataType::Float32 => Values::F32(vec![]),
            DataType::Float64 => Values::F64(vec![]),
            DataType::Decimal128(precision, scale) => {
                Values::Decimal { values: vec![], precision: *precision, scale: *scale }
            }
            DataType::Utf8 => Values::Text(Bytes::new()),
            DataType::Binary => Values::Binary(Bytes::new()),
            DataType::Date32 => Values::Date(vec![]),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                // A stored timestamp is a point in time: the zone is only how it is shown.
                Values::Timestamp { values: vec![], zone: zone.clone() }
            }
            DataType::List(field) => Values::List {
                offsets: vec![0],
                field: Arc::clone(field),
                items: Box::new(Self::new(&format!("{name}[]"), field.data_type())?),
            },
            DataType::Map(field, sorted) => {
                let DataType::Struct(entry) = field.data_type() else { return Err(unsupported()) };
                if entry.len() != 2 || entry[0].data_type() != &DataType::Utf8 {
                    return Err(unsupported());
                }
                Values::Map {
                    offsets: vec![0],
                    field: Arc::clone(field),
                    keys: Bytes::new(),
                    values: Box::new(Self::new(&format!("{name}{{}}"), entry[1].data_type())?),
                    sorted: *sorted,
                }
            }
            DataType::Struct(fields) => Values::Struct {
                children: fields
                    .iter()
                    .map(|field| Self::new(&format!("{name}.{}", field.name()), field.data_type()))
                    .collect::<Result<_, _>>()?,
                fields: fields.clone(),
            },
            _ => return Err(unsupported()),
        };
        Ok(Self { values, valid: Vec::new(), nulls: 0 })
    }

    pub(crate) fn len(&self) -> usize {
        self.valid.len()
    }

    /// Marks the value that was just pushed into `values` as there.
    pub(crate) fn seal(&mut self) {
        self.valid.push(true);
    }

    /// Appends a null.
    pub(crate) fn push_null(&mut self) {
        match &mut self.values {
            Values::Nothing => {}
            Values::Bool(values) => values.push(false),
            Values::I8(values) => values.push(0),
            Values::I16(values) => values.push(0),
            Values::I32(values) | Values::Date(values) => values.push(0),
            Values::I64(values) | Values::Timestamp { values, .. } => values.push(0),
            Values::F32(values) => values.push(0.0),
            Values::F64(values) => values.push(0.0),
            Values::Decimal { values, .. } => values.push(0),
            Values::Text(bytes) | Values::Binary(bytes) => bytes.push(b""),
            Values::List { offsets, items, .. } => offsets.push(items.len() as i32),
            Values::Map { offsets, values, .. } => offsets.push(values.len() as i32),
            Values::Struct { children, .. } => children.iter_mut().for_each(Self::push_null),
        }
        self.valid.push(false);
        self.nulls += 1;
    }

    /// Cuts the column back to `rows` rows; values pushed but not sealed vanish too.
    pub(crate) fn truncate(&mut self, rows: usize) {
        match &mut self.values {
            Values::Nothing => {}
            Values::Bool(values) => values.truncate(rows),
            Values::I8(values) => values.truncate(rows),
            Values::I16(values) => values.truncate(rows),
            Values::I32(values) | Values::Date(values) => values.truncate(rows),
            Values::I64(values) | Values::Timestamp { values, .. } => values.truncate(rows),
            Values::F32(values) => values.truncate(rows),
            Values::F64(values) => values.truncate(rows),
            Values::Decimal { values, .. } => values.truncate(rows),
            Values::Text(bytes) | Values::Binary(bytes) => bytes.truncate(rows),
            Values::List { offsets, items, .. } => {
                offsets.truncate(rows + 1);
                items.truncate(offsets[rows] as usize);
            }
            Values::Map { offsets, keys, values, .. } => {
                offsets.truncate(rows + 1);
                keys.truncate(offsets[rows] as usize);
                values.truncate(offsets[rows] as usize);
            }
            Values::Struct { children, .. } => children.iter_mut().for_each(|child| child.truncate(rows)),
        }
        if rows < self.valid.len() {
            self.nulls -= self.valid[rows..].iter().filter(|valid| !**valid).count();
            self.valid.truncate(rows);
        }
    }

    /// The Arrow array of all rows.
    pub(crate) fn finish(self) -> Result<ArrayRef, ArrowError> {
        let rows = self.valid.len();
        let nulls = (self.nulls > 0).then(|| NullBuffer::from(self.valid));
        Ok(match self.values {
            Values::Nothing => Arc::new(NullArray::new(rows)),
            Values::Bool(values) => Arc::new(BooleanArray::new(values.into(), nulls)),
            Values::I8(values) => Arc::new(Int8Array::try_new(values.into(), nulls)?),
            Values::I16(values) => Arc::new(Int16Array::try_new(values.into(), nulls)?),
            Values::I32(values) => Arc::new(Int32Array::try_new(values.into(), nulls)?),
            Values::I64(values) => Arc::new(Int64Array::try_new(values.into(), nulls)?),
            Values::F32(values) => Arc::new(Float32Array::try_new(values.into(), nulls)?),
            Values::F64(values) => Arc::new(Float64Array::try_new(values.into(), nulls)?),
            Values::Decimal { values, precision, scale } => {
                Arc::new(Decimal128Array::try_new(values.into(), nulls)?.with_precision_and_scale(precision, scale)?)
            }
            Values::Text(bytes) => {
                let (offsets, data) = bytes.parts();
                Arc::new(StringArray::try_new(offsets, data, nulls)?)
            }
            Values::Binary(bytes) => {
                let (offsets, data) = bytes.parts();
                Arc::new(BinaryArray::try_new(offsets, data, nulls)?)
            }
            Values::Date(values) => Arc::new(Date32Array::try_new(values.into(), nulls)?),
            Values::Timestamp { values, zone } => {
                Arc::new(TimestampMicrosecondArray::try_new(values.into(), nulls)?.with_timezone_opt(zone))
            }
            Values::List { offsets, field, items } => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                Arc::new(ListArray::try_new(field, offsets, items.finish()?, nulls)?)
            }
            Values::Map { offsets, field, keys, values, sorted } => {
                let DataType::Struct(entry) = field.data_type() else {
                    return Err(ArrowError::SchemaError("the entries of a map are no struct".into()));
                };
                let (key_offsets, key_data) = keys.parts();
                let keys: ArrayRef = Arc::new(StringArray::try_new(key_offsets, key_data, None)?);
                let entries = StructArray::try_new(entry.clone(), vec![keys, values.finish()?], None)?;
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                Arc::new(MapArray::try_new(Arc::clone(&field), offsets, entries, nulls, sorted)?)
            }
            Values::Struct { fields, children } => {
                let children = children.into_iter().map(Self::finish).collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::try_new_with_length(fields, children, nulls, rows)?)
            }
        })
    }
}
