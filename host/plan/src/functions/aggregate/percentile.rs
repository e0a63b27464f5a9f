//! `percentile`, `median`, `percentile_cont` and `percentile_disc`: exact percentiles.
//!
//! Every distinct value is kept with its count, so the state grows with the number of distinct values.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;

use super::definition::{Kind, arity, as_double, list_of, wrong_type};
use super::ordering::normal_double;
use super::percentages::Percentages;
use super::values::{list, lists};

/// Which percentile function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Percentile {
    /// `percentile(x, percentage [, frequency])`.
    Weighted,
    /// `median(x)`.
    Median,
    /// `percentile_cont(percentage) WITHIN GROUP (ORDER BY x)`.
    Continuous,
    /// `percentile_disc(percentage) WITHIN GROUP (ORDER BY x)`: always one of the values.
    Discrete,
}

impl Kind for Percentile {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        match self {
            Self::Median => arity(name, args, 1, 1)?,
            Self::Weighted => arity(name, args, 2, 3)?,
            Self::Continuous | Self::Discrete => arity(name, args, 2, 2)?,
        }
        let mut coerced = vec![as_double(name, 0, &args[0])?];
        if let Some(percentage) = args.get(1) {
            coerced.push(Percentages::coerce(name, 1, percentage)?);
        }
        match args.get(2) {
            None => {}
            Some(frequency) if frequency.is_integer() || frequency.is_null() => coerced.push(DataType::Int64),
            Some(other) => return wrong_type(name, 2, "a whole number", other),
        }
        Ok(coerced)
    }

    fn returns(&self, args: &[DataType]) -> Result<DataType> {
        let percentages = args.get(1).unwrap_or(&DataType::Float64);
        Ok(Percentages::returns(percentages, DataType::Float64))
    }

    fn state(&self, _args: &[DataType], _returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        Ok(vec![("values", list_of(DataType::Float64)), ("counts", list_of(DataType::Int64))])
    }

    fn accumulator(&self, args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let percentages = if *self == Self::Median { Percentages::one(0.5) } else { Percentages::read(args, 1)? };
        Ok(Box::new(PercentileAccumulator {
            percentages,
            returns: args.return_type().clone(),
            discrete: *self == Self::Discrete,
            weighted: args.exprs.len() == 3,
            descending: args.order_bys.first().is_some_and(|order| order.options.descending),
            counts: BTreeMap::new(),
        }))
    }

    fn takes_within_group(&self) -> bool {
        matches!(self, Self::Continuous | Self::Discrete)
    }
}

/// A double that compares by value, NaN last.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Value(f64);

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[derive(Debug)]
struct PercentileAccumulator {
    percentages: Percentages,
    returns: DataType,
    discrete: bool,
    weighted: bool,
    descending: bool,
    counts: BTreeMap<Value, i64>,
}

impl PercentileAccumulator {
    fn add(&mut self, value: f64, count: i64) -> Result<()> {
        if count < 0 {
            return exec_err!(
                "[INVALID_PARAMETER_VALUE] the frequency of a percentile must not be negative: `{count}`"
            );
        }
        if count > 0 {
            let sum = self.counts.entry(Value(normal_double(value))).or_insert(0);
            *sum = sum.saturating_add(count);
        }
        Ok(())
    }

    /// The values in order, each with the number of values up to and with it.
    fn ranked(&self) -> Vec<(f64, i64)> {
        let mut total = 0_i64;
        let mut rank = |(value, count): (&Value, &i64)| {
            total = total.saturating_add(*count);
            (value.0, total)
        };
        if self.descending {
            self.counts.iter().rev().map(&mut rank).collect()
        } else {
            self.counts.iter().map(&mut rank).collect()
        }
    }

    fn percentile(&self, ranked: &[(f64, i64)], percentage: f64) -> f64 {
        let total = ranked.last().map_or(0, |(_, total)| *total);
        // The value at a position that counts from 0.
        let at = |position: f64| {
            let place = ranked.partition_point(|(_, rank)| (*rank as f64) < position + 1.0);
            ranked[place.min(ranked.len() - 1)].0
        };
        if self.discrete {
            return at(((total as f64 * percentage).ceil() - 1.0).max(0.0));
        }
        let position = (total - 1) as f64 * percentage;
        let (lower, higher) = (position.floor(), position.ceil());
        let (low, high) = (at(lower), at(higher));
        if lower == higher || low == high {
            return low;
        }
        (higher - position) * low + (position - lower) * high
    }
}

impl Accumulator for PercentileAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let numbers = values[0].as_primitive::<Float64Type>();
        let frequencies = self.weighted.then(|| values[2].as_primitive::<Int64Type>());
        for row in (0..numbers.len()).filter(|&row| numbers.is_valid(row)) {
            let count = match frequencies {
                None => 1,
                Some(frequencies) if frequencies.is_null(row) => 0,
                Some(frequencies) => frequencies.value(row),
            };
            self.add(numbers.value(row), count)?;
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for (values, counts) in lists(&states[0]).zip(lists(&states[1])) {
            let (values, counts) = (values.as_primitive::<Float64Type>(), counts.as_primitive::<Int64Type>());
            for (value, count) in values.values().iter().zip(counts.values()) {
                self.add(*value, *count)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.counts.is_empty() {
            return ScalarValue::try_from(&self.returns);
        }
        let ranked = self.ranked();
        let percentages = self.percentages.values().iter();
        let percentiles: Float64Array =
            percentages.map(|&percentage| Some(self.percentile(&ranked, percentage))).collect();
        self.percentages.result(Arc::new(percentiles))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = Float64Array::from_iter_values(self.counts.keys().map(|value| value.0));
        let counts = Int64Array::from_iter_values(self.counts.values().copied());
        Ok(vec![list(Arc::new(values))?, list(Arc::new(counts))?])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.len() * size_of::<(Value, i64)>() * 2
    }
}
