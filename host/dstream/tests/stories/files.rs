//! Files that come into a folder, and page heat over them.

use crate::harness::{World, alone, context, locked, seconds, sorted};
use millstream_dstream::{DirectOptions, StreamingContext};
use std::sync::Arc;

/// Puts a file into a folder as a whole.
fn put(folder: &std::path::Path, name: &str, text: &str) {
    let unfinished = folder.with_extension("unfinished");
    std::fs::write(&unfinished, text).unwrap();
    std::fs::rename(unfinished, folder.join(name)).unwrap();
}

#[test]
fn files_that_come_after_the_start_are_read_once() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "old.txt", "old\n");
    let (context, clock) = context();
    let lines = context.text_file_stream(folder.path().to_str().unwrap()).unwrap();
    let seen = sorted(&lines);
    let stepper = context.start_stepwise().unwrap();
    put(folder.path(), "one.txt", "a\nb\n");
    clock.advance(seconds(1));
    stepper.run_due().unwrap();
    put(folder.path(), "two.txt", "c\n");
    clock.advance(seconds(2));
    stepper.run_due().unwrap();
    let texts = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert_eq!(*locked(&seen), [(1, texts(&["a", "b"])), (2, texts(&["c"])), (3, vec![])]);
}

#[test]
fn files_that_come_between_two_runs_are_read_by_the_second() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "old.txt", "old\n");
    let world = World::new();
    let start = || {
        let clock = Arc::clone(&world.clock) as _;
        let context = StreamingContext::with_clock(seconds(1), clock).unwrap();
        context.checkpoint_in(Arc::clone(&world.files) as _).unwrap();
        let context = context.resuming().unwrap();
        let seen = sorted(&context.text_file_stream(folder.path().to_str().unwrap()).unwrap());
        (context.start_stepwise().unwrap(), seen)
    };
    let (stepper, seen) = start();
    put(folder.path(), "one.txt", "a\n");
    world.tick();
    stepper.run_due().unwrap();
    drop(stepper);
    assert_eq!(*locked(&seen), [(1, vec!["a".to_owned()])]);
    put(folder.path(), "two.txt", "b\n");
    world.tick();
    let (stepper, seen) = start();
    stepper.run_due().unwrap();
    drop(stepper);
    assert_eq!(*locked(&seen), [(2, vec!["b".to_owned()])]);
}

/// The heat of a page, of `page,level,visits,dwell,like`.
fn heat(line: &str) -> Option<(String, f64)> {
    let mut parts = line.split(',');
    let page = parts.next()?.to_owned();
    let mut number = || parts.next()?.trim().parse::<f64>().ok();
    let (level, visits, dwell, like) = (number()?, number()?, number()?, number()?);
    Some((page, 0.1 * level + 0.9 * visits + 0.4 * dwell + like))
}

#[test]
fn the_heat_of_pages_is_summed_per_batch() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (context, clock) = context();
    let lines = context.text_file_stream(folder.path().to_str().unwrap()).unwrap();
    let heat = lines.flat_map(|line: String| heat(&line)).reduce_by_key(|a, b| a + b);
    let seen = sorted(&heat.map(|(page, heat)| (page, (heat * 100.0).round() as i64)));
    let stepper = context.start_stepwise().unwrap();
    put(folder.path(), "clicks.csv", "041.html,7,5,0.9,-1\n002.html,1,2,1.0,1\n041.html,7,5,0.9,-1\nnonsense\n");
    clock.advance(seconds(1));
    stepper.run_due().unwrap();
    assert_eq!(*locked(&seen), [(1, vec![("002.html".to_owned(), 330), ("041.html".to_owned(), 912)])]);
}

#[test]
fn rows_of_files_have_their_columns_and_ranges() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (context, clock) = context();
    use arrow::datatypes::{DataType, Field, Schema};
    let schema = Schema::new(vec![Field::new("word", DataType::Utf8, true), Field::new("n", DataType::Int64, true)]);
    let options = millstream_common::Options::new().with("path", folder.path().to_str().unwrap());
    let options = DirectOptions { schema: Some(Arc::new(schema)), ..DirectOptions::new(options) };
    let records = context.file_stream("json", options).unwrap();
    let ranges = Arc::new(std::sync::Mutex::new(Vec::new()));
    let theirs = Arc::clone(&ranges);
    let seeing = records.foreach_rdd(move |rows, _| {
        locked(&theirs).extend(rows.offset_ranges().iter().map(|range| (range.input.clone(), range.range.end.clone())));
        Ok(())
    });
    seeing.unwrap();
    let row = |record: millstream_dstream::Record| {
        let row = record.row();
        (row.get_string("word").unwrap().map(str::to_owned), row.get_long("n").unwrap())
    };
    let seen = sorted(&records.map(row));
    let stepper = context.start_stepwise().unwrap();
    put(folder.path(), "rows.json", "{\"word\":\"a\",\"n\":1}\n{\"word\":null,\"n\":2}\n");
    clock.advance(seconds(1));
    stepper.run_due().unwrap();
    assert_eq!(*locked(&seen), [(1, vec![(None, Some(2)), (Some("a".to_owned()), Some(1))])]);
    assert_eq!(*locked(&ranges), [("json".to_owned(), Some(serde_json::json!({"logOffset": 0})))]);
}
