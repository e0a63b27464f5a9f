//! `min`, `max`, `min_by` and `max_by`.
//!
//! The order is the one of [`super::ordering`]. Flat types other than floating point go to DataFusion's own accumulators.
//! Of equal values `min` and `max` keep the first, `min_by` and `max_by` the last.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::OwnedRow;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, EmitTo, GroupsAccumulator};

use super::definition::{Kind, arity, plain, wrong_type};
use super::group_states::{GroupStates, Grouped, SingleGroup, each_row};
use super::ordering::SortKeys;
use super::values::given_rows;

/// Which end of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
}

/// `min(x)` and `max(x)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Extreme(pub(super) End);

fn refuse_unordered(name: &str, index: usize, data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Map(..) => wrong_type(name, index, "of a type with an order", data_type),
        DataType::List(field) => refuse_unordered(name, index, field.data_type()),
        DataType::Struct(fields) => {
            fields.iter().try_for_each(|field| refuse_unordered(name, index, field.data_type()))
        }
        _ => Ok(()),
    }
}

impl Extreme {
    fn flat(&self) -> Arc<AggregateUDF> {
        match self.0 {
            End::Min => min_udaf(),
            End::Max => max_udaf(),
        }
    }

    fn floats(&self, data_type: &DataType) -> Option<Box<dyn GroupStates>> {
        match data_type {
            DataType::Float64 => {
                Some(Box::new(FloatExtremes::<Float64Type>::new(self.0, |a, b| (b.is_nan() && !a.is_nan()) || a < b)))
            }
            DataType::Float32 => {
                Some(Box::new(FloatExtremes::<Float32Type>::new(self.0, |a, b| (b.is_nan() && !a.is_nan()) || a < b)))
            }
            _ => None,
        }
    }
}

impl Kind for Extreme {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        arity(name, args, 1, 1)?;
        refuse_unordered(name, 0, &args[0])?;
        Ok(vec![plain(&args[0])])
    }

    fn returns(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn state(&self, _args: &[DataType], returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        Ok(vec![("value", returns.clone())])
    }

    fn accumulator(&self, args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = args.return_type();
        if let Some(floats) = self.floats(data_type) {
            return Ok(Box::new(SingleGroup::new(floats)));
        }
        if data_type.is_nested() {
            return Ok(Box::new(KeyedExtreme::new(self.0, data_type, data_type, false)?));
        }
        self.flat().accumulator(args.clone())
    }

    fn groups(&self, args: &AccumulatorArgs) -> Result<Option<Box<dyn GroupsAccumulator>>> {
        let data_type = args.return_type();
        if let Some(floats) = self.floats(data_type) {
            return Ok(Some(Box::new(Grouped::new(floats))));
        }
        let flat = self.flat();
        if data_type.is_nested() || !flat.groups_accumulator_supported(args.clone()) {
            return Ok(None);
        }
        flat.create_groups_accumulator(args.clone()).map(Some)
    }

    fn ignores_distinct(&self) -> bool {
        true
    }
}

/// `min_by(value, order)` and `max_by(value, order)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ExtremeBy(pub(super) End);

impl Kind for ExtremeBy {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        arity(name, args, 2, 2)?;
        refuse_unordered(name, 1, &args[1])?;
        Ok(args.iter().map(plain).collect())
    }

    fn returns(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn state(&self, args: &[DataType], _returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        Ok(vec![("value", args[0].clone()), ("order", args[1].clone())])
    }

    fn accumulator(&self, args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let order = args.expr_fields[1].data_type();
        Ok(Box::new(KeyedExtreme::new(self.0, args.return_type(), order, true)?))
    }

    fn ignores_distinct(&self) -> bool {
        true
    }
}

struct FloatExtremes<T: ArrowPrimitiveType> {
    end: End,
    less: fn(T::Native, T::Native) -> bool,
    values: Vec<Option<T::Native>>,
}

impl<T: ArrowPrimitiveType> FloatExtremes<T> {
    fn new(end: End, less: fn(T::Native, T::Native) -> bool) -> Self {
        Self { end, less, values: Vec::new() }
    }
}

impl<T: ArrowPrimitiveType> GroupStates for FloatExtremes<T> {
    fn fresh(&self) -> Box<dyn GroupStates> {
        Box::new(Self::new(self.end, self.less))
    }

    fn grow(&mut self, groups: usize) {
        if self.values.len() < groups {
            self.values.resize(groups, None);
        }
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        each_row(values.nulls(), filter, groups, |row, group| {
            let value = values.value(row);
            let better = match (self.values[group], self.end) {
                (None, _) => true,
                (Some(old), End::Min) => (self.less)(value, old),
                (Some(old), End::Max) => (self.less)(old, value),
            };
            if better {
                self.values[group] = Some(value);
            }
            Ok(())
        })
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.update(states, groups, None)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.results(emit)?])
    }

    fn results(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        Ok(Arc::new(emit.take_needed(&mut self.values).into_iter().collect::<PrimitiveArray<T>>()))
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<Option<T::Native>>()
    }
}

/// The value whose sort key is at the end of the order.
#[derive(Debug)]
struct KeyedExtreme {
    end: End,
    keys: SortKeys,
    /// Whether value and order are two columns; of equal keys the last one then wins.
    by: bool,
    best: Option<OwnedRow>,
    value: ScalarValue,
    order: ScalarValue,
}

impl KeyedExtreme {
    fn new(end: End, value: &DataType, order: &DataType, by: bool) -> Result<Self> {
        let (value, none) = (ScalarValue::try_from(value)?, ScalarValue::try_from(order)?);
        Ok(Self { end, keys: SortKeys::new(order)?, by, best: None, value, order: none })
    }
}

impl Accumulator for KeyedExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let order = &values[usize::from(self.by)];
        if order.logical_null_count() == order.len() {
            return Ok(());
        }
        let keys = self.keys.encode(order)?;
        let mut winner: Option<usize> = None;
        for row in given_rows(order).map(|row| row as usize) {
            let key = keys.row(row);
            let best = match winner {
                Some(winner) => Some(keys.row(winner)),
                None => self.best.as_ref().map(OwnedRow::row),
            };
            let better = best.is_none_or(|best| match self.end {
                End::Min => key < best || (self.by && key == best),
                End::Max => key > best || (self.by && key == best),
            });
            if better {
                winner = Some(row);
            }
        }
        if let Some(winner) = winner {
            self.best = Some(keys.row(winner).owned());
            self.value = own(ScalarValue::try_from_array(&values[0], winner)?);
            if self.by {
                self.order = own(ScalarValue::try_from_array(order, winner)?);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(if self.by { vec![self.value.clone(), self.order.clone()] } else { vec![self.value.clone()] })
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.keys.bytes() + self.value.size() + self.order.size()
    }
}

/// The value without a hold on the batch that it came from.
pub(super) fn own(mut value: ScalarValue) -> ScalarValue {
    value.compact();
    value
}
