//! Names: of streams in the checkpoint, and of stateful operators.

use crate::world::{NAME, World, drain, events, state};
use millstream_common::OutputMode;
use millstream_runtime::functions::window;

#[test]
fn a_stream_without_a_name_takes_that_of_its_view() {
    let world = World::new();
    let reader = || world.session.read_stream().format("memory");
    reader().load().unwrap().drop_duplicates(&["word"]).unwrap().create_or_replace_temp_view("lines").unwrap();
    let frame = world.session.sql("SELECT count(*) AS c FROM lines").unwrap();
    let spec = world.spec(&frame, OutputMode::Complete);
    assert_eq!(spec.streams[0].source.name, "lines");
    let mut uids: Vec<_> = state(&world, &spec).into_iter().map(|(uid, _)| uid).collect();
    uids.sort();
    assert_eq!(uids, ["lines-dedup", "query-aggregate"]);

    let frame = reader().load().unwrap();
    assert_eq!(world.spec(&frame, OutputMode::Append).streams[0].source.name, "stream");
}

#[test]
fn an_alias_is_the_scope_of_what_is_below_it() {
    let world = World::new();
    let windows = world.timed().group_by([window("ts", "10 seconds").alias("w")]).agg(["count(*) AS c"]).unwrap();
    let frame = windows.alias("small").unwrap().group_by([window("w", "1 minute")]).agg(["sum(c) AS n"]).unwrap();
    let frame = frame.select(["n"]).unwrap().drop_duplicates(&["n"]).unwrap();
    let uids = |frame| state(&world, &world.spec(frame, OutputMode::Append)).into_iter().map(|(uid, _)| uid);
    let mut given: Vec<_> = uids(&frame).collect();
    given.sort();
    assert_eq!(given, ["query-aggregate", "query-dedup", "small-aggregate"]);
    let mut given: Vec<_> = uids(&frame.alias("top").unwrap()).collect();
    given.sort();
    assert_eq!(given, ["small-aggregate", "top-aggregate", "top-dedup"]);
}

#[test]
fn a_renamed_operator_keeps_its_state() {
    let world = World::new();
    let counts = world.stream("events").group_by(["word"]).count().unwrap();
    world.memory("events").add_data(events(&[(1, "a", 1)])).unwrap();
    let writer = |frame: &millstream_runtime::DataFrame| {
        let writer = frame.write_stream().format("memory").query_name(NAME).output_mode(OutputMode::Complete);
        writer.option("checkpointLocation", world.checkpoint())
    };
    let mut run = world.open(&writer(&counts.alias("old").unwrap()).spec().unwrap()).unwrap();
    drain(&mut run);
    run.close();
    let named = counts.alias("new").unwrap();
    assert!(world.open(&writer(&named).spec().unwrap()).is_err());
    let mut run = world.open(&writer(&named).uid("new-aggregate", "old-aggregate").spec().unwrap()).unwrap();
    world.memory("events").add_data(events(&[(2, "a", 1)])).unwrap();
    drain(&mut run);
    assert_eq!(world.written()[&1], ["word Utf8, count Int64", "a | 2"]);
}

#[test]
fn duplicates_are_dropped_behind_a_projection_under_the_name_of_the_query() {
    let world = World::new();
    let frame = world.timed().select(["ts", "word"]).unwrap();
    let frame = frame.drop_duplicates_within_watermark(&["word"]).unwrap().select(["word"]).unwrap();
    let spec = world.spec(&frame, OutputMode::Append);
    assert_eq!(state(&world, &spec)[0].0, "query-dedup");
    let mut run = world.open(&spec).unwrap();
    world.memory("events").add_data(events(&[(1, "a", 1), (2, "a", 1), (3, "b", 1)])).unwrap();
    drain(&mut run);
    assert_eq!(world.written()[&0], ["word Utf8", "a", "b"]);
}

#[test]
fn event_time_may_be_declared_on_a_computed_column() {
    let world = World::new();
    let frame = world.stream("events").select(["ts + INTERVAL 1 DAY AS at", "word"]).unwrap();
    let timed = frame.with_watermark("AT", "5 seconds").unwrap();
    let counts = timed.group_by([window("at", "10 seconds")]).count().unwrap().select(["count"]).unwrap();
    let mut run = world.open(&world.spec(&counts, OutputMode::Append)).unwrap();
    world.memory("events").add_data(events(&[(1, "a", 1), (2, "b", 1), (30, "c", 1)])).unwrap();
    drain(&mut run);
    assert_eq!(world.written()[&1], ["count Int64", "2"]);
}
