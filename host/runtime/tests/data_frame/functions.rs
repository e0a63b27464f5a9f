//! Closures of the program as operators.

use crate::world::{World, drain, events};
use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use millstream_common::OutputMode;
use millstream_runtime::functions::window;
use std::convert::Infallible;
use std::sync::Arc;

fn lengths() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("word", DataType::Utf8, true), Field::new("length", DataType::Int64, true)]))
}

fn measure(rows: RecordBatch) -> Result<RecordBatch, arrow::error::ArrowError> {
    let words = rows.column_by_name("word").unwrap().as_string::<i32>();
    let length: Int64Array = words.iter().map(|word| word.map(|word| word.len() as i64)).collect();
    RecordBatch::try_new(lengths(), vec![Arc::new(words.clone()), Arc::new(length)])
}

#[test]
fn rows_made_by_a_closure_are_grouped_and_survive_a_restart() {
    let world = World::new();
    let frame = || {
        let measured = world.stream("events").map_batches(lengths(), measure).unwrap();
        measured.filter("length > 2").unwrap().group_by(["length"]).count().unwrap()
    };
    let spec = world.spec(&frame(), OutputMode::Complete);
    let mut run = world.open(&spec).unwrap();
    world.memory("events").add_data(events(&[(1, "ant", 1), (2, "be", 1), (3, "bees", 1)])).unwrap();
    drain(&mut run);
    run.close();
    let mut run = world.open(&world.spec(&frame(), OutputMode::Complete)).unwrap();
    world.memory("events").add_data(events(&[(4, "cat", 1)])).unwrap();
    drain(&mut run);
    let written = crate::world::sorted(world.written());
    assert_eq!(written[&1], ["length Int64, count Int64", "3 | 2", "4 | 1"]);
}

#[test]
fn a_closure_may_give_any_number_of_batches_and_event_time_is_declared_behind_it() {
    let world = World::new();
    let schema = events(&[]).schema();
    let twice = |rows: RecordBatch| Ok::<_, Infallible>([rows.clone(), rows.slice(0, 1)]);
    let frame = world.stream("events").flat_map(schema, twice).unwrap();
    let timed = frame.with_watermark("ts", "0 seconds").unwrap();
    let counts = timed.group_by([window("ts", "10 seconds")]).count().unwrap().select(["count"]).unwrap();
    let mut run = world.open(&world.spec(&counts, OutputMode::Append)).unwrap();
    world.memory("events").add_data(events(&[(1, "a", 1), (2, "b", 1), (30, "c", 1)])).unwrap();
    drain(&mut run);
    assert_eq!(world.written()[&1], ["count Int64", "3"]);
}

#[test]
fn a_failing_closure_fails_its_batch_and_the_batch_is_run_again() {
    let world = World::new();
    let frame = |divisor: i64| {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        let divide = move |rows: RecordBatch| {
            let n = rows.column_by_name("n").unwrap().as_primitive::<Int64Type>();
            let divided = (0..n.len()).map(|row| n.value(row).checked_div(divisor).ok_or("division by zero"));
            let divided = divided.collect::<Result<Vec<i64>, _>>()?;
            let column: ArrayRef = Arc::new(Int64Array::from(divided));
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(RecordBatch::try_from_iter([("n", column)])?)
        };
        world.spec(&world.stream("events").map_batches(schema, divide).unwrap(), OutputMode::Append)
    };
    world.memory("events").add_data(events(&[(1, "a", 8)])).unwrap();
    let mut run = world.open(&frame(0)).unwrap();
    let error = run.run_next().unwrap_err();
    let text = millstream_common::describe_chain(&error);
    assert!(text.contains("batch 0") && text.contains("MapBatches: n") && text.contains("division by zero"), "{text}");
    run.close();
    let mut run = world.open(&frame(2)).unwrap();
    assert!(run.has_unfinished());
    drain(&mut run);
    assert_eq!(world.written()[&0], ["n Int64", "4"]);
}

#[test]
fn a_closure_that_gives_other_columns_is_told_so() {
    let world = World::new();
    let other = |rows: RecordBatch| {
        let column: ArrayRef = Arc::new(StringArray::from(vec!["x"; rows.num_rows()]));
        RecordBatch::try_from_iter([("length", column)])
    };
    let frame = world.stream("events").map_batches(lengths(), other).unwrap();
    world.memory("events").add_data(events(&[(1, "a", 1)])).unwrap();
    let error = world.open(&world.spec(&frame, OutputMode::Append)).unwrap().run_next().unwrap_err();
    let text = millstream_common::describe_chain(&error);
    assert!(text.contains("it gave the columns length Utf8, and declared are word Utf8, length Int64"), "{text}");
}

#[test]
fn a_filter_below_a_function_says_nothing_about_what_comes_out_of_it() {
    let world = World::new();
    let numbered = world.stream("events").select(["word AS k", "n AS v"]).unwrap();
    let other = world.stream("other").select(["word", "n AS v"]).unwrap();
    let less = |rows: RecordBatch| {
        let less: Int64Array = rows.column(1).as_primitive::<Int64Type>().unary(|n| n - 10);
        RecordBatch::try_new(rows.schema(), vec![Arc::clone(rows.column(0)), Arc::new(less)])
    };
    let large = numbered.map_batches(numbered.schema(), Ok::<_, Infallible>).unwrap().filter("v > 5").unwrap();
    let changed = large.map_batches(numbered.schema(), less).unwrap();
    let joined = changed.join(&other, ["v"], "inner").unwrap();
    world.memory("events").add_data(events(&[(1, "a", 12), (1, "b", 3)])).unwrap();
    world.memory("other").add_data(events(&[(1, "x", 2), (1, "y", -7)])).unwrap();
    let mut run = world.open(&world.spec(&joined, OutputMode::Append)).unwrap();
    drain(&mut run);
    assert_eq!(world.written()[&0], ["v Int64, k Utf8, word Utf8", "2 | a | x"]);
}
