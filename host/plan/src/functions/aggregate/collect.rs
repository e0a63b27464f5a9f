//! `collect_list`, `array_agg` and `collect_set`: the values themselves, without NULLs.
//!
//! Both keep the order in which values came. A set keeps the first of equal values; NaN equals NaN, -0.0 equals 0.0.

use std::collections::HashSet;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;

use super::definition::{Kind, arity, list_of, plain, wrong_type};
use super::ordering::SortKeys;
use super::values::{Values, given_rows, list, lists};

/// What is collected.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Collect {
    /// Every value.
    List,
    /// Every value once.
    Set,
}

impl Kind for Collect {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        arity(name, args, 1, 1)?;
        match (self, &args[0]) {
            (Self::Set, found @ DataType::Map(..)) => wrong_type(name, 0, "of a type that can be compared", found),
            (_, found) => Ok(vec![plain(found)]),
        }
    }

    fn returns(&self, args: &[DataType]) -> Result<DataType> {
        Ok(list_of(args[0].clone()))
    }

    fn nullable(&self) -> bool {
        false
    }

    fn state(&self, _args: &[DataType], returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        Ok(vec![("values", returns.clone())])
    }

    fn accumulator(&self, args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let element = args.expr_fields[0].data_type();
        let values = Values::new(element);
        Ok(match self {
            Self::List => Box::new(CollectList { values }),
            Self::Set => Box::new(CollectSet { values, keys: SortKeys::new(element)?, seen: HashSet::new() }),
        })
    }

    fn empty(&self, returns: &DataType) -> Result<ScalarValue> {
        match returns {
            DataType::List(field) => list(arrow::array::new_empty_array(field.data_type())),
            other => ScalarValue::try_from(other),
        }
    }

    fn ignores_distinct(&self) -> bool {
        *self == Self::Set
    }
}

#[derive(Debug)]
struct CollectList {
    values: Values,
}

impl Accumulator for CollectList {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.append(&values[0], given_rows(&values[0]).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        lists(&states[0]).try_for_each(|values| self.update_batch(&[values]))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.values.list()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.values.list()?])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.bytes()
    }
}

#[derive(Debug)]
struct CollectSet {
    values: Values,
    keys: SortKeys,
    seen: HashSet<Box<[u8]>>,
}

impl Accumulator for CollectSet {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let keys = self.keys.encode(&values[0])?;
        let mut new = Vec::new();
        for row in given_rows(&values[0]) {
            let key = keys.row(row as usize);
            if !self.seen.contains(key.data()) {
                self.seen.insert(key.data().into());
                new.push(row);
            }
        }
        self.values.append(&values[0], new)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        lists(&states[0]).try_for_each(|values| self.update_batch(&[values]))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.values.list()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.values.list()?])
    }

    fn size(&self) -> usize {
        let keys: usize = self.seen.iter().map(|key| key.len() + size_of::<Box<[u8]>>()).sum();
        size_of_val(self) + self.values.bytes() + self.keys.bytes() + keys
    }
}
