//! Stories of grouping: which rows leave in which batch, and what stays in state.

use super::*;
use crate::testing::{Event, Step, Story, events, events_schema, times};
use crate::{Filter, Node, Pipeline, Project, Unnest, WatchEventTime};
use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{ScalarValue, UnnestOptions};
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::{AggregateUDF, Operator as Comparison};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::{BinaryExpr, col, lit};
use datafusion::physical_plan::aggregates::PhysicalGroupBy;
use datafusion::physical_plan::unnest::ListUnnest;
use millstream_common::OperatorUid;
use millstream_state::{StateError, StateManifest};
use std::sync::Arc;

fn function(udaf: Arc<AggregateUDF>, argument: PhysicalExprRef, input: &SchemaRef) -> Arc<AggregateFunctionExpr> {
    let name = format!("{}({argument})", udaf.name());
    Arc::new(AggregateExprBuilder::new(udaf, vec![argument]).schema(Arc::clone(input)).alias(name).build().unwrap())
}

fn count_all(input: &SchemaRef) -> Arc<AggregateFunctionExpr> {
    function(count_udaf(), lit(1_i64), input)
}

fn all_functions(input: &SchemaRef) -> Vec<Arc<AggregateFunctionExpr>> {
    let n = || col("n", input).unwrap();
    vec![
        count_all(input),
        function(sum_udaf(), n(), input),
        function(
            avg_udaf(),
            datafusion::physical_expr::expressions::cast(n(), input, DataType::Float64).unwrap(),
            input,
        ),
        function(min_udaf(), n(), input),
        function(max_udaf(), n(), input),
        function(array_agg_udaf(), n(), input),
    ]
}

fn group_by(names: &[&str], input: &SchemaRef) -> PhysicalGroupBy {
    PhysicalGroupBy::new_single(names.iter().map(|name| (col(name, input).unwrap(), (*name).to_owned())).collect())
}

fn spec(
    group_by: PhysicalGroupBy,
    functions: Vec<Arc<AggregateFunctionExpr>>,
    mode: OutputMode,
    input: &SchemaRef,
) -> AggregateSpec {
    let mut fields: Vec<Field> =
        group_by.group_schema(input).unwrap().fields().iter().map(|field| field.as_ref().clone()).collect();
    fields.extend(functions.iter().map(|function| function.field().as_ref().clone()));
    AggregateSpec {
        uid: OperatorUid::new("counts").unwrap(),
        group_by,
        filters: vec![None; functions.len()],
        functions,
        plugins: Vec::new(),
        input: Arc::clone(input),
        output: Arc::new(Schema::new(fields)),
        mode,
        event_time: None,
        partitions: 1,
    }
}

fn by_window(mode: OutputMode) -> AggregateSpec {
    let input = events_schema();
    let event_time = Some(EventTimeKey { index: 0, kind: EventTimeKind::Window });
    AggregateSpec { event_time, ..spec(group_by(&["w"], &input), vec![count_all(&input)], mode, &input) }
}

fn by_window_and_word(mode: OutputMode, partitions: u32) -> AggregateSpec {
    let input = events_schema();
    let event_time = Some(EventTimeKey { index: 1, kind: EventTimeKind::Window });
    let grouped = spec(group_by(&["word", "w"], &input), all_functions(&input), mode, &input);
    AggregateSpec { event_time, partitions, ..grouped }
}

fn node(operator: impl Operator + 'static, input: Node) -> Node {
    Node::Operator { operator: Box::new(operator), inputs: vec![input] }
}

fn watched() -> Node {
    node(WatchEventTime::try_new("events", events_schema(), 0, 5_000_000).unwrap(), Node::Slot(0))
}

fn story(spec: AggregateSpec, restarts: bool) -> Story {
    Story::new(move || Pipeline::new(node(Aggregate::try_new(spec.clone()).unwrap(), watched())), restarts)
}

fn event<'a>(second: i64, word: &'a str, n: i64) -> Event<'a> {
    (Some(second), Some(word), Some(n))
}

#[test]
fn append_gives_a_window_once_when_the_watermark_passes_it() {
    for restarts in [false, true] {
        let mut story = story(by_window(OutputMode::Append), restarts);
        let step = story.batch(&[times(&[1, 12])]);
        assert_eq!((step.rows.len(), step.counts()), (0, [2, 2, 0, 0]));
        let step = story.settle().expect("the watermark moved to 7");
        assert_eq!((step.rows.len(), step.counts(), step.eviction_s), (0, [2, 0, 0, 0], 7));
        assert!(story.settle().is_none(), "the watermark did not move in a batch without rows");
        let step = story.batch(&[times(&[3, 16])]);
        assert_eq!((step.rows.len(), step.counts()), (0, [2, 2, 0, 0]));
        let step = story.settle().expect("the watermark moved to 11");
        assert_eq!(step.rows, ["[0,10) 2"]);
        assert_eq!((step.counts(), step.eviction_s), ([1, 0, 1, 0], 11));
        let step = story.batch(&[times(&[4])]);
        assert_eq!((step.rows.len(), step.counts()), (0, [1, 0, 0, 1]));
        assert!(story.settle().is_none());
        let step = story.batch(&[times(&[5, 40])]);
        assert_eq!((step.rows.len(), step.counts()), (0, [2, 1, 0, 1]));
        let step = story.settle().expect("the watermark moved to 35");
        assert_eq!((step.rows, step.eviction_s), (vec!["[10,20) 2".to_owned()], 35));
    }
}

#[test]
fn without_no_data_batches_a_late_row_gets_one_more_chance() {
    let mut story = story(by_window(OutputMode::Append), false);
    assert_eq!(story.batch(&[times(&[1, 12])]).counts(), [2, 2, 0, 0]);
    assert_eq!(story.batch(&[times(&[3, 16])]).counts(), [2, 2, 0, 0]);
    let step = story.batch(&[times(&[4])]);
    assert_eq!((step.rows.clone(), step.counts()), (vec!["[0,10) 3".to_owned()], [1, 1, 1, 0]));
    let step = story.batch(&[times(&[5, 40])]);
    assert_eq!((step.rows.len(), step.counts()), (0, [2, 1, 0, 1]));
}

#[test]
fn a_late_row_can_make_close_and_give_a_window_in_one_batch() {
    let mut story = story(by_window(OutputMode::Append), false);
    story.batch(&[times(&[100])]);
    let step = story.batch(&[times(&[4])]);
    assert_eq!((step.rows.clone(), step.counts(), step.eviction_s), (vec!["[0,10) 1".to_owned()], [1, 1, 1, 0], 95));
}

#[test]
fn update_gives_what_the_batch_touched_and_evicts_in_silence() {
    for restarts in [false, true] {
        let mut story = story(by_window(OutputMode::Update), restarts);
        assert_eq!(story.batch(&[times(&[1, 12])]).rows, ["[0,10) 1", "[10,20) 1"]);
        assert_eq!(story.settle().unwrap().rows.len(), 0);
        assert_eq!(story.batch(&[times(&[3, 16])]).rows, ["[0,10) 2", "[10,20) 2"]);
        let step = story.settle().unwrap();
        assert_eq!((step.rows.len(), step.counts()), (0, [1, 0, 1, 0]));
        let step = story.batch(&[times(&[4])]);
        assert_eq!((step.rows.len(), step.counts()), (0, [1, 0, 0, 1]));
    }
}

#[test]
fn complete_gives_all_groups_and_takes_late_rows() {
    let mut story = story(by_window(OutputMode::Complete), false);
    assert_eq!(story.batch(&[times(&[1, 100])]).rows, ["[0,10) 1", "[100,110) 1"]);
    assert!(story.settle().is_none(), "complete mode wants no batch without rows");
    let step = story.batch(&[times(&[2])]);
    assert_eq!((step.rows.clone(), step.counts()), (vec!["[0,10) 2".into(), "[100,110) 1".into()], [2, 1, 0, 0]));
    story.batch(&[]);
    let step = story.batch(&[times(&[3])]);
    assert_eq!((step.rows.clone(), step.counts()), (vec!["[0,10) 3".into(), "[100,110) 1".into()], [2, 1, 0, 0]));
}

#[test]
fn windows_before_1970_are_late_from_the_first_batch() {
    let mut story = story(by_window(OutputMode::Append), false);
    assert_eq!(story.batch(&[times(&[-5, -25, -26, 3])]).counts(), [1, 1, 0, 2]);
}

#[test]
fn late_rows_are_counted_per_group() {
    let mut story = story(by_window_and_word(OutputMode::Update, 3), false);
    story.batch(&[events(&[event(100, "a", 1)])]);
    story.batch(&[events(&[event(101, "a", 1)])]);
    let late = [event(1, "a", 1), event(2, "a", 1), event(3, "b", 1), event(4, "b", 1), event(102, "b", 5)];
    let step = story.batch(&[events(&late)]);
    assert_eq!((step.rows, step.metrics[0].rows_dropped_by_watermark), (vec!["b [100,110) 1 5 5.0 5 5 [5]".into()], 2));
}

/// Batches of rows that wander forward in time, some late, some null; the same for every run of a test.
fn wandering_batches() -> Vec<Vec<RecordBatch>> {
    let words = [Some("a"), Some("b"), None, Some("ccc"), Some("")];
    let mut seed = 7_u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut rows = move |batch: u64| {
        let length = random(30);
        let rows: Vec<Event<'_>> = (0..length)
            .map(|_| {
                let second = (batch * 4 + random(25)) as i64 - 10;
                let n = (random(6) > 0).then(|| random(100) as i64);
                (Some(second), words[random(5) as usize], n)
            })
            .collect();
        events(&rows)
    };
    (0..25).map(|batch| vec![rows(batch), rows(batch)]).collect()
}

fn run(spec: AggregateSpec, restarts: bool) -> Vec<Step> {
    let mut story = story(spec, restarts);
    let mut steps = Vec::new();
    for rows in wandering_batches() {
        steps.push(story.batch(&rows));
        steps.extend(story.settle());
    }
    steps
}

#[test]
fn restarts_and_partitions_change_nothing() {
    for mode in [OutputMode::Append, OutputMode::Update, OutputMode::Complete] {
        let plain = run(by_window_and_word(mode, 1), false);
        assert!(plain.iter().map(|step| step.rows.len()).sum::<usize>() > 40, "{mode}: the story says something");
        for partitions in [1, 2, 5] {
            for restarts in [false, true] {
                assert_eq!(
                    run(by_window_and_word(mode, partitions), restarts),
                    plain,
                    "{mode} {partitions} {restarts}"
                );
            }
        }
    }
}

#[test]
fn the_last_complete_result_is_that_of_one_batch() {
    let steps = run(by_window_and_word(OutputMode::Complete, 2), true);
    let all: Vec<_> = wandering_batches().into_iter().flatten().collect();
    let once = story(by_window_and_word(OutputMode::Complete, 1), false).batch(&all);
    assert_eq!(steps.last().unwrap().rows, once.rows);
}

#[test]
fn an_aborted_batch_leaves_the_state_as_it_was() {
    let build = || by_window_and_word(OutputMode::Update, 2);
    let mut story = story(build(), false);
    story.batch(&[events(&[event(1, "a", 1), event(2, "b", 2)])]);
    let context = story.context();
    let rows = vec![events(&[event(3, "a", 10), event(80, "z", 3)])];
    story.pipeline.run(&mut [rows], &context).unwrap();
    let prepared: Result<(), StateError> = story.pipeline.for_each_stateful(|state| state.prepare().map(|_| ()));
    prepared.unwrap();
    story.pipeline.abort();
    let step = story.batch(&[events(&[event(4, "a", 5)])]);
    assert_eq!((step.rows.clone(), step.counts()), (vec!["a [0,10) 2 6 3.0 1 5 [1, 5]".into()], [2, 1, 0, 0]));
    assert_eq!(story.settle(), None, "the aborted batch moved no watermark");
}

#[test]
fn a_failed_batch_can_be_run_again() {
    let input = events_schema();
    let ten_by_n = Arc::new(BinaryExpr::new(lit(10_i64), Comparison::Divide, col("n", &input).unwrap()));
    let functions = vec![function(sum_udaf(), ten_by_n, &input)];
    let mut story = story(spec(group_by(&["word"], &input), functions, OutputMode::Update, &input), false);
    let context = story.context();
    let bad = vec![events(&[event(1, "a", 2)]), events(&[event(90, "a", 0)])];
    let error = story.pipeline.run(&mut [bad], &context).unwrap_err();
    assert!(matches!(error, OperatorError::Expression { .. }), "{error:?}");
    let step = story.batch(&[events(&[event(1, "a", 2)])]);
    assert_eq!(step.rows, ["a 5"]);
    assert!(story.settle().is_none(), "the failed rows moved no watermark");
}

#[test]
fn sliding_windows_come_from_an_unnest() {
    let input = events_schema();
    let mut fields: Vec<Field> = input.fields().iter().map(|field| field.as_ref().clone()).collect();
    let DataType::List(item) = input.field(4).data_type() else { panic!("ws is a list") };
    fields[4] = Field::new("ws", item.data_type().clone(), true);
    let unnested: SchemaRef = Arc::new(Schema::new(fields));
    let event_time = Some(EventTimeKey { index: 0, kind: EventTimeKind::Window });
    let grouped = spec(group_by(&["ws"], &unnested), vec![count_all(&unnested)], OutputMode::Append, &unnested);
    let grouped = AggregateSpec { event_time, ..grouped };
    let build = move || {
        let lists = vec![ListUnnest { index_in_input_schema: 4, depth: 1 }];
        let options = UnnestOptions::new().with_preserve_nulls(false);
        let unnest = Unnest::try_new(lists, vec![], &events_schema(), Arc::clone(&unnested), &options).unwrap();
        Pipeline::new(node(Aggregate::try_new(grouped.clone()).unwrap(), node(unnest, watched())))
    };
    let mut story = Story::new(build, true);
    let step = story.batch(&[times(&[6, 12, 21])]);
    assert_eq!(step.counts(), [5, 5, 0, 0]);
    assert_eq!(story.settle().unwrap().rows, ["[0,10) 1", "[5,15) 2"]);
}

#[test]
fn null_words_are_one_group_and_having_is_a_filter_behind() {
    let input = events_schema();
    let functions = vec![count_all(&input), function(sum_udaf(), col("n", &input).unwrap(), &input)];
    let spec = spec(group_by(&["word", "n"], &input), functions, OutputMode::Update, &input);
    let build = move || {
        let aggregate = Aggregate::try_new(spec.clone()).unwrap();
        let schema = Arc::clone(aggregate.schema());
        let count = col(schema.field(2).name(), &schema).unwrap();
        let having: PhysicalExprRef = Arc::new(BinaryExpr::new(Arc::clone(&count), Comparison::Gt, lit(1_i64)));
        let filter = Filter::try_new(having, Arc::clone(&schema)).unwrap();
        let columns = [(col("word", &schema).unwrap(), "word".to_owned()), (count, "c".to_owned())];
        Pipeline::new(node(Project::try_new(columns, &schema).unwrap(), node(filter, node(aggregate, Node::Slot(0)))))
    };
    let mut story = Story::new(build, true).without_watermark();
    let null = (Some(1), None, Some(4));
    assert_eq!(story.batch(&[events(&[null, null, event(1, "a", 1), (Some(1), None, None)])]).rows, ["null 2"]);
    let step = story.batch(&[events(&[(Some(1), None, None), event(1, "a", 1), event(1, "b", 1)])]);
    assert_eq!((step.rows.clone(), step.counts()), (vec!["a 2".into(), "null 2".into()], [4, 3, 0, 0]));
}

#[test]
fn a_global_aggregate_gives_its_row_in_every_batch() {
    let input = events_schema();
    for mode in [OutputMode::Update, OutputMode::Complete] {
        for restarts in [false, true] {
            let mut story = story(spec(group_by(&[], &input), all_functions(&input), mode, &input), restarts);
            let step = story.batch(&[]);
            assert_eq!((step.rows.clone(), step.counts()), (vec!["0 null null null null null".into()], [1, 1, 0, 0]));
            let step = story.batch(&[events(&[event(1, "a", 3), event(1, "b", 4)]), events(&[event(1, "b", 5)])]);
            assert_eq!((step.rows.clone(), step.counts()), (vec!["3 12 4.0 3 5 [3, 4, 5]".into()], [1, 1, 0, 0]));
            assert_eq!(story.batch(&[]).rows, ["3 12 4.0 3 5 [3, 4, 5]"]);
        }
    }
}

#[test]
fn a_grouped_aggregate_gives_nothing_for_a_batch_without_rows() {
    let input = events_schema();
    let grouped = spec(group_by(&["word"], &input), vec![count_all(&input)], OutputMode::Update, &input);
    let mut story = story(grouped, false);
    assert_eq!(story.batch(&[events(&[event(1, "a", 3)])]).rows, ["a 1"]);
    let step = story.batch(&[events(&[])]);
    assert_eq!((step.rows.len(), step.counts()), (0, [1, 0, 0, 0]));
}

#[test]
fn distinct_on_a_raw_event_time_never_closes_a_null_time() {
    let input = events_schema();
    let event_time = Some(EventTimeKey { index: 0, kind: EventTimeKind::Timestamp });
    let grouped = spec(group_by(&["ts", "word"], &input), vec![], OutputMode::Append, &input);
    let mut story = story(AggregateSpec { event_time, partitions: 2, ..grouped }, true);
    let step = story.batch(&[events(&[event(10, "a", 1), event(10, "a", 2), (None, Some("b"), None)])]);
    assert_eq!((step.rows.len(), step.counts()), (0, [2, 2, 0, 0]));
    assert_eq!(story.batch(&[events(&[event(15, "c", 1)])]).rows.len(), 0, "10 > 5");
    let step = story.batch(&[events(&[(None, Some("b"), None), event(12, "d", 1)])]);
    assert_eq!((step.rows.clone(), step.counts()), (vec!["10s a".into()], [3, 2, 1, 0]), "10 <= 10, inclusive");
    assert_eq!(story.batch(&[events(&[event(9, "late", 1)])]).counts(), [3, 0, 0, 1]);
}

#[test]
fn floats_that_sql_calls_equal_are_one_group() {
    let input: SchemaRef = Arc::new(Schema::new(vec![Field::new("x", DataType::Float64, true)]));
    let grouped = spec(group_by(&["x"], &input), vec![count_all(&input)], OutputMode::Update, &input);
    let build = move || Pipeline::new(node(Aggregate::try_new(grouped.clone()).unwrap(), Node::Slot(0)));
    let mut story = Story::new(build, true).without_watermark();
    let mut batch = |values: Vec<f64>| {
        let column: ArrayRef = Arc::new(Float64Array::from(values));
        story.batch(&[RecordBatch::try_new(Arc::clone(&input), vec![column]).unwrap()]).rows
    };
    assert_eq!(batch(vec![-0.0, f64::NAN]), ["0.0 1", "NaN 1"]);
    assert_eq!(batch(vec![0.0, -f64::NAN, -0.0]), ["0.0 3", "NaN 2"]);
}

#[test]
fn a_new_group_of_nulls_beside_a_known_group_stays_null() {
    let input = events_schema();
    let mut story = story(spec(group_by(&["word"], &input), all_functions(&input), OutputMode::Update, &input), true);
    assert_eq!(story.batch(&[events(&[event(1, "a", 3)])]).rows, ["a 1 3 3.0 3 3 [3]"]);
    let step = story.batch(&[events(&[(Some(1), Some("0"), None), event(1, "a", 4), (Some(1), Some("z"), None)])]);
    assert_eq!(step.rows, ["0 1 null null null null []", "a 2 7 3.5 3 4 [3, 4]", "z 1 null null null null []"]);
}

#[test]
fn a_filter_clause_concerns_its_function_only() {
    let input = events_schema();
    let functions = vec![count_all(&input), count_all(&input)];
    let big: PhysicalExprRef = Arc::new(BinaryExpr::new(col("n", &input).unwrap(), Comparison::Gt, lit(3_i64)));
    let mut grouped = spec(group_by(&["word"], &input), functions, OutputMode::Update, &input);
    grouped.filters[1] = Some(big);
    let mut story = story(grouped, true);
    assert_eq!(
        story.batch(&[events(&[event(1, "a", 3), event(1, "b", 1), event(1, "a", 4)])]).rows,
        ["a 2 1", "b 1 0"]
    );
    assert_eq!(story.batch(&[events(&[(Some(1), Some("b"), None), event(1, "b", 9)])]).rows, ["b 3 1"]);
}

#[test]
fn rollup_keeps_a_group_for_each_level() {
    let input = events_schema();
    let named = |name: &str| (col(name, &input).unwrap(), name.to_owned());
    let null = |value, name: &str| (lit(value), name.to_owned());
    let sets = PhysicalGroupBy::new(
        vec![named("word"), named("n")],
        vec![null(ScalarValue::Utf8(None), "word"), null(ScalarValue::Int64(None), "n")],
        vec![vec![false, false], vec![false, true], vec![true, true]],
        true,
    );
    let grouped = spec(sets, vec![count_all(&input)], OutputMode::Update, &input);
    let mut story = story(AggregateSpec { partitions: 2, ..grouped }, true);
    let step = story.batch(&[events(&[event(1, "a", 1), event(1, "b", 2)])]);
    assert_eq!(step.counts(), [5, 5, 0, 0]);
    let step = story.batch(&[events(&[event(1, "a", 3)])]);
    assert_eq!(
        (step.rows.clone(), step.counts()),
        (vec!["a 3 0 1".into(), "a null 1 2".into(), "null null 3 3".into()], [6, 3, 0, 0])
    );
}

#[test]
fn many_groups_are_merged_by_threads_with_the_same_result() {
    let input: SchemaRef = Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, true)]));
    let run = |partitions| {
        let grouped = spec(group_by(&["k"], &input), vec![count_all(&input)], OutputMode::Update, &input);
        let grouped = AggregateSpec { partitions, ..grouped };
        let build = move || Pipeline::new(node(Aggregate::try_new(grouped.clone()).unwrap(), Node::Slot(0)));
        let mut story = Story::new(build, false).without_watermark();
        [0, 15_000].map(|from| {
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 30_000));
            story.batch(&[RecordBatch::try_new(Arc::clone(&input), vec![column]).unwrap()])
        })
    };
    let plain = run(1);
    assert_eq!(plain[1].counts(), [45_000, 30_000, 0, 0]);
    assert_eq!(run(7), plain);
}

#[test]
fn the_schema_id_tells_forms_of_state_apart_but_not_names() {
    let input = events_schema();
    let id = |spec: AggregateSpec| Aggregate::try_new(spec).unwrap().schema_id();
    let base = id(by_window(OutputMode::Append));
    assert_eq!(base, id(by_window(OutputMode::Update)));
    let mut renamed = by_window(OutputMode::Append);
    renamed.group_by = PhysicalGroupBy::new_single(vec![(col("w", &input).unwrap(), "other".to_owned())]);
    assert_eq!(base, id(renamed));
    assert_ne!(base, id(AggregateSpec { event_time: None, ..by_window(OutputMode::Append) }));
    assert_ne!(base, id(by_window_and_word(OutputMode::Append, 1)));
    let text = Aggregate::try_new(by_window_and_word(OutputMode::Append, 1)).unwrap().schema_text();
    assert!(text.starts_with("key: word Utf8, w Struct("), "{text}");
    assert!(text.contains("sum(Int64): Int64"), "{text}");
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let input = events_schema();
    let mut wrong = by_window(OutputMode::Append);
    wrong.event_time = Some(EventTimeKey { index: 0, kind: EventTimeKind::Timestamp });
    assert!(Aggregate::try_new(wrong).is_err());
    let mut wrong = by_window(OutputMode::Append);
    wrong.output = input;
    assert!(matches!(Aggregate::try_new(wrong), Err(OperatorError::Misfit { .. })));
    let mut aggregate = Aggregate::try_new(by_window(OutputMode::Append)).unwrap();
    let files = crate::testing::StateFolder::default();
    let three = vec![StateManifest::default(); 3];
    assert!(matches!(Stateful::open(&mut aggregate, &files, &three), Err(StateError::Damaged { .. })));
}
