//! Values of one group that are kept as they are: appended in order, handed out as one list.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue};

use super::ordering::shown_bytes;

/// A growing list of values.
#[derive(Debug)]
pub(super) struct Values {
    element: DataType,
    parts: Vec<ArrayRef>,
}

impl Values {
    /// An empty list of values of this type.
    pub(super) fn new(element: &DataType) -> Self {
        Self { element: element.clone(), parts: Vec::new() }
    }

    /// Appends copies of these rows.
    pub(super) fn append(&mut self, values: &ArrayRef, rows: Vec<u32>) -> Result<()> {
        if !rows.is_empty() {
            self.parts.push(take(values, &UInt32Array::from(rows), None)?);
        }
        Ok(())
    }

    /// All values in one array.
    pub(super) fn array(&mut self) -> Result<ArrayRef> {
        let array = match self.parts.as_slice() {
            [] => new_empty_array(&self.element),
            [one] => Arc::clone(one),
            many => concat(&many.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?,
        };
        self.parts = if array.is_empty() { Vec::new() } else { vec![Arc::clone(&array)] };
        Ok(array)
    }

    /// All values as one list.
    pub(super) fn list(&mut self) -> Result<ScalarValue> {
        list(self.array()?)
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| shown_bytes(part.as_ref())).sum()
    }
}

/// These values as one list.
pub(super) fn list(values: ArrayRef) -> Result<ScalarValue> {
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    Ok(ScalarValue::List(Arc::new(ListArray::try_new(field, offsets, values, None)?)))
}

/// The lists of a column of states, one after the other; NULL lists are left out.
pub(super) fn lists(states: &ArrayRef) -> impl Iterator<Item = ArrayRef> {
    let lists = states.as_list::<i32>();
    (0..lists.len()).filter(|&row| lists.is_valid(row)).map(|row| lists.value(row))
}

/// The rows that are not null.
pub(super) fn given_rows(values: &ArrayRef) -> impl Iterator<Item = u32> {
    let nulls = values.logical_nulls();
    (0..values.len())
        .filter(move |&row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)))
        .map_while(|row| u32::try_from(row).ok())
}
