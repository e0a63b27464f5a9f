//! Functions over arrays, maps, structs, texts in JSON and CSV, Avro's bytes and Protocol Buffers, with Spark's names and
//! meaning.
//!
//! Where it stands: planning registers what is listed here and applies [`rewrite_nested_syntax`] to the syntax tree;
//! every batch then runs the functions over Arrow columns. The pieces and their order:
//!
//! 1. [`rewrite_nested_syntax`], before planning: names of `struct(…)` fields, fields of lambda parameters.
//! 2. [`expr_planners`], before DataFusion's own: `p.q.z`, `a[i]`, `m['k']`.
//! 3. [`scalar_functions`] and [`higher_order_functions`], which replace DataFusion's of the same name. Among the scalar
//!    functions are the lists behind generators: `__list_or_null`, `__with_position`, `__map_entries`.
//! 4. [`for_arrays_too`], around the text functions `concat` and `reverse`.
//!
//! No analyzer rule is needed: DataFusion compares structs as Spark does. Nothing here keeps state between batches.

mod arrays;
mod avro;
mod coercion;
mod csv;
mod decimals;
mod function;
mod json;
mod lambda;
mod lists;
mod maps;
mod order;
mod overload;
mod planner;
mod prepared;
mod protobuf;
mod registry;
mod structs;
mod syntax;
#[cfg(test)]
mod tests;
mod times;

use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::{HigherOrderUDF, ScalarUDF};
use millstream_common::SqlSettings;
use std::sync::Arc;

pub(crate) use syntax::rewrite_nested_syntax;

/// The functions that work row by row.
pub(crate) fn scalar_functions(settings: &SqlSettings) -> Vec<Arc<ScalarUDF>> {
    let plain = [arrays::definitions(), json::definitions(), maps::definitions(), structs::definitions()].concat();
    let prepared =
        [avro::definitions(), csv::definitions(), json::prepared_definitions(), protobuf::definitions()].concat();
    let plain = plain.into_iter().map(|definition| function::function(definition, settings.ansi));
    plain.chain(prepared.into_iter().map(prepared::prepared_function)).collect()
}

/// The functions that take lambdas.
pub(crate) fn higher_order_functions(settings: &SqlSettings) -> Vec<Arc<HigherOrderUDF>> {
    lambda::functions(settings)
}

/// The planners of access to fields and elements; to be asked before DataFusion's own.
pub(crate) fn expr_planners(settings: &SqlSettings) -> Vec<Arc<dyn ExprPlanner>> {
    planner::NestedPlanner::new(&scalar_functions(settings))
        .into_iter()
        .map(|planner| Arc::new(planner) as Arc<dyn ExprPlanner>)
        .collect()
}

/// A text function that Spark also has for arrays, extended by them: `concat` and `reverse`. Others stay as they are.
pub(crate) fn for_arrays_too(function: Arc<ScalarUDF>, settings: &SqlSettings) -> Arc<ScalarUDF> {
    let name = match function.name() {
        "concat" => "__concat_arrays",
        "reverse" => "__reverse_array",
        _ => return function,
    };
    match scalar_functions(settings).into_iter().find(|candidate| candidate.name() == name) {
        Some(lists) => overload::overloaded(function, lists),
        None => function,
    }
}
