//! `count`, `count_if` and `regr_count`: how many rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::EmitTo;
use datafusion::logical_expr::function::AccumulatorArgs;

use super::definition::{Kind, arity, as_double, wrong_type};
use super::group_states::{GroupStates, each_row};

/// Which rows are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Count {
    /// `count(a, b, …)`: rows in which no argument is null. `count(*)` comes as the count of a constant.
    NonNull,
    /// `count_if(condition)`: rows in which the condition holds.
    True,
    /// `regr_count(y, x)`: rows in which both numbers are given.
    Pairs,
}

impl Kind for Count {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        match self {
            Self::NonNull => arity(name, args, 1, usize::MAX).map(|()| args.to_vec()),
            Self::True => {
                arity(name, args, 1, 1)?;
                match &args[0] {
                    DataType::Boolean | DataType::Null => Ok(vec![DataType::Boolean]),
                    other => wrong_type(name, 0, "a BOOLEAN", other),
                }
            }
            Self::Pairs => {
                arity(name, args, 2, 2)?;
                args.iter().enumerate().map(|(index, found)| as_double(name, index, found)).collect()
            }
        }
    }

    fn returns(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn nullable(&self) -> bool {
        false
    }

    fn state(&self, _args: &[DataType], _returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        Ok(vec![("count", DataType::Int64)])
    }

    fn columnar(&self, _args: &AccumulatorArgs) -> Result<Option<Box<dyn GroupStates>>> {
        Ok(Some(Box::new(Counts { what: *self, counts: Vec::new() })))
    }

    fn empty(&self, _returns: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(Some(0)))
    }
}

struct Counts {
    what: Count,
    counts: Vec<i64>,
}

impl GroupStates for Counts {
    fn fresh(&self) -> Box<dyn GroupStates> {
        Box::new(Self { what: self.what, counts: Vec::new() })
    }

    fn grow(&mut self, groups: usize) {
        if self.counts.len() < groups {
            self.counts.resize(groups, 0);
        }
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>) -> Result<()> {
        let nulls =
            values.iter().fold(None, |nulls, array| NullBuffer::union(nulls.as_ref(), array.logical_nulls().as_ref()));
        let holds = (self.what == Count::True).then(|| values[0].as_boolean());
        each_row(nulls.as_ref(), filter, groups, |row, group| {
            if holds.is_none_or(|holds| holds.value(row)) {
                self.counts[group] += 1;
            }
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let counts = states[0].as_primitive::<Int64Type>();
        each_row(counts.nulls(), None, groups, |row, group| {
            self.counts[group] = self.counts[group].saturating_add(counts.value(row));
            Ok(())
        })
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.results(emit)?])
    }

    fn results(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        Ok(Arc::new(Int64Array::from(emit.take_needed(&mut self.counts))))
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<i64>()
    }
}
