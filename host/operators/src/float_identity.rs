//! Makes floats that SQL calls equal the same bits: -0.0 becomes 0.0, every NaN becomes one NaN.
//!
//! Used wherever values are compared by their bytes: keys of state, sort columns. Values inside structs and lists count
//! too. It does not touch values that are only carried along.

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::error::ArrowError;
use std::sync::Arc;

/// Whether values of this type hold floats.
fn has_floats(kind: &DataType) -> bool {
    match kind {
        DataType::Float32 | DataType::Float64 => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        DataType::List(field) => has_floats(field.data_type()),
        _ => false,
    }
}

/// The array with equal floats made the same bits; other types as they are.
pub(crate) fn unify_floats(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !has_floats(array.data_type()) {
        return Ok(Arc::clone(array));
    }
    Ok(match array.data_type() {
        DataType::Float32 => Arc::new(
            array
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v + 0.0 }),
        ),
        DataType::Float64 => Arc::new(
            array
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v + 0.0 }),
        ),
        DataType::Struct(fields) => {
            let row = array.as_struct();
            let columns = row.columns().iter().map(unify_floats).collect::<Result<Vec<_>, _>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, row.nulls().cloned())?)
        }
        DataType::List(field) => {
            let list = array.as_list::<i32>();
            let values = unify_floats(list.values())?;
            Arc::new(ListArray::try_new(Arc::clone(field), list.offsets().clone(), values, list.nulls().cloned())?)
        }
        _ => Arc::clone(array),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Float64Array;

    #[test]
    fn zeros_and_nans_become_one_of_each() {
        let strange_nan = f64::from_bits(0xfff8_0000_0000_0001);
        let array: ArrayRef = Arc::new(Float64Array::from(vec![Some(-0.0), Some(strange_nan), None, Some(1.5)]));
        let unified = unify_floats(&array).unwrap();
        let unified = unified.as_primitive::<Float64Type>();
        assert_eq!(unified.value(0).to_bits(), 0.0_f64.to_bits());
        assert_eq!(unified.value(1).to_bits(), f64::NAN.to_bits());
        assert!(unified.is_null(2));
        assert_eq!(unified.value(3), 1.5);
    }
}
