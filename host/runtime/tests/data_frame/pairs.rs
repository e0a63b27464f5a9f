//! The same query in SQL and by methods: equal rows per batch, equal uids and state, and each goes on from the other's checkpoint.

use crate::world::{Batches, Declared, World, drain, events, sorted, state};
use millstream_common::OutputMode;
use millstream_plan::DropDuplicates;
use millstream_runtime::functions::{
    array, avg, call_function, col, count, explode, expr, lit, max, sum, when, window, window_time,
};
use millstream_runtime::{DataFrame, QuerySpec, RuntimeError};

use OutputMode::{Append, Complete, Update};

const NONE: [&str; 0] = [];

type Framed = Result<DataFrame, RuntimeError>;

/// Adds the rows of the first or the second half.
fn feed(world: &World, half: usize) {
    let (events_of, other_of) = (world.memory("events"), world.memory("other"));
    let halves = [
        [
            events(&[(1, "ant", 1), (2, "bee", 2), (2, "bee", 2), (12, "ant", 3)]),
            events(&[(4, "cat", 9), (26, "bee", 4), (27, "dog", 3)]),
        ],
        [
            events(&[(3, "late", 1), (28, "ant", 5), (28, "ant", 5)]),
            events(&[(61, "Bee", 8), (62, "ant", 1), (27, "dog", 3)]),
        ],
    ];
    for (index, rows) in halves[half].iter().enumerate() {
        events_of.add_data(rows.clone()).unwrap();
        other_of.add_data(events(&[(1, "other", 10 * half as i64 + index as i64)])).unwrap();
    }
}

/// Runs the first half of the rows by one query and the second half by the other, on one checkpoint.
fn run(world: &World, first: &QuerySpec, second: &QuerySpec) -> Batches {
    for (half, spec) in [first, second].into_iter().enumerate() {
        let mut run = world.open(spec).unwrap();
        feed(world, half);
        drain(&mut run);
        run.close();
    }
    world.written()
}

fn compare(sql: &str, mode: OutputMode, declared: &Declared, frame: impl Fn(&World) -> Framed) -> Batches {
    let both = |world: &World| (world.sql(sql, mode, declared), world.spec(&frame(world).unwrap(), mode));
    let world = World::new();
    let (text, framed) = both(&world);
    assert_eq!(state(&world, &framed), state(&world, &text), "{sql}");
    let wanted = run(&world, &text, &text);
    assert!(wanted.values().any(|rows| !rows.is_empty()), "no rows: {sql}");
    let is_ordered = sql.contains("ORDER BY");
    let order = |batches| if is_ordered { batches } else { sorted(batches) };
    let wanted = order(wanted);
    for (first, second) in [(1, 1), (0, 1), (1, 0)] {
        let world = World::new();
        let (text, framed) = both(&world);
        let specs = [&text, &framed];
        let given = order(run(&world, specs[first], specs[second]));
        assert_eq!(given, wanted, "{first} then {second}: {sql}");
    }
    wanted
}

/// Compares over `events` and `other` without a watermark.
fn same(sql: &str, mode: OutputMode, frame: impl Fn(&World) -> Framed) -> Batches {
    compare(sql, mode, &Declared::default(), frame)
}

/// Compares over `events` with a watermark of 10 seconds.
fn same_in_time(sql: &str, mode: OutputMode, frame: impl Fn(&World) -> Framed) -> Batches {
    compare(sql, mode, &Declared { watermark: true, drop_duplicates: None }, frame)
}

#[test]
fn select_takes_texts_and_columns() {
    let sql = "SELECT word, n + 1 AS next, upper(word) AS big FROM events";
    same(sql, Append, |world| world.stream("events").select(["word", "n + 1 AS next", "upper(word) AS big"]));
    same(sql, Append, |world| world.stream("events").select_expr(&["word", "n + 1 AS next", "upper(word) AS big"]));
    same(sql, Append, |world| {
        let big = call_function("upper", [col("word")]).alias("big");
        world.stream("events").select([col("word"), (col("n") + 1).alias("next"), big])
    });
    same("SELECT *, n AS again FROM events", Append, |world| world.stream("events").select(["*", "n AS again"]));
}

#[test]
fn filters_keep_rows() {
    let sql = "SELECT * FROM events WHERE n > 2 AND word <> 'late'";
    same(sql, Append, |world| world.stream("events").filter("n > 2 AND word <> 'late'"));
    same(sql, Append, |world| world.stream("events").where_(col("n").gt(2).and(col("word").neq("late"))));
    same(sql, Append, |world| world.stream("events").filter("n > 2")?.filter(!col("word").eq("late")));
}

#[test]
fn columns_are_added_replaced_renamed_and_dropped() {
    same("SELECT ts, word, n, tags, n * 2 AS twice FROM events", Append, |world| {
        world.stream("events").with_column("twice", col("n") * 2)
    });
    same("SELECT ts, upper(word) AS Word, n, tags FROM events", Append, |world| {
        world.stream("events").with_column("Word", "upper(word)")
    });
    same("SELECT ts, word, n AS number, tags FROM events", Append, |world| {
        world.stream("events").with_column_renamed("N", "number")?.with_column_renamed("nothing", "x")
    });
    same("SELECT ts, n FROM events", Append, |world| world.stream("events").drop(&["WORD", "tags", "nothing"]));
}

#[test]
fn groups_are_counted() {
    let sql = "SELECT word, count(*) AS count FROM events GROUP BY word";
    // A column is found in any case, and called as it is written.
    let loud = "SELECT WORD, count(*) AS count FROM events GROUP BY word";
    for mode in [Complete, Update] {
        same(sql, mode, |world| world.stream("events").group_by(["word"]).count());
        same(loud, mode, |world| world.stream("events").group_by([col("WORD")]).agg([count("*").alias("count")]));
    }
}

#[test]
fn groups_are_computed_over() {
    let sql =
        "SELECT upper(word) AS w, sum(n) AS total, max(n + 1) AS m, avg(n) AS mean FROM events GROUP BY upper(word)";
    same(sql, Update, |world| {
        let values = [sum("n").alias("total"), max(col("n") + 1).alias("m"), avg("n").alias("mean")];
        world.stream("events").group_by(["upper(word) AS w"]).agg(values)
    });
    same("SELECT word, sum(n) AS `sum(n)`, sum(n % 2) AS `sum(n % 2)` FROM events GROUP BY word", Update, |world| {
        world.stream("events").group_by(["word"]).agg(["sum(n) AS `sum(n)`", "sum(n % 2) AS `sum(n % 2)`"])
    });
    same("SELECT word, min(n) AS `min(n)` FROM events GROUP BY word", Update, |world| {
        world.stream("events").group_by(["word"]).min(&["n"])
    });
    same("SELECT count(*) AS c, max(word) AS w FROM events", Complete, |world| {
        world.stream("events").agg(["count(*) AS c", "max(word) AS w"])
    });
}

#[test]
fn a_filter_over_groups_is_having() {
    same("SELECT word, count(*) AS c FROM events GROUP BY word HAVING count(*) > 1", Update, |world| {
        world.stream("events").group_by(["word"]).agg(["count(*) AS c"])?.filter("c > 1")
    });
}

#[test]
fn windows_close_behind_the_watermark() {
    let sql = "SELECT window, word, count(*) AS count FROM events GROUP BY window(ts, '10 seconds'), word";
    for mode in [Append, Update] {
        let rows =
            same_in_time(sql, mode, |world| world.timed().group_by([window("ts", "10 seconds"), col("word")]).count());
        assert!(rows.len() > 4, "batches without rows close windows: {rows:?}");
    }
    let sql =
        "SELECT window.start AS s, sum(n) AS n FROM events GROUP BY window(ts, '10 seconds', '5 seconds', '1 second')";
    same_in_time(sql, Append, |world| {
        let windows = window(col("ts"), ("10 seconds", "5 seconds", "1 second"));
        world.timed().group_by([windows]).agg(["sum(n) AS n"])?.select(["window.start AS s", "n"])
    });
}

#[test]
fn windows_of_windows_are_chained() {
    let sql = "SELECT window(w, '30 seconds') AS big, sum(c) AS n \
               FROM (SELECT window(ts, '10 seconds') AS w, count(*) AS c FROM events GROUP BY window(ts, '10 seconds')) small \
               GROUP BY window(w, '30 seconds')";
    same_in_time(sql, Append, |world| {
        let small = world.timed().group_by([window("ts", "10 seconds").alias("w")]).agg(["count(*) AS c"])?;
        small.alias("small")?.group_by([window("w", "30 seconds").alias("big")]).agg(["sum(c) AS n"])
    });
    let sql = "SELECT t, sum(c) AS n FROM (SELECT window_time(window) AS t, c FROM (SELECT window, count(*) AS c \
               FROM events GROUP BY window(ts, '10 seconds'))) small GROUP BY t";
    same_in_time(sql, Append, |world| {
        let small = world.timed().group_by([window("ts", "10 seconds")]).agg(["count(*) AS c"])?;
        let small = small.select([window_time("window").alias("t"), col("c")])?;
        small.alias("small")?.group_by(["t"]).agg(["sum(c) AS n"])
    });
}

#[test]
fn distinct_rows_come_once() {
    same("SELECT DISTINCT word FROM events", Update, |world| world.stream("events").select(["word"])?.distinct());
    same_in_time("SELECT DISTINCT ts, word FROM events", Append, |world| {
        world.timed().select(["ts", "word"])?.distinct()
    });
}

#[test]
fn duplicates_are_dropped() {
    let of = |columns: &[&str], within_watermark| Declared {
        watermark: true,
        drop_duplicates: Some(DropDuplicates {
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
            within_watermark,
        }),
    };
    let sql = "SELECT ts, word FROM events";
    compare(sql, Append, &of(&["word"], false), |world| {
        world.timed().drop_duplicates(&["word"])?.select(["ts", "word"])
    });
    compare(sql, Append, &of(&["ts", "word"], false), |world| {
        world.timed().drop_duplicates(&["TS", "word"])?.select(["ts", "word"])
    });
    compare(sql, Append, &of(&["word"], true), |world| {
        world.timed().drop_duplicates_within_watermark(&["word"])?.select(["ts", "word"])
    });
}

#[test]
fn a_stream_joins_a_table() {
    let keys = "SELECT e.word, e.n, l.lim FROM events e JOIN limits l ON e.word = l.word";
    same(keys, Append, |world| world.stream("events").select(["word", "n"])?.join(&world.limits(), ["WORD"], "inner"));
    same(keys, Append, |world| {
        let (e, l) = (world.stream("events").alias("e")?, world.limits().alias("l")?);
        e.join(&l, col("e.word").eq(col("l.word")), "inner")?.select(["e.word", "e.n", "l.lim"])
    });
    same(
        "SELECT e.word, e.n, l.lim FROM events e LEFT JOIN limits l ON e.word = l.word AND e.n < l.lim",
        Append,
        |world| {
            let (e, l) = (world.stream("events").alias("e")?, world.limits().alias("l")?);
            e.join(&l, expr("e.word = l.word AND e.n < l.lim"), "left_outer")?.select(["e.word", "e.n", "l.lim"])
        },
    );
    same("SELECT l.word, l.lim, e.n FROM limits l RIGHT JOIN events e ON e.word = l.word", Append, |world| {
        let (e, l) = (world.stream("events").alias("e")?, world.limits().alias("l")?);
        l.join(&e, col("e.word").eq(col("l.word")), "rightouter")?.select(["l.word", "l.lim", "e.n"])
    });
    for (how, word) in [("left_semi", "LEFT SEMI"), ("anti", "LEFT ANTI")] {
        let sql = format!("SELECT e.word, e.n FROM events e {word} JOIN limits l ON e.word = l.word");
        same(&sql, Append, |world| world.stream("events").select(["word", "n"])?.join(&world.limits(), ["word"], how));
    }
    same("SELECT e.word, l.lim FROM events e CROSS JOIN limits l", Append, |world| {
        let (e, l) = (world.stream("events").alias("e")?, world.limits().alias("l")?);
        e.cross_join(&l)?.select(["e.word", "l.lim"])
    });
}

#[test]
fn streams_are_united() {
    same("SELECT word, n FROM events UNION ALL SELECT word, n FROM other", Append, |world| {
        world.stream("events").select(["word", "n"])?.union(&world.stream("other").select(["word", "n"])?)
    });
    same("SELECT word, n FROM events UNION ALL SELECT word, n FROM other", Append, |world| {
        world.stream("events").select(["word", "n"])?.union_by_name(&world.stream("other").select(["n", "word"])?)
    });
    same("SELECT word FROM events UNION ALL SELECT upper(word) AS word FROM events", Append, |world| {
        let events = world.stream("events");
        events.select(["word"])?.union(&events.select(["upper(word) AS word"])?)
    });
}

#[test]
fn generators_make_rows() {
    let sql = "SELECT word, explode(tags) AS letter FROM events";
    same(sql, Append, |world| world.stream("events").select([col("word"), explode("tags").alias("letter")]));
    same(sql, Append, |world| world.stream("events").select(["word", "explode(tags) AS letter"]));
    same("SELECT word, posexplode(tags) AS (place, letter) FROM events", Append, |world| {
        let generated = call_function("posexplode", [col("tags")]).aliases(&["place", "letter"]);
        world.stream("events").select([col("word"), generated])
    });
    same("SELECT ts, word, n, letter AS tags FROM events LATERAL VIEW explode(tags) t AS letter", Append, |world| {
        world.stream("events").with_column("tags", explode("tags"))
    });
    same(
        "SELECT letter, count(*) AS count FROM events LATERAL VIEW explode(tags) t AS letter GROUP BY letter",
        Complete,
        |world| world.stream("events").select([explode("tags").alias("letter")])?.group_by(["letter"]).count(),
    );
}

#[test]
fn aggregations_are_ordered_and_limited() {
    let sql = "SELECT word, count(*) AS c FROM events GROUP BY word ORDER BY c DESC, word LIMIT 2";
    same(sql, Complete, |world| {
        let counts = world.stream("events").group_by(["word"]).agg(["count(*) AS c"])?;
        counts.order_by([col("c").desc(), col("word").asc()])?.limit(2)
    });
    same(sql, Complete, |world| {
        let counts = world.stream("events").group_by(["word"]).agg(["count(*) AS c"])?;
        counts.order_by(["c DESC", "word"])?.limit(2)?.select(["word", "c"])
    });
    same("SELECT word FROM events LIMIT 5", Append, |world| world.stream("events").select(["word"])?.limit(5));
}

#[test]
fn expressions_are_those_of_sql() {
    let sql = "SELECT CASE WHEN n > 4 THEN 'many' WHEN n > 2 THEN 'some' ELSE 'few' END AS much, \
               CAST(n AS STRING) AS s, n IN (1, 5) AS one, n BETWEEN 2 AND 4 AS mid, word LIKE '%e_' AS l, \
               word RLIKE '^[ab]' AS r, tags[0] AS t, word <=> NULL AS nothing, -n AS neg, n % 2 = 0 OR NOT word = 'it''s' AS o, \
               array(1, 2L, CAST('2.5e0' AS DOUBLE)) AS a FROM events";
    same(sql, Append, |world| {
        let few = when(col("n").gt(4), "many").when("n > 2", "some").otherwise("few");
        world.stream("events").select([
            few.alias("much"),
            col("n").cast("string").alias("s"),
            col("n").isin([1, 5]).alias("one"),
            col("n").between(2, 4).alias("mid"),
            col("word").like("%e_").alias("l"),
            col("word").rlike("^[ab]").alias("r"),
            col("tags").get_item(0).alias("t"),
            col("word").eq_null_safe(None::<&str>).alias("nothing"),
            (-col("n")).alias("neg"),
            (col("n") % 2).eq(0).or(!col("word").eq("it's")).alias("o"),
            array([lit(1), lit(2_i64), lit(2.5)]).alias("a"),
        ])
    });
}

#[test]
fn views_and_frames_stand_on_each_other() {
    let sql = "WITH per_word AS (SELECT word, count(*) AS c FROM events GROUP BY word) SELECT word, c FROM per_word WHERE c > 1";
    same(sql, Update, |world| {
        world.stream("events").create_or_replace_temp_view("Events")?;
        let counts = world.session.sql("SELECT word, count(*) AS c FROM events GROUP BY word")?;
        counts.create_or_replace_temp_view("per_word")?;
        world.session.table("PER_WORD")?.alias("per_word")?.filter("c > 1")
    });
    same(sql, Update, |world| {
        let counts = world.stream("events").group_by(["word"]).agg(["count(*) AS c"])?;
        counts.create_or_replace_temp_view("per_word")?;
        world.session.sql("SELECT word, c FROM per_word WHERE c > 1")
    });
    same_in_time(
        "SELECT window.end AS e, count(*) AS c FROM events GROUP BY window(ts, '10 seconds')",
        Append,
        |world| {
            world.timed().create_or_replace_temp_view("timed")?;
            world.session.sql("SELECT window.end AS e, count(*) AS c FROM timed GROUP BY window(ts, '10 seconds')")
        },
    );
}

#[test]
fn a_window_of_a_window_needs_no_other_name() {
    let sql = "SELECT window(w, '30 seconds') AS big, sum(c) AS n FROM \
               (SELECT window(ts, '10 seconds') AS w, count(*) AS c FROM events GROUP BY window(ts, '10 seconds')) small \
               GROUP BY window(w, '30 seconds')";
    same_in_time(sql, Append, |world| {
        let small = world.timed().group_by([window("ts", "10 seconds")]).agg(["count(*) AS c"])?;
        small.alias("small")?.group_by([window("window", "30 seconds").alias("big")]).agg(["sum(c) AS n"])
    });
    let sql = "SELECT window(w, '30 seconds') AS window, c FROM \
               (SELECT window(ts, '10 seconds') AS w, count(*) AS c FROM events GROUP BY window(ts, '10 seconds')) small";
    same_in_time(sql, Append, |world| {
        let small = world.timed().group_by([window("ts", "10 seconds")]).agg(["count(*) AS c"])?;
        small.alias("small")?.with_column("window", window("window", "30 seconds"))
    });
}

#[test]
fn a_static_side_may_be_computed() {
    let sql = "SELECT e.word, e.n, l.most FROM events e \
               JOIN (SELECT word, max(lim) AS most FROM limits GROUP BY word) l ON e.word = l.word";
    same(sql, Append, |world| {
        let limits = world.limits().with_watermark("lim", "1 second")?;
        let most = limits.group_by(["word"]).agg(["max(lim) AS most"])?;
        world.stream("events").select(["word", "n"])?.join(&most, ["word"], "inner")
    });
    let sql = "SELECT e.word, e.n FROM events e JOIN (SELECT DISTINCT word FROM limits) l ON e.word = l.word";
    same(sql, Append, |world| {
        let words = world.limits().drop_duplicates(&["word"])?.drop(&["lim"])?;
        world.stream("events").select(["word", "n"])?.join(&words, ["word"], "inner")
    });
}

#[test]
fn the_time_of_the_batch_is_that_of_the_run() {
    let rows = same("SELECT word, current_timestamp() AS now FROM events", Append, |world| {
        world.stream("events").select([col("word"), call_function("current_timestamp", NONE).alias("now")])
    });
    assert!(rows[&0].iter().skip(1).all(|row| row.ends_with("1970-01-01T00:16:40Z")), "{rows:?}");
}
