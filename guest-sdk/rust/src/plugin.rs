//! What a plugin consists of, kind by kind; and for a component its exports.

use crate::aggregate::Aggregate;
use crate::call::Function;
use crate::migration::Migration;
use crate::processor::private::RegisteredProcessor;
use crate::source::private::RegisteredSource;

/// Everything that `plugin!` lists, each kind in the order of its numbers.
pub trait Plugin {
    /// Scalar and table functions.
    const FUNCTIONS: &'static [&'static Function] = &[];
    /// Aggregate functions.
    const AGGREGATES: &'static [&'static Aggregate] = &[];
    /// Migrations of stored state.
    const MIGRATIONS: &'static [&'static Migration] = &[];
    /// Stateful processors.
    fn processors() -> Vec<RegisteredProcessor> {
        Vec::new()
    }
    /// Sources.
    fn sources() -> Vec<RegisteredSource> {
        Vec::new()
    }
}
