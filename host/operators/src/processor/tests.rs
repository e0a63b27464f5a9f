//! Stories of processors: state, timers, times to live and faults, batch by batch; and chance against a naive model.

use super::*;
use crate::testing::{Story, sorted};
use crate::{Node, Pipeline, WatchEventTime};
use arrow::array::{AsArray, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema, TimeUnit};
use millstream_common::{OperatorUid, OutputMode, Watermark, Watermarks};
use millstream_wasm::WasmError;
use millstream_wasm::processor::{
    Entries, KeyFault, ProcessorSignature, VariableChanges, VariableKind, VariableSignature,
};
use std::collections::BTreeMap;

/// One key in a call of the tests' code.
struct Key<'a> {
    name: String,
    step: &'a Step,
    rows: Vec<i64>,
    /// Per variable the map keys and values of its entries.
    state: Vec<Vec<(String, i64)>>,
    timers: Vec<i64>,
    due: Vec<i64>,
    watermark_ms: Option<i64>,
    out: Vec<String>,
    cleared: Vec<usize>,
    removed: Vec<(usize, String)>,
    put: Vec<(usize, String, i64)>,
    deleted: Vec<i64>,
    registered: Vec<i64>,
    fault: Option<String>,
}

impl Key<'_> {
    fn put(&mut self, variable: usize, value: i64) {
        self.put.push((variable, String::new(), value));
    }

    fn value(&self, variable: usize) -> Option<i64> {
        self.state[variable].first().map(|entry| entry.1)
    }

    fn all(&self, variable: usize) -> String {
        let shown =
            |(key, value): &(String, i64)| if key.is_empty() { value.to_string() } else { format!("{key}={value}") };
        self.state[variable].iter().map(shown).collect::<Vec<_>>().join(",")
    }
}

type Body = Arc<dyn Fn(&mut Key<'_>) + Send + Sync>;

/// Calls a function per key.
struct PerKey {
    signature: ProcessorSignature,
    body: Body,
}

fn texts_of(column: &ArrayRef) -> Vec<String> {
    column.as_string::<i32>().iter().map(|text| text.unwrap_or("null").to_owned()).collect()
}

fn numbers_of(column: &ArrayRef) -> Vec<i64> {
    column.as_primitive::<Int64Type>().values().to_vec()
}

impl ProcessorCode for PerKey {
    fn call(&self, step: &Step, call: &Invocation) -> Result<Outcome, WasmError> {
        let names = texts_of(&call.keys[0]);
        let rows = call.rows.first().map(numbers_of).unwrap_or_default();
        let mut outcome = Outcome { changes: vec![VariableChanges::default(); call.state.len()], ..Outcome::default() };
        let mut texts = Vec::new();
        let mut removed: Vec<Vec<String>> = vec![Vec::new(); call.state.len()];
        let mut put: Vec<(Vec<String>, Vec<i64>)> = vec![Default::default(); call.state.len()];
        let empty = Timers::default();
        let due = if let Step::Expire(due) = step { due } else { &empty };
        for number in 0..call.key_count as u32 {
            let of = |timers: &Timers| timers.iter().filter(|(key, _)| *key == number).map(|(_, due)| due).collect();
            let entries = |entries: &Entries| {
                let keys = entries.map_keys.first().map(texts_of);
                let values = numbers_of(&entries.columns[0]);
                let own = (0..values.len()).filter(|place| entries.key_of_entry[*place] == number);
                own.map(|place| (keys.as_ref().map_or(String::new(), |keys| keys[place].clone()), values[place]))
                    .collect()
            };
            let mut key = Key {
                name: names[number as usize].clone(),
                step,
                rows: (0..rows.len())
                    .filter(|row| call.key_of_row.get(*row) == Some(&number))
                    .map(|row| rows[row])
                    .collect(),
                state: call.state.iter().map(entries).collect(),
                timers: of(&call.timers),
                due: of(due),
                watermark_ms: call.watermark_ms,
                out: vec![],
                cleared: vec![],
                removed: vec![],
                put: vec![],
                deleted: vec![],
                registered: vec![],
                fault: None,
            };
            (self.body)(&mut key);
            if let Some(error) = key.fault {
                outcome.faults.push(KeyFault { key: number, error });
                continue;
            }
            for text in key.out {
                outcome.key_of_row.push(number);
                texts.push((key.name.clone(), text));
            }
            key.cleared.iter().for_each(|variable| outcome.changes[*variable].cleared.push(number));
            for (variable, map_key) in key.removed {
                outcome.changes[variable].key_of_removed.push(number);
                removed[variable].push(map_key);
            }
            for (variable, map_key, value) in key.put {
                outcome.changes[variable].put.key_of_entry.push(number);
                put[variable].0.push(map_key);
                put[variable].1.push(value);
            }
            key.deleted.sort_unstable();
            key.registered.sort_unstable();
            key.deleted.iter().for_each(|due| outcome.deleted.push(number, *due));
            key.registered.iter().for_each(|due| outcome.registered.push(number, *due));
        }
        let strings = |texts: Vec<String>| Arc::new(StringArray::from(texts)) as ArrayRef;
        for (((variable, changes), removed), put) in
            self.signature.variables.iter().zip(&mut outcome.changes).zip(removed).zip(put)
        {
            changes.put.columns = vec![Arc::new(Int64Array::from(put.1))];
            if variable.kind == VariableKind::Map {
                changes.removed = vec![strings(removed)];
                changes.put.map_keys = vec![strings(put.0)];
            }
        }
        let (names, texts) = texts.into_iter().unzip();
        outcome.rows = vec![strings(names), strings(texts)];
        outcome.check(&self.signature, call.key_count).unwrap();
        Ok(outcome)
    }
}

fn time() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

fn field(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, true)
}

fn variable(name: &str, kind: VariableKind, ttl_ms: Option<i64>) -> VariableSignature {
    let map_key = if kind == VariableKind::Map { vec![field("m", DataType::Utf8)] } else { vec![] };
    VariableSignature {
        name: name.into(),
        kind,
        map_key: map_key.into(),
        columns: vec![field("v", DataType::Int64)].into(),
        state_id: "1".into(),
        ttl_ms,
    }
}

fn signature(time_mode: TimeMode, variables: Vec<VariableSignature>) -> ProcessorSignature {
    ProcessorSignature {
        name: "code".into(),
        key: vec![field("k", DataType::Utf8)].into(),
        input: vec![field("n", DataType::Int64)].into(),
        output: vec![field("k", DataType::Utf8), field("text", DataType::Utf8)].into(),
        initial: vec![field("n", DataType::Int64)].into(),
        variables,
        time_mode,
        output_modes: vec![OutputMode::Append, OutputMode::Update],
    }
}

fn input() -> SchemaRef {
    Arc::new(Schema::new(vec![field("k", DataType::Utf8), field("n", DataType::Int64), field("ts", time())]))
}

/// Rows: key, number, second of the event time.
fn rows(rows: &[(&str, i64, i64)]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1))),
        Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.2 * 1_000_000))),
    ];
    RecordBatch::try_new(input(), columns).unwrap()
}

fn spec(
    signature: ProcessorSignature,
    partitions: u32,
    body: impl Fn(&mut Key<'_>) + Send + Sync + 'static,
) -> ProcessorSpec {
    let output: Fields = signature.output.clone();
    ProcessorSpec {
        uid: OperatorUid::new("query-processor").unwrap(),
        plugin: "plugin".into(),
        code: Arc::new(PerKey { signature: signature.clone(), body: Arc::new(body) }),
        event_time: (signature.time_mode == TimeMode::EventTime).then_some((2, EventTimeKind::Timestamp)),
        signature,
        input: input(),
        output: Arc::new(Schema::new(output)),
        output_time: None,
        initial: vec![],
        partitions,
    }
}

fn pipeline(spec: &ProcessorSpec) -> Pipeline {
    let watched = WatchEventTime::try_new("rows", input(), 2, 5_000_000).unwrap();
    let watched = Node::Operator { operator: Box::new(watched), inputs: vec![Node::Slot(0)] };
    let processor = Processor::try_new(spec.clone()).unwrap();
    Pipeline::new(Node::Operator { operator: Box::new(processor), inputs: vec![watched] })
}

fn story(spec: ProcessorSpec, restarts: bool) -> Story {
    Story::new(move || pipeline(&spec), restarts)
}

#[test]
fn rows_of_a_key_come_in_one_call_in_their_order_with_its_state() {
    for (partitions, restarts) in [(1, false), (2, true), (5, true)] {
        let signature = signature(TimeMode::None, vec![variable("total", VariableKind::Value, None)]);
        let body = |key: &mut Key<'_>| {
            let total = key.value(0).unwrap_or(0) + key.rows.iter().sum::<i64>();
            key.out.push(format!("{:?} {total}", key.rows));
            key.put(0, total);
        };
        let mut story = story(spec(signature, partitions, body), restarts);
        let step = story.batch(&[rows(&[("a", 3, 0), ("b", 1, 0)]), rows(&[("a", 2, 0)])]);
        assert_eq!(step.rows, ["a [3, 2] 5", "b [1] 1"]);
        assert_eq!(step.counts(), [2, 2, 0, 0]);
        let step = story.batch(&[rows(&[("c", 9, 0), ("a", 1, 0)])]);
        assert_eq!((step.rows.clone(), step.counts()), (vec!["a [1] 6".to_owned(), "c [9] 9".into()], [3, 2, 0, 0]));
    }
}

#[test]
fn lists_keep_the_order_of_appending_and_maps_show_the_order_of_their_keys() {
    let variables = vec![variable("log", VariableKind::List, None), variable("last", VariableKind::Map, None)];
    let body = |key: &mut Key<'_>| {
        key.out.push(format!("{} | {}", key.all(0), key.all(1)));
        for n in key.rows.clone() {
            match n {
                0 => key.cleared.extend([0, 1]),
                n if n < 0 => key.removed.push((1, format!("m{}", -n))),
                n => {
                    key.put(0, n);
                    key.put.push((1, format!("m{}", n % 10), n));
                }
            }
        }
    };
    let mut story = story(spec(signature(TimeMode::None, variables), 2, body), true);
    story.batch(&[rows(&[("a", 7, 0), ("a", 3, 0), ("a", 13, 0), ("b", 1, 0)])]);
    let step = story.batch(&[rows(&[("a", -7, 0), ("a", 9, 0)])]);
    assert_eq!(step.rows, ["a 7,3,13 | m3=13,m7=7"], "the last entry of a map key counts");
    let step = story.batch(&[rows(&[("a", 0, 0), ("a", 5, 0)])]);
    assert_eq!(step.rows, ["a 7,3,13,9 | m3=13,m9=9"]);
    let step = story.batch(&[rows(&[("a", 1, 0)])]);
    assert_eq!(
        (step.rows.clone(), step.counts()[0]),
        (vec!["a 5 | m5=5".to_owned()], 6),
        "what is put after clearing stays"
    );
}

#[test]
fn timers_of_event_time_are_due_when_the_watermark_reaches_them() {
    let body = |key: &mut Key<'_>| {
        if let Step::Expire(_) = key.step {
            key.out.push(format!("due {:?} of {:?} at {:?}", key.due, key.timers, key.watermark_ms));
            return;
        }
        key.registered.extend(key.rows.clone());
    };
    for restarts in [false, true] {
        let mut story = story(spec(signature(TimeMode::EventTime, vec![]), 2, body), restarts);
        let step = story.batch(&[rows(&[("a", 6000, 10), ("a", 5000, 1), ("a", 5001, 1), ("b", 4000, 1)])]);
        assert_eq!((step.rows.len(), step.counts()[0]), (0, 4), "the watermark is at 0 yet");
        let step = story.settle().expect("the watermark moved to 5 s");
        assert_eq!(
            step.rows,
            ["a due [5000] of [5000, 5001, 6000] at Some(5000)", "b due [4000] of [4000] at Some(5000)"]
        );
        assert_eq!(step.counts()[0], 2);
        assert!(story.settle().is_none());
        // Registered by a row of this batch, and due already.
        let step = story.batch(&[rows(&[("c", 1, 20)])]);
        assert_eq!(step.rows, ["c due [1] of [1] at Some(5000)"]);
    }
}

#[test]
fn a_timer_that_a_timer_registers_waits_for_the_next_batch() {
    let body = |key: &mut Key<'_>| match key.step {
        Step::Expire(_) => {
            key.out.push(format!("{:?}", key.due));
            key.registered.extend(key.due.iter().map(|due| due - 1).collect::<Vec<_>>());
        }
        _ => key.registered.push(3000),
    };
    let mut story = story(spec(signature(TimeMode::EventTime, vec![]), 1, body), true);
    story.batch(&[rows(&[("a", 0, 10)])]);
    assert_eq!(story.settle().unwrap().rows, ["a [3000]"]);
    assert_eq!(story.batch(&[rows(&[("b", 0, 10)])]).rows, ["a [2999]", "b [3000]"]);
}

#[test]
fn deleted_timers_are_not_due_and_a_key_at_fault_keeps_its_own() {
    let body = |key: &mut Key<'_>| match (key.step, key.rows.first()) {
        (Step::Expire(_), _) if key.name == "bad" => key.fault = Some("no".into()),
        (Step::Expire(_), _) => key.out.push(format!("{:?}", key.due)),
        (_, Some(0)) => key.deleted.extend([1000, 7777]),
        (_, Some(9)) => {
            key.fault = Some("no".into());
        }
        _ => key.registered.extend([1000, 2000, 2000]),
    };
    let mut story = story(spec(signature(TimeMode::EventTime, vec![]), 2, body), true);
    story.batch(&[rows(&[("a", 1, 10), ("bad", 1, 1), ("b", 1, 1)])]);
    let step = story.batch(&[rows(&[("a", 0, 10), ("b", 9, 10)])]);
    assert_eq!(step.rows, ["a [2000]", "b [1000, 2000]"]);
    assert_eq!(step.counts()[0], 2, "the timers of the key at fault are still there");
}

#[test]
fn late_rows_are_dropped_one_by_one_where_timers_go_by_event_time() {
    for (mode, expected) in [(TimeMode::EventTime, vec!["a [1]"]), (TimeMode::None, vec!["a [1, 2, 3]"])] {
        let body = |key: &mut Key<'_>| key.out.push(format!("{:?}", key.rows));
        let mut story = story(spec(signature(mode, vec![]), 1, body), false);
        story.batch(&[rows(&[("z", 0, 20)])]);
        story.batch(&[rows(&[("z", 0, 20)])]);
        let step = story.batch(&[rows(&[("a", 1, 16), ("a", 2, 15), ("a", 3, 1)])]);
        assert_eq!(step.rows, expected);
        assert_eq!(step.counts()[3], 3 - expected.len() as u64 * if mode == TimeMode::None { 3 } else { 1 });
    }
}

#[test]
fn entries_live_for_their_time_after_they_were_last_written() {
    let ttl = Some(1000);
    let variables = vec![
        variable("value", VariableKind::Value, ttl),
        variable("list", VariableKind::List, ttl),
        variable("map", VariableKind::Map, ttl),
        variable("kept", VariableKind::List, None),
    ];
    let body = |key: &mut Key<'_>| {
        key.out.push((0..4).map(|variable| key.all(variable)).collect::<Vec<_>>().join(" | "));
        for n in key.rows.clone().into_iter().filter(|n| *n > 0) {
            key.cleared.extend((n == 99).then_some(1));
            if n != 99 {
                key.put.extend([(1, String::new(), n), (2, format!("m{}", n % 10), n), (3, String::new(), n)]);
            }
        }
        if let Some(last) = key.rows.iter().rev().find(|n| **n > 0 && **n != 99) {
            key.put(0, *last);
        }
    };
    for restarts in [false, true] {
        let mut story = story(spec(signature(TimeMode::ProcessingTime, variables.clone()), 2, body), restarts);
        story.now_ms = 10_000;
        story.batch(&[rows(&[("a", 1, 0), ("a", 2, 0)])]);
        assert!(!story.pipeline.is_due(10_999).unwrap());
        assert!(story.pipeline.is_due(11_000).unwrap());
        story.now_ms = 10_600;
        let step = story.batch(&[rows(&[("a", 11, 0)])]);
        assert_eq!(step.rows, ["a 2 | 1,2 | m1=1,m2=2 | 1,2"]);
        // What was written at 10 s is over now, and told of no more.
        story.now_ms = 11_000;
        let step = story.batch(&[rows(&[("a", -1, 0), ("b", 5, 0)])]);
        assert_eq!(step.rows, ["a 11 | 11 | m1=11 | 1,2,11", "b  |  |  | "]);
        assert_eq!(step.counts()[0], 3 + 3 + 4, "what expired is removed in the same batch");
        story.now_ms = 11_600;
        let step = story.batch(&[]);
        assert_eq!((step.rows.len(), step.counts()[0], step.counts()[2]), (0, 3 + 4, 3));
        assert_eq!(story.batch(&[rows(&[("a", 3, 0)])]).rows, ["a  |  |  | 1,2,11"]);
        story.batch(&[rows(&[("a", 99, 0)])]);
        assert_eq!(story.batch(&[rows(&[("a", -1, 0)])]).rows, ["a 3 |  | m3=3 | 1,2,11,3"]);
        story.now_ms = 100_000;
        story.batch(&[]);
        assert!(!story.pipeline.is_due(200_000).unwrap());
    }
}

#[test]
fn initial_rows_come_before_the_first_rows_and_only_there() {
    let body = |key: &mut Key<'_>| match key.step {
        Step::Initialise => {
            key.put(0, key.rows[0] * 100);
            key.registered.push(1);
        }
        Step::Process => key.out.push(format!("{:?} over {}", key.rows, key.all(0))),
        Step::Expire(_) => key.out.push(format!("due {:?} over {}", key.due, key.all(0))),
    };
    let variables = vec![variable("v", VariableKind::Value, None)];
    let mut spec = spec(signature(TimeMode::ProcessingTime, variables), 2, body);
    let initial = rows(&[("a", 1, 0), ("b", 2, 0)]).project(&[0, 1]).unwrap();
    spec.initial = vec![initial];
    let mut story = story(spec, true);
    story.now_ms = 1;
    let step = story.batch(&[rows(&[("a", 5, 0)])]);
    assert_eq!(step.rows, ["a [5] over 100", "a due [1] over 100", "b due [1] over 200"]);
    assert_eq!(story.batch(&[rows(&[("b", 6, 0)])]).rows, ["b [6] over 200"]);
}

#[test]
fn an_aborted_batch_leaves_state_and_timers_as_they_were() {
    let body = |key: &mut Key<'_>| {
        key.out.push(format!("{} {:?}", key.all(0), key.timers));
        key.rows.clone().into_iter().for_each(|n| key.put(0, n));
        key.registered.extend(key.rows.clone());
    };
    let variables = vec![variable("log", VariableKind::List, None)];
    let mut story = story(spec(signature(TimeMode::EventTime, variables), 2, body), false);
    story.batch(&[rows(&[("a", 90_000, 1)])]);
    let context = story.context();
    story.pipeline.run(&mut [vec![rows(&[("a", 91_000, 1), ("b", 5, 1)])]], &context).unwrap();
    let prepared: Result<(), StateError> = story.pipeline.for_each_stateful(|state| state.prepare().map(|_| ()));
    prepared.unwrap();
    story.pipeline.abort();
    assert_eq!(story.batch(&[rows(&[("a", 1_000_000, 1), ("b", 92_000, 1)])]).rows, ["a 90000 [90000]", "b  []"]);
}

#[test]
fn a_variable_that_is_gone_loses_its_state_and_one_that_is_new_has_none() {
    let body = |key: &mut Key<'_>| {
        let all: Vec<String> = (0..key.state.len()).map(|variable| key.all(variable)).collect();
        key.out.push(all.join(" | "));
        (0..key.state.len()).for_each(|variable| key.put(variable, key.rows[0]));
    };
    let of = |names: &[&str]| {
        let variables = names.iter().map(|name| variable(name, VariableKind::List, None)).collect();
        spec(signature(TimeMode::None, variables), 2, body)
    };
    let files = crate::testing::StateFolder::default();
    let mut manifests = vec![StateManifest::default(); 2];
    let mut run = |names: &[&str], n: i64| {
        let mut pipeline = pipeline(&of(names));
        let opened: Result<(), StateError> = pipeline.for_each_stateful(|state| state.open(&files, &manifests));
        opened.unwrap();
        let context = BatchContext { batch: BatchId(n as u64), batch_time_ms: 0, watermarks: None };
        let out = pipeline.run(&mut [vec![rows(&[("a", n, 0)])]], &context).unwrap();
        let done: Result<(), StateError> = pipeline.for_each_stateful(|state| {
            manifests = state.prepare()?;
            state.commit();
            Ok(())
        });
        done.unwrap();
        sorted(&out)
    };
    run(&["x", "y"], 1);
    assert_eq!(run(&["y", "z"], 2), ["a 1 | "]);
    assert_eq!(run(&["x", "y", "z"], 3), ["a  | 1,2 | 2"]);
}

#[test]
fn rows_that_carry_event_time_must_be_younger_than_the_watermark() {
    let mut signature = signature(TimeMode::EventTime, vec![]);
    signature.output = vec![field("at", time())].into();
    struct Echo;
    impl ProcessorCode for Echo {
        fn call(&self, _step: &Step, call: &Invocation) -> Result<Outcome, WasmError> {
            let times = numbers_of(&call.rows[0]).into_iter().map(|n| n * 1000);
            let rows: Vec<ArrayRef> = vec![Arc::new(TimestampMicrosecondArray::from_iter_values(times))];
            Ok(Outcome { rows, key_of_row: call.key_of_row.clone(), ..Outcome::default() })
        }
    }
    let mut spec = spec(signature, 1, |_| {});
    spec.code = Arc::new(Echo);
    spec.output_time = Some(0);
    let mut story = story(spec, false);
    story.batch(&[rows(&[("a", 1, 10)])]);
    story.batch(&[rows(&[("a", 5001, 10)])]);
    let context = story.context();
    // Groups are closed up to a time that rows are only late by in the next batch.
    let watermarks = context.watermarks.map(|watermarks| Watermarks { late: Watermark(1000), ..watermarks });
    let between = BatchContext { watermarks, ..story.context() };
    story.pipeline.run(&mut [vec![rows(&[("a", 3000, 10)])]], &between).unwrap();
    story.pipeline.abort();
    let error = story.pipeline.run(&mut [vec![rows(&[("a", 5000, 10)])]], &context).unwrap_err();
    assert!(matches!(error, OperatorError::OldRow { time_ms: 5000, watermark_ms: 5000, .. }), "{error}");
}

/// What a key has in the model: a list, a map and timers.
#[derive(Default, Clone, Debug)]
struct Model {
    log: Vec<i64>,
    map: BTreeMap<String, i64>,
    timers: BTreeSet<i64>,
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Appends, removes, clears and sets timers as the number says.
fn act(key: &mut Key<'_>) {
    let shown = format!("{} | {} | {:?} {:?}", key.all(0), key.all(1), key.timers, key.due);
    key.out.push(shown);
    for n in key.rows.clone() {
        match n % 7 {
            0 => key.removed.push((1, format!("m{}", n % 5))),
            1 if n % 3 == 0 => key.cleared.push(0),
            2 => key.registered.push(n * 37),
            3 => key.deleted.extend(key.timers.first().copied()),
            _ => {
                key.put(0, n);
                key.put.push((1, format!("m{}", n % 11), n));
            }
        }
    }
    key.cleared.dedup();
}

#[test]
fn chance_agrees_with_a_naive_model_whatever_the_splits_partitions_and_restarts() {
    for seed in 0..40_u64 {
        let mut chance = Chance(seed);
        let partitions = [1, 2, 5][chance.below(3) as usize];
        let variables = vec![variable("log", VariableKind::List, None), variable("map", VariableKind::Map, None)];
        let mut story =
            story(spec(signature(TimeMode::ProcessingTime, variables), partitions, act), chance.below(2) == 0);
        let mut model: BTreeMap<&str, Model> = BTreeMap::new();
        for batch in 0..15 {
            let names = ["a", "b", "c", "d"];
            let input: Vec<(&str, i64, i64)> =
                (0..chance.below(20)).map(|_| (names[chance.below(4) as usize], chance.below(500) as i64, 0)).collect();
            story.now_ms = batch * 1500;
            let cut = chance.below(input.len() as u64 + 1) as usize;
            let step = story.batch(&[rows(&input[..cut]), rows(&input[cut..])]);
            let mut expected = Vec::new();
            for name in names {
                let numbers: Vec<i64> = input.iter().filter(|row| row.0 == name).map(|row| row.1).collect();
                let key = model.entry(name).or_default();
                if !numbers.is_empty() {
                    expected.push(key.show(name, &[]));
                    key.act(&numbers);
                }
                let due: Vec<i64> = key.timers.iter().copied().filter(|due| *due <= story.now_ms).collect();
                if !due.is_empty() {
                    expected.push(key.show(name, &due));
                    key.timers.retain(|timer| *timer > story.now_ms);
                }
            }
            expected.sort();
            assert_eq!(step.rows, expected, "seed {seed}, batch {batch}");
            let total: usize = model.values().map(|key| key.log.len() + key.map.len() + key.timers.len()).sum();
            assert_eq!(step.counts()[0], total as u64, "seed {seed}, batch {batch}");
        }
    }
}

impl Model {
    fn show(&self, name: &str, due: &[i64]) -> String {
        let log = self.log.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let map = self.map.iter().map(|(key, n)| format!("{key}={n}")).collect::<Vec<_>>().join(",");
        let timers: Vec<i64> = self.timers.iter().copied().collect();
        format!("{name} {log} | {map} | {timers:?} {due:?}")
    }

    /// Clears, then removes, then puts, as the host does.
    fn act(&mut self, numbers: &[i64]) {
        if numbers.iter().any(|n| n % 7 == 1 && n % 3 == 0) {
            self.log.clear();
        }
        for n in numbers.iter().filter(|n| **n % 7 == 0) {
            self.map.remove(&format!("m{}", n % 5));
        }
        let first = self.timers.first().copied();
        if numbers.iter().any(|n| n % 7 == 3)
            && let Some(first) = first
        {
            self.timers.remove(&first);
        }
        for n in numbers {
            match n % 7 {
                2 => _ = self.timers.insert(n * 37),
                0 | 3 => {}
                1 if n % 3 == 0 => {}
                _ => {
                    self.log.push(*n);
                    self.map.insert(format!("m{}", n % 11), *n);
                }
            }
        }
    }
}
