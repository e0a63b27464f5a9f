//! Stories of sessions: what merges, what is late, what leaves in which batch; and chance against a naive model.

use super::*;
use crate::testing::{Step, Story};
use crate::{EventTimeKey, EventTimeKind, Node, Pipeline, WatchEventTime};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::AggregateUDF;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_plan::aggregates::PhysicalGroupBy;
use millstream_common::OperatorUid;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A row: second of its time, its gap in seconds, a word, a number. Without a gap it has no session.
type Visit<'a> = (i64, Option<i64>, Option<&'a str>, i64);

fn time() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

fn parts() -> Fields {
    Fields::from(vec![Field::new("start", time(), true), Field::new("end", time(), true)])
}

fn visits_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("ts", time(), true),
        Field::new("word", DataType::Utf8, true),
        Field::new("n", DataType::Int64, true),
        Field::new("session", DataType::Struct(parts()), true),
    ]))
}

fn visits(rows: &[Visit<'_>]) -> RecordBatch {
    let times = |seconds: Vec<Option<i64>>| -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::from_iter(seconds.into_iter().map(|s| s.map(|s| s * 1_000_000))))
    };
    let starts = times(rows.iter().map(|row| row.1.map(|_| row.0)).collect());
    let ends = times(rows.iter().map(|row| row.1.map(|gap| row.0 + gap)).collect());
    let nulls = rows.iter().map(|row| row.1.is_some()).collect();
    let columns: Vec<ArrayRef> = vec![
        times(rows.iter().map(|row| Some(row.0)).collect()),
        Arc::new(StringArray::from_iter(rows.iter().map(|row| row.2))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.3))),
        Arc::new(StructArray::new(parts(), vec![starts, ends], Some(nulls))),
    ];
    RecordBatch::try_new(visits_schema(), columns).unwrap()
}

fn function(udaf: Arc<AggregateUDF>) -> Arc<AggregateFunctionExpr> {
    let argument = col("n", &visits_schema()).unwrap();
    let name = format!("{}(n)", udaf.name());
    Arc::new(AggregateExprBuilder::new(udaf, vec![argument]).schema(visits_schema()).alias(name).build().unwrap())
}

/// Word, session and then the functions.
fn spec(mode: OutputMode, partitions: u32, functions: Vec<Arc<AggregateFunctionExpr>>) -> AggregateSpec {
    let input = visits_schema();
    let key = |name: &str| (col(name, &input).unwrap(), name.to_owned());
    let group_by = PhysicalGroupBy::new_single(vec![key("word"), key("session")]);
    let keys = group_by.group_schema(&input).unwrap();
    let mut fields: Vec<Field> = keys.fields().iter().map(|field| field.as_ref().clone()).collect();
    fields.extend(functions.iter().map(|function| function.field().as_ref().clone()));
    AggregateSpec {
        uid: OperatorUid::new("visits").unwrap(),
        group_by,
        filters: vec![None; functions.len()],
        functions,
        plugins: Vec::new(),
        input,
        output: Arc::new(Schema::new(fields)),
        mode,
        event_time: Some(EventTimeKey { index: 1, kind: EventTimeKind::Window }),
        partitions,
    }
}

fn story(spec: AggregateSpec, restarts: bool) -> Story {
    let build = move || {
        let watched = WatchEventTime::try_new("visits", visits_schema(), 0, 5_000_000).unwrap();
        let watched = Node::Operator { operator: Box::new(watched), inputs: vec![Node::Slot(0)] };
        let sessions = SessionWindows::try_new(spec.clone(), 1).unwrap();
        Pipeline::new(Node::Operator { operator: Box::new(sessions), inputs: vec![watched] })
    };
    Story::new(build, restarts)
}

fn counts(mode: OutputMode, restarts: bool) -> Story {
    story(spec(mode, 2, vec![function(count_udaf())]), restarts)
}

fn visit(second: i64, word: &str) -> Visit<'_> {
    (second, Some(10), Some(word), second)
}

#[test]
fn append_gives_a_session_once_when_the_watermark_reaches_its_end() {
    for restarts in [false, true] {
        let mut story = counts(OutputMode::Append, restarts);
        let step = story.batch(&[visits(&[visit(0, "a"), visit(6, "a"), visit(8, "b"), visit(18, "a")])]);
        assert_eq!((step.rows.len(), step.counts()), (0, [3, 3, 0, 0]));
        let step = story.settle().expect("the watermark moved to 13");
        assert_eq!((step.rows.len(), step.counts(), step.eviction_s), (0, [3, 0, 0, 0], 13));
        let step = story.batch(&[visits(&[visit(14, "a"), visit(40, "b")])]);
        assert_eq!((step.rows.len(), step.counts()), (0, [3, 3, 1, 0]));
        let step = story.settle().expect("the watermark moved to 35");
        assert_eq!(step.rows, ["a [0,28) 4", "b [8,18) 1"]);
        assert_eq!((step.counts(), step.eviction_s), ([1, 0, 2, 0], 35));
        assert!(story.settle().is_none(), "the watermark did not move in a batch without rows");
    }
}

#[test]
fn a_row_exactly_a_gap_later_is_in_the_same_session() {
    let mut story = counts(OutputMode::Complete, false);
    assert_eq!(
        story.batch(&[visits(&[visit(0, "a"), visit(10, "a"), visit(31, "a")])]).rows,
        ["a [0,20) 2", "a [31,41) 1"]
    );
    assert_eq!(story.batch(&[visits(&[visit(20, "a")])]).rows, ["a [0,30) 3", "a [31,41) 1"]);
    assert_eq!(story.batch(&[visits(&[visit(30, "a")])]).rows, ["a [0,41) 5"]);
}

#[test]
fn the_longest_gap_ends_a_session_not_the_last_row() {
    let mut story = counts(OutputMode::Complete, false);
    let rows = [(0, Some(100), Some("a"), 1), (50, Some(2), Some("a"), 1), (100, Some(1), Some("a"), 1)];
    assert_eq!(story.batch(&[visits(&rows)]).rows, ["a [0,101) 3"]);
}

#[test]
fn a_row_is_late_by_its_own_range_also_in_complete_mode() {
    for mode in [OutputMode::Append, OutputMode::Complete] {
        let mut story = counts(mode, false);
        story.batch(&[visits(&[visit(12, "a"), visit(35, "z")])]);
        story.batch(&[visits(&[visit(36, "z")])]);
        // The late watermark is 30 now: what ends there is late though it would touch a session that is open.
        let late = [visit(20, "z"), visit(20, "z"), visit(20, "y"), visit(21, "x")];
        let step = story.batch(&[visits(&late)]);
        assert_eq!(step.counts()[3], 2, "{mode}: rows of one key and range count once");
        let open: &[&str] =
            if mode == OutputMode::Append { &["x [21,31) 1"] } else { &["a [12,22) 1", "x [21,31) 1", "z [35,46) 2"] };
        assert_eq!(step.rows, open, "{mode}");
        assert_eq!(story.settle().is_some(), mode == OutputMode::Append && step.eviction_s != 31);
    }
}

#[test]
fn sessions_without_event_time_are_never_late_nor_closed() {
    let spec = AggregateSpec { event_time: None, ..spec(OutputMode::Complete, 2, vec![function(count_udaf())]) };
    let mut story = story(spec, true);
    story.batch(&[visits(&[visit(0, "a"), visit(100, "a")])]);
    story.batch(&[visits(&[visit(100, "a")])]);
    let step = story.batch(&[visits(&[visit(5, "a")])]);
    assert_eq!((step.rows.clone(), step.counts()), (vec!["a [0,15) 2".into(), "a [100,110) 2".into()], [2, 2, 0, 0]));
    assert!(story.settle().is_none());
}

#[test]
fn order_within_a_session_is_that_of_the_starts_with_the_stored_session_first() {
    let functions = vec![function(array_agg_udaf())];
    let mut story = story(spec(OutputMode::Complete, 1, functions), true);
    let at = |second, n| (second, Some(10), Some("a"), n);
    assert_eq!(story.batch(&[visits(&[at(4, 1), at(2, 2), at(4, 3)])]).rows, ["a [2,14) [2, 1, 3]"]);
    assert_eq!(story.batch(&[visits(&[at(9, 4), at(2, 5), at(1, 6)])]).rows, ["a [1,19) [6, 2, 1, 3, 5, 4]"]);
}

#[test]
fn an_aborted_batch_leaves_the_sessions_as_they_were() {
    let mut story = counts(OutputMode::Append, false);
    story.batch(&[visits(&[visit(0, "a"), visit(12, "a"), visit(30, "b")])]);
    let context = story.context();
    let rows = vec![visits(&[visit(5, "a"), visit(31, "c")])];
    story.pipeline.run(&mut [rows], &context).unwrap();
    let prepared: Result<(), StateError> = story.pipeline.for_each_stateful(|state| state.prepare().map(|_| ()));
    prepared.unwrap();
    story.pipeline.abort();
    let step = story.batch(&[visits(&[visit(40, "a")])]);
    assert_eq!(step.rows, ["a [0,10) 1", "a [12,22) 1"]);
    assert_eq!(step.counts(), [2, 3, 2, 0]);
}

#[test]
fn what_does_not_fit_together_is_told() {
    let functions = || vec![function(count_udaf())];
    let told = |spec, session| match SessionWindows::try_new(spec, session) {
        Err(OperatorError::Misfit { reason, .. }) => reason,
        other => panic!("{:?}", other.map(|operator| operator.describe())),
    };
    assert!(told(spec(OutputMode::Update, 1, functions()), 1).contains("update"));
    assert!(told(spec(OutputMode::Append, 1, functions()), 2).contains("no such key"));
    let no_time = AggregateSpec { event_time: None, ..spec(OutputMode::Append, 1, functions()) };
    assert!(SessionWindows::try_new(no_time, 0).is_err(), "a word is no session");
    assert!(told(spec(OutputMode::Append, 1, functions()), 0).contains("another key"));
    let mut other = spec(OutputMode::Append, 1, functions());
    other.output = visits_schema();
    assert!(told(other, 1).contains("are wanted"));
}

/// The sessions of a model: word, start and end, and the numbers of their rows.
type Sessions = BTreeMap<(Option<String>, i64, i64), Vec<i64>>;

/// What the operator should do, said as plainly as possible.
#[derive(Default)]
struct Model {
    sessions: Sessions,
}

impl Model {
    /// Joins two sessions of a word that overlap or touch, until there are none.
    fn join(&mut self) {
        loop {
            let all: Vec<_> = self.sessions.keys().cloned().collect();
            let touch = |a: &(Option<String>, i64, i64), b: &(Option<String>, i64, i64)| {
                a != b && a.0 == b.0 && a.1 <= b.2 && b.1 <= a.2
            };
            let pair = all.iter().find_map(|a| all.iter().find(|b| touch(a, b)).map(|b| (a.clone(), b.clone())));
            let Some((a, b)) = pair else { return };
            let mut numbers = self.sessions.remove(&a).unwrap();
            numbers.extend(self.sessions.remove(&b).unwrap());
            self.sessions.entry((a.0, a.1.min(b.1), a.2.max(b.2))).or_default().extend(numbers);
        }
    }

    fn batch(&mut self, rows: &[Visit<'_>], late: i64, eviction: i64, mode: OutputMode) -> (Vec<String>, [u64; 4]) {
        let (mut dropped, mut touched) = (BTreeSet::new(), BTreeSet::new());
        let before = self.sessions.clone();
        for (second, gap, word, n) in rows {
            let Some(gap) = gap else { continue };
            let session = (word.map(str::to_owned), *second, second + gap);
            if session.2 <= late {
                dropped.insert(session);
                continue;
            }
            touched.insert(session.0.clone());
            self.sessions.entry(session).or_default().push(*n);
        }
        self.join();
        let starts = |sessions: &Sessions| -> BTreeSet<(Option<String>, i64)> {
            sessions.keys().filter(|key| touched.contains(&key.0)).map(|key| (key.0.clone(), key.1)).collect()
        };
        let updated = starts(&self.sessions).len() as u64;
        let mut removed = starts(&before).difference(&starts(&self.sessions)).count() as u64;
        let mut given = self.sessions.clone();
        if mode == OutputMode::Append {
            given.retain(|key, _| key.2 <= eviction);
            self.sessions.retain(|key, _| key.2 > eviction);
            removed += given.len() as u64;
        }
        let text = |(key, numbers): (&(Option<String>, i64, i64), &Vec<i64>)| {
            let (sum, least) = (numbers.iter().sum::<i64>(), numbers.iter().min().unwrap());
            let (count, greatest) = (numbers.len(), numbers.iter().max().unwrap());
            let word = key.0.as_deref().unwrap_or("null");
            format!("{word} [{},{}) {count} {sum} {least} {greatest}", key.1, key.2)
        };
        let mut rows: Vec<String> = given.iter().map(text).collect();
        rows.sort();
        (rows, [self.sessions.len() as u64, updated, removed, dropped.len() as u64])
    }
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn chance_agrees_with_a_naive_model_whatever_the_splits_partitions_and_restarts() {
    let words = [Some("a"), Some("b"), None, Some("ccc"), Some("")];
    for seed in 0..60_u64 {
        let mut chance = Chance(seed);
        let mode = if chance.below(3) == 0 { OutputMode::Complete } else { OutputMode::Append };
        let partitions = [1, 2, 5][chance.below(3) as usize];
        let functions = [count_udaf(), sum_udaf(), min_udaf(), max_udaf()].map(function).to_vec();
        let mut story = story(spec(mode, partitions, functions), chance.below(2) == 0);
        let (mut model, mut late, mut greatest) = (Model::default(), 0, 0);
        let spread = 5 + chance.below(60);
        for batch in 0..12 {
            let rows: Vec<Visit<'_>> = (0..chance.below(25))
                .map(|_| {
                    let second = (batch * 8 + chance.below(spread)) as i64 - 5;
                    let gap = (chance.below(12) > 0).then(|| 1 + chance.below(12) as i64);
                    (second, gap, words[chance.below(5) as usize], chance.below(100) as i64)
                })
                .collect();
            let cut = chance.below(rows.len() as u64 + 1) as usize;
            let eviction = (greatest - 5_i64).max(0);
            let step: Step = story.batch(&[visits(&rows[..cut]), visits(&rows[cut..])]);
            let (expected, counts) = model.batch(&rows, late, eviction, mode);
            assert_eq!(step.eviction_s, eviction, "seed {seed}, batch {batch}");
            assert_eq!(step.rows, expected, "seed {seed}, batch {batch}, {mode}");
            assert_eq!(step.counts(), counts, "seed {seed}, batch {batch}, {mode}");
            late = eviction;
            greatest = rows.iter().map(|row| row.0).fold(greatest, i64::max);
            if chance.below(6) == 0 {
                story.restart();
            }
        }
    }
}
