//! Structure of two components: what would a running query notice?
//!
//! Pure, and the one place that says so: a swap, a restart and a check before either ask here.

use arrow::datatypes::FieldRef;
use std::collections::BTreeSet;
use std::slice;

use crate::component::Component;
use crate::processor::{ProcessorSignature, VariableSignature};
use crate::signature::{AggregateSignature, FunctionSignature, SourceSignature};

/// What follows from a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// A running query cannot go on with it.
    Signature,
    /// What is stored means something else: a running query cannot go on with it as it stands.
    State,
    /// A person must want it.
    Permission,
}

/// One thing in which a component differs from the one whose place it is to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What follows.
    pub kind: DifferenceKind,
    /// What differs, in a sentence without a stop.
    pub what: String,
}

/// Every difference that a query notices which calls the functions in `used`; every function counts when that is not
/// known. New functions are no difference, and neither is what happens to functions that nobody
/// calls.
pub fn differences(old: &Component, new: &Component, used: Option<&BTreeSet<String>>) -> Vec<Difference> {
    let is_used = |name: &str| used.is_none_or(|used| used.contains(name));
    let (mut found, mut of_state) = (Vec::new(), Vec::new());
    for before in old.functions().iter().filter(|before| is_used(&before.name)) {
        match new.function(&before.name) {
            None => found.push(format!("function `{}` is gone", before.name)),
            Some((_, after)) => compare(before, after, &mut found),
        }
    }
    for before in old.aggregates().iter().filter(|before| is_used(&before.name)) {
        match new.aggregate(&before.name) {
            None => found.push(format!("aggregate function `{}` is gone", before.name)),
            Some((_, after)) => {
                compare_aggregates(before, after, &mut found);
                compare_states(before, after, &mut of_state);
            }
        }
    }
    for before in old.processors().iter().filter(|before| is_used(&before.name)) {
        match new.processor(&before.name) {
            None => found.push(format!("processor `{}` is gone", before.name)),
            Some((_, after)) => {
                compare_processors(before, after, &mut found);
                compare_variables(before, after, &mut of_state);
            }
        }
    }
    for before in old.sources().iter().filter(|before| is_used(&before.name)) {
        match new.source(&before.name) {
            None => found.push(format!("source `{}` is gone", before.name)),
            Some((_, after)) => compare_sources(before, after, &mut found),
        }
    }
    let of_kind = |kind: DifferenceKind| move |what| Difference { kind, what };
    let mut differences: Vec<Difference> = found.into_iter().map(of_kind(DifferenceKind::Signature)).collect();
    differences.extend(of_state.into_iter().map(of_kind(DifferenceKind::State)));
    for permission in new.asks_for().difference(&old.asks_for()) {
        let what = format!("it asks for a new permission: `{permission}`");
        differences.push(Difference { kind: DifferenceKind::Permission, what });
    }
    differences
}

fn compare(before: &FunctionSignature, after: &FunctionSignature, differences: &mut Vec<String>) {
    let name = &before.name;
    if before.kind != after.kind {
        differences.push(format!("function `{name}` was `{before}` and is `{after}`"));
        return;
    }
    columns(name, "argument", &before.arguments, &after.arguments, differences);
    columns(name, "result", &before.results, &after.results, differences);
    for (old, new) in before.results.iter().zip(&after.results) {
        if !old.is_nullable() && new.is_nullable() {
            differences.push(format!("result `{}` of `{name}` was never null and may be null", old.name()));
        }
    }
    if before.volatility != after.volatility {
        let (old, new) = (before.volatility, after.volatility);
        differences.push(format!("function `{name}` was {old:?} and is {new:?}").to_lowercase());
    }
}

fn compare_aggregates(before: &AggregateSignature, after: &AggregateSignature, differences: &mut Vec<String>) {
    let name = &before.name;
    columns(name, "argument", &before.arguments, &after.arguments, differences);
    columns(name, "result", slice::from_ref(&before.result), slice::from_ref(&after.result), differences);
    if before.retracts && !after.retracts {
        differences.push(format!("aggregate function `{name}` took rows back and does not"));
    }
}

fn compare_states(before: &AggregateSignature, after: &AggregateSignature, differences: &mut Vec<String>) {
    let name = &before.name;
    columns(name, "state column", &before.state, &after.state, differences);
    for (old, new) in before.state.iter().zip(&after.state) {
        if old.is_nullable() && !new.is_nullable() {
            differences.push(format!("state column `{}` of `{name}` might be null and is never null", old.name()));
        }
    }
    if before.state_id != after.state_id {
        let (old, new) = (&before.state_id, &after.state_id);
        differences.push(format!("the state of `{name}` meant `{old}` and means `{new}`"));
    }
}

fn compare_processors(before: &ProcessorSignature, after: &ProcessorSignature, differences: &mut Vec<String>) {
    let name = &before.name;
    columns(name, "key column", &before.key, &after.key, differences);
    columns(name, "input column", &before.input, &after.input, differences);
    columns(name, "output column", &before.output, &after.output, differences);
    for (old, new) in before.input.iter().zip(&after.input) {
        if old.is_nullable() && !new.is_nullable() {
            differences.push(format!("input column `{}` of `{name}` might be null and is never null", old.name()));
        }
    }
    if before.time_mode != after.time_mode {
        differences.push(format!("`{name}` went by {} and goes by {}", before.time_mode, after.time_mode));
    }
    for mode in before.output_modes.iter().filter(|mode| !after.output_modes.contains(mode)) {
        differences.push(format!("`{name}` could be used in output mode {mode} and cannot"));
    }
}

/// A stream takes nulls in every column, so it does not matter which ones may have some.
fn compare_sources(before: &SourceSignature, after: &SourceSignature, differences: &mut Vec<String>) {
    let (name, old, new) = (&before.name, &before.columns, &after.columns);
    if old.len() != new.len() {
        differences.push(format!("source `{name}` had {} columns and has {}", old.len(), new.len()));
        return;
    }
    for ((place, old), new) in (1..).zip(old).zip(new) {
        if old.name() != new.name() {
            differences.push(format!("column {place} of `{name}` was `{}` and is `{}`", old.name(), new.name()));
        }
        if old.data_type() != new.data_type() {
            let (was, is) = (old.data_type(), new.data_type());
            differences.push(format!("column `{}` of `{name}` was {was} and is {is}", old.name()));
        }
    }
    for option in before.options.iter().filter(|option| after.option(&option.name).is_none()) {
        differences.push(format!("source `{name}` had the option `{}` and does not", option.name));
    }
    for option in after.options.iter().filter(|option| option.required) {
        if before.option(&option.name).is_none_or(|known| !known.required) {
            differences
                .push(format!("source `{name}` must be given the option `{}`, and need not before", option.name));
        }
    }
}

/// The variables that are others, or come in another order.
fn compare_variables(before: &ProcessorSignature, after: &ProcessorSignature, differences: &mut Vec<String>) {
    let name = &before.name;
    for variable in &before.variables {
        match after.variable(&variable.name) {
            None => differences.push(format!("variable `{}` of `{name}` is gone", variable.name)),
            // Entries that are there keep their time, so it may be another one, but not come or go.
            Some(is)
                if VariableSignature { ttl_ms: variable.ttl_ms, ..is.clone() } == *variable
                    && is.ttl_ms.is_some() == variable.ttl_ms.is_some() => {}
            Some(is) => differences.push(format!("variable `{variable}` of `{name}` is `{is}`")),
        }
    }
    for variable in after.variables.iter().filter(|variable| before.variable(&variable.name).is_none()) {
        differences.push(format!("variable `{}` of `{name}` is new", variable.name));
    }
    let order = |of: &ProcessorSignature| of.variables.iter().map(|variable| variable.name.clone()).collect::<Vec<_>>();
    if differences.is_empty() && order(before) != order(after) {
        differences.push(format!("the variables of `{name}` have another order"));
    }
}

fn columns(function: &str, what: &str, before: &[FieldRef], after: &[FieldRef], differences: &mut Vec<String>) {
    if before.len() != after.len() {
        differences.push(format!("function `{function}` had {} {what}s and has {}", before.len(), after.len()));
        return;
    }
    for (i, (old, new)) in before.iter().zip(after).enumerate() {
        if old.name() != new.name() {
            let place = i + 1;
            differences.push(format!("{what} {place} of `{function}` was `{}` and is `{}`", old.name(), new.name()));
        }
        if old.data_type() != new.data_type() {
            let (old_type, new_type) = (old.data_type(), new.data_type());
            differences.push(format!("{what} `{}` of `{function}` was {old_type} and is {new_type}", old.name()));
        }
    }
}
