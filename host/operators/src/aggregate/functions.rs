//! The aggregate functions: rows into partial states, states into states, states into results.
//!
//! DataFusion's accumulators do the work, one per function for all groups at once; functions that only
//! know single groups come through DataFusion's adapter. What lasts is their exported state, as columns: a step takes
//! accumulators without groups and ends by emitting all groups, which leaves them without groups again. Then they lie
//! ready for the next step; those of a step that failed are dropped. So a function cannot carry anything from batch to
//! batch that is not in the state store.

use crate::row_codec::RowCodec;
use crate::state_family::{PluginColumns, plugin_state};
use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{take, take_arrays};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{GroupsAccumulatorAdapter, PhysicalExprRef};
use datafusion::physical_expr_common::utils::evaluate_expressions_to_arrays;
use std::sync::{Arc, Mutex, PoisonError};

/// One accumulator for each function.
pub(crate) type Accumulators = Vec<Box<dyn GroupsAccumulator>>;

/// The aggregate functions of one operator.
pub(crate) struct Functions {
    functions: Vec<Function>,
    pub(crate) codec: RowCodec,
    /// Accumulators without groups that no step needs now.
    ready: Mutex<Vec<Accumulators>>,
}

struct Function {
    function: Arc<AggregateFunctionExpr>,
    arguments: Vec<PhysicalExprRef>,
    argument_types: Vec<DataType>,
    filter: Option<PhysicalExprRef>,
    state_types: Vec<DataType>,
    state_names: Vec<String>,
    /// Whose state it is and what its columns are there, if a plugin's.
    plugin_state: Option<(PluginColumns, Vec<FieldRef>)>,
}

/// The arguments of every function, and its filter, over the same rows.
pub(crate) struct Arguments(Vec<(Vec<ArrayRef>, Option<BooleanArray>)>);

impl Arguments {
    /// Those of some of the rows.
    pub(crate) fn of_rows(&self, rows: &UInt32Array) -> Result<Self, DataFusionError> {
        let of_function = |(values, filter): &(Vec<ArrayRef>, Option<BooleanArray>)| {
            let filter =
                filter.as_ref().map(|filter| Ok::<_, ArrowError>(take(filter, rows, None)?.as_boolean().clone()));
            Ok((take_arrays(values, rows, None)?, filter.transpose()?))
        };
        self.0.iter().map(of_function).collect::<Result<_, DataFusionError>>().map(Self)
    }
}

impl Functions {
    pub(crate) fn try_new(
        functions: Vec<Arc<AggregateFunctionExpr>>,
        filters: Vec<Option<PhysicalExprRef>>,
        input: &Schema,
    ) -> Result<Self, DataFusionError> {
        if functions.len() != filters.len() {
            let (functions, filters) = (functions.len(), filters.len());
            return Err(DataFusionError::Internal(format!("{filters} filters for {functions} functions")));
        }
        let functions = functions
            .into_iter()
            .zip(filters)
            .map(|(function, filter)| Function::try_new(function, filter, input))
            .collect::<Result<Vec<_>, _>>()?;
        let types = functions.iter().flat_map(|function| function.state_types.iter().cloned()).collect();
        Ok(Self { functions, codec: RowCodec::try_new(types)?, ready: Mutex::default() })
    }

    /// Accumulators without groups.
    pub(crate) fn accumulators(&self) -> Result<Accumulators, DataFusionError> {
        if let Some(ready) = self.ready.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(ready);
        }
        self.functions.iter().map(|function| accumulator(&function.function)).collect()
    }

    pub(crate) fn arguments(&self, rows: &RecordBatch) -> Result<Arguments, DataFusionError> {
        let of_function = |function: &Function| {
            let values = evaluate_expressions_to_arrays(&function.arguments, rows)?;
            let filter = match &function.filter {
                Some(filter) => {
                    let verdict = filter.evaluate(rows)?.into_array_of_size(rows.num_rows())?;
                    Some(verdict.as_boolean().clone())
                }
                None => None,
            };
            Ok((values, filter))
        };
        self.functions.iter().map(of_function).collect::<Result<_, DataFusionError>>().map(Arguments)
    }

    /// Arguments of one row that the filters drop: they make a group known without adding to it.
    pub(crate) fn no_arguments(&self) -> Arguments {
        let dropped = || Some(BooleanArray::from(vec![false]));
        let of_function = |function: &Function| {
            (function.argument_types.iter().map(|kind| new_null_array(kind, 1)).collect(), dropped())
        };
        Arguments(self.functions.iter().map(of_function).collect())
    }

    /// Adds rows: row `i` belongs to group `groups[i]` of `total`. Every group that was not among an earlier call's
    /// `total` must have a row: accumulators take a group without one for a group with values.
    pub(crate) fn update(
        &self,
        accumulators: &mut Accumulators,
        arguments: &Arguments,
        groups: &[usize],
        total: usize,
    ) -> Result<(), DataFusionError> {
        accumulators.iter_mut().zip(&arguments.0).try_for_each(|(accumulator, (values, filter))| {
            accumulator.update_batch(values, groups, filter.as_ref(), total)
        })
    }

    /// Adds states: row `i` of `states` belongs to group `groups[i]` of `total`. Every new group must have a row, as in
    /// [`update`](Self::update).
    pub(crate) fn merge(
        &self,
        accumulators: &mut Accumulators,
        states: &[ArrayRef],
        groups: &[usize],
        total: usize,
    ) -> Result<(), DataFusionError> {
        let mut from = 0;
        for (accumulator, function) in accumulators.iter_mut().zip(&self.functions) {
            let to = from + function.state_types.len();
            accumulator.merge_batch(&states[from..to], groups, total)?;
            from = to;
        }
        Ok(())
    }

    /// The accumulators have emitted all groups.
    fn is_done(&self, accumulators: Accumulators) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).push(accumulators);
    }

    /// The state of every group, as columns of the codec.
    pub(crate) fn states(&self, mut accumulators: Accumulators) -> Result<Vec<ArrayRef>, DataFusionError> {
        let mut states = Vec::new();
        for accumulator in &mut accumulators {
            states.extend(accumulator.state(EmitTo::All)?);
        }
        self.is_done(accumulators);
        Ok(self.codec.conform(states)?)
    }

    /// The results of `total` groups from their states.
    pub(crate) fn results(&self, states: &[ArrayRef], total: usize) -> Result<Vec<ArrayRef>, DataFusionError> {
        let mut accumulators = self.accumulators()?;
        let groups: Vec<usize> = (0..total).collect();
        self.merge(&mut accumulators, states, &groups, total)?;
        let results = accumulators.iter_mut().map(|accumulator| accumulator.evaluate(EmitTo::All));
        let results = results.collect::<Result<_, _>>()?;
        self.is_done(accumulators);
        Ok(results)
    }

    /// The functions as `explain` shows them.
    pub(crate) fn describe(&self) -> String {
        let texts: Vec<_> = self
            .functions
            .iter()
            .map(|function| match &function.filter {
                Some(filter) => format!("{} FILTER ({filter})", function.function.name()),
                None => function.function.name().to_owned(),
            })
            .collect();
        texts.join(", ")
    }

    /// The columns of the states.
    pub(crate) fn state_fields(&self) -> Vec<FieldRef> {
        let columns = self.functions.iter().flat_map(|function| function.state_names.iter().zip(&function.state_types));
        columns.map(|(name, kind)| Arc::new(Field::new(name, kind.clone(), true))).collect()
    }

    /// Which columns of the states have the meaning that a plugin's code gives them.
    pub(crate) fn plugin_columns(&self) -> Vec<PluginColumns> {
        let mut first = 0;
        let mut all = Vec::new();
        for function in &self.functions {
            let columns = function.plugin_state.as_ref().map(|(columns, _)| columns.clone());
            all.extend(columns.map(|columns| PluginColumns { first, ..columns }));
            first += function.state_types.len();
        }
        all
    }

    /// What the states are, in words that do not depend on the names of columns.
    pub(crate) fn state_text(&self) -> String {
        let list = |types: &[DataType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let texts: Vec<_> = self
            .functions
            .iter()
            .map(|function| {
                let distinct = if function.function.is_distinct() { "distinct " } else { "" };
                let name = function.function.fun().name();
                if let Some((of, columns)) = &function.plugin_state {
                    let null = |field: &FieldRef| if field.is_nullable() { "" } else { " not null" };
                    let column = |field: &FieldRef| format!("{} {}{}", field.name(), field.data_type(), null(field));
                    let columns: Vec<_> = columns.iter().map(column).collect();
                    let arguments = list(&function.argument_types);
                    return format!("{name}({arguments}): {} as `{}`", columns.join(", "), of.state_id);
                }
                format!("{name}({distinct}{}): {}", list(&function.argument_types), list(&function.state_types))
            })
            .collect();
        texts.join("; ")
    }
}

impl Function {
    fn try_new(
        function: Arc<AggregateFunctionExpr>,
        filter: Option<PhysicalExprRef>,
        input: &Schema,
    ) -> Result<Self, DataFusionError> {
        let mut arguments = function.expressions();
        // Functions that depend on an order take the columns of the order as further arguments.
        arguments.extend(function.order_bys().iter().map(|by| Arc::clone(&by.expr)));
        let argument_types =
            arguments.iter().map(|argument| argument.data_type(input)).collect::<Result<Vec<_>, _>>()?;
        let fields = function.state_fields()?;
        let state_types = fields.iter().map(|field| field.data_type().clone()).collect();
        let state_names = fields.iter().map(|field| field.name().clone()).collect();
        let plugin_state = plugin_state(&fields);
        Ok(Self { function, arguments, argument_types, filter, state_types, state_names, plugin_state })
    }
}

fn accumulator(function: &Arc<AggregateFunctionExpr>) -> Result<Box<dyn GroupsAccumulator>, DataFusionError> {
    if function.groups_accumulator_supported() {
        return function.create_groups_accumulator();
    }
    let function = Arc::clone(function);
    Ok(Box::new(GroupsAccumulatorAdapter::new(move || function.create_accumulator())))
}
