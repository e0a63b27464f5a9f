//! How values compare: NULL first inside of structs and lists, NaN largest and equal to itself, -0.0 equal to 0.0.
//!
//! Values are compared by their encoding as sort keys, which have the same order as the values they stand for.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, PrimitiveArray, StructArray};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::Result;

use super::definition::plain;

/// Encodes values of one type as sort keys.
#[derive(Debug)]
pub(super) struct SortKeys {
    converter: RowConverter,
}

impl SortKeys {
    /// For values of this type.
    pub(super) fn new(data_type: &DataType) -> Result<Self> {
        let options = SortOptions { descending: false, nulls_first: true };
        Ok(Self { converter: RowConverter::new(vec![SortField::new_with_options(plain(data_type), options)])? })
    }

    /// The keys of these values.
    pub(super) fn encode(&self, values: &ArrayRef) -> Result<Rows> {
        Ok(self.converter.convert_columns(&[normal(values)?])?)
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.converter.size()
    }
}

fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float32 | DataType::Float64 => true,
        DataType::List(field) => has_floats(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        _ => false,
    }
}

/// A zero without sign and the one NaN.
pub(super) fn normal_double(value: f64) -> f64 {
    if value.is_nan() {
        f64::NAN
    } else if value == 0.0 {
        0.0
    } else {
        value
    }
}

/// The same values with one spelling of zero and of NaN.
pub(super) fn normal(values: &ArrayRef) -> Result<ArrayRef> {
    let wanted = plain(values.data_type());
    if &wanted != values.data_type() {
        return normal(&cast(values, &wanted)?);
    }
    if !has_floats(&wanted) {
        return Ok(Arc::clone(values));
    }
    Ok(match values.data_type() {
        DataType::Float64 => {
            let normal: PrimitiveArray<Float64Type> = values.as_primitive::<Float64Type>().unary(normal_double);
            Arc::new(normal)
        }
        DataType::Float32 => {
            let single = |value: f32| {
                if value.is_nan() {
                    f32::NAN
                } else if value == 0.0 {
                    0.0
                } else {
                    value
                }
            };
            let normal: PrimitiveArray<Float32Type> = values.as_primitive::<Float32Type>().unary(single);
            Arc::new(normal)
        }
        DataType::List(field) => {
            let list = values.as_list::<i32>();
            let items = normal(list.values())?;
            Arc::new(ListArray::try_new(Arc::clone(field), list.offsets().clone(), items, list.nulls().cloned())?)
        }
        DataType::Struct(fields) => {
            let parts = values.as_struct();
            let columns = parts.columns().iter().map(normal).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, parts.nulls().cloned())?)
        }
        _ => Arc::clone(values),
    })
}

/// Memory of the values that this part of an array shows.
pub(super) fn shown_bytes(values: &dyn Array) -> usize {
    values.to_data().get_slice_memory_size().unwrap_or_else(|_| values.get_array_memory_size())
}
