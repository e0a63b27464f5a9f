//! Functions of text and time: strings, patterns, hashes, dates, timestamps.
//!
//! Where it stands: one topic of the SQL functions. The front end first rewrites the parsed statement with
//! [`rewrite_ast_expr`], then plans with [`expr_planners`] in front of the engine's own and [`scalar_functions`]
//! registered over the engine's own.
//!
//! Rule of its life: Spark's meaning, in UTC; what Spark refuses is an error that starts with Spark's error class.
//!
//! It does not cast, compare or aggregate, and knows nothing of arrays beyond splitting and joining text.

mod column;
mod format_string;
mod function;
mod hash;
mod kind;
pub(crate) mod memo;
mod planner;
mod regex;
mod strings;
mod syntax;
#[cfg(test)]
mod tests;
pub(crate) mod time;
mod url;

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::ExprPlanner;
use millstream_common::SqlSettings;

pub(crate) use regex::Separator;
pub(crate) use syntax::{rewrite_ast_expr, unescape_literal};

/// All scalar functions of the topic, to be registered after the engine's own so that they win.
///
/// `concat` and `reverse` are those of STRING and BINARY only.
pub(crate) fn scalar_functions(settings: &SqlSettings) -> Vec<Arc<ScalarUDF>> {
    let own = [strings::functions(), regex::functions(), hash::functions(), time::functions(), url::functions()];
    let mut all: Vec<Arc<ScalarUDF>> = own.into_iter().flatten().map(|f| f.build(settings)).collect();
    all.extend([
        format_string::format_string(),
        datafusion_spark::function::string::luhn_check(),
        datafusion_spark::function::url::url_decode(),
        datafusion_spark::function::url::try_url_decode(),
        datafusion_spark::function::url::url_encode(),
        datafusion_spark::function::datetime::make_interval(),
        datafusion_spark::function::datetime::make_dt_interval(),
    ]);
    all
}

/// Whether some row could make a call of one of the topic's own functions fail; `None` for any other function.
pub(crate) fn can_fail(call: &ScalarFunction, schema: &DFSchema) -> Option<bool> {
    let function = call.func.inner().downcast_ref::<function::Function>()?;
    Some(function.can_fail(&call.args, schema))
}

/// The expression planner of the topic; it must be asked before the engine's own planners.
pub(crate) fn expr_planners(settings: &SqlSettings) -> Vec<Arc<dyn ExprPlanner>> {
    vec![Arc::new(planner::TextPlanner::new(&scalar_functions(settings)))]
}
