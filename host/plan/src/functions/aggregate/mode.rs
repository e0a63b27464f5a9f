//! `mode`: the most frequent value that is not NULL; of several the smallest, or the first of `WITHIN GROUP (ORDER BY …)`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;

use super::definition::{Kind, arity, list_of, plain, wrong_type};
use super::ordering::SortKeys;
use super::values::{Values, given_rows, list, lists};

/// The most frequent value.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Mode;

impl Kind for Mode {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        arity(name, args, 1, 2)?;
        if let DataType::Map(..) = &args[0] {
            return wrong_type(name, 0, "of a type that can be compared", &args[0]);
        }
        // `mode(x, true)` asks for a result that does not depend on chance; it never does here.
        match args.get(1) {
            None => Ok(vec![plain(&args[0])]),
            Some(DataType::Boolean) => Ok(vec![plain(&args[0]), DataType::Boolean]),
            Some(other) => wrong_type(name, 1, "a BOOLEAN", other),
        }
    }

    fn returns(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn state(&self, _args: &[DataType], returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        Ok(vec![("values", list_of(returns.clone())), ("counts", list_of(DataType::Int64))])
    }

    fn accumulator(&self, args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let element = args.return_type();
        Ok(Box::new(ModeAccumulator {
            descending: args.order_bys.first().is_some_and(|order| order.options.descending),
            element: element.clone(),
            values: Values::new(element),
            counts: Vec::new(),
            keys: SortKeys::new(element)?,
            places: HashMap::new(),
        }))
    }

    fn takes_within_group(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct ModeAccumulator {
    descending: bool,
    element: DataType,
    values: Values,
    counts: Vec<i64>,
    keys: SortKeys,
    places: HashMap<Box<[u8]>, usize>,
}

impl ModeAccumulator {
    fn add(&mut self, values: &ArrayRef, count: impl Fn(usize) -> i64) -> Result<()> {
        let keys = self.keys.encode(values)?;
        let mut new = Vec::new();
        for row in given_rows(values) {
            let key = keys.row(row as usize);
            let more = count(row as usize);
            if let Some(&place) = self.places.get(key.data()) {
                self.counts[place] = self.counts[place].saturating_add(more);
            } else {
                self.places.insert(key.data().into(), self.counts.len());
                self.counts.push(more);
                new.push(row);
            }
        }
        self.values.append(values, new)
    }
}

impl Accumulator for ModeAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], |_| 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for (values, counts) in lists(&states[0]).zip(lists(&states[1])) {
            let counts = counts.as_primitive::<Int64Type>();
            self.add(&values, |row| if row < counts.len() { counts.value(row) } else { 0 })?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let counts = &self.counts;
        let best = self.places.iter().max_by(|(key, place), (other_key, other_place)| {
            let keys = if self.descending { key.cmp(other_key) } else { other_key.cmp(key) };
            counts[**place].cmp(&counts[**other_place]).then(keys)
        });
        match best.map(|(_, &place)| place) {
            Some(place) => ScalarValue::try_from_array(&self.values.array()?, place),
            None => ScalarValue::try_from(&self.element),
        }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let counts: ArrayRef = Arc::new(Int64Array::from(self.counts.clone()));
        Ok(vec![self.values.list()?, list(counts)?])
    }

    fn size(&self) -> usize {
        let keys: usize = self.places.keys().map(|key| key.len() + size_of::<(Box<[u8]>, usize)>()).sum();
        size_of_val(self) + self.values.bytes() + self.keys.bytes() + self.counts.capacity() * size_of::<i64>() + keys
    }
}
