//! `percentile_approx` and `approx_percentile`: percentiles within an error of rank of `1 / accuracy`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;

use super::definition::{Kind, arity, as_double, constant, wrong_type};
use super::percentages::Percentages;
use super::quantiles::Quantiles;

const DEFAULT_ACCURACY: i64 = 10_000;

/// `percentile_approx(x, percentage [, accuracy])`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PercentileApprox;

impl Kind for PercentileApprox {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        arity(name, args, 2, 3)?;
        let value = match &args[0] {
            found @ (DataType::Date32 | DataType::Timestamp(..) | DataType::Duration(_)) => found.clone(),
            found if found.is_numeric() => found.clone(),
            found => as_double(name, 0, found)?,
        };
        let mut coerced = vec![value, Percentages::coerce(name, 1, &args[1])?];
        match args.get(2) {
            None => {}
            Some(accuracy) if accuracy.is_integer() => coerced.push(DataType::Int64),
            Some(other) => return wrong_type(name, 2, "a whole number", other),
        }
        Ok(coerced)
    }

    fn returns(&self, args: &[DataType]) -> Result<DataType> {
        Ok(Percentages::returns(&args[1], args[0].clone()))
    }

    fn state(&self, _args: &[DataType], _returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        Ok(vec![("summary", DataType::Binary)])
    }

    fn accumulator(&self, args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let accuracy = match constant(args, 2)? {
            None => DEFAULT_ACCURACY,
            Some(ScalarValue::Int64(Some(accuracy))) if (1..=i64::from(i32::MAX)).contains(&accuracy) => accuracy,
            Some(other) => {
                return plan_err!(
                    "[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] the accuracy of `{}` must be between 1 and {}, not `{other}`",
                    args.name,
                    i32::MAX
                );
            }
        };
        let error = 1.0 / accuracy as f64;
        Ok(Box::new(ApproxAccumulator {
            percentages: Percentages::read(args, 1)?,
            element: args.expr_fields[0].data_type().clone(),
            returns: args.return_type().clone(),
            error,
            merged: Quantiles::new(error),
            rows: Quantiles::new(error),
        }))
    }
}

#[derive(Debug)]
struct ApproxAccumulator {
    percentages: Percentages,
    element: DataType,
    returns: DataType,
    error: f64,
    merged: Quantiles,
    /// The rows of this batch, which join the merged states when those are read.
    rows: Quantiles,
}

/// The whole number type that dates and times are made of, if this is one of them.
fn ticks(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Date32 => Some(DataType::Int32),
        DataType::Timestamp(..) | DataType::Duration(_) => Some(DataType::Int64),
        _ => None,
    }
}

impl ApproxAccumulator {
    fn settle(&mut self) {
        let rows = std::mem::replace(&mut self.rows, Quantiles::new(self.error));
        self.merged.join_rows(rows);
    }
}

impl Accumulator for ApproxAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let numbers = match ticks(values[0].data_type()) {
            Some(ticks) => cast(&cast(&values[0], &ticks)?, &DataType::Float64)?,
            None => cast(&values[0], &DataType::Float64)?,
        };
        numbers.as_primitive::<Float64Type>().iter().flatten().for_each(|value| self.rows.insert(value));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for bytes in states[0].as_binary::<i32>().iter().flatten() {
            let Some(stored) = Quantiles::from_bytes(self.error, bytes) else {
                return exec_err!("stored state of percentile_approx cannot be read");
            };
            self.merged.merge(stored);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.settle();
        if self.merged.is_empty() {
            return ScalarValue::try_from(&self.returns);
        }
        let percentiles = self.merged.query(self.percentages.values()).unwrap_or_default();
        let percentiles: ArrayRef = Arc::new(Float64Array::from(percentiles));
        self.percentages.result(match ticks(&self.element) {
            Some(ticks) => cast(&cast(&percentiles, &ticks)?, &self.element)?,
            None => cast(&percentiles, &self.element)?,
        })
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.settle();
        Ok(vec![ScalarValue::Binary(Some(self.merged.to_bytes()))])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.merged.bytes() + self.rows.bytes()
    }
}
