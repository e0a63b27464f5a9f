//! Equality and order of values of any type, as Spark sees them.
//!
//! Values become byte strings that compare as the values do: nulls first, structs and arrays element by element,
//! -0.0 equals 0.0, NaN equals NaN and is the largest number. Set functions hash the bytes, sorts compare them.
//! Maps have no order; planning refuses them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, ListArray, StructArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, plan_err};

/// The comparable form of each value.
pub(super) fn comparable(values: &ArrayRef) -> Result<Rows> {
    let values = normalised(values)?;
    let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
    Ok(converter.convert_columns(&[values])?)
}

/// Refuses types that have no order.
pub(super) fn require_order(name: &str, data_type: &DataType) -> Result<()> {
    let ordered = match data_type {
        DataType::Map(..) => false,
        DataType::List(field) => return require_order(name, field.data_type()),
        DataType::Struct(fields) => return fields.iter().try_for_each(|field| require_order(name, field.data_type())),
        _ => true,
    };
    if ordered {
        Ok(())
    } else {
        plan_err!("[DATATYPE_MISMATCH.INVALID_ORDERING_TYPE] `{name}` cannot compare {data_type}")
    }
}

/// The same values with one zero and one NaN.
fn normalised(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Float64 => {
            let floats: Float64Array = values.as_primitive::<Float64Type>().unary(|v| {
                if v.is_nan() {
                    f64::NAN
                } else if v == 0.0 {
                    0.0
                } else {
                    v
                }
            });
            Arc::new(floats)
        }
        DataType::Float32 => {
            let floats: Float32Array = values.as_primitive::<Float32Type>().unary(|v| {
                if v.is_nan() {
                    f32::NAN
                } else if v == 0.0 {
                    0.0
                } else {
                    v
                }
            });
            Arc::new(floats)
        }
        DataType::Struct(fields) if has_floats(values.data_type()) => {
            let records = values.as_struct();
            let columns = records.columns().iter().map(normalised).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, records.nulls().cloned())?)
        }
        DataType::List(field) if has_floats(values.data_type()) => {
            let lists = values.as_list::<i32>();
            let inner = normalised(lists.values())?;
            Arc::new(ListArray::try_new(Arc::clone(field), lists.offsets().clone(), inner, lists.nulls().cloned())?)
        }
        _ => Arc::clone(values),
    })
}

fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float32 | DataType::Float64 => true,
        DataType::List(field) => has_floats(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        _ => false,
    }
}
