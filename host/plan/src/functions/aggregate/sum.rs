//! `sum` and `try_sum`.
//!
//! Whole numbers add up to BIGINT, DECIMAL(p, s) to DECIMAL(p + 10, s), durations to themselves, everything else to DOUBLE.
//! The exact sums can overflow; [`Overflow`] says what then happens, and the state remembers it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Float64Array, PrimitiveArray};
use arrow::datatypes::{ArrowNativeTypeOp, Decimal128Type, DurationMicrosecondType, Float64Type, Int64Type};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::EmitTo;
use datafusion::logical_expr::function::AccumulatorArgs;

use super::definition::{Kind, arity, as_double};
use super::floats::FloatSums;
use super::group_states::{GroupStates, each_row};

/// What happens when an exact sum leaves its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Overflow {
    /// The batch fails.
    Fail,
    /// The sum is NULL from then on.
    Null,
    /// Whole numbers wrap around. Decimals cannot, they become NULL.
    Wrap,
}

/// The sum of the values that are not null.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Sum(pub(super) Overflow);

/// The type of the sum of DECIMAL(precision, scale).
pub(super) fn decimal_sum(precision: u8, scale: i8) -> DataType {
    DataType::Decimal128(precision.saturating_add(10).min(38), scale)
}

impl Kind for Sum {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        arity(name, args, 1, 1)?;
        let coerced = match &args[0] {
            found if found.is_integer() => DataType::Int64,
            found @ DataType::Decimal128(..) => found.clone(),
            DataType::Duration(_) => DataType::Duration(TimeUnit::Microsecond),
            found => as_double(name, 0, found)?,
        };
        Ok(vec![coerced])
    }

    fn returns(&self, args: &[DataType]) -> Result<DataType> {
        Ok(match &args[0] {
            DataType::Decimal128(precision, scale) => decimal_sum(*precision, *scale),
            other => other.clone(),
        })
    }

    fn state(&self, _args: &[DataType], returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        let mut state = vec![("sum", returns.clone())];
        if self.remembers_overflow(returns) {
            state.push(("overflowed", DataType::Boolean));
        }
        Ok(state)
    }

    fn columnar(&self, args: &AccumulatorArgs) -> Result<Option<Box<dyn GroupStates>>> {
        let returns = args.return_type();
        let remembers = self.remembers_overflow(returns);
        Ok(Some(match returns {
            DataType::Float64 => Box::new(DoubleSums::default()),
            DataType::Decimal128(precision, _) => {
                let bound = 10_i128.pow(u32::from(*precision));
                let overflow = if self.0 == Overflow::Wrap { Overflow::Null } else { self.0 };
                Box::new(ExactSums::<Decimal128Type>::new(returns, Some(bound), overflow, remembers))
            }
            DataType::Duration(_) => {
                Box::new(ExactSums::<DurationMicrosecondType>::new(returns, None, self.0, remembers))
            }
            _ => Box::new(ExactSums::<Int64Type>::new(returns, None, self.0, remembers)),
        }))
    }
}

impl Sum {
    fn remembers_overflow(&self, returns: &DataType) -> bool {
        match returns {
            DataType::Float64 => false,
            DataType::Decimal128(..) => self.0 != Overflow::Fail,
            _ => self.0 == Overflow::Null,
        }
    }
}

/// The error for a sum that left its type.
pub(super) fn overflowed<T>(returns: &DataType) -> Result<T> {
    let name = match returns {
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::Int64 => "BIGINT".to_owned(),
        other => other.to_string(),
    };
    exec_err!("[ARITHMETIC_OVERFLOW] the sum does not fit {name}; use try_sum to get NULL instead")
}

#[derive(Debug, Default)]
struct DoubleSums {
    sums: FloatSums,
}

impl GroupStates for DoubleSums {
    fn fresh(&self) -> Box<dyn GroupStates> {
        Box::new(Self::default())
    }

    fn grow(&mut self, groups: usize) {
        self.sums.grow(groups);
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>) -> Result<()> {
        let values = values[0].as_primitive::<Float64Type>();
        each_row(values.nulls(), filter, groups, |row, group| {
            self.sums.add(group, values.value(row));
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let sums = states[0].as_primitive::<Float64Type>();
        each_row(sums.nulls(), None, groups, |row, group| {
            self.sums.merge(group, sums.value(row));
            Ok(())
        })
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.results(emit)?])
    }

    fn results(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        Ok(Arc::new(Float64Array::from(self.sums.take(emit))))
    }

    fn bytes(&self) -> usize {
        self.sums.bytes()
    }
}

/// Sums that overflow rather than round.
pub(super) struct ExactSums<T: ArrowPrimitiveType> {
    returns: DataType,
    /// The first absolute value that is too large, when that is not a matter of the native type.
    bound: Option<T::Native>,
    overflow: Overflow,
    remembers: bool,
    sums: Vec<Option<T::Native>>,
    overflowed: Vec<bool>,
}

impl<T: ArrowPrimitiveType> ExactSums<T> {
    /// No groups yet. `remembers` adds the column that tells an overflowed sum from an empty one.
    pub(super) fn new(returns: &DataType, bound: Option<T::Native>, overflow: Overflow, remembers: bool) -> Self {
        Self { returns: returns.clone(), bound, overflow, remembers, sums: Vec::new(), overflowed: Vec::new() }
    }

    fn add(&mut self, group: usize, value: T::Native) -> Result<()> {
        let Some(sum) = self.sums[group] else {
            if !self.overflowed[group] {
                self.sums[group] = Some(value);
            }
            return Ok(());
        };
        let fits = |sum: &T::Native| {
            self.bound.is_none_or(|bound| sum.is_lt(bound) && sum.is_gt(T::Native::ZERO.sub_wrapping(bound)))
        };
        match (sum.add_checked(value).ok().filter(fits), self.overflow) {
            (Some(sum), _) => self.sums[group] = Some(sum),
            (None, Overflow::Fail) => return overflowed(&self.returns),
            (None, Overflow::Wrap) => self.sums[group] = Some(sum.add_wrapping(value)),
            (None, Overflow::Null) => {
                self.sums[group] = None;
                self.overflowed[group] = true;
            }
        }
        Ok(())
    }

    /// Takes sums and overflow marks out.
    pub(super) fn take(&mut self, emit: EmitTo) -> (PrimitiveArray<T>, BooleanArray) {
        let sums = emit.take_needed(&mut self.sums).into_iter().collect::<PrimitiveArray<T>>();
        let overflowed = BooleanArray::from(emit.take_needed(&mut self.overflowed));
        (sums.with_data_type(self.returns.clone()), overflowed)
    }

    /// Adds stored sums; `overflowed` marks those that are NULL because they overflowed.
    pub(super) fn merge_sums(
        &mut self,
        sums: &PrimitiveArray<T>,
        overflowed: Option<&BooleanArray>,
        groups: &[usize],
    ) -> Result<()> {
        for (row, &group) in groups.iter().enumerate() {
            if overflowed.is_some_and(|marks| marks.is_valid(row) && marks.value(row)) {
                self.sums[group] = None;
                self.overflowed[group] = true;
            } else if sums.is_valid(row) {
                self.add(group, sums.value(row))?;
            }
        }
        Ok(())
    }
}

impl<T: ArrowPrimitiveType> GroupStates for ExactSums<T> {
    fn fresh(&self) -> Box<dyn GroupStates> {
        Box::new(Self::new(&self.returns, self.bound, self.overflow, self.remembers))
    }

    fn grow(&mut self, groups: usize) {
        if self.sums.len() < groups {
            self.sums.resize(groups, None);
            self.overflowed.resize(groups, false);
        }
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        each_row(values.nulls(), filter, groups, |row, group| self.add(group, values.value(row)))
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let overflowed = if self.remembers { Some(states[1].as_boolean()) } else { None };
        self.merge_sums(states[0].as_primitive::<T>(), overflowed, groups)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, overflowed) = self.take(emit);
        let mut state: Vec<ArrayRef> = vec![Arc::new(sums)];
        if self.remembers {
            state.push(Arc::new(overflowed));
        }
        Ok(state)
    }

    fn results(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        Ok(Arc::new(self.take(emit).0))
    }

    fn bytes(&self) -> usize {
        self.sums.capacity() * size_of::<Option<T::Native>>() + self.overflowed.capacity()
    }
}
