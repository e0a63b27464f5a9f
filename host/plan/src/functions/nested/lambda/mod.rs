//! Functions that take lambdas: `transform`, `filter`, `exists`, `aggregate`, `zip_with`, `map_filter`, …
//!
//! A lambda's body is evaluated once for all elements of all rows of a batch, over flat columns; only `aggregate`
//! and `array_sort` with a comparator need one evaluation per step, over all rows at once.

mod arrays;
mod call;
mod evaluation;
mod fold;
mod maps;
mod sort;

use std::sync::Arc;

use datafusion::logical_expr::HigherOrderUDF;
use millstream_common::SqlSettings;

/// All functions that take lambdas.
pub(super) fn functions(settings: &SqlSettings) -> Vec<Arc<HigherOrderUDF>> {
    [arrays::definitions(), fold::definitions(), maps::definitions(), sort::definitions()]
        .concat()
        .into_iter()
        .map(|definition| call::function(definition, settings.ansi))
        .collect()
}
