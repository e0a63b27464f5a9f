//! Event time in the condition of a join: among the keys, or in inequalities that bound how far two times are apart.
//!
//! An inequality is solved for the time of one side: `r.ts <= l.ts + 10 minutes` says `l.ts >= r.ts - 10 minutes`. With
//! the watermark in place of `r.ts`, left rows at or before it less ten minutes can match no more. Sums and differences
//! of times and constants in any arrangement, casts and aliases are seen through; what cannot be solved bounds nothing.
//! Where several inequalities bound a side, the one that keeps rows longest counts. Source of the semantics: Spark's
//! `StreamingJoinHelper`.

use super::condition::{JoinCondition, schema_of};
use crate::event_time;
use crate::functions::expr::behind_shield;
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, JoinSide, ScalarValue};
use datafusion::logical_expr::expr::{Alias, Between, Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Join, Operator};
use millstream_operators::{EventTimeKey, EventTimeKind, TimeBound};

/// The event times that a join of two streams compares.
#[derive(Debug, Clone)]
pub(crate) struct EventTimes {
    /// The pair of keys that carries event time on either side.
    pub(crate) key: Option<EventTimeKey>,
    /// What bounds the event time of left rows.
    pub(crate) left: Vec<TimeBound>,
    /// What bounds the event time of right rows.
    pub(crate) right: Vec<TimeBound>,
}

impl EventTimes {
    /// The event times in the condition of `join`.
    pub(crate) fn of(join: &Join, condition: &JoinCondition) -> Self {
        Self {
            key: event_time_key(join, condition),
            left: bounds(join, condition, JoinSide::Left),
            right: bounds(join, condition, JoinSide::Right),
        }
    }
}

/// The position and kind of the first column that carries event time.
pub(crate) fn event_time_of(schema: &DFSchema) -> Option<EventTimeKey> {
    let index = schema.fields().iter().position(|field| event_time::is_marked(field))?;
    Some(EventTimeKey { index, kind: kind_of(schema.field(index).data_type()) })
}

fn kind_of(data_type: &DataType) -> EventTimeKind {
    match data_type {
        DataType::Struct(_) => EventTimeKind::Window,
        _ => EventTimeKind::Timestamp,
    }
}

/// The first pair of keys of which one is a column that carries event time; left columns are looked at first.
fn event_time_key(join: &Join, condition: &JoinCondition) -> Option<EventTimeKey> {
    let marked = |expr: &Expr, schema: &DFSchema| {
        let Expr::Column(column) = unaliased(expr) else { return None };
        let index = schema.maybe_index_of_column(column)?;
        event_time::is_marked(schema.field(index)).then(|| kind_of(schema.field(index).data_type()))
    };
    let (left, right) = (join.left.schema(), join.right.schema());
    let on_left = condition.keys.iter().enumerate().find_map(|(at, (key, _))| Some((at, marked(key, left)?)));
    let on_right = || condition.keys.iter().enumerate().find_map(|(at, (_, key))| Some((at, marked(key, right)?)));
    on_left.or_else(on_right).map(|(index, kind)| EventTimeKey { index, kind })
}

/// What bounds the event time of rows of `own`, which must have one, by that of the other side.
fn bounds(join: &Join, condition: &JoinCondition, own: JoinSide) -> Vec<TimeBound> {
    let mine = event_time_of(schema_of(join, own)).filter(|time| time.kind == EventTimeKind::Timestamp);
    mine.map_or_else(Vec::new, |mine| solutions(join, condition, own, Some(mine.index)))
}

/// Whether the condition bounds any time of rows of `own` by the event time of the other side.
pub(crate) fn is_bounded(join: &Join, condition: &JoinCondition, own: JoinSide) -> bool {
    !solutions(join, condition, own, None).is_empty()
}

fn solutions(join: &Join, condition: &JoinCondition, own: JoinSide, mine: Option<usize>) -> Vec<TimeBound> {
    let theirs = event_time_of(schema_of(join, own.negate())).filter(|time| time.kind == EventTimeKind::Timestamp);
    let Some(theirs) = theirs else { return Vec::new() };
    let solver = Solver { join, own, mine, theirs: theirs.index };
    condition.both.iter().flat_map(inequalities).filter_map(|inequality| solver.solve(&inequality)).collect()
}

/// `less < more`, or `<=`.
struct Inequality<'a> {
    less: &'a Expr,
    more: &'a Expr,
    or_equal: bool,
}

fn inequalities(conjunct: &Expr) -> Vec<Inequality<'_>> {
    match behind_shield(conjunct) {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (less, more, or_equal) = match op {
                Operator::Lt => (left, right, false),
                Operator::LtEq => (left, right, true),
                Operator::Gt => (right, left, false),
                Operator::GtEq => (right, left, true),
                _ => return Vec::new(),
            };
            vec![Inequality { less, more, or_equal }]
        }
        Expr::Between(Between { expr, negated: false, low, high }) => vec![
            Inequality { less: low, more: expr, or_equal: true },
            Inequality { less: expr, more: high, or_equal: true },
        ],
        Expr::Alias(Alias { expr, .. }) => inequalities(expr),
        _ => Vec::new(),
    }
}

/// A sum of columns and a constant, as far as it was collected.
#[derive(Default)]
struct Sum {
    /// Columns by side and position, with their signs.
    columns: Vec<(JoinSide, usize, i64)>,
    constant_us: i128,
    whole_seconds: bool,
}

struct Solver<'a> {
    join: &'a Join,
    own: JoinSide,
    /// The position of the time to be bounded; any will do when there is none.
    mine: Option<usize>,
    /// The position of the other side's event time.
    theirs: usize,
}

impl Solver<'_> {
    /// `theirs + offset < mine`, if that is what the inequality says.
    fn solve(&self, inequality: &Inequality<'_>) -> Option<TimeBound> {
        let mut sum = Sum::default();
        self.collect(inequality.less, 1, &mut sum)?;
        self.collect(inequality.more, -1, &mut sum)?;
        let mut columns = sum.columns;
        columns.sort_by_key(|(side, _, _)| *side != self.own);
        let [(own, mine, -1), (other, theirs, 1)] = columns.as_slice() else { return None };
        let solved = *own == self.own
            && *other != self.own
            && *theirs == self.theirs
            && self.mine.is_none_or(|wanted| wanted == *mine);
        let offset_us = i64::try_from(sum.constant_us).ok()?;
        solved.then_some(TimeBound { offset_us, inclusive: inequality.or_equal, whole_seconds: sum.whole_seconds })
    }

    /// Adds `expr`, or takes it away; `None` when it is no sum of times and constants.
    fn collect(&self, expr: &Expr, sign: i64, sum: &mut Sum) -> Option<()> {
        match expr {
            Expr::Alias(Alias { expr, .. }) => self.collect(expr, sign, sum),
            Expr::Negative(inner) => self.collect(inner, -sign, sum),
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus, right }) => {
                self.collect(left, sign, sum)?;
                self.collect(right, sign, sum)
            }
            // The difference of two times is no sum of a time and a constant; Spark does not look into it either.
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) if !is_time(&self.type_of(right)?) => {
                self.collect(left, sign, sum)?;
                self.collect(right, -sign, sum)
            }
            Expr::Cast(Cast { expr: inner, .. }) | Expr::TryCast(TryCast { expr: inner, .. }) => {
                self.cast(inner, expr, sign, sum)
            }
            Expr::ScalarFunction(ScalarFunction { func, args }) => match (func.name(), args.as_slice()) {
                (crate::functions::expr::CAST, [inner, ..]) => self.cast(inner, expr, sign, sum),
                ("spark_normalized", [inner]) => self.collect(inner, sign, sum),
                ("spark_add", [left, right]) => {
                    self.collect(left, sign, sum)?;
                    self.collect(right, sign, sum)
                }
                ("spark_subtract", [left, right]) => {
                    self.collect(left, sign, sum)?;
                    self.collect(right, -sign, sum)
                }
                _ => None,
            },
            Expr::Column(column) => {
                let sides = [JoinSide::Left, JoinSide::Right].into_iter();
                let places = sides.map(|side| (side, schema_of(self.join, side)));
                let (side, schema, index) = places
                    .filter_map(|(side, schema)| Some((side, schema, schema.maybe_index_of_column(column)?)))
                    .next()?;
                is_time(schema.field(index).data_type()).then(|| sum.columns.push((side, index, sign)))
            }
            Expr::Literal(value, _) => {
                sum.constant_us += i128::from(sign) * microseconds(value)?;
                Some(())
            }
            _ => None,
        }
    }

    /// A cast between times and numbers of seconds; to whole numbers it cuts off.
    fn cast(&self, inner: &Expr, cast: &Expr, sign: i64, sum: &mut Sum) -> Option<()> {
        let (from, to) = (self.type_of(inner)?, self.type_of(cast)?);
        if !(to.is_numeric() || is_time(&to)) {
            return None;
        }
        sum.whole_seconds |= is_time(&from) && to.is_integer();
        self.collect(inner, sign, sum)
    }

    fn type_of(&self, expr: &Expr) -> Option<DataType> {
        let sides = [JoinSide::Left, JoinSide::Right];
        sides.into_iter().find_map(|side| expr.get_type(schema_of(self.join, side)).ok())
    }
}

/// An interval in microseconds; a number counts as seconds. Months have no fixed length.
fn microseconds(value: &ScalarValue) -> Option<i128> {
    const DAY_US: i128 = 86_400_000_000;
    const SECOND_US: i128 = 1_000_000;
    match value {
        ScalarValue::IntervalMonthDayNano(Some(interval)) if interval.months == 0 => {
            Some(i128::from(interval.days) * DAY_US + i128::from(interval.nanoseconds) / 1000)
        }
        ScalarValue::IntervalDayTime(Some(interval)) => {
            Some(i128::from(interval.days) * DAY_US + i128::from(interval.milliseconds) * 1000)
        }
        ScalarValue::DurationSecond(Some(seconds)) => Some(i128::from(*seconds) * SECOND_US),
        ScalarValue::DurationMillisecond(Some(milliseconds)) => Some(i128::from(*milliseconds) * 1000),
        ScalarValue::DurationMicrosecond(Some(microseconds)) => Some(i128::from(*microseconds)),
        ScalarValue::DurationNanosecond(Some(nanoseconds)) => Some(i128::from(*nanoseconds) / 1000),
        ScalarValue::Int8(Some(seconds)) => Some(i128::from(*seconds) * SECOND_US),
        ScalarValue::Int16(Some(seconds)) => Some(i128::from(*seconds) * SECOND_US),
        ScalarValue::Int32(Some(seconds)) => Some(i128::from(*seconds) * SECOND_US),
        ScalarValue::Int64(Some(seconds)) => Some(i128::from(*seconds) * SECOND_US),
        ScalarValue::Float32(Some(seconds)) => fraction(f64::from(*seconds)),
        ScalarValue::Float64(Some(seconds)) => fraction(*seconds),
        ScalarValue::Decimal128(Some(seconds), _, scale) => {
            let unit = 10_i128.checked_pow(u32::try_from(*scale).ok()?)?;
            Some(seconds.checked_mul(SECOND_US)? / unit)
        }
        _ => None,
    }
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, _))
}

fn fraction(seconds: f64) -> Option<i128> {
    let microseconds = seconds * 1e6;
    (microseconds.abs() < 1e18).then_some(microseconds as i128)
}

fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(Alias { expr, .. }) => unaliased(expr),
        other => other,
    }
}
