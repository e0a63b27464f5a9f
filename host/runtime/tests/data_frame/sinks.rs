//! Batches and rows for functions of the program.

use crate::world::{World, events, lines};
use arrow::array::RecordBatch;
use millstream_common::{BatchId, OutputMode, Trigger};
use millstream_runtime::{DataFrame, ForeachWriter, Row};
use std::error::Error;
use std::sync::{Arc, Mutex};

type Failure = Box<dyn Error + Send + Sync>;
type Seen = Arc<Mutex<Vec<(u64, Vec<String>)>>>;

fn keep(seen: &Seen) -> impl FnMut(&[RecordBatch], BatchId) -> Result<(), Failure> + Send + 'static {
    let seen = Arc::clone(seen);
    move |rows, batch| {
        assert!(!rows.is_empty());
        seen.lock().unwrap().push((batch.0, lines(rows)));
        Ok(())
    }
}

fn counts(world: &World) -> DataFrame {
    world.stream("events").group_by(["word"]).count().unwrap()
}

#[test]
fn every_mode_gives_batches_to_a_function() {
    for (mode, second) in [
        (OutputMode::Complete, vec!["word Utf8, count Int64", "a | 2", "b | 1"]),
        (OutputMode::Update, vec!["word Utf8, count Int64", "a | 2"]),
    ] {
        let world = World::new();
        let seen = Seen::default();
        world.memory("events").add_data(events(&[(1, "a", 1), (1, "b", 1)])).unwrap();
        world.memory("events").add_data(events(&[(2, "a", 1)])).unwrap();
        let writer = counts(&world).write_stream().output_mode(mode).trigger(Trigger::AvailableNow);
        writer.foreach_batch(keep(&seen)).start().unwrap().await_termination().unwrap();
        let seen = seen.lock().unwrap();
        let mut rows = seen[1].1.clone();
        rows[1..].sort();
        assert_eq!((seen.len(), seen[1].0, rows), (2, 1, second.into_iter().map(str::to_owned).collect()));
    }
}

#[test]
fn a_batch_whose_function_failed_comes_again_with_its_id_and_its_rows() {
    let world = World::new();
    let seen = Seen::default();
    let start = |fails: bool| {
        let mut kept = keep(&seen);
        let writer = counts(&world).write_stream().output_mode(OutputMode::Update).trigger(Trigger::AvailableNow);
        let writer = writer.option("checkpointLocation", world.checkpoint());
        let function = move |rows: &[RecordBatch], batch| {
            kept(rows, batch)?;
            if fails && batch == BatchId(1) { Err("the other side is away".into()) } else { Ok::<(), Failure>(()) }
        };
        writer.foreach_batch(function).start().unwrap().await_termination()
    };
    world.memory("events").add_data(events(&[(1, "a", 1)])).unwrap();
    world.memory("events").add_data(events(&[(2, "a", 1)])).unwrap();
    let error = start(true).unwrap_err();
    let text = millstream_common::describe_chain(&*error);
    assert!(text.contains("foreachBatch") && text.contains("batch 1") && text.contains("is away"), "{text}");
    world.memory("events").add_data(events(&[(3, "a", 1)])).unwrap();
    start(false).unwrap();
    let seen = seen.lock().unwrap();
    let ids: Vec<_> = seen.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [0, 1, 1, 2]);
    assert_eq!(seen[1], seen[2]);
    assert_eq!(seen[3].1, ["word Utf8, count Int64", "a | 3"]);
}

#[derive(Clone)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl ForeachWriter for Diary {
    fn open(&mut self, partition: u32, batch: BatchId) -> Result<bool, Failure> {
        self.note(format!("open {partition} {batch}"));
        Ok(batch != BatchId(1))
    }

    fn process(&mut self, row: Row<'_>) -> Result<(), Failure> {
        let (word, n) = (row.get_string("word")?.unwrap_or_default(), row.get_long("n")?.unwrap_or_default());
        if n < 0 {
            return Err("a negative number".into());
        }
        self.note(format!("{word} {n}"));
        Ok(())
    }

    fn close(&mut self, error: Option<&(dyn Error + Send + Sync)>) -> Result<(), Failure> {
        self.note(error.map_or("close".into(), |error| format!("close: {error}")));
        Ok(())
    }
}

#[test]
fn rows_go_to_a_writer_batch_by_batch() {
    let world = World::new();
    let diary = Diary(Arc::default());
    for rows in [&[(1, "a", 1), (1, "b", 2)][..], &[(1, "skipped", 3)], &[(1, "c", 4), (1, "bad", -1), (1, "d", 5)]] {
        world.memory("events").add_data(events(rows)).unwrap();
    }
    let writer = world.stream("events").write_stream().trigger(Trigger::AvailableNow).foreach(diary.clone());
    let error = writer.start().unwrap().await_termination().unwrap_err();
    assert!(millstream_common::describe_chain(&*error).contains("a negative number"));
    let wanted =
        ["open 0 0", "a 1", "b 2", "close", "open 0 1", "close", "open 0 2", "c 4", "close: a negative number"];
    assert_eq!(*diary.0.lock().unwrap(), wanted);
}

#[test]
fn a_sink_of_the_program_takes_no_options() {
    let world = World::new();
    let writer = world.stream("events").write_stream().foreach_batch(keep(&Seen::default()));
    assert!(writer.option("numRows", 3).start().is_err());
}

#[test]
fn a_query_whose_thread_panics_has_failed_and_the_next_start_goes_on() {
    let world = World::new();
    let seen = Seen::default();
    world.memory("events").add_data(events(&[(1, "a", 1)])).unwrap();
    let start = |panics: bool| {
        let writer = counts(&world).write_stream().output_mode(OutputMode::Update).trigger(Trigger::AvailableNow);
        let writer = writer.option("checkpointLocation", world.checkpoint()).foreach_batch(keep(&seen));
        writer.on_progress(Box::new(move |_| assert!(!panics, "nobody listens"))).start().unwrap()
    };
    let query = start(true);
    let text = millstream_common::describe_chain(&*query.await_termination().unwrap_err());
    assert!(text.contains("the query's thread failed: it panicked: nobody listens"), "{text}");
    assert!(!query.is_active() && query.exception().is_some());
    query.stop().unwrap_err();
    assert!(world.session.streams().await_any_termination().is_err());
    world.memory("events").add_data(events(&[(2, "a", 1)])).unwrap();
    start(false).await_termination().unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().map(|(id, rows)| (*id, rows[1].as_str())).collect::<Vec<_>>(), [(0, "a | 1"), (1, "a | 2")]);
}
