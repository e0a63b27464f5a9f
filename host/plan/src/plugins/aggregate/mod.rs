//! A plugin's aggregate function as an aggregate function of DataFusion.
//!
//! ```text
//!   rows of a batch ──► kept until there are enough ──accumulate──► states ──merge──► one per group ──evaluate──► values
//! ```
//!
//! Stands where a built-in function stands, in GROUP BY, windows, sessions, FILTER and HAVING, of streams and of batch
//! queries. Its state columns are those that the component declares, marked with plugin, name and state id, so that
//! what a checkpoint keeps says whose it is.
//!
//! Rule of its life: an accumulator keeps rows and states as columns and nothing of the guest, and asks the guest for
//! many groups at once.
//!
//! DISTINCT and ORDER BY in a call are refused: the guest gets the rows as they come.

mod accumulators;
mod states;

use accumulators::{Grouped, Single};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, GroupsAccumulator, Signature, Volatility,
};
use millstream_operators::mark_plugin_state;
use millstream_wasm::{AggregateSignature, PluginSlot};
use states::States;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// An aggregate function of a plugin as a function of SQL.
#[derive(Debug)]
pub(crate) struct PluginAggregate {
    slot: Arc<PluginSlot>,
    function: Arc<AggregateSignature>,
    signature: Signature,
}

/// The function of SQL.
pub(crate) fn aggregate_function(slot: &Arc<PluginSlot>, function: &AggregateSignature) -> AggregateUDF {
    AggregateUDF::new_from_impl(PluginAggregate {
        slot: Arc::clone(slot),
        function: Arc::new(function.clone()),
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

/// The plugins whose aggregate functions are called.
pub(crate) fn plugins_of(calls: &[Expr]) -> Vec<Arc<PluginSlot>> {
    let mut slots: Vec<Arc<PluginSlot>> = Vec::new();
    for call in calls {
        let visited = call.apply(|part| {
            if let Expr::AggregateFunction(call) = part
                && let Some(of) = (call.func.inner().as_ref() as &dyn std::any::Any).downcast_ref::<PluginAggregate>()
                && !slots.iter().any(|slot| Arc::ptr_eq(slot, &of.slot))
            {
                slots.push(Arc::clone(&of.slot));
            }
            Ok(TreeNodeRecursion::Continue)
        });
        debug_assert!(visited.is_ok(), "the visitor does not fail");
    }
    slots
}

impl PartialEq for PluginAggregate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.slot, &other.slot) && self.function == other.function
    }
}

impl Eq for PluginAggregate {}

impl Hash for PluginAggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.slot.name().hash(state);
        self.function.name.hash(state);
    }
}

impl PluginAggregate {
    fn states(&self, args: &AccumulatorArgs<'_>) -> Result<States> {
        let name = &self.function.name;
        if args.is_distinct {
            return plan_err!("`{name}` of plugin `{}` does not take DISTINCT here", self.slot.name());
        }
        if !args.order_bys.is_empty() {
            return plan_err!("`{name}` of plugin `{}` does not take ORDER BY", self.slot.name());
        }
        Ok(self.empty_states())
    }

    fn empty_states(&self) -> States {
        States::new(Arc::clone(&self.slot), Arc::clone(&self.function))
    }
}

impl AggregateUDFImpl for PluginAggregate {
    fn name(&self) -> &str {
        &self.function.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let Self { function, .. } = self;
        if types.len() != function.arguments.len() {
            return plan_err!(
                "plugin function `{}` takes {} arguments and was given {}: {function}",
                function.name,
                function.arguments.len(),
                types.len()
            );
        }
        Ok(function.arguments.iter().map(|argument| argument.data_type().clone()).collect())
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.function.result.data_type().clone())
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let AggregateSignature { name, state, state_id, .. } = self.function.as_ref();
        let rename = |column: &str| format_state_name(args.name, column);
        Ok(mark_plugin_state(self.slot.name(), name, state_id, state, rename))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Single::new(self.states(&args)?)))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Grouped::new(self.states(&args)?)))
    }

    fn default_value(&self, _data_type: &DataType) -> Result<ScalarValue> {
        Single::new(self.empty_states()).evaluate()
    }
}
