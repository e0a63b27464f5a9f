//! Stories of the operators that keep nothing beyond a batch, of LIMIT, and of the way through a pipeline.

use crate::testing::{Event, Story, events, events_schema, sorted, texts, times};
use crate::{
    BatchContext, BatchLimit, EventTimeSeen, Filter, GlobalLimit, Node, Operator, OperatorError, Pipeline, Project,
    Sort, Union, WatchEventTime,
};
use arrow::array::{ArrayRef, Float64Array, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::logical_expr::Operator as Comparison;
use datafusion::physical_expr::expressions::{BinaryExpr, col, lit};
use datafusion::physical_expr::{PhysicalExprRef, PhysicalSortExpr};
use millstream_common::{BatchId, OperatorUid};
use std::sync::Arc;

const CONTEXT: BatchContext = BatchContext { batch: BatchId::FIRST, batch_time_ms: 0, watermarks: None };

fn word<'a>(word: &'a str, n: i64) -> Event<'a> {
    (Some(1), Some(word), Some(n))
}

fn binary(left: PhysicalExprRef, operator: Comparison, right: PhysicalExprRef) -> PhysicalExprRef {
    Arc::new(BinaryExpr::new(left, operator, right))
}

fn n() -> PhysicalExprRef {
    col("n", &events_schema()).unwrap()
}

fn node(operator: impl Operator + 'static, inputs: Vec<Node>) -> Node {
    Node::Operator { operator: Box::new(operator), inputs }
}

fn word_and(expression: PhysicalExprRef, input: Node) -> Node {
    let columns = [(col("word", &events_schema()).unwrap(), "word".to_owned()), (expression, "n".to_owned())];
    node(Project::try_new(columns, &events_schema()).unwrap(), vec![input])
}

#[test]
fn filter_and_project_keep_order_and_skip_empty_batches() {
    let big = Filter::try_new(binary(n(), Comparison::Gt, lit(2_i64)), events_schema()).unwrap();
    let tree = word_and(binary(n(), Comparison::Plus, lit(10_i64)), node(big, vec![Node::Slot(0)]));
    let mut pipeline = Pipeline::new(tree);
    let rows = vec![
        events(&[word("a", 3), word("b", 1), (Some(1), Some("null"), None), word("c", 4)]),
        events(&[]),
        events(&[word("d", 0)]),
        events(&[word("e", 5)]),
    ];
    let mut inputs = [rows];
    let out = pipeline.run(&mut inputs, &CONTEXT).unwrap();
    assert_eq!(texts(&out), ["a 13", "c 14", "e 15"]);
    assert_eq!(out.len(), 2, "no batch without rows comes out");
    assert!(inputs[0].is_empty(), "the rows were taken");
    assert_eq!(pipeline.describe(), "Project: word@1, n@2 + 10 AS n\n  Filter: n@2 > 2\n    Source #0\n");
}

#[test]
fn a_filter_must_be_boolean_and_a_projection_keeps_its_types() {
    assert!(matches!(Filter::try_new(n(), events_schema()), Err(OperatorError::Misfit { .. })));
    let project = || Project::try_new([(n(), "n".to_owned())], &events_schema()).unwrap();
    let schema = |kind| Arc::new(Schema::new(vec![Field::new("other", kind, true)]));
    assert_eq!(project().with_schema(schema(DataType::Int64)).unwrap().schema().field(0).name(), "other");
    assert!(project().with_schema(schema(DataType::Utf8)).is_err());
}

#[test]
fn errors_of_the_data_name_the_operator() {
    let mut pipeline = Pipeline::new(word_and(binary(lit(1_i64), Comparison::Divide, n()), Node::Slot(0)));
    let error = pipeline.run(&mut [vec![events(&[word("a", 0)])]], &CONTEXT).unwrap_err();
    assert!(error.to_string().starts_with("Project: word@1"), "{error}");
    let error = Pipeline::new(Node::Slot(3)).run(&mut [vec![]], &CONTEXT).unwrap_err();
    assert!(matches!(error, OperatorError::Misfit { .. }));
}

#[test]
fn union_takes_equal_types_only_and_a_source_may_be_read_twice() {
    let schema = |kind, nullable| -> SchemaRef { Arc::new(Schema::new(vec![Field::new("x", kind, nullable)])) };
    let wanted = || schema(DataType::Int64, true);
    assert!(Union::try_new(wanted(), &[wanted(), schema(DataType::Int32, true)]).is_err());
    assert!(Union::try_new(schema(DataType::Int64, false), &[wanted()]).is_err());
    assert!(Union::try_new(wanted(), &[schema(DataType::Int64, false), events_schema()]).is_err());
    let left = word_and(n(), Node::Slot(0));
    let right = word_and(binary(n(), Comparison::Multiply, lit(100_i64)), Node::Slot(0));
    let fields = vec![Field::new("word", DataType::Utf8, true), Field::new("n", DataType::Int64, true)];
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let union = Union::try_new(Arc::clone(&schema), &[Arc::clone(&schema), Arc::clone(&schema)]).unwrap();
    let mut pipeline = Pipeline::new(node(union, vec![left, right]));
    let out = pipeline.run(&mut [vec![events(&[word("a", 1), word("b", 2)])]], &CONTEXT).unwrap();
    assert_eq!(sorted(&out), ["a 1", "a 100", "b 2", "b 200"]);
}

#[test]
fn sort_gathers_the_batch_and_floats_order_as_in_sql() {
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("x", DataType::Float64, true)]));
    let by = |descending| PhysicalSortExpr {
        expr: col("x", &schema).unwrap(),
        options: SortOptions { descending, nulls_first: !descending },
    };
    let batch = |values: Vec<Option<f64>>| {
        let column: ArrayRef = Arc::new(Float64Array::from(values));
        RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap()
    };
    let rows = || vec![batch(vec![Some(2.0), Some(-f64::NAN)]), batch(vec![None, Some(-1.0), Some(f64::INFINITY)])];
    let sort = |descending, fetch| {
        let sort = Sort::new(vec![by(descending)], fetch, Arc::clone(&schema));
        let mut pipeline = Pipeline::new(node(sort, vec![Node::Slot(0)]));
        let first = texts(&pipeline.run(&mut [rows()], &CONTEXT).unwrap());
        assert_eq!(texts(&pipeline.run(&mut [rows()], &CONTEXT).unwrap()), first, "nothing stays behind");
        first
    };
    assert_eq!(sort(false, None), ["null", "-1.0", "2.0", "inf", "NaN"]);
    assert_eq!(sort(true, Some(2)), ["NaN", "inf"]);
    assert!(sort(true, Some(0)).is_empty());
}

#[test]
fn the_limit_of_a_query_counts_over_its_life_and_restarts() {
    for restarts in [false, true] {
        let uid = || OperatorUid::new("limit").unwrap();
        let build = move || {
            let limit = GlobalLimit::new(uid(), 4, events_schema());
            Pipeline::new(word_and(n(), node(limit, vec![Node::Slot(0)])))
        };
        let mut story = Story::new(build, restarts).without_watermark();
        let step = story.batch(&[]);
        assert_eq!((step.rows.len(), step.counts()), (0, [0, 0, 0, 0]));
        let step = story.batch(&[events(&[word("a", 1), word("b", 2)])]);
        assert_eq!((step.rows.clone(), step.counts()), (vec!["a 1".into(), "b 2".into()], [1, 1, 0, 0]));
        assert_eq!(step.metrics[0].operator_name, "globalLimit");
        let aborted = story.context();
        story.pipeline.run(&mut [vec![events(&[word("x", 1)])]], &aborted).unwrap();
        story.pipeline.abort();
        let step = story.batch(&[events(&[word("c", 3)]), events(&[word("d", 4), word("e", 5)])]);
        assert_eq!((step.rows.clone(), step.counts()), (vec!["c 3".into(), "d 4".into()], [1, 1, 0, 0]));
        let step = story.batch(&[events(&[word("f", 6)])]);
        assert_eq!((step.rows.len(), step.counts()), (0, [1, 0, 0, 0]));
        assert!(story.settle().is_none());
    }
}

#[test]
fn the_limit_of_a_batch_starts_anew_in_each() {
    let limit = BatchLimit::new(1, Some(2), events_schema());
    let mut pipeline = Pipeline::new(word_and(n(), node(limit, vec![Node::Slot(0)])));
    let rows = || vec![events(&[word("a", 1), word("b", 2)]), events(&[word("c", 3), word("d", 4)])];
    for _ in 0..2 {
        assert_eq!(texts(&pipeline.run(&mut [rows()], &CONTEXT).unwrap()), ["b 2", "c 3"]);
    }
}

#[test]
fn a_watermark_operator_passes_rows_and_tells_what_it_saw_once() {
    let watch = WatchEventTime::try_new("events", events_schema(), 0, 5_000_000).unwrap();
    let mut pipeline = Pipeline::new(node(watch, vec![Node::Slot(0)]));
    let rows = vec![times(&[7, -3]), events(&[(None, Some("a"), None)]), times(&[20])];
    assert_eq!(pipeline.run(&mut [rows], &CONTEXT).unwrap().len(), 3);
    let saw = |rows, range_us: Option<(i64, i64, i128)>| EventTimeSeen {
        node: "events".into(),
        delay_us: 5_000_000,
        rows,
        range_us,
        advance_us: range_us.map(|(_, greatest, _)| greatest),
        rows_ahead: 0,
    };
    assert_eq!(pipeline.take_event_times(), [saw(3, Some((-3_000_000, 20_000_000, 24_000_000)))]);
    assert_eq!(pipeline.take_event_times(), [saw(0, None)]);
    pipeline.run(&mut [vec![times(&[99])]], &CONTEXT).unwrap();
    pipeline.run(&mut [vec![times(&[5])]], &CONTEXT).unwrap();
    let of_second_run = [saw(1, Some((5_000_000, 5_000_000, 5_000_000)))];
    assert_eq!(pipeline.take_event_times(), of_second_run, "what an earlier attempt saw does not count");
    assert!(WatchEventTime::try_new("events", events_schema(), 1, 0).is_err());
}
