//! `avg`, `mean`, `try_avg`, `regr_avgx` and `regr_avgy`.
//!
//! Numbers average to DOUBLE; DECIMAL(p, s) to DECIMAL(p + 4, s + 4), rounded half up; durations to a duration.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Float64Array, Int64Array, PrimitiveArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowNativeTypeOp, DataType, Decimal128Type, DurationMicrosecondType, Float64Type, Int64Type, i256,
};
use datafusion::common::Result;
use datafusion::logical_expr::EmitTo;
use datafusion::logical_expr::function::AccumulatorArgs;

use super::definition::{Kind, arity, as_double};
use super::floats::FloatSums;
use super::group_states::{GroupStates, each_row};
use super::sum::{ExactSums, Overflow, decimal_sum, overflowed};
use crate::functions::text::time::interval::{DURATION, half_up};

/// The average of the values that are not null.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Average {
    /// `avg(x)`.
    Of(Overflow),
    /// `regr_avgx(y, x)` (1) and `regr_avgy(y, x)` (0): this argument, over the pairs in which both are given.
    OfPair(usize),
}

impl Kind for Average {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        match (self, args.first()) {
            (Self::Of(_), Some(found @ DataType::Decimal128(..))) if args.len() == 1 => Ok(vec![found.clone()]),
            (Self::Of(_), Some(DataType::Duration(_))) if args.len() == 1 => Ok(vec![DURATION]),
            _ => {
                let wanted = if matches!(self, Self::Of(_)) { 1 } else { 2 };
                arity(name, args, wanted, wanted)?;
                args.iter().enumerate().map(|(index, found)| as_double(name, index, found)).collect()
            }
        }
    }

    fn returns(&self, args: &[DataType]) -> Result<DataType> {
        Ok(match &args[0] {
            DataType::Decimal128(precision, scale) => {
                DataType::Decimal128(precision.saturating_add(4).min(38), scale.saturating_add(4).min(38))
            }
            DataType::Duration(_) => DURATION,
            _ => DataType::Float64,
        })
    }

    fn state(&self, args: &[DataType], _returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        let sum = match &args[0] {
            DataType::Decimal128(precision, scale) => decimal_sum(*precision, *scale),
            DataType::Duration(_) => DURATION,
            _ => DataType::Float64,
        };
        // A sum that is NULL although values were counted has overflowed.
        Ok(vec![("sum", sum), ("count", DataType::Int64)])
    }

    fn columnar(&self, args: &AccumulatorArgs) -> Result<Option<Box<dyn GroupStates>>> {
        let overflow = match self {
            Self::Of(Overflow::Wrap) => Overflow::Null,
            Self::Of(overflow) => *overflow,
            Self::OfPair(column) => return Ok(Some(Box::new(DoubleAverages::new(*column)))),
        };
        Ok(Some(match args.expr_fields[0].data_type() {
            DataType::Decimal128(precision, scale) => {
                Box::new(ExactAverages::of_decimals(*precision, *scale, args.return_type(), overflow)?)
            }
            DataType::Duration(_) => Box::new(ExactAverages::new(DurationMean, DURATION, None, &DURATION, overflow)),
            _ => Box::new(DoubleAverages::new(0)),
        }))
    }
}

fn take_counts(counts: &mut Vec<i64>, emit: EmitTo) -> Vec<i64> {
    emit.take_needed(counts)
}

#[derive(Debug)]
struct DoubleAverages {
    column: usize,
    sums: FloatSums,
    counts: Vec<i64>,
}

impl DoubleAverages {
    fn new(column: usize) -> Self {
        Self { column, sums: FloatSums::default(), counts: Vec::new() }
    }
}

impl GroupStates for DoubleAverages {
    fn fresh(&self) -> Box<dyn GroupStates> {
        Box::new(Self::new(self.column))
    }

    fn grow(&mut self, groups: usize) {
        self.sums.grow(groups);
        if self.counts.len() < groups {
            self.counts.resize(groups, 0);
        }
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>) -> Result<()> {
        let nulls = values.iter().fold(None, |nulls, array| NullBuffer::union(nulls.as_ref(), array.nulls()));
        let values = values[self.column].as_primitive::<Float64Type>();
        each_row(nulls.as_ref(), filter, groups, |row, group| {
            self.sums.add(group, values.value(row));
            self.counts[group] += 1;
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let sums = states[0].as_primitive::<Float64Type>();
        let counts = states[1].as_primitive::<Int64Type>();
        each_row(sums.nulls(), None, groups, |row, group| {
            self.sums.merge(group, sums.value(row));
            self.counts[group] = self.counts[group].saturating_add(counts.value(row));
            Ok(())
        })
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let sums = Float64Array::from(self.sums.take(emit));
        Ok(vec![Arc::new(sums), Arc::new(Int64Array::from(take_counts(&mut self.counts, emit)))])
    }

    fn results(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let sums = self.sums.take(emit).into_iter();
        let averages = sums.zip(take_counts(&mut self.counts, emit)).map(|(sum, count)| Some(sum? / count as f64));
        Ok(Arc::new(averages.collect::<Float64Array>()))
    }

    fn bytes(&self) -> usize {
        self.sums.bytes() + self.counts.capacity() * size_of::<i64>()
    }
}

/// What a sum and a count give, for sums that overflow rather than round.
trait Mean: Copy + Send + Sync + 'static {
    /// The type of sums and averages.
    type Value: ArrowPrimitiveType;

    /// The average, half up; nothing if it does not fit the result.
    fn of(
        self,
        sum: <Self::Value as ArrowPrimitiveType>::Native,
        count: i64,
    ) -> Option<<Self::Value as ArrowPrimitiveType>::Native>;
}

/// The mean of decimals: the digits of the result, and how many more of them are behind the point than in the sum.
#[derive(Clone, Copy)]
struct DecimalMean {
    precision: u8,
    shift: u32,
}

impl Mean for DecimalMean {
    type Value = Decimal128Type;

    fn of(self, sum: i128, count: i64) -> Option<i128> {
        let shifted = i256::from_i128(sum).mul_checked(i256::from_i128(10_i128.checked_pow(self.shift)?)).ok()?;
        let count = i256::from_i128(i128::from(count));
        let mut quotient = shifted.div_checked(count).ok()?;
        let rest = shifted.mod_checked(count).ok()?;
        let twice = if rest.is_negative() { rest.neg_wrapping() } else { rest };
        if twice.add_wrapping(twice) >= count {
            let away = if shifted.is_negative() { i256::MINUS_ONE } else { i256::ONE };
            quotient = quotient.add_wrapping(away);
        }
        quotient.to_i128().filter(|value| value.unsigned_abs() < 10_u128.pow(u32::from(self.precision)))
    }
}

/// The mean of durations, to a microsecond. Source: Spark's `DivideDTInterval`.
#[derive(Clone, Copy)]
struct DurationMean;

impl Mean for DurationMean {
    type Value = DurationMicrosecondType;

    fn of(self, sum: i64, count: i64) -> Option<i64> {
        i64::try_from(half_up(i128::from(sum), i128::from(count))).ok()
    }
}

struct ExactAverages<M: Mean> {
    mean: M,
    sum: DataType,
    bound: Option<<M::Value as ArrowPrimitiveType>::Native>,
    returns: DataType,
    overflow: Overflow,
    sums: ExactSums<M::Value>,
    counts: Vec<i64>,
}

impl ExactAverages<DecimalMean> {
    fn of_decimals(precision: u8, scale: i8, returns: &DataType, overflow: Overflow) -> Result<Self> {
        let DataType::Decimal128(digits, places) = *returns else { return overflowed(returns) };
        let shift = u32::try_from(i32::from(places) - i32::from(scale)).unwrap_or(0);
        let bound = 10_i128.pow(u32::from(precision.saturating_add(10).min(38)));
        let mean = DecimalMean { precision: digits, shift };
        Ok(Self::new(mean, decimal_sum(precision, scale), Some(bound), returns, overflow))
    }
}

impl<M: Mean> ExactAverages<M> {
    fn new(
        mean: M,
        sum: DataType,
        bound: Option<<M::Value as ArrowPrimitiveType>::Native>,
        returns: &DataType,
        overflow: Overflow,
    ) -> Self {
        let sums = ExactSums::new(&sum, bound, overflow, false);
        Self { mean, sum, bound, returns: returns.clone(), overflow, sums, counts: Vec::new() }
    }
}

impl<M: Mean> GroupStates for ExactAverages<M> {
    fn fresh(&self) -> Box<dyn GroupStates> {
        Box::new(Self::new(self.mean, self.sum.clone(), self.bound, &self.returns, self.overflow))
    }

    fn grow(&mut self, groups: usize) {
        self.sums.grow(groups);
        if self.counts.len() < groups {
            self.counts.resize(groups, 0);
        }
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>) -> Result<()> {
        self.sums.update(values, groups, filter)?;
        each_row(values[0].nulls(), filter, groups, |_, group| {
            self.counts[group] += 1;
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let sums = states[0].as_primitive::<M::Value>();
        let counts = states[1].as_primitive::<Int64Type>();
        let marks = (0..sums.len()).map(|row| sums.is_null(row) && counts.is_valid(row) && counts.value(row) > 0);
        let overflowed = BooleanArray::from(marks.collect::<Vec<bool>>());
        self.sums.merge_sums(sums, Some(&overflowed), groups)?;
        each_row(counts.nulls(), None, groups, |row, group| {
            self.counts[group] = self.counts[group].saturating_add(counts.value(row));
            Ok(())
        })
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, _) = self.sums.take(emit);
        Ok(vec![Arc::new(sums), Arc::new(Int64Array::from(take_counts(&mut self.counts, emit)))])
    }

    fn results(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let (sums, _) = self.sums.take(emit);
        let counts = take_counts(&mut self.counts, emit);
        let mut averages = Vec::with_capacity(counts.len());
        for (sum, count) in sums.iter().zip(counts) {
            let average = sum.filter(|_| count > 0).map(|sum| self.mean.of(sum, count));
            match average {
                Some(None) if self.overflow == Overflow::Fail => return overflowed(&self.returns),
                average => averages.push(average.flatten()),
            }
        }
        let averages = averages.into_iter().collect::<PrimitiveArray<M::Value>>();
        Ok(Arc::new(averages.with_data_type(self.returns.clone())))
    }

    fn bytes(&self) -> usize {
        self.sums.bytes() + self.counts.capacity() * size_of::<i64>()
    }
}
