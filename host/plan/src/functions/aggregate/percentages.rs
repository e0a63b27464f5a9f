//! The constant percentages of the percentile functions: one number or an array of them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::AccumulatorArgs;

use super::definition::{as_double, constant, list_of};
use super::values::list;

/// Which percentiles are wanted.
#[derive(Debug, Clone)]
pub(super) struct Percentages {
    values: Vec<f64>,
    many: bool,
}

impl Percentages {
    /// The type that the argument is cast to.
    pub(super) fn coerce(name: &str, index: usize, found: &DataType) -> Result<DataType> {
        match found {
            DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                Ok(list_of(as_double(name, index, field.data_type())?))
            }
            other => as_double(name, index, other),
        }
    }

    /// The result type: `element`, or a list of it for an array of percentages.
    pub(super) fn returns(percentages: &DataType, element: DataType) -> DataType {
        if percentages.is_nested() { list_of(element) } else { element }
    }

    /// One percentage.
    pub(super) fn one(value: f64) -> Self {
        Self { values: vec![value], many: false }
    }

    /// Reads the constant argument at `index`.
    pub(super) fn read(args: &AccumulatorArgs, index: usize) -> Result<Self> {
        let null =
            || plan_err!("[DATATYPE_MISMATCH.UNEXPECTED_NULL] the percentage of `{}` must not be NULL", args.name);
        let Some(value) = constant(args, index)? else { return null() };
        let percentages = match value {
            ScalarValue::Float64(Some(value)) => Self::one(value),
            ScalarValue::List(lists) if lists.is_valid(0) => {
                let values = lists.value(0);
                let values = values.as_primitive::<Float64Type>();
                if values.null_count() > 0 {
                    return null();
                }
                Self { values: values.values().to_vec(), many: true }
            }
            _ => return null(),
        };
        match percentages.values.iter().find(|value| !(0.0..=1.0).contains(*value)) {
            Some(value) => plan_err!(
                "[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] the percentage of `{}` must be between 0.0 and 1.0, not `{value}`",
                args.name
            ),
            None => Ok(percentages),
        }
    }

    /// The percentages.
    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    /// The result from the percentiles in the order of [`Percentages::values`], which already have the result's type.
    pub(super) fn result(&self, percentiles: ArrayRef) -> Result<ScalarValue> {
        if self.many { list(Arc::clone(&percentiles)) } else { ScalarValue::try_from_array(&percentiles, 0) }
    }
}
