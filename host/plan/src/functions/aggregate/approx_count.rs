//! `approx_count_distinct(x [, deviation])`: about how many distinct values that are not NULL.
//!
//! Values are hashed with xxhash64, seed 42, as the function `xxhash64` does, so the estimate is the same everywhere.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};
use datafusion_spark::function::hash::xxhash64::SparkXxhash64;

use super::definition::{Kind, arity, as_double, constant, plain, wrong_type};
use super::hyperloglog::{HyperLogLog, precision};
use super::ordering::normal;
use super::values::given_rows;

const DEFAULT_PRECISION: u32 = 9;

/// About how many distinct values.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ApproxCountDistinct;

impl Kind for ApproxCountDistinct {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        arity(name, args, 1, 2)?;
        if let DataType::Map(..) = &args[0] {
            return wrong_type(name, 0, "of a type that can be hashed", &args[0]);
        }
        let mut coerced = vec![plain(&args[0])];
        if let Some(deviation) = args.get(1) {
            coerced.push(as_double(name, 1, deviation)?);
        }
        Ok(coerced)
    }

    fn returns(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn nullable(&self) -> bool {
        false
    }

    fn state(&self, _args: &[DataType], _returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        Ok(vec![("registers", DataType::Binary)])
    }

    fn accumulator(&self, args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let precision = match constant(args, 1)? {
            None => Some(DEFAULT_PRECISION),
            Some(ScalarValue::Float64(Some(deviation))) => precision(deviation),
            Some(_) => None,
        };
        let Some(precision) = precision else {
            return plan_err!(
                "[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] the deviation of `{}` must be between 0.0003 and 0.39",
                args.name
            );
        };
        Ok(Box::new(DistinctAccumulator { precision, set: HyperLogLog::new(precision), hash: SparkXxhash64::new() }))
    }

    fn empty(&self, _returns: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(Some(0)))
    }

    fn ignores_distinct(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct DistinctAccumulator {
    precision: u32,
    set: HyperLogLog,
    hash: SparkXxhash64,
}

impl DistinctAccumulator {
    fn hashes(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let values = normal(values)?;
        let rows = values.len();
        let args = ScalarFunctionArgs {
            arg_fields: vec![Arc::new(Field::new("value", values.data_type().clone(), true))],
            args: vec![ColumnarValue::Array(values)],
            number_rows: rows,
            return_field: Arc::new(Field::new("hash", DataType::Int64, false)),
            config_options: Arc::new(ConfigOptions::default()),
        };
        self.hash.invoke_with_args(args)?.into_array(rows)
    }
}

impl Accumulator for DistinctAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if values[0].logical_null_count() == values[0].len() {
            return Ok(());
        }
        let hashes = self.hashes(&values[0])?;
        let hashes = hashes.as_primitive::<Int64Type>();
        for row in given_rows(&values[0]) {
            self.set.insert(hashes.value(row as usize) as u64);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for bytes in states[0].as_binary::<i32>().iter().flatten() {
            let Some(stored) = HyperLogLog::from_bytes(self.precision, bytes) else {
                return exec_err!("stored state of approx_count_distinct cannot be read");
            };
            self.set.merge(&stored);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(Some(self.set.estimate())))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Binary(Some(self.set.to_bytes()))])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.set.bytes()
    }
}
