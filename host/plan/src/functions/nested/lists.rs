//! List columns seen as flat values with a range per row, and list columns made by picking from flat values.
//!
//! Every array function reads with [`Lists`] and writes with [`Picks`]: the values themselves are moved once, by one
//! `take`, whatever their type. The rule: null rows have no range, whatever their offsets say.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayBuilder, ArrayRef, AsArray, ListArray, MapArray, StructArray, UInt32Array, UInt32Builder,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Fields};
use datafusion::common::{Result, exec_datafusion_err, exec_err};

/// An array column or a map column, read.
pub(super) struct Lists {
    /// The values of all rows; of a map, its entries.
    pub(super) values: ArrayRef,
    offsets: OffsetBuffer<i32>,
    nulls: Option<NullBuffer>,
}

impl Lists {
    /// Reads an array column or a map column.
    pub(super) fn of(array: &ArrayRef) -> Result<Self> {
        match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                Ok(Self {
                    values: Arc::clone(list.values()),
                    offsets: list.offsets().clone(),
                    nulls: list.nulls().cloned(),
                })
            }
            DataType::Map(..) => {
                let map = array.as_map();
                Ok(Self {
                    values: Arc::new(map.entries().clone()),
                    offsets: map.offsets().clone(),
                    nulls: map.nulls().cloned(),
                })
            }
            other => exec_err!("cannot read a value of type {other} as an array"),
        }
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The places of a row's values; `None` for a null row.
    pub(super) fn row(&self, row: usize) -> Option<Range<usize>> {
        if self.is_null(row) {
            return None;
        }
        // Offsets of a valid array are not negative.
        Some(self.offsets[row] as usize..self.offsets[row + 1] as usize)
    }

    /// Whether the row is null.
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The rows that are null.
    pub(super) fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    /// The keys, of a map.
    pub(super) fn keys(&self) -> ArrayRef {
        Arc::clone(self.values.as_struct().column(0))
    }

    /// The values, of a map.
    pub(super) fn map_values(&self) -> ArrayRef {
        Arc::clone(self.values.as_struct().column(1))
    }
}

/// Puts several columns of values behind each other; answers the place where each begins.
pub(super) fn stack(parts: &[&ArrayRef]) -> Result<(ArrayRef, Vec<usize>)> {
    let mut starts = Vec::with_capacity(parts.len());
    let mut next = 0;
    for part in parts {
        starts.push(next);
        next += part.len();
    }
    let arrays: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
    Ok((concat(&arrays)?, starts))
}

/// A list column under construction: which places of some flat values each row consists of.
#[derive(Default)]
pub(super) struct Picks {
    places: UInt32Builder,
    offsets: Vec<i32>,
    valid: Vec<bool>,
}

impl Picks {
    /// For this many rows.
    pub(super) fn with_capacity(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { places: UInt32Builder::new(), offsets, valid: Vec::with_capacity(rows) }
    }

    /// The row in work gets the value at a place.
    pub(super) fn push(&mut self, place: usize) {
        // Places lie inside an array that has 32-bit offsets.
        self.places.append_value(place as u32);
    }

    /// The row in work gets the values at these places.
    pub(super) fn extend(&mut self, places: Range<usize>) {
        places.for_each(|place| self.push(place));
    }

    /// The row in work gets a null.
    pub(super) fn push_null(&mut self) {
        self.places.append_null();
    }

    /// The row in work is done.
    pub(super) fn end(&mut self) -> Result<()> {
        self.offsets.push(self.offset()?);
        self.valid.push(true);
        Ok(())
    }

    /// The row in work is null.
    pub(super) fn end_null(&mut self) -> Result<()> {
        self.offsets.push(self.offset()?);
        self.valid.push(false);
        Ok(())
    }

    fn offset(&self) -> Result<i32> {
        i32::try_from(self.places.len()).map_err(|_| {
            exec_datafusion_err!(
                "[COLLECTION_SIZE_LIMIT_EXCEEDED] one batch cannot hold more than {} array elements",
                i32::MAX
            )
        })
    }

    fn parts(mut self) -> (UInt32Array, OffsetBuffer<i32>, Option<NullBuffer>) {
        let nulls = self.valid.contains(&false).then(|| NullBuffer::from(self.valid));
        (self.places.finish(), OffsetBuffer::new(ScalarBuffer::from(self.offsets)), nulls)
    }

    /// The list column, as type `output`.
    pub(super) fn finish(self, values: &ArrayRef, output: &DataType) -> Result<ArrayRef> {
        let (places, offsets, nulls) = self.parts();
        list(take(values, &places, None)?, offsets, nulls, output)
    }

    /// The map column, picked from keys and values that stand side by side.
    pub(super) fn finish_map(self, keys: &ArrayRef, values: &ArrayRef, output: &DataType) -> Result<ArrayRef> {
        let (places, offsets, nulls) = self.parts();
        map(take(keys, &places, None)?, take(values, &places, None)?, offsets, nulls, output)
    }
}

/// A list column of type `output` from its parts.
pub(super) fn list(
    values: ArrayRef,
    offsets: OffsetBuffer<i32>,
    nulls: Option<NullBuffer>,
    output: &DataType,
) -> Result<ArrayRef> {
    match output {
        DataType::List(field) => {
            let values = fit(values, field.data_type())?;
            Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, values, nulls)?))
        }
        other => exec_err!("cannot make a value of type {other} from array elements"),
    }
}

/// A map column of type `output` from its parts. Duplicate keys have been dealt with.
pub(super) fn map(
    keys: ArrayRef,
    values: ArrayRef,
    offsets: OffsetBuffer<i32>,
    nulls: Option<NullBuffer>,
    output: &DataType,
) -> Result<ArrayRef> {
    if let DataType::Map(field, sorted) = output
        && let DataType::Struct(fields) = field.data_type()
        && fields.len() == 2
    {
        let columns = vec![fit(keys, fields[0].data_type())?, fit(values, fields[1].data_type())?];
        let entries = StructArray::try_new(fields.clone(), columns, None)?;
        return Ok(Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, nulls, *sorted)?));
    }
    exec_err!("cannot make a value of type {output} from keys and values")
}

/// A struct column from its columns.
pub(super) fn record(
    fields: &Fields,
    columns: Vec<ArrayRef>,
    nulls: Option<NullBuffer>,
    rows: usize,
) -> Result<ArrayRef> {
    if fields.is_empty() {
        return Ok(Arc::new(StructArray::new_empty_fields(rows, nulls)));
    }
    let columns = columns
        .into_iter()
        .zip(fields)
        .map(|(column, field)| fit(column, field.data_type()))
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new(fields.clone(), columns, nulls)?))
}

/// The array as exactly this type; only names and nullability inside may differ.
pub(super) fn fit(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(array);
    }
    Ok(arrow::compute::cast(&array, data_type)?)
}
