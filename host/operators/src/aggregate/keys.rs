//! The grouping keys of an aggregate in their three forms.
//!
//! ```text
//!   rows ──evaluate──► flat columns ──grouping──► flat columns ──fold──► key columns ──encode──► bytes
//!                      (structs taken apart)      (one row per group)                  [end of window, 8 bytes]? [row]
//! ```
//!
//! Flat columns let DataFusion group windows with its fast tables for plain columns; bytes are what the store
//! keeps. Floats are unified first, so that groups are SQL's. The eight bytes in front are the key's event time as
//! a big-endian number that orders like the time, so that the store can drop all that a watermark passed.

use super::numbering::WindowColumns;
use super::spec::{EventTimeKey, EventTimeKind};
use crate::event_order;
use crate::float_identity::unify_floats;
use crate::row_codec::{EncodedRows, RowCodec};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StructArray};
use arrow::buffer::NullBuffer;
use arrow::compute::{is_not_null, nullif};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::aggregates::{PhysicalGroupBy, evaluate_group_by};
use millstream_state::ByteRows;
use std::sync::Arc;

/// The grouping keys of an aggregate.
pub(crate) struct KeyColumns {
    group_by: PhysicalGroupBy,
    fields: Vec<FieldRef>,
    flat: SchemaRef,
    pub(crate) codec: RowCodec,
    event_time: Option<EventTimeKey>,
}

impl KeyColumns {
    pub(crate) fn try_new(
        group_by: PhysicalGroupBy,
        event_time: Option<EventTimeKey>,
        input: &Schema,
    ) -> Result<Self, DataFusionError> {
        let fields: Vec<FieldRef> = group_by.group_schema(input)?.fields().iter().map(Arc::clone).collect();
        if let Some(key) = event_time {
            check_event_time(key, &fields)?;
        }
        let mut flat = Vec::new();
        fields.iter().for_each(|field| flat_fields(field, &mut flat));
        let codec = RowCodec::try_new(fields.iter().map(|field| field.data_type().clone()).collect())?;
        Ok(Self { group_by, fields, flat: Arc::new(Schema::new(flat)), codec, event_time })
    }

    /// Whether there are no keys: one group, always there.
    pub(crate) fn is_global(&self) -> bool {
        self.group_by.is_true_no_grouping()
    }

    pub(crate) fn has_event_time(&self) -> bool {
        self.event_time.is_some()
    }

    pub(crate) fn event_time(&self) -> Option<EventTimeKey> {
        self.event_time
    }

    pub(crate) fn fields(&self) -> &[FieldRef] {
        &self.fields
    }

    /// The flat columns, as DataFusion groups them.
    pub(crate) fn flat_schema(&self) -> &SchemaRef {
        &self.flat
    }

    /// Where the window that carries event time stands among the flat columns.
    pub(crate) fn flat_window(&self) -> Option<WindowColumns> {
        let key = self.event_time.filter(|key| key.kind == EventTimeKind::Window)?;
        let field = self.fields.get(key.index)?;
        let DataType::Struct(parts) = field.data_type() else { return None };
        if parts.len() != 2 || parts[0].name() != "start" || parts[1].name() != "end" {
            return None;
        }
        let mut before = Vec::new();
        self.fields.iter().take(key.index).for_each(|field| flat_fields(field, &mut before));
        let at = before.len();
        Some(match field.is_nullable() {
            true => WindowColumns { presence: Some(at), start: at + 1 },
            false => WindowColumns { presence: None, start: at },
        })
    }

    /// The flat columns of rows, once for each grouping set.
    pub(crate) fn evaluate(&self, rows: &RecordBatch) -> Result<Vec<Vec<ArrayRef>>, DataFusionError> {
        let sets = evaluate_group_by(&self.group_by, rows)?;
        sets.into_iter()
            .map(|columns| {
                let mut flat = Vec::with_capacity(self.flat.fields().len());
                for (column, field) in self.codec.conform(columns)?.iter().zip(&self.fields) {
                    flatten(&unify_floats(column)?, field, &mut flat)?;
                }
                Ok(flat)
            })
            .collect()
    }

    /// The key columns of flat columns.
    pub(crate) fn fold(&self, flat: Vec<ArrayRef>) -> Result<Vec<ArrayRef>, DataFusionError> {
        let mut flat = flat.into_iter();
        self.fields.iter().map(|field| fold(field, &mut flat)).collect()
    }

    /// The event time of each key as its prefix; `None` when no key carries event time.
    pub(crate) fn prefixes(&self, columns: &[ArrayRef]) -> Option<Vec<u64>> {
        let key = self.event_time?;
        event_order::prefixes(columns.get(key.index)?, key.kind)
    }

    /// The columns of keys as the store has them.
    pub(crate) fn decode<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>, ArrowError> {
        let prefix = if self.has_event_time() { 8 } else { 0 };
        let mut cut = false;
        let columns = self.codec.decode(keys.map(|key| {
            cut |= key.len() < prefix;
            key.get(prefix..).unwrap_or_default()
        }));
        if cut {
            return Err(ArrowError::ParseError("a key is shorter than its event time".to_owned()));
        }
        columns
    }

    /// Keys as the store has them.
    pub(crate) fn bytes(&self, columns: &[ArrayRef], len: usize) -> Result<ByteRows, DataFusionError> {
        let encoded = self.encode(columns)?;
        let Some(prefixes) = self.prefixes(columns) else { return Ok(encoded.into_byte_rows(len)) };
        let mut keys = ByteRows::with_capacity(len, encoded.size() + 8 * len);
        prefixes
            .iter()
            .enumerate()
            .for_each(|(row, prefix)| keys.push_parts(&[&prefix.to_be_bytes(), encoded.row(row)]));
        Ok(keys)
    }

    pub(crate) fn encode(&self, columns: &[ArrayRef]) -> Result<EncodedRows, DataFusionError> {
        Ok(self.codec.encode(columns)?)
    }
}

fn check_event_time(key: EventTimeKey, fields: &[FieldRef]) -> Result<(), DataFusionError> {
    let kind = fields.get(key.index).map(|field| field.data_type());
    let time = match (key.kind, kind) {
        (EventTimeKind::Timestamp, kind) => kind,
        (EventTimeKind::Window, Some(DataType::Struct(parts))) => parts.find("end").map(|(_, end)| end.data_type()),
        (EventTimeKind::Window, _) => None,
    };
    match time {
        Some(DataType::Timestamp(TimeUnit::Microsecond, _)) => Ok(()),
        _ => Err(DataFusionError::Plan(format!("key {} is {kind:?} and carries no event time", key.index))),
    }
}

/// The flat columns of a key: a struct becomes its fields, and whether it is there if it may be null.
fn flat_fields(field: &Field, flat: &mut Vec<Field>) {
    match field.data_type() {
        DataType::Struct(parts) if !parts.is_empty() => {
            if field.is_nullable() {
                flat.push(Field::new(field.name(), DataType::Boolean, true));
            }
            parts.iter().for_each(|part| flat_fields(part, flat));
        }
        kind => flat.push(Field::new(field.name(), kind.clone(), true)),
    }
}

fn flatten(column: &ArrayRef, field: &Field, flat: &mut Vec<ArrayRef>) -> Result<(), ArrowError> {
    match field.data_type() {
        DataType::Struct(parts) if !parts.is_empty() => {
            if field.is_nullable() {
                flat.push(Arc::new(is_not_null(column)?));
            }
            let missing = match column.nulls() {
                Some(nulls) if nulls.null_count() > 0 => Some(BooleanArray::new(!nulls.inner(), None)),
                _ => None,
            };
            for (part, values) in parts.iter().zip(column.as_struct().columns()) {
                match &missing {
                    Some(missing) => flatten(&nullif(values, missing)?, part, flat)?,
                    None => flatten(values, part, flat)?,
                }
            }
        }
        _ => flat.push(Arc::clone(column)),
    }
    Ok(())
}

fn fold(field: &Field, flat: &mut impl Iterator<Item = ArrayRef>) -> Result<ArrayRef, DataFusionError> {
    let missing = || DataFusionError::Internal(format!("a column of the key `{}` is missing", field.name()));
    match field.data_type() {
        DataType::Struct(parts) if !parts.is_empty() => {
            let nulls = match field.is_nullable() {
                true => Some(NullBuffer::new(flat.next().ok_or_else(missing)?.as_boolean().values().clone())),
                false => None,
            };
            let columns = parts.iter().map(|part| fold(part, flat)).collect::<Result<Vec<_>, _>>()?;
            Ok(Arc::new(StructArray::try_new(parts.clone(), columns, nulls.filter(|nulls| nulls.null_count() > 0))?))
        }
        _ => flat.next().ok_or_else(missing),
    }
}
