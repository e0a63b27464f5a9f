//! `session_window(time, gap)`: the range [time, time + gap) of each row, marked as a session.
//!
//! It is a relation as `window` is: one column more, below the SELECT that calls it. What merges the ranges of rows
//! into sessions is the aggregation by a column with the mark; in a SELECT without one each row keeps its own range.
//! A row without time or gap, or whose gap does not lie ahead, disappears.
//! Source of the semantics: Spark's `SessionWindowing`. Beyond Spark the gap may be an INTERVAL as well as a string.

mod fence;
mod gap;

pub(crate) use fence::{SessionFence, fence};

use crate::event_time;
use crate::time_window::{marked_time, time_argument, timestamp_type, window_fields};
use arrow::array::{Array, ArrayRef, AsArray, StructArray, TimestampMicrosecondArray};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, DurationMicrosecondType, Field, FieldRef, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use gap::Gap;
use millstream_common::duration::parse_micros;
use std::collections::HashMap;
use std::sync::Arc;

/// The name of the function and of the column that it makes.
const NAME: &str = "session_window";

/// The rows of `input` that have a session, with its column.
pub(crate) fn plan_session(input: LogicalPlan, arguments: Vec<Expr>) -> Result<LogicalPlan> {
    let Ok([time, gap]) = <[Expr; 2]>::try_from(arguments) else {
        return plan_err!("session_window takes a time and a gap: session_window(time, '5 minutes')");
    };
    let time = time_argument(time, input.schema())?;
    let time_field = marked_time(&time, input.schema())?;
    let metadata = Some(event_time::session_metadata_of(&time_field));
    let fixed = fixed_gap(&gap)?;
    let is_given = time.clone().is_not_null();
    let mut columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let session = match fixed {
        Some(_) => session_function(fixed).call(vec![time]),
        None => {
            check_gap(&gap.get_type(input.schema())?)?;
            session_function(None).call(vec![time, gap])
        }
    };
    columns.push(session.alias_with_metadata(NAME, metadata));
    if fixed.is_some_and(Gap::is_ahead) {
        return LogicalPlanBuilder::from(input).filter(is_given)?.project(columns)?.build();
    }
    let session = Expr::Column(NAME.into());
    LogicalPlanBuilder::from(input).project(columns)?.filter(session.is_not_null())?.build()
}

/// The gap of a literal, which may be spelled as the durations of windows may.
fn fixed_gap(gap: &Expr) -> Result<Option<Gap>> {
    let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = gap else { return Ok(None) };
    if let Some(gap) = Gap::parse(text) {
        return Ok(Some(gap));
    }
    match parse_micros(text) {
        Ok(micros) => Ok(Some(Gap::of_micros(micros))),
        Err(error) => plan_err!("session_window: {error}"),
    }
}

fn check_gap(kind: &DataType) -> Result<()> {
    match kind {
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Interval(_)
        | DataType::Duration(_)
        | DataType::Null => Ok(()),
        other => plan_err!("the gap of a session must be an interval or a string such as '5 minutes', not {other}"),
    }
}

fn session_function(fixed: Option<Gap>) -> ScalarUDF {
    let arguments = if fixed.is_some() { 1 } else { 2 };
    ScalarUDF::from(SessionRange { fixed, signature: Signature::any(arguments, Volatility::Immutable) })
}

/// The range of a row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SessionRange {
    /// The gap of every row; without one it is the second argument.
    fixed: Option<Gap>,
    signature: Signature,
}

impl ScalarUDFImpl for SessionRange {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(window_fields()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = Field::new(NAME, DataType::Struct(window_fields()), true);
        Ok(Arc::new(event_time::mark_session(event_time::hand_on(&args.arg_fields[0], field))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let times = args.args[0].to_array(args.number_rows)?;
        let times = cast(&times, &timestamp_type())?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let ends = match (self.fixed, args.args.get(1)) {
            (Some(gap), _) => ends(times, |_| Some(gap))?,
            (None, Some(ColumnarValue::Scalar(gap))) => {
                let gap = gaps(&gap.to_array()?)?.first().copied().flatten();
                ends(times, |_| gap)?
            }
            (None, Some(ColumnarValue::Array(array))) => {
                let gaps = gaps(array)?;
                ends(times, |row| gaps[row])?
            }
            (None, None) => return plan_err!("session_window takes a time and a gap"),
        };
        Ok(ColumnarValue::Array(Arc::new(ranges(times, ends)?)))
    }
}

/// The end of each row's range; `None` when it has none.
fn ends(times: &TimestampMicrosecondArray, gap: impl Fn(usize) -> Option<Gap>) -> Result<Vec<Option<i64>>> {
    let end = |row: usize| {
        let Some(gap) = gap(row).filter(|_| times.is_valid(row)) else { return Ok(None) };
        let time = times.value(row);
        Ok(Some(gap.after(time)?).filter(|end| *end > time))
    };
    (0..times.len()).map(end).collect()
}

fn ranges(times: &TimestampMicrosecondArray, ends: Vec<Option<i64>>) -> Result<StructArray> {
    let nulls: NullBuffer = ends.iter().map(Option::is_some).collect();
    let nulls = (nulls.null_count() > 0).then_some(nulls);
    let ends: Vec<i64> = ends.into_iter().map(Option::unwrap_or_default).collect();
    let column = |values: ScalarBuffer<i64>| -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::new(values, nulls.clone()).with_timezone("UTC"))
    };
    let columns = vec![column(times.values().clone()), column(ends.into())];
    Ok(StructArray::try_new(window_fields(), columns, nulls)?)
}

/// The gap of each row; `None` when it has none.
fn gaps(array: &ArrayRef) -> Result<Vec<Option<Gap>>> {
    match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = cast(array, &DataType::Utf8)?;
            // An expression has few different answers.
            let mut known: HashMap<&str, Option<Gap>> = HashMap::new();
            let texts = texts.as_string::<i32>();
            let mut parse = |text| *known.entry(text).or_insert_with(|| Gap::parse(text));
            Ok(texts.iter().map(|text| text.and_then(&mut parse)).collect())
        }
        DataType::Duration(_) => {
            let micros = cast(array, &DataType::Duration(TimeUnit::Microsecond))?;
            let micros = micros.as_primitive::<DurationMicrosecondType>();
            Ok(micros.iter().map(|micros| micros.map(Gap::of_micros)).collect())
        }
        DataType::Null => Ok(vec![None; array.len()]),
        _ => {
            let intervals = cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
            Ok(intervals.iter().map(|interval| interval.map(Gap::of_interval)).collect())
        }
    }
}
