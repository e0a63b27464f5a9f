//! A plugin's processor over the groups of a frame.

use super::{Column, ProcessCall, select};
use crate::PlanError;
use crate::front::Front;
use crate::processor::{Form, ProcessorCall, plan_call};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The rows that the processor gives.
pub(super) fn process(
    call: &ProcessCall,
    input: LogicalPlan,
    initial: Option<LogicalPlan>,
    front: &mut Front,
) -> Result<LogicalPlan, PlanError> {
    let Some(known) = front.processors().get(&call.processor).map(std::sync::Arc::clone) else {
        let (name, names) = (&call.processor, front.processors().names());
        return Err(PlanError::Sql { message: format!("there is no processor `{name}`: {names}") });
    };
    let (input, keys) = keyed(&call.keys, input, front)?;
    let initial = match initial {
        None => None,
        Some(initial) if call.initial_keys.is_empty() => Some((initial, Vec::new())),
        Some(initial) => Some(keyed(&call.initial_keys, initial, front)?),
    };
    let form = if call.is_flat_map { Form::FlatMapGroupsWithState } else { Form::TransformWithState };
    let (event_time, mode) = (call.event_time.clone(), Some(call.mode));
    plan_call(&known, ProcessorCall { input, keys, initial, event_time, form, mode })
        .map_err(|error| PlanError::from_datafusion(&error))
}

/// The rows with what makes their keys as columns behind them, and those columns.
fn keyed(keys: &[Column], input: LogicalPlan, front: &mut Front) -> Result<(LogicalPlan, Vec<Expr>), PlanError> {
    let mut items = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        items.push(key.clone().alias(&format!("__key_{number}")).into_item()?);
    }
    let mut query = select::everything(|select| select.projection.extend(items));
    let input = super::window_column::step_aside(&mut query, input)?;
    let names = select::names_of(&[&input]);
    let planned = front.statement(query, names, vec![input])?;
    let all = planned.schema().columns();
    let made = all[all.len() - keys.len()..].iter().cloned().map(Expr::Column).collect();
    Ok((planned, made))
}
