//! What does not fit is refused by the method that was given it; what may not stream, by the start of the query.

use crate::world::World;
use millstream_common::{Hint, OutputMode, describe_chain};
use millstream_runtime::functions::{call_function, col, expr, lit, window};
use millstream_runtime::{DataFrame, RuntimeError, inspect};

fn refused(outcome: Result<DataFrame, RuntimeError>) -> String {
    describe_chain(&outcome.unwrap_err())
}

#[test]
fn a_column_that_is_not_there_is_refused_where_it_is_written() {
    let world = World::new();
    let events = world.stream("events");
    for (method, text) in [
        ("select", refused(events.select(["wrod"]))),
        ("filter", refused(events.filter("wrod = 'x'"))),
        ("with_column", refused(events.with_column("x", col("wrod") + 1))),
        ("agg", refused(events.group_by(["wrod"]).count())),
        ("agg", refused(events.agg(["sum(wrod)"]))),
        ("order_by", refused(events.order_by(["wrod"]))),
        ("with_watermark", refused(events.with_watermark("wrod", "1 second"))),
        ("drop_duplicates", refused(events.drop_duplicates(&["wrod"]))),
        ("join", refused(events.join(&world.limits(), ["wrod"], "inner"))),
        ("sql", refused(world.session.sql("SELECT wrod FROM (SELECT 1 AS word)"))),
    ] {
        assert!(
            text.starts_with(&format!("{method} cannot be planned: ")) && text.contains("wrod"),
            "{method}: {text}"
        );
    }
    assert!(refused(world.session.sql("SELECT * FROM nowhere")).contains("nowhere"));
}

#[test]
fn texts_that_do_not_parse_and_columns_in_wrong_places_are_refused() {
    let world = World::new();
    let events = world.stream("events");
    for (part, text) in [
        ("n +", refused(events.select(["n +"]))),
        ("it ends before `b`", refused(events.select(["n AS a b"]))),
        ("it ends before `FROM`", refused(events.filter("n > 1 FROM other"))),
        ("`*` is no value", refused(events.filter(col("*").eq(1)))),
        ("an order belongs into order_by", refused(events.select([col("n").desc()]))),
        ("is not the name of a column", refused(events.select([col("a..b")]))),
        ("`no such type`", refused(events.select([col("n").cast("no such type")]))),
        ("no column is left", refused(events.drop(&["ts", "word", "n", "tags"]))),
        ("no kind of join", refused(events.join(&world.limits(), ["word"], "sideways"))),
        ("needs at least one column", refused(events.join(&world.limits(), [], "inner"))),
        ("must be a TIMESTAMP", refused(events.with_watermark("word", "1 second"))),
        ("not a duration", refused(events.with_watermark("ts", "soon"))),
        ("have 4 and 2", refused(events.union(&events.select(["word", "n"]).unwrap()))),
        ("cannot name", refused(events.alias("no name"))),
        ("static table", refused(world.limits().map_batches(events.schema(), Ok::<_, RuntimeError>))),
        ("there is no view `nothing`", refused(world.session.table("nothing"))),
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn two_watermarks_one_above_the_other_are_refused() {
    let world = World::new();
    let error = world.timed().select(["ts"]).unwrap().with_watermark("ts", "1 second").unwrap_err();
    assert!(error.to_string().contains("declared already"), "{error}");
    assert!(error.hint().is_some());
    let error = world.stream("events").drop_duplicates_within_watermark(&["word"]).unwrap_err();
    assert!(error.to_string().contains("there is none"), "{error}");
    let counts = world.timed().group_by([window("ts", "1 minute")]).count().unwrap();
    let error = counts.drop_duplicates(&["count"]).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("window_time")), "{error}");
}

#[test]
fn rows_that_change_later_do_not_lose_their_duplicates_by_event_time() {
    let world = World::new();
    let counts = world.timed().group_by(["ts"]).count().unwrap();
    let checked = |frame: &DataFrame, mode| inspect::check(&world.session, &world.spec(frame, mode)).map(drop);
    let by_time = counts.drop_duplicates(&["ts"]).unwrap();
    for mode in [OutputMode::Update, OutputMode::Complete] {
        let error = checked(&by_time, mode).unwrap_err();
        assert!(error.to_string().contains("dropping of duplicates by event time, above an aggregation"), "{error}");
    }
    checked(&by_time, OutputMode::Append).unwrap();
    checked(&counts.drop_duplicates(&["count"]).unwrap(), OutputMode::Update).unwrap();
}

#[test]
fn two_streams_of_one_name_are_refused() {
    let world = World::new();
    let events = world.stream("events");
    let other = world.session.read_stream().format("memory").name("events").load().unwrap();
    let error = events.union(&other).unwrap_err();
    assert_eq!(error.to_string(), "two different streams are called `events`");
    events.union(&world.stream("events")).unwrap();
}

#[test]
fn sides_of_a_join_that_cannot_be_told_apart_need_names() {
    let world = World::new();
    let events = world.stream("events");
    let text = refused(events.join(&events, col("n").eq(1), "inner"));
    assert!(text.contains("alias(\"a\")"), "{text}");
}

#[test]
fn what_may_not_stream_is_refused_at_the_start_as_in_sql() {
    let world = World::new();
    let rule_of = |frame: &DataFrame, mode| {
        let error = inspect::check(&world.session, &world.spec(frame, mode)).unwrap_err();
        assert!(error.hint().is_some(), "{error}");
        error.to_string()
    };
    let counts = world.stream("events").group_by(["word"]).count().unwrap();
    assert!(rule_of(&counts, OutputMode::Append).contains("needs a watermark"));
    let ordered = world.stream("events").order_by(["word"]).unwrap().select(["word"]).unwrap();
    assert!(rule_of(&ordered, OutputMode::Append).contains("cannot be sorted"));
    assert!(rule_of(&world.limits(), OutputMode::Append).contains("reads no stream"));
    let counted_twice = counts.group_by(["count AS c"]).count().unwrap();
    assert!(rule_of(&counted_twice, OutputMode::Complete).contains("above an aggregation"));
}

#[test]
fn deep_trees_and_deep_columns_are_refused_before_they_exhaust_the_stack() {
    let world = World::new();
    let mut frame = world.stream("events");
    let error = loop {
        match frame.with_column("n", col("n") + 1) {
            Ok(more) => frame = more,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("operations above each other"), "{error}");
    inspect::check(&world.session, &world.spec(&frame, OutputMode::Append)).unwrap();

    let mut wide = world.stream("events").select(["n"]).unwrap();
    let error = loop {
        match wide.union(&wide) {
            Ok(more) => wide = more,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("in all"), "{error}");

    let mut sum = lit(0);
    for _ in 0..199 {
        sum = sum + 1;
    }
    world.stream("events").select([sum.clone()]).unwrap();
    let text = refused(world.stream("events").select([sum + 1 + 1 + 1]));
    assert!(text.contains("nests deeper"), "{text}");
}

#[test]
fn literals_are_values_and_never_sql() {
    let world = World::new();
    let rows = world.session.create_data_frame(std::sync::Arc::new(arrow::datatypes::Schema::empty()), Vec::new());
    assert!(rows.is_ok());
    let events = world.stream("events");
    for text in ["it's", "a\\b", "''; DROP", "%_\\%", "line\nline", "\\'"] {
        let frame = events.select([lit(text).alias("t")]).unwrap();
        assert!(
            frame.explain().contains(&format!("Utf8({:?})", text)) || frame.explain().contains(text),
            "{text:?}: {}",
            frame.explain()
        );
    }
    for column in [lit(i64::MIN), lit(i32::MIN), lit(f64::NAN), lit(f64::NEG_INFINITY), lit(1e300), lit(-0.5)] {
        events.select([column.alias("x")]).unwrap();
    }
    events.select([expr("n AS `with space`")]).unwrap().select([col("with space")]).unwrap();
    assert!(events.select([call_function("no_such_function", [col("n")])]).is_err());
}
