//! The SQL front: from text to DataFusion's logical plan.
//!
//! Spark's SQL is parsed with a dialect of its own; what DataFusion's planner does not know (LATERAL VIEW,
//! generators in SELECT, `window(...)` as a grouping key) is rewritten in the syntax tree into relations that
//! [`generator`] plans. What the parser has no form for is spelled out in the tokens: suffixes of numbers, intervals of several
//! units, calls of processors (`f(TABLE(rows) PARTITION BY key)`, planned by [`processor_call`]).

pub(crate) mod call;
pub(crate) mod casts;
pub(crate) mod create_function;
pub(crate) mod dialect;
pub(crate) mod generator;
pub(crate) mod grouping;
pub(crate) mod having;
mod interval_units;
pub(crate) mod lateral_alias;
pub(crate) mod names;
mod number_suffixes;
pub(crate) mod outer_using;
pub(crate) mod parse;
pub(crate) mod processor_call;
mod refused;
pub(crate) mod relations;
pub(crate) mod result_names;
pub(crate) mod rewrite;
mod star;
mod table_arguments;
pub(crate) mod unnamed;
pub(crate) mod using;
pub(crate) mod values;
