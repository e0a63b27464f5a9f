//! `listagg` and `string_agg`: strings joined by a delimiter, in the order of arrival or of `WITHIN GROUP (ORDER BY key)`.
//!
//! With `WITHIN GROUP` the planner puts the key before the other arguments. NULLs are left out; no string at all gives NULL.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;

use super::definition::{Kind, arity, constant, list_of, plain, wrong_type};
use super::ordering::SortKeys;
use super::values::{Values, given_rows, lists};

/// Strings joined by a constant delimiter, which is empty when not given.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Listagg;

impl Kind for Listagg {
    fn coerce(&self, name: &str, args: &[DataType]) -> Result<Vec<DataType>> {
        arity(name, args, 1, 3)?;
        if args[0].is_nested() {
            return wrong_type(name, 0, "a STRING", &args[0]);
        }
        // The first argument may be the key; it is made a string later if it is not.
        let rest = args.iter().skip(1).map(|_| DataType::Utf8);
        Ok(std::iter::once(plain(&args[0])).chain(rest).collect())
    }

    fn returns(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn state(&self, args: &[DataType], _returns: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        Ok(vec![("values", list_of(DataType::Utf8)), ("keys", list_of(args[0].clone()))])
    }

    fn accumulator(&self, args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let order = args.order_bys.first().map(|order| order.options.descending);
        let value = usize::from(order.is_some());
        let delimiter = match constant(args, value + 1)? {
            None => String::new(),
            Some(ScalarValue::Utf8(delimiter)) => delimiter.unwrap_or_default(),
            Some(other) => return plan_err!("the delimiter of `{}` must be a string, not `{other}`", args.name),
        };
        let key = args.expr_fields[0].data_type();
        Ok(Box::new(ListaggAccumulator {
            delimiter,
            value,
            descending: order == Some(true),
            values: Values::new(&DataType::Utf8),
            keys: Values::new(key),
            sort: SortKeys::new(key)?,
        }))
    }

    fn takes_within_group(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct ListaggAccumulator {
    delimiter: String,
    /// The column of the strings; a key is in column 0 if this is 1.
    value: usize,
    descending: bool,
    values: Values,
    keys: Values,
    sort: SortKeys,
}

impl ListaggAccumulator {
    fn has_keys(&self) -> bool {
        self.value == 1
    }

    fn order(&mut self, count: usize) -> Result<Vec<usize>> {
        let mut order: Vec<usize> = (0..count).collect();
        if self.has_keys() {
            let keys = self.sort.encode(&self.keys.array()?)?;
            order.sort_by(
                |&a, &b| {
                    if self.descending { keys.row(b).cmp(&keys.row(a)) } else { keys.row(a).cmp(&keys.row(b)) }
                },
            );
        }
        Ok(order)
    }
}

impl Accumulator for ListaggAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let strings = cast(&values[self.value], &DataType::Utf8)?;
        let rows: Vec<u32> = given_rows(&strings).collect();
        if self.has_keys() {
            self.keys.append(&values[0], rows.clone())?;
        }
        self.values.append(&strings, rows)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for (strings, keys) in lists(&states[0]).zip(lists(&states[1])) {
            if self.has_keys() {
                self.keys.append(&keys, (0..).take(keys.len()).collect())?;
            }
            self.values.append(&strings, (0..).take(strings.len()).collect())?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let strings = self.values.array()?;
        let order = self.order(strings.len())?;
        let strings = strings.as_string::<i32>();
        let parts: Vec<&str> = order.into_iter().map(|row| strings.value(row)).collect();
        Ok(ScalarValue::Utf8((!parts.is_empty()).then(|| parts.join(&self.delimiter))))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.values.list()?, self.keys.list()?])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.bytes() + self.keys.bytes() + self.sort.bytes()
    }
}
