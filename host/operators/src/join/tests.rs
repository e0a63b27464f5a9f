//! Stories of joins of two streams, and a random one against nested loops over all rows.

use super::{Join, JoinKind, JoinSide, JoinSpec, TimeBound};
use crate::testing::{Step, Story};
use crate::{EventTimeKey, EventTimeKind, Node, Operator, Pipeline, WatchEventTime};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::logical_expr::Operator as Comparison;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, col, lit};
use datafusion::scalar::ScalarValue;
use millstream_common::{OperatorUid, Watermark};
use std::sync::Arc;

/// A row: seconds of event time, key, number.
type Row = (Option<i64>, Option<&'static str>, i64);

const SECOND_US: i64 = 1_000_000;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("k", DataType::Utf8, true),
        Field::new("n", DataType::Int64, true),
    ]))
}

fn rows(rows: &[Row]) -> Vec<RecordBatch> {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampMicrosecondArray::from_iter(rows.iter().map(|row| row.0.map(|s| s * SECOND_US)))),
        Arc::new(StringArray::from_iter(rows.iter().map(|row| row.1))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2))),
    ];
    vec![RecordBatch::try_new(schema(), columns).unwrap()]
}

/// How rows are kept.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    ForEver,
    /// The times are equal.
    ByKey,
    /// `left time <= right time <= left time + ten seconds`.
    ByTime,
}

#[derive(Clone, Copy)]
struct Shape {
    kind: JoinKind,
    kept: Kept,
    /// `left n <= right n`.
    ordered: bool,
    /// `left n > 0`.
    positive_left: bool,
    nulls_match: bool,
    partitions: u32,
    delay_s: i64,
}

impl Shape {
    fn new(kind: JoinKind, kept: Kept) -> Self {
        Self { kind, kept, ordered: false, positive_left: false, nulls_match: false, partitions: 2, delay_s: 5 }
    }

    fn side(&self, bounds: Vec<TimeBound>) -> JoinSide {
        let mut keys = vec![col("k", &schema()).unwrap()];
        if self.kept == Kept::ByKey {
            keys.push(col("ts", &schema()).unwrap());
        }
        let event_time = Some(EventTimeKey { index: 0, kind: EventTimeKind::Timestamp });
        let bounds = if self.kept == Kept::ByTime { bounds } else { Vec::new() };
        JoinSide { schema: schema(), keys, filter: None, event_time, bounds }
    }

    fn condition(&self) -> Option<PhysicalExprRef> {
        let column = |name: &str, index| -> PhysicalExprRef { Arc::new(Column::new(name, index)) };
        let compare = |left: PhysicalExprRef, operator, right: PhysicalExprRef| -> PhysicalExprRef {
            Arc::new(BinaryExpr::new(left, operator, right))
        };
        let mut parts = Vec::new();
        if self.kept == Kept::ByTime {
            let ten_seconds = lit(ScalarValue::new_interval_mdn(0, 0, 10_000_000_000));
            let end = compare(column("ts", 0), Comparison::Plus, ten_seconds);
            parts.push(compare(column("ts", 3), Comparison::GtEq, column("ts", 0)));
            parts.push(compare(column("ts", 3), Comparison::LtEq, end));
        }
        if self.ordered {
            parts.push(compare(column("n", 2), Comparison::LtEq, column("n", 5)));
        }
        parts.into_iter().reduce(|all, part| compare(all, Comparison::And, part))
    }

    fn join(&self) -> Join {
        let bound =
            |offset_s: i64| TimeBound { offset_us: offset_s * SECOND_US, inclusive: true, whole_seconds: false };
        let mut fields: Vec<Field> = schema().fields().iter().map(|f| f.as_ref().clone()).collect();
        if self.kind != JoinKind::LeftSemi {
            fields.extend(fields.clone());
        }
        let mut left = self.side(vec![bound(-10)]);
        if self.positive_left {
            left.filter =
                Some(Arc::new(BinaryExpr::new(col("n", &schema()).unwrap(), Comparison::Gt, lit(0_i64)))
                    as PhysicalExprRef);
        }
        let spec = JoinSpec {
            uid: OperatorUid::new("query-join").unwrap(),
            kind: self.kind,
            left,
            right: self.side(vec![bound(0)]),
            condition: self.condition(),
            nulls_match: self.nulls_match,
            event_time_key: (self.kept == Kept::ByKey)
                .then_some(EventTimeKey { index: 1, kind: EventTimeKind::Timestamp }),
            output: Arc::new(Schema::new(fields)),
            partitions: self.partitions,
        };
        Join::try_new(spec).unwrap()
    }

    fn pipeline(&self) -> Pipeline {
        let watched = |name: &str, slot| Node::Operator {
            operator: Box::new(WatchEventTime::try_new(name, schema(), 0, self.delay_s * SECOND_US).unwrap()),
            inputs: vec![Node::Slot(slot)],
        };
        let inputs = vec![watched("l", 0), watched("r", 1)];
        Pipeline::new(Node::Operator { operator: Box::new(self.join()), inputs })
    }

    fn story(self, restarts: bool) -> Story {
        Story::new(move || self.pipeline(), restarts)
    }
}

fn batch(story: &mut Story, left: &[Row], right: &[Row]) -> Step {
    story.batch_of(&mut [rows(left), rows(right)])
}

const fn row(second: i64, key: &'static str, n: i64) -> Row {
    (Some(second), Some(key), n)
}

#[test]
fn rows_meet_once_in_whatever_batches_they_come_and_as_often_as_they_came() {
    for restarts in [false, true] {
        let mut story = Shape::new(JoinKind::Inner, Kept::ForEver).story(restarts).without_watermark();
        let first = batch(&mut story, &[row(1, "a", 1), row(1, "a", 1), row(1, "b", 2)], &[row(2, "a", 10)]);
        assert_eq!(first.rows, ["1s a 1 2s a 10", "1s a 1 2s a 10"]);
        assert_eq!(first.counts(), [4, 4, 0, 0]);
        let second = batch(&mut story, &[], &[row(900, "b", 20), row(900, "b", 20)]);
        assert_eq!(second.rows, ["1s b 2 900s b 20", "1s b 2 900s b 20"]);
        let third = batch(&mut story, &[row(0, "b", 3)], &[]);
        assert_eq!(third.rows, ["0s b 3 900s b 20", "0s b 3 900s b 20"]);
        assert_eq!(third.counts(), [7, 1, 0, 0]);
    }
}

#[test]
fn an_unmatched_row_comes_out_when_it_can_match_no_more_and_a_matched_one_never() {
    for restarts in [false, true] {
        let mut story = Shape::new(JoinKind::LeftOuter, Kept::ByTime).story(restarts);
        batch(&mut story, &[row(1, "a", 1), row(2, "b", 2)], &[row(5, "a", 10)]);
        let second = batch(&mut story, &[row(18, "c", 3)], &[row(18, "q", 20)]);
        assert_eq!((second.rows, second.eviction_s), (vec![], 0));
        let third = batch(&mut story, &[row(30, "c", 4)], &[row(30, "q", 21)]);
        assert_eq!(third.eviction_s, 13);
        assert_eq!(third.rows, ["2s b 2 null null null"], "one second before, `b` could still match");
        // Gone are both left rows and the right row of second 5.
        assert_eq!(third.counts(), [4, 2, 3, 0]);
    }
}

#[test]
fn rows_of_both_sides_come_out_unmatched_in_a_full_outer_join() {
    let mut story = Shape::new(JoinKind::FullOuter, Kept::ByTime).story(false);
    batch(&mut story, &[row(1, "a", 1), (Some(2), None, 2)], &[row(1, "b", 10), (Some(3), None, 20)]);
    batch(&mut story, &[row(100, "z", 0)], &[row(100, "y", 0)]);
    let last = story.settle().unwrap();
    assert_eq!(
        last.rows,
        ["1s a 1 null null null", "2s null 2 null null null", "null null null 1s b 10", "null null null 3s null 20"]
    );
    let mut told = Shape::new(JoinKind::FullOuter, Kept::ByTime);
    told.nulls_match = true;
    let mut story = told.story(false);
    let first = batch(&mut story, &[(Some(2), None, 2)], &[(Some(3), None, 20)]);
    assert_eq!(first.rows, ["2s null 2 3s null 20"], "keys with nulls match where that is said");
}

#[test]
fn keys_with_nulls_are_kept_only_where_they_come_out_unmatched() {
    let mut story = Shape::new(JoinKind::LeftOuter, Kept::ByTime).story(false);
    let first = batch(&mut story, &[(Some(2), None, 2)], &[(Some(3), None, 20)]);
    assert_eq!((first.rows.len(), first.counts()), (0, [1, 1, 0, 0]));
    let mut story = Shape::new(JoinKind::Inner, Kept::ByTime).story(false);
    let first = batch(&mut story, &[(Some(2), None, 2)], &[(Some(3), None, 20)]);
    assert_eq!((first.rows.len(), first.counts()), (0, [0, 0, 0, 0]));
}

#[test]
fn rows_that_fail_their_own_part_of_the_condition_come_out_at_once() {
    let mut shape = Shape::new(JoinKind::LeftOuter, Kept::ByTime);
    shape.positive_left = true;
    let mut story = shape.story(false);
    let first = batch(&mut story, &[row(1, "a", 0), row(1, "a", 1)], &[row(2, "a", 10)]);
    assert_eq!(first.rows, ["1s a 0 null null null", "1s a 1 2s a 10"]);
    assert_eq!(first.counts(), [2, 2, 0, 0]);
}

#[test]
fn equal_times_in_the_key_let_whole_times_go() {
    for restarts in [false, true] {
        let mut story = Shape::new(JoinKind::RightOuter, Kept::ByKey).story(restarts);
        batch(&mut story, &[row(10, "a", 1)], &[row(10, "a", 10), row(10, "b", 20), row(11, "a", 30)]);
        let second = batch(&mut story, &[row(15, "c", 0), row(11, "a", 2)], &[row(15, "d", 0)]);
        assert_eq!(second.rows, ["11s a 2 11s a 30"]);
        let third = batch(&mut story, &[row(30, "c", 0)], &[row(30, "d", 0)]);
        assert_eq!(third.eviction_s, 10);
        assert_eq!(third.rows, ["null null null 10s b 20"]);
        assert_eq!(third.counts(), [6, 2, 3, 0]);
    }
}

#[test]
fn a_semi_join_gives_a_left_row_once_and_lets_it_go() {
    for restarts in [false, true] {
        let mut story = Shape::new(JoinKind::LeftSemi, Kept::ByTime).story(restarts);
        let first =
            batch(&mut story, &[row(1, "a", 1), row(1, "b", 2), row(1, "b", 2)], &[row(1, "a", 0), row(2, "a", 0)]);
        assert_eq!(first.rows, ["1s a 1"]);
        assert_eq!(first.counts(), [4, 4, 0, 0], "the matched row is not stored");
        let second = batch(&mut story, &[], &[row(3, "b", 0), row(3, "b", 1)]);
        assert_eq!(second.rows, ["1s b 2", "1s b 2"]);
        assert_eq!(second.counts(), [4, 2, 2, 0], "the matched rows have left");
        let third = batch(&mut story, &[], &[row(4, "b", 0)]);
        assert_eq!(third.rows, [""; 0]);
    }
}

#[test]
fn a_right_row_of_a_semi_join_that_leaves_at_once_still_meets_the_left_rows_of_its_batch() {
    let mut story = Shape::new(JoinKind::LeftSemi, Kept::ByTime).story(false);
    batch(&mut story, &[row(30, "a", 1)], &[row(31, "z", 1)]);
    let second = batch(&mut story, &[row(2, "b", 1), row(2, "c", 1)], &[row(3, "b", 1)]);
    assert_eq!(second.eviction_s, 25);
    assert_eq!(second.rows, ["2s b 1"]);
    assert_eq!(second.counts(), [2, 1, 1, 0], "the unmatched left row came and went, the right one counts as neither");
}

#[test]
fn late_rows_match_nothing_and_come_out_nowhere() {
    let mut story = Shape::new(JoinKind::LeftOuter, Kept::ByTime).story(false);
    batch(&mut story, &[row(20, "a", 1)], &[row(20, "a", 10)]);
    batch(&mut story, &[], &[]);
    let third = batch(&mut story, &[row(15, "a", 2), row(16, "a", 3)], &[row(15, "a", 20), (None, Some("a"), 30)]);
    assert_eq!(third.rows, ["16s a 3 20s a 10"]);
    assert_eq!(third.counts()[3], 2, "a row without time is not late");
}

#[test]
fn right_rows_that_leave_at_once_are_not_stored_but_left_ones_are() {
    let mut story = Shape::new(JoinKind::Inner, Kept::ByTime).story(false);
    batch(&mut story, &[row(30, "a", 1)], &[row(30, "a", 1)]);
    // Not late yet, but before the watermark that this batch evicts with.
    let second = batch(&mut story, &[row(2, "b", 1)], &[row(3, "b", 1)]);
    assert_eq!(second.eviction_s, 25);
    assert_eq!(second.rows, ["2s b 1 3s b 1"]);
    assert_eq!(second.counts(), [2, 1, 1, 0]);
}

#[test]
fn what_comes_out_is_as_old_as_what_is_held_back() {
    let watermark = Some(Watermark(100_000));
    let out = |kept| Shape::new(JoinKind::Inner, kept).join().output_watermark(watermark, Watermark(100_000));
    assert_eq!(out(Kept::ForEver), watermark);
    assert_eq!(out(Kept::ByKey), watermark);
    assert_eq!(out(Kept::ByTime), Some(Watermark(89_999)));
    let join = Shape::new(JoinKind::Inner, Kept::ByTime).join();
    assert_eq!(join.output_watermark(None, Watermark(100_000)), None);
}

#[test]
fn a_batch_without_rows_is_wanted_only_where_rows_leave() {
    let wants = |kept| {
        let mut story = Shape::new(JoinKind::Inner, kept).story(false);
        batch(&mut story, &[row(100, "a", 1)], &[row(100, "a", 1)]);
        story.settle().is_some()
    };
    assert!(!wants(Kept::ForEver));
    assert!(wants(Kept::ByKey) && wants(Kept::ByTime));
}

#[test]
fn an_aborted_batch_leaves_nothing_behind() {
    for kind in [JoinKind::LeftOuter, JoinKind::LeftSemi] {
        let mut story = Shape::new(kind, Kept::ByTime).story(false);
        batch(&mut story, &[row(1, "a", 1)], &[row(1, "b", 1)]);
        let context = story.context();
        let attempt = story.pipeline.run(&mut [rows(&[row(2, "b", 2)]), rows(&[row(2, "a", 2)])], &context).unwrap();
        assert!(!attempt.is_empty());
        story.pipeline.abort();
        let again = batch(&mut story, &[], &[row(2, "a", 2)]);
        assert_eq!(again.rows.len(), 1);
        let total = if kind == JoinKind::LeftSemi { 2 } else { 3 };
        assert_eq!(again.counts()[0], total);
    }
}

#[test]
fn a_key_with_more_rows_than_a_piece_meets_all_of_them() {
    let mut shape = Shape::new(JoinKind::LeftOuter, Kept::ByTime);
    shape.ordered = true;
    let mut story = shape.story(false);
    let many: Vec<Row> = (0..40_000).map(|n| row(1 + n % 3, "a", n)).collect();
    batch(&mut story, &many, &[]);
    let second = batch(&mut story, &[], &[row(5, "a", 29_999), row(6, "a", 9)]);
    assert_eq!(second.rows.len(), 30_000 + 10);
    batch(&mut story, &[row(60, "z", 0)], &[row(60, "z", 0)]);
    let last = story.settle().unwrap();
    assert_eq!(last.rows.len(), 10_000);
    assert_eq!(last.counts(), [2, 0, 40_002, 0]);
}

/// A small generator, so that a failure can be told by its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % sides
    }
}

const KEYS: [Option<&str>; 5] = [Some("a"), Some("b"), Some("c"), None, Some("a")];

fn random_rows(dice: &mut Dice, batch: i64) -> Vec<Row> {
    let count = dice.roll(9);
    let one = |dice: &mut Dice| {
        let second = 1 + batch * 7 + dice.roll(25) as i64;
        (Some(second), KEYS[dice.roll(5) as usize], dice.roll(4) as i64)
    };
    (0..count).map(|_| one(dice)).collect()
}

fn text(row: Option<&Row>) -> String {
    match row {
        None => "null null null".to_owned(),
        Some((time, key, n)) => format!("{}s {} {n}", time.unwrap_or_default(), key.unwrap_or("null")),
    }
}

/// The join of all rows, row by row.
fn nested_loops(shape: &Shape, left: &[Row], right: &[Row]) -> Vec<String> {
    let matches = |l: &Row, r: &Row| {
        let keys = (l.1.is_some() || shape.nulls_match) && l.1 == r.1;
        let (lt, rt) = (l.0.unwrap_or_default(), r.0.unwrap_or_default());
        let times = match shape.kept {
            Kept::ForEver => true,
            Kept::ByKey => lt == rt,
            Kept::ByTime => lt <= rt && rt <= lt + 10,
        };
        keys && times && (!shape.ordered || l.2 <= r.2) && (!shape.positive_left || l.2 > 0)
    };
    let mut out = Vec::new();
    for l in left {
        let found = right.iter().filter(|r| matches(l, r)).count();
        if shape.kind == JoinKind::LeftSemi {
            out.extend((found > 0).then(|| text(Some(l))));
            continue;
        }
        out.extend(right.iter().filter(|r| matches(l, r)).map(|r| format!("{} {}", text(Some(l)), text(Some(r)))));
        if found == 0 && matches!(shape.kind, JoinKind::LeftOuter | JoinKind::FullOuter) {
            out.push(format!("{} {}", text(Some(l)), text(None)));
        }
    }
    if matches!(shape.kind, JoinKind::RightOuter | JoinKind::FullOuter) {
        let alone = right.iter().filter(|r| !left.iter().any(|l| matches(l, r)));
        out.extend(alone.map(|r| format!("{} {}", text(None), text(Some(r)))));
    }
    out.sort();
    out
}

#[test]
fn when_nothing_is_late_the_result_over_all_batches_is_that_of_nested_loops() {
    let kinds = [JoinKind::Inner, JoinKind::LeftOuter, JoinKind::RightOuter, JoinKind::FullOuter, JoinKind::LeftSemi];
    for seed in 1..=60_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let kind = kinds[(seed % 5) as usize];
        let shape = Shape {
            kind,
            kept: if seed % 2 == 0 { Kept::ByTime } else { Kept::ByKey },
            ordered: dice.roll(2) == 0,
            positive_left: dice.roll(3) == 0,
            nulls_match: kind == JoinKind::FullOuter && dice.roll(2) == 0,
            partitions: 1 + dice.roll(3) as u32,
            // A row is at most 25 seconds behind, and its time may be passed by as much.
            delay_s: 25,
        };
        let mut story = shape.story(dice.roll(2) == 0);
        let (mut left, mut right, mut out) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..25 {
            let (l, r) = (random_rows(&mut dice, number), random_rows(&mut dice, number));
            let step = batch(&mut story, &l, &r);
            assert_eq!(step.counts()[3], 0, "seed {seed}: a row was late");
            out.extend(step.rows);
            left.extend(l);
            right.extend(r);
        }
        out.extend(batch(&mut story, &[row(10_000, "left end", 9)], &[row(10_000, "right end", 9)]).rows);
        let last = story.settle().unwrap();
        out.extend(last.rows.clone());
        out.sort();
        assert_eq!(out, nested_loops(&shape, &left, &right), "seed {seed}, {kind}");
        assert_eq!(last.counts()[0], 2, "seed {seed}, {kind}: only the last rows are left");
    }
}
