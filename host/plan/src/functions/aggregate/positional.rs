//! `first`, `last` and `any_value`: a value by its place among the rows.
//!
//! The order is the one in which rows arrive; batches come in the order of their ids.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;

use super::definition::{Kind, arity, constant, plain, wrong_type};
use super::extremes::own;

/// Which row gives the value. A second, constant argument `true` and `IGNORE NULLS` both leave NULLs out.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// `first`, `first_value`, `any_value`.
    First,
    /// `last`, `last_value`.
    Last,
}

impl Kind for Place {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        arity(name, args, 1, 2)?;
        let mut coerced = vec![plain(&args[0])];
        match args.get(1) {
            None => {}
            Some(DataType::Boolean) => coerced.push(DataType::Boolean),
            Some(other) => return wrong_type(name, 1, "a BOOLEAN", other),
        }
        Ok(coerced)
    }

    fn returns(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn state(&self, _args: &[DataType], returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        Ok(vec![("value", returns.clone()), ("found", DataType::Boolean)])
    }

    fn accumulator(&self, args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let skip = match constant(args, 1)? {
            None => false,
            Some(ScalarValue::Boolean(Some(skip))) => skip,
            Some(other) => {
                return plan_err!(
                    "[DATATYPE_MISMATCH.UNEXPECTED_NULL] argument 2 of `{}` must be true or false, not `{other}`",
                    args.name
                );
            }
        };
        Ok(Box::new(PlaceAccumulator {
            last: matches!(self, Self::Last),
            skip_nulls: skip || args.ignore_nulls,
            value: ScalarValue::try_from(args.return_type())?,
            found: false,
        }))
    }

    fn ignores_distinct(&self) -> bool {
        true
    }

    fn takes_null_treatment(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct PlaceAccumulator {
    last: bool,
    skip_nulls: bool,
    value: ScalarValue,
    found: bool,
}

impl PlaceAccumulator {
    fn take(&mut self, values: &ArrayRef, mut candidate: impl FnMut(usize) -> bool) -> Result<()> {
        if self.found && !self.last {
            return Ok(());
        }
        let row = if self.last {
            (0..values.len()).rev().find(|&row| candidate(row))
        } else {
            (0..values.len()).find(|&row| candidate(row))
        };
        if let Some(row) = row {
            self.value = own(ScalarValue::try_from_array(values, row)?);
            self.found = true;
        }
        Ok(())
    }
}

impl Accumulator for PlaceAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let nulls = if self.skip_nulls { values[0].logical_nulls() } else { None };
        self.take(&values[0], |row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let found = states[1].as_boolean();
        self.take(&states[0], |row| found.is_valid(row) && found.value(row))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), ScalarValue::Boolean(Some(self.found))])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size()
    }
}
