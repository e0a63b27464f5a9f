//! Aggregate functions with Spark's meaning.
//!
//! They stand between the planner, which finds them by name, and the aggregate operators, which drive their
//! accumulators. The rule of their life: `state()` describes an accumulator fully, `merge_batch` of it into a new
//! accumulator brings the same accumulator back, and results do not depend on how the input was cut into batches.
//! States are numbers, strings, bytes, lists and structs, so they can be stored as rows.
//!
//! FILTER, DISTINCT and grouping sets are the planner's and the operators' matter.

mod approx_count;
mod average;
mod bytes;
mod collect;
mod comoments;
mod counting;
mod definition;
mod delegated;
mod extremes;
mod floats;
mod group_states;
mod hyperloglog;
mod listagg;
mod mode;
mod moments;
mod ordering;
mod percentages;
mod percentile;
mod percentile_approx;
mod positional;
mod quantiles;
mod sum;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;

use datafusion::functions_aggregate::grouping::grouping_udaf;
use datafusion::logical_expr::AggregateUDF;
use millstream_common::SqlSettings;

use approx_count::ApproxCountDistinct;
use average::Average;
use collect::Collect;
use comoments::Comoment;
use counting::Count;
use definition::aggregate;
use delegated::Delegated;
use extremes::{End, Extreme, ExtremeBy};
use listagg::Listagg;
use mode::Mode;
use moments::Moment;
use percentile::Percentile;
use percentile_approx::PercentileApprox;
use positional::Place;
use sum::{Overflow, Sum};

/// All aggregate functions, each under every name it has.
///
/// They replace DataFusion's functions of the same names, so they are registered after those.
/// `grouping` is DataFusion's own, because its analyzer replaces it by the grouping id.
pub(crate) fn aggregate_functions(settings: &SqlSettings) -> Vec<Arc<AggregateUDF>> {
    let overflow = if settings.ansi { Overflow::Fail } else { Overflow::Wrap };
    vec![
        aggregate("count", Count::NonNull),
        aggregate("count_if", Count::True),
        aggregate("sum", Sum(overflow)),
        aggregate("try_sum", Sum(Overflow::Null)),
        aggregate("avg", Average::Of(overflow)),
        aggregate("mean", Average::Of(overflow)),
        aggregate("try_avg", Average::Of(Overflow::Null)),
        aggregate("min", Extreme(End::Min)),
        aggregate("max", Extreme(End::Max)),
        aggregate("min_by", ExtremeBy(End::Min)),
        aggregate("max_by", ExtremeBy(End::Max)),
        aggregate("bool_and", Delegated::BoolAnd),
        aggregate("every", Delegated::BoolAnd),
        aggregate("bool_or", Delegated::BoolOr),
        aggregate("some", Delegated::BoolOr),
        aggregate("any", Delegated::BoolOr),
        aggregate("bit_and", Delegated::BitAnd),
        aggregate("bit_or", Delegated::BitOr),
        aggregate("bit_xor", Delegated::BitXor),
        aggregate("stddev", Moment::StddevSamp),
        aggregate("stddev_samp", Moment::StddevSamp),
        aggregate("std", Moment::StddevSamp),
        aggregate("stddev_pop", Moment::StddevPop),
        aggregate("variance", Moment::VarSamp),
        aggregate("var_samp", Moment::VarSamp),
        aggregate("var_pop", Moment::VarPop),
        aggregate("skewness", Moment::Skewness),
        aggregate("kurtosis", Moment::Kurtosis),
        aggregate("covar_samp", Comoment::CovarSamp),
        aggregate("covar_pop", Comoment::CovarPop),
        aggregate("corr", Comoment::Corr),
        aggregate("regr_count", Count::Pairs),
        aggregate("regr_avgx", Average::OfPair(1)),
        aggregate("regr_avgy", Average::OfPair(0)),
        aggregate("regr_slope", Comoment::Slope),
        aggregate("regr_intercept", Comoment::Intercept),
        aggregate("regr_r2", Comoment::R2),
        aggregate("regr_sxx", Comoment::Sxx),
        aggregate("regr_syy", Comoment::Syy),
        aggregate("regr_sxy", Comoment::Sxy),
        aggregate("first", Place::First),
        aggregate("first_value", Place::First),
        aggregate("any_value", Place::First),
        aggregate("last", Place::Last),
        aggregate("last_value", Place::Last),
        aggregate("collect_list", Collect::List),
        aggregate("array_agg", Collect::List),
        aggregate("collect_set", Collect::Set),
        aggregate("listagg", Listagg),
        aggregate("string_agg", Listagg),
        aggregate("mode", Mode),
        aggregate("percentile", Percentile::Weighted),
        aggregate("median", Percentile::Median),
        aggregate("percentile_cont", Percentile::Continuous),
        aggregate("percentile_disc", Percentile::Discrete),
        aggregate("percentile_approx", PercentileApprox),
        aggregate("approx_percentile", PercentileApprox),
        aggregate("approx_count_distinct", ApproxCountDistinct),
        grouping_udaf(),
    ]
}
