//! Plugin functions as functions of DataFusion: one call of the component per batch of rows.
//!
//! A scalar function is a scalar function. A table function is a scalar function that returns a list per row, which
//! the front end unnests: the component gives each result row the number of its input row, and those numbers are
//! the offsets of the lists, so no value is copied.
//!
//! A scalar function under the policy skip or dead-letter must remove rows, which no expression can do: see
//! [`isolate`]. An aggregate function is one of DataFusion's: see [`aggregate`].

mod aggregate;
mod isolate;

pub(crate) use aggregate::{aggregate_function, plugins_of};
pub(crate) use isolate::IsolatePluginFaults;

use crate::PlanError;
use crate::input::QueryInput;
use crate::processor::{KnownProcessor, Processors};
use arrow::array::{ArrayRef, ListArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{DataFusionError, Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use millstream_operators::PluginProcessor;
use millstream_wasm::{FunctionSignature, PluginSlot, RowFault};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Marks a list element whose fields are the columns of a table function.
const ROW: &str = "millstream.row";

/// Whether a list element stands for a row of several columns.
pub(crate) fn is_row(field: &Field) -> bool {
    field.metadata().contains_key(ROW)
}

/// The processors of the query's plugins.
///
/// # Errors
/// When two have one name.
pub(crate) fn processors(input: &QueryInput) -> std::result::Result<Processors, PlanError> {
    let of_slot = |slot: &Arc<PluginSlot>| {
        let component = slot.component();
        let known = component.processors().iter().map(|signature| KnownProcessor {
            plugin: slot.name().to_owned(),
            signature: signature.clone(),
            code: Arc::new(PluginProcessor::new(Arc::clone(slot), &signature.name)),
        });
        known.collect::<Vec<_>>()
    };
    Processors::new(input.plugins.iter().flat_map(of_slot))
}

/// A function of a plugin as a function of SQL.
#[derive(Debug)]
pub(crate) struct PluginFunction {
    slot: Arc<PluginSlot>,
    function: FunctionSignature,
    shape: Shape,
    signature: Signature,
}

/// What the function gives per row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shape {
    /// The value.
    Value,
    /// (value, ok): the row is to be removed where it is not ok.
    Guarded,
    /// The list of result rows; null where the call failed.
    Rows,
}

impl PartialEq for PluginFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.slot, &other.slot) && self.function == other.function && self.shape == other.shape
    }
}

impl Eq for PluginFunction {}

impl Hash for PluginFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.slot.name().hash(state);
        self.function.name.hash(state);
        self.shape.hash(state);
    }
}

/// A scalar function whose faults fail the query, or are taken out by [`isolate`].
pub(crate) fn scalar_function(slot: &Arc<PluginSlot>, function: &FunctionSignature) -> ScalarUDF {
    PluginFunction::udf(slot, function, Shape::Value)
}

/// A table function that returns a list per row.
pub(crate) fn table_function(slot: &Arc<PluginSlot>, function: &FunctionSignature) -> ScalarUDF {
    PluginFunction::udf(slot, function, Shape::Rows)
}

impl PluginFunction {
    fn udf(slot: &Arc<PluginSlot>, function: &FunctionSignature, shape: Shape) -> ScalarUDF {
        let volatility = match function.volatility {
            millstream_wasm::Volatility::Immutable if shape != Shape::Guarded => Volatility::Immutable,
            _ => Volatility::Volatile,
        };
        ScalarUDF::from(Self {
            slot: Arc::clone(slot),
            function: function.clone(),
            shape,
            signature: Signature::user_defined(volatility),
        })
    }

    /// The plugin.
    pub(crate) fn slot(&self) -> &Arc<PluginSlot> {
        &self.slot
    }

    fn element(&self) -> FieldRef {
        match self.function.results.as_slice() {
            [single] => Arc::new(Field::new_list_field(single.data_type().clone(), true)),
            columns => {
                let fields: Fields = columns.iter().map(|column| column.as_ref().clone().with_nullable(true)).collect();
                let field = Field::new_list_field(DataType::Struct(fields), true);
                Arc::new(field.with_metadata(HashMap::from([(ROW.to_owned(), "true".to_owned())])))
            }
        }
    }

    fn value_type(&self) -> DataType {
        self.function.results.first().map_or(DataType::Null, |field| field.data_type().clone())
    }

    fn guarded_fields(&self) -> Fields {
        Fields::from(vec![Field::new("value", self.value_type(), true), Field::new("ok", DataType::Boolean, false)])
    }
}

impl ScalarUDFImpl for PluginFunction {
    fn name(&self) -> &str {
        &self.function.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if types.len() != self.function.arguments.len() {
            return plan_err!(
                "plugin function `{}` takes {} arguments and was given {}: {}",
                self.function.name,
                self.function.arguments.len(),
                types.len(),
                self.function
            );
        }
        Ok(self.function.arguments.iter().map(|argument| argument.data_type().clone()).collect())
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(match self.shape {
            Shape::Value => self.value_type(),
            Shape::Guarded => DataType::Struct(self.guarded_fields()),
            Shape::Rows => DataType::List(self.element()),
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let _ = args;
        Ok(Arc::new(Field::new(self.name(), self.return_type(&[])?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arguments: Vec<ArrayRef> =
            args.args.iter().map(|argument| argument.to_array(rows)).collect::<Result<_>>()?;
        let external = |error| DataFusionError::External(Box::new(error));
        let name = &self.function.name;
        let array = match self.shape {
            Shape::Value => self.slot.call_scalar(name, rows, &arguments).map_err(external)?.values,
            Shape::Guarded => {
                let outcome = self.slot.call_scalar(name, rows, &arguments).map_err(external)?;
                let ok = Arc::new(arrow::array::BooleanArray::from(ok_rows(rows, &outcome.faults)));
                Arc::new(StructArray::try_new(self.guarded_fields(), vec![outcome.values, ok], None)?)
            }
            Shape::Rows => {
                let outcome = self.slot.call_table(name, rows, &arguments).map_err(external)?;
                let offsets = list_offsets(rows, outcome.input_rows.values())?;
                let element = self.element();
                let values: ArrayRef = match (outcome.columns.as_slice(), element.data_type()) {
                    ([single], _) => Arc::clone(single),
                    (columns, DataType::Struct(fields)) => {
                        Arc::new(StructArray::try_new(fields.clone(), columns.to_vec(), None)?)
                    }
                    _ => return exec_err!("plugin function `{name}` has no result columns"),
                };
                let nulls = (!outcome.faults.is_empty()).then(|| NullBuffer::from(ok_rows(rows, &outcome.faults)));
                Arc::new(ListArray::try_new(element, offsets, values, nulls)?) as ArrayRef
            }
        };
        Ok(ColumnarValue::Array(array))
    }
}

fn ok_rows(rows: usize, faults: &[RowFault]) -> Vec<bool> {
    let mut ok = vec![true; rows];
    for fault in faults {
        if let Some(flag) = ok.get_mut(fault.row as usize) {
            *flag = false;
        }
    }
    ok
}

/// The offsets of the lists whose elements belong to the input rows `input_rows`, ascending.
fn list_offsets(rows: usize, input_rows: &[u32]) -> Result<OffsetBuffer<i32>> {
    if i32::try_from(input_rows.len()).is_err() {
        return exec_err!("a table function gave {} rows for one batch, more than a list can hold", input_rows.len());
    }
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(0_i32);
    let mut next = 0;
    for row in 0..rows as u32 {
        while next < input_rows.len() && input_rows[next] == row {
            next += 1;
        }
        offsets.push(next as i32);
    }
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_rows_become_list_offsets() {
        let offsets = list_offsets(4, &[0, 0, 2, 3, 3, 3]).unwrap();
        assert_eq!(offsets.as_ref(), &[0, 2, 2, 3, 6]);
        assert_eq!(list_offsets(2, &[]).unwrap().as_ref(), &[0, 0, 0]);
    }
}
