//! `window(...)` and `window_time(...)`: event time cut into windows.
//!
//! A window is [start, end), aligned to 1970 plus the start offset. A row is in `ceil(size / slide)` windows at
//! most: the last one begins at `time - floorMod(time - offset, slide)`, the others `slide` earlier each, as
//! long as they still hold the time. Source of the semantics: Spark's `TimeWindow` and `window_time` (the last
//! microsecond of a window).
//!
//! The front end puts these functions below the SELECT that calls `window`; users do not call them.

use crate::event_time;
use arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray, TimestampMicrosecondArray};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{DFSchema, Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, cast,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The type of TIMESTAMP.
pub(crate) fn timestamp_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

pub(crate) fn window_fields() -> Fields {
    Fields::from(vec![Field::new("start", timestamp_type(), true), Field::new("end", timestamp_type(), true)])
}

/// The first argument of a window as a timestamp: that of a window is its last microsecond.
pub(crate) fn time_argument(time: Expr, schema: &DFSchema) -> Result<Expr> {
    match time.get_type(schema)? {
        DataType::Struct(_) => Ok(window_time_function().call(vec![time])),
        kind if kind == timestamp_type() => Ok(time),
        DataType::Timestamp(..) | DataType::Date32 | DataType::Null => Ok(cast(time, timestamp_type())),
        kind if kind.is_string() => Ok(cast(time, timestamp_type())),
        kind => plan_err!("`{time}` has the type {kind}, and windows are of a TIMESTAMP: cast it to one"),
    }
}

/// The marks of a window's time: only a column hands them on, or the time of a window that is one. What an expression
/// makes of event time is none, whatever type it has.
pub(crate) fn marked_time(time: &Expr, schema: &DFSchema) -> Result<FieldRef> {
    let (_, field) = time.to_field(schema)?;
    let is_column = match time {
        Expr::Column(_) => true,
        Expr::ScalarFunction(call) => {
            matches!(call.args.as_slice(), [Expr::Column(_)]) && call.func.name() == "window_time"
        }
        _ => false,
    };
    Ok(if is_column { field } else { Arc::new(field.as_ref().clone().with_metadata(HashMap::new())) })
}

/// Size, slide and start offset of windows, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct WindowSpec {
    /// Length.
    pub(crate) size_us: i64,
    /// Distance from one window's start to the next one's; the size for tumbling windows.
    pub(crate) slide_us: i64,
    /// Offset of all starts from 1970.
    pub(crate) start_us: i64,
}

impl WindowSpec {
    /// Whether every time is in exactly one window.
    pub(crate) fn is_tumbling(&self) -> bool {
        self.size_us == self.slide_us
    }

    fn last_start(&self, time_us: i64) -> i64 {
        time_us.wrapping_sub(time_us.wrapping_sub(self.start_us).rem_euclid(self.slide_us))
    }
}

/// The function that gives the one window (tumbling: a struct) or all windows (sliding: a list of structs) of a time.
pub(crate) fn window_function(spec: WindowSpec) -> ScalarUDF {
    ScalarUDF::from(TimeWindow { spec, signature: Signature::exact(vec![timestamp_type()], Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeWindow {
    spec: WindowSpec,
    signature: Signature,
}

impl TimeWindow {
    fn result_type(&self) -> DataType {
        let window = DataType::Struct(window_fields());
        if self.spec.is_tumbling() { window } else { DataType::List(Arc::new(Field::new_list_field(window, true))) }
    }
}

impl ScalarUDFImpl for TimeWindow {
    fn name(&self) -> &str {
        "window"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.result_type())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = Field::new(self.name(), self.result_type(), true);
        Ok(Arc::new(event_time::hand_on(&args.arg_fields[0], field)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let times = args.args[0].to_array(args.number_rows)?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let windows = if self.spec.is_tumbling() { tumbling(self.spec, times) } else { sliding(self.spec, times)? };
        Ok(ColumnarValue::Array(windows))
    }
}

fn windows(starts: Vec<i64>, size_us: i64, nulls: Option<NullBuffer>) -> StructArray {
    let ends: Vec<i64> = starts.iter().map(|start| start.wrapping_add(size_us)).collect();
    let column = |values: Vec<i64>| -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::new(ScalarBuffer::from(values), nulls.clone()).with_timezone("UTC"))
    };
    StructArray::new(window_fields(), vec![column(starts), column(ends)], nulls.clone())
}

fn tumbling(spec: WindowSpec, times: &TimestampMicrosecondArray) -> ArrayRef {
    let starts = times.values().iter().map(|time| spec.last_start(*time)).collect();
    Arc::new(windows(starts, spec.size_us, times.nulls().cloned()))
}

fn sliding(spec: WindowSpec, times: &TimestampMicrosecondArray) -> Result<ArrayRef> {
    let per_row = (spec.size_us + spec.slide_us - 1) / spec.slide_us;
    let room = usize::try_from(per_row).unwrap_or(usize::MAX).saturating_mul(times.len());
    if i32::try_from(room).is_err() {
        return exec_err!("windows of {} µs every {} µs make too many rows in one batch", spec.size_us, spec.slide_us);
    }
    let mut starts = Vec::with_capacity(room);
    let mut offsets = Vec::with_capacity(times.len() + 1);
    offsets.push(0_i32);
    for row in 0..times.len() {
        if times.is_valid(row) {
            let time = times.value(row);
            // A window that would begin before all times is none.
            let mut next = Some(spec.last_start(time)).filter(|start| *start <= time);
            while let Some(start) = next.filter(|start| start.saturating_add(spec.size_us) > time) {
                starts.push(start);
                next = start.checked_sub(spec.slide_us);
            }
        }
        offsets.push(starts.len() as i32);
    }
    let field = Arc::new(Field::new_list_field(DataType::Struct(window_fields()), true));
    let values = windows(starts, spec.size_us, None);
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(Arc::new(ListArray::try_new(field, offsets, Arc::new(values), times.nulls().cloned())?))
}

/// `window_time(window)`: the last microsecond of a window, still event time.
pub(crate) fn window_time_function() -> ScalarUDF {
    ScalarUDF::from(WindowTime { signature: Signature::any(1, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WindowTime {
    signature: Signature,
}

impl ScalarUDFImpl for WindowTime {
    fn name(&self) -> &str {
        "window_time"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match &types[0] {
            DataType::Struct(fields) if *fields == window_fields() => Ok(timestamp_type()),
            other => plan_err!("window_time takes the column of a window, not {other}"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let result = self.return_type(&[args.arg_fields[0].data_type().clone()])?;
        Ok(Arc::new(event_time::hand_on(&args.arg_fields[0], Field::new(self.name(), result, true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let windows = args.args[0].to_array(args.number_rows)?;
        let windows = windows.as_struct();
        let ends = windows.column(1).as_primitive::<TimestampMicrosecondType>();
        let times: TimestampMicrosecondArray = ends.unary(|end| end.wrapping_sub(1));
        let nulls = NullBuffer::union(windows.nulls(), times.nulls());
        let times = TimestampMicrosecondArray::new(times.values().clone(), nulls).with_timezone("UTC");
        Ok(ColumnarValue::Array(Arc::new(times)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts_of(spec: WindowSpec, time: i64) -> Vec<i64> {
        let list = sliding(spec, &TimestampMicrosecondArray::from(vec![time])).unwrap();
        let structs = list.as_list::<i32>().value(0);
        structs.as_struct().column(0).as_primitive::<TimestampMicrosecondType>().values().to_vec()
    }

    #[test]
    fn a_time_is_in_every_window_that_holds_it() {
        let spec = WindowSpec { size_us: 10, slide_us: 5, start_us: 0 };
        assert_eq!(starts_of(spec, 12), [10, 5]);
        assert_eq!(starts_of(spec, 10), [10, 5]);
        assert_eq!(starts_of(spec, -1), [-5, -10]);
        let uneven = WindowSpec { size_us: 10, slide_us: 4, start_us: 0 };
        assert_eq!(starts_of(uneven, 11), [8, 4]);
        assert_eq!(starts_of(uneven, 12), [12, 8, 4]);
    }

    #[test]
    fn the_first_and_the_last_of_all_times_are_in_a_few_windows() {
        let spec = WindowSpec { size_us: 10, slide_us: 5, start_us: 0 };
        for time in [i64::MIN, i64::MIN + 1, i64::MIN + 9, i64::MAX - 1, i64::MAX] {
            let starts = starts_of(spec, time);
            assert!(starts.len() <= 2 && starts.iter().all(|start| *start <= time), "{time}: {starts:?}");
            let tumbling = WindowSpec { slide_us: 10, ..spec };
            tumbling.last_start(time);
            WindowSpec { start_us: 3, ..tumbling }.last_start(time);
        }
    }

    #[test]
    fn a_start_offset_shifts_all_windows() {
        let spec = WindowSpec { size_us: 10, slide_us: 10, start_us: 3 };
        assert_eq!(spec.last_start(12), 3);
        assert_eq!(spec.last_start(13), 13);
        assert_eq!(spec.last_start(-8), -17);
    }
}
