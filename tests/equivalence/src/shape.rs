//! Kinds of queries, each with random parts.

use millstream_common::OutputMode;
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// The kinds, in the order in which seeds take them.
pub const NAMES: &[&str] = &[
    "stateless",
    "generator",
    "union",
    "duplicates",
    "distinct",
    "limit",
    "count in complete mode",
    "count in update mode",
    "global aggregate",
    "grouping sets",
    "tumbling windows",
    "sliding windows",
    "windows in update mode",
    "keys of event time",
    "windows of windows",
    "windows without duplicates",
    "join with a table",
    "sessions",
    "sessions in complete mode",
    "windows of sessions",
    "inner join",
    "left join",
    "right join",
    "full join",
    "semi join",
    "join of windows",
    "windows of a join",
    "sessions of a join",
    "join of aggregates",
    "join with itself",
    "union of windows",
];

/// How the batches of a stream make the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// All rows of all batches.
    All,
    /// The rows of the last batch.
    Last,
    /// The last row of each key: that many columns from the left.
    Upsert(usize),
}

/// A query and what its input may be.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Spark's SQL over the streams `a` and `b` and the table `d`.
    pub sql: String,
    /// Its output mode.
    pub mode: OutputMode,
    /// How its result is put together.
    pub compare: Compare,
    /// Whether the query reads `b` as well.
    pub two_streams: bool,
    /// The delay of the watermark of both streams in seconds, if they have one.
    pub delay_s: Option<i64>,
    /// The columns by which `a` drops duplicates, if it does.
    pub duplicates: Option<Vec<&'static str>>,
    /// Whether rows may be later than the watermark allows.
    pub may_be_late: bool,
    /// Whether event times may be null.
    pub null_times: bool,
    /// Whether `k` may be null.
    pub null_keys: bool,
}

impl Shape {
    fn new(mode: OutputMode, sql: String) -> Self {
        let compare = match mode {
            OutputMode::Append => Compare::All,
            OutputMode::Complete => Compare::Last,
            OutputMode::Update => Compare::Upsert(0),
        };
        Self {
            sql,
            mode,
            compare,
            two_streams: false,
            delay_s: None,
            duplicates: None,
            may_be_late: true,
            null_times: true,
            null_keys: true,
        }
    }

    /// In time, with a watermark.
    fn watched(mut self, random: &mut StdRng) -> Self {
        self.delay_s = Some(random.random_range(0..20));
        self.may_be_late = false;
        self
    }

    fn keyed(mut self, columns: usize) -> Self {
        self.compare = Compare::Upsert(columns);
        self
    }

    fn of_two_streams(mut self) -> Self {
        self.two_streams = true;
        self
    }

    fn without_null_times(mut self) -> Self {
        self.null_times = false;
        self
    }
}

/// A query of that kind.
///
/// # Panics
/// When there is no such kind.
#[allow(clippy::panic, reason = "the names are those above")]
pub(crate) fn random(name: &str, random: &mut StdRng) -> Shape {
    use OutputMode::{Append, Complete, Update};
    let filter = filter(random);
    let aggregates = aggregates(random);
    match name {
        "stateless" => Shape::new(
            Append,
            format!(
                "SELECT k, at, v * 2 + 1 AS n, CASE WHEN v > {} THEN upper(k) ELSE concat(k, '-') END AS u FROM a {filter}",
                number(random)
            ),
        ),
        "generator" => {
            let outer = pick(random, &["explode", "explode_outer", "posexplode"]);
            let names = if outer == "posexplode" { "p, n" } else { "n" };
            Shape::new(
                Append,
                format!(
                    "SELECT k, {names} FROM a LATERAL VIEW {outer}(array(v, v + 1, length(k))) t AS {names} {filter}"
                ),
            )
        }
        "union" => {
            let all = Shape::new(
                Append,
                format!(
                    "SELECT k, v AS n FROM a {filter} UNION ALL SELECT k, w AS n FROM b WHERE w <> {}",
                    number(random)
                ),
            );
            all.of_two_streams()
        }
        "duplicates" => {
            let mut shape = Shape::new(Append, format!("SELECT k, at, v FROM a {filter}"));
            shape.duplicates = Some(pick(random, &[vec!["k"], vec!["k", "v"], vec!["at", "k"], vec!["at"], vec![]]));
            let has_time = shape.duplicates.as_ref().is_some_and(|keys| keys.is_empty() || keys.contains(&"at"));
            if has_time && random.random_bool(0.7) { shape.watched(random) } else { shape }
        }
        "distinct" => match random.random_bool(0.5) {
            true => Shape::new(Update, format!("SELECT DISTINCT k, v % 3 AS r FROM a {filter}")).keyed(2),
            false => Shape::new(Append, format!("SELECT DISTINCT at, k FROM a {filter}"))
                .watched(random)
                .without_null_times(),
        },
        "limit" => Shape::new(Append, format!("SELECT k, v FROM a {filter} LIMIT {}", random.random_range(0..12))),
        "count in complete mode" => Shape::new(
            Complete,
            format!("SELECT k, {aggregates} FROM a {filter} GROUP BY k{}{}", having(random), order(random)),
        ),
        "count in update mode" => {
            Shape::new(Update, format!("SELECT k, v % 4 AS r, {aggregates} FROM a {filter} GROUP BY k, v % 4")).keyed(2)
        }
        "global aggregate" => {
            let mode = pick(random, &[Update, Complete]);
            Shape::new(mode, format!("SELECT {aggregates} FROM a {filter}"))
        }
        "grouping sets" => {
            let mode = pick(random, &[Update, Complete]);
            let sets = pick(random, &["ROLLUP(k, v % 2)", "CUBE(k, v % 2)"]);
            // Which columns are left out is part of the key: null may also be a value.
            let sql = format!("SELECT k, v % 2 AS r, grouping_id() AS g, {aggregates} FROM a {filter} GROUP BY {sets}");
            let shape = Shape::new(mode, sql);
            if mode == Update { shape.keyed(3) } else { shape }
        }
        "tumbling windows" => Shape::new(
            Append,
            format!(
                "SELECT window, k, {aggregates} FROM a {filter} GROUP BY {}, k{}",
                window(random, false),
                having(random)
            ),
        )
        .watched(random),
        "sliding windows" => Shape::new(
            Append,
            format!(
                "SELECT window.start AS s, window.end AS e, {aggregates} FROM a {filter} GROUP BY {}",
                window(random, true)
            ),
        )
        .watched(random),
        "windows in update mode" => {
            let mode = pick(random, &[Update, Complete]);
            let sliding = random.random_bool(0.5);
            let sql = format!("SELECT window, k, {aggregates} FROM a {filter} GROUP BY {}, k", window(random, sliding));
            match mode {
                Update => Shape::new(Update, sql).keyed(2).watched(random),
                _ => Shape::new(mode, sql),
            }
        }
        "keys of event time" => {
            Shape::new(Append, format!("SELECT at, k, {aggregates} FROM a {filter} GROUP BY at, k"))
                .watched(random)
                .without_null_times()
        }
        "windows of windows" => {
            let inner = window(random, false);
            let outer = random.random_range(30..200);
            Shape::new(
                Append,
                format!(
                    "SELECT window(t, '{outer} seconds').start AS s, sum(c) AS c, count(*) AS n, max(m) AS m FROM \
                     (SELECT window_time(w) AS t, c, m FROM \
                     (SELECT window AS w, k, count(*) AS c, max(v) AS m FROM a {filter} GROUP BY {inner}, k)) \
                     GROUP BY window(t, '{outer} seconds')"
                ),
            )
            .watched(random)
        }
        "windows without duplicates" => {
            let sql = format!("SELECT window, {aggregates} FROM a {filter} GROUP BY {}", window(random, false));
            let mut shape = Shape::new(Append, sql).watched(random);
            shape.duplicates = Some(pick(random, &[vec!["at", "k"], vec!["at"], vec![]]));
            shape
        }
        "join with a table" => {
            let (kind, label) = pick(
                random,
                &[("JOIN", ", label"), ("LEFT JOIN", ", label"), ("LEFT SEMI JOIN", ""), ("LEFT ANTI JOIN", "")],
            );
            Shape::new(Append, format!("SELECT a.k AS k, v{label} FROM a {kind} d ON a.k = d.k {filter}"))
        }
        "sessions" => Shape::new(
            Append,
            format!(
                "SELECT session_window, k, {aggregates} FROM a {filter} GROUP BY session_window(at, {}), k{}",
                gap(random),
                having(random)
            ),
        )
        .watched(random),
        "sessions in complete mode" => Shape::new(
            Complete,
            format!(
                "SELECT session_window.start AS s, session_window.end AS e, k, {aggregates} FROM a {filter} \
                 GROUP BY session_window(at, {}), k",
                gap(random)
            ),
        )
        .watched(random),
        "windows of sessions" => {
            let outer = random.random_range(30..200);
            let sql = format!(
                "SELECT window(t, '{outer} seconds').start AS s, sum(c) AS c, count(*) AS n FROM \
                 (SELECT window_time(w) AS t, c FROM \
                 (SELECT session_window AS w, k, count(*) AS c FROM a {filter} GROUP BY session_window(at, {}), k)) \
                 GROUP BY window(t, '{outer} seconds')",
                gap(random)
            );
            Shape::new(Append, sql).watched(random)
        }
        "inner join" => {
            let sql = format!("SELECT a.k AS k, a.at AS at, v, b.at AS bt, w FROM a JOIN b ON {}", condition(random));
            let shape = Shape::new(Append, sql).of_two_streams();
            if random.random_bool(0.7) { shape.watched(random) } else { shape }
        }
        "left join" => {
            outer(format!("SELECT a.k AS k, a.at AS at, v, w FROM a LEFT JOIN b ON {}", condition(random)), random)
        }
        "right join" => {
            outer(format!("SELECT b.k AS k, v, b.at AS bt, w FROM a RIGHT JOIN b ON {}", condition(random)), random)
        }
        "full join" => {
            let columns = "coalesce(a.k, b.k) AS k, a.at AS at, v, b.at AS bt, w";
            let mut shape = outer(format!("SELECT {columns} FROM a FULL JOIN b ON {}", condition(random)), random);
            // At a full join NULL keys match each other in a stream, as Spark has it.
            shape.null_keys = false;
            shape
        }
        "semi join" => {
            outer(format!("SELECT a.k AS k, a.at AS at, v FROM a LEFT SEMI JOIN b ON {}", condition(random)), random)
        }
        "join of windows" => {
            let size = random.random_range(1..40);
            let kind = pick(random, &["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
            let of = |stream: &str| format!("(SELECT *, window(at, '{size} seconds') AS win FROM {stream})");
            let sql = format!(
                "SELECT a.k AS k, a.win AS win, v, b.k AS bk, w FROM {} a {kind} {} b ON a.win = b.win AND a.k = b.k",
                of("a"),
                of("b")
            );
            outer(sql, random)
        }
        "windows of a join" => {
            let size = random.random_range(5..60);
            let time = pick(random, &["at", "bt"]);
            let sql = format!(
                "SELECT window.start AS s, count(*) AS c, sum(v + w) AS t FROM \
                 (SELECT a.k, a.at AS at, v, b.at AS bt, w FROM a JOIN b ON {}) GROUP BY window({time}, '{size} seconds')",
                condition(random)
            );
            outer(sql, random)
        }
        "sessions of a join" => {
            let sql = format!(
                "SELECT session_window AS s, k, count(*) AS c FROM \
                 (SELECT a.k AS k, a.at AS at, v, w FROM a JOIN b ON {}) GROUP BY session_window(at, {}), k",
                condition(random),
                gap(random)
            );
            outer(sql, random)
        }
        "join of aggregates" => {
            let window = window(random, false);
            let kind = pick(random, &["JOIN", "LEFT JOIN"]);
            let of =
                |stream: &str| format!("(SELECT window AS win, k, count(*) AS c FROM {stream} GROUP BY {window}, k)");
            let sql = format!(
                "SELECT a.win AS win, a.k AS k, a.c AS ac, b.c AS bc FROM {} a {kind} {} b ON a.win = b.win AND a.k = b.k",
                of("a"),
                of("b")
            );
            outer(sql, random)
        }
        "join with itself" => {
            let range = random.random_range(1..60);
            let sql = format!(
                "SELECT x.k AS k, x.v AS v, y.v AS u FROM a x JOIN a y ON x.k = y.k AND x.v < y.v \
                 AND y.at BETWEEN x.at AND x.at + INTERVAL {range} SECONDS"
            );
            Shape::new(Append, sql).watched(random)
        }
        "union of windows" => {
            let sql = format!(
                "SELECT window.start AS s, k, count(*) AS c, sum(n) AS t FROM \
                 (SELECT at, k, v AS n FROM a UNION ALL SELECT at, k, w AS n FROM b) GROUP BY {}, k",
                window(random, true)
            );
            Shape::new(Append, sql).of_two_streams().watched(random)
        }
        other => panic!("there is no kind `{other}`"),
    }
}

/// A join that needs times in both streams, in append mode.
fn outer(sql: String, random: &mut StdRng) -> Shape {
    Shape::new(OutputMode::Append, sql).of_two_streams().watched(random).without_null_times()
}

/// Keys are equal, and times near each other in one of the ways to say so.
fn condition(random: &mut StdRng) -> String {
    let (near, far) = (random.random_range(0..30), random.random_range(1..90));
    let times = match random.random_range(0..6) {
        0 => format!("b.at BETWEEN a.at AND a.at + INTERVAL {far} SECONDS"),
        1 => format!("b.at >= a.at - INTERVAL {far} SECONDS AND b.at <= a.at"),
        2 => format!("b.at > a.at AND b.at < a.at + INTERVAL {far} SECONDS"),
        3 => format!("a.at BETWEEN b.at - INTERVAL {far} SECONDS AND b.at + INTERVAL {near} SECONDS"),
        4 => format!("a.at + INTERVAL {near} SECONDS > b.at AND b.at + INTERVAL {far} SECONDS >= a.at"),
        _ => "a.at = b.at".to_owned(),
    };
    let more = pick(random, &["", "", " AND v < w", " AND v + w > 5", " AND v <> 3"]);
    format!("a.k = b.k AND {times}{more}")
}

fn gap(random: &mut StdRng) -> String {
    let seconds = random.random_range(1..40);
    match random.random_range(0..3) {
        0 => format!("CASE WHEN v > 8 THEN '{seconds} seconds' WHEN v < 0 THEN '0 seconds' ELSE '5 seconds' END"),
        _ => format!("'{seconds} seconds'"),
    }
}

fn pick<T: Clone>(random: &mut StdRng, of: &[T]) -> T {
    of.choose(random).expect("there is something to choose from").clone()
}

fn number(random: &mut StdRng) -> i64 {
    random.random_range(-3..12)
}

/// A condition that lets the rows pass that close what is open.
fn filter(random: &mut StdRng) -> String {
    let condition = match random.random_range(0..8) {
        0 => format!("v > {}", number(random)),
        1 => "a.k <> 'y'".into(),
        2 => format!("at > TIMESTAMP '1970-01-01 00:00:{:02}'", random.random_range(0..60)),
        3 => format!("a.k IN ('x', 'z') OR v = {}", number(random)),
        4 => "v IS NULL OR a.k IS NULL".into(),
        _ => return String::new(),
    };
    format!("WHERE ({condition} OR a.k LIKE '~%')")
}

fn aggregates(random: &mut StdRng) -> String {
    const ALL: &[&str] = &[
        "count(*)",
        "count(v)",
        "sum(v)",
        "min(v)",
        "max(v)",
        "avg(v)",
        "sum(v) FILTER (WHERE v > 3)",
        "count_if(v > 2)",
        "sort_array(collect_list(v))",
        "sort_array(collect_set(v))",
        "approx_count_distinct(v)",
        "max(at)",
        "min(k)",
        "bool_or(v > 10)",
        "bit_xor(v)",
        "max(k) || '!'",
        "sum(CASE WHEN v % 2 = 0 THEN 1 ELSE 0 END)",
        "avg(CAST(v AS DECIMAL(10, 2)))",
    ];
    let count = random.random_range(1..4);
    let chosen = ALL.choose_multiple(random, count).enumerate();
    chosen.map(|(index, aggregate)| format!("{aggregate} AS c{index}")).collect::<Vec<_>>().join(", ")
}

fn having(random: &mut StdRng) -> &'static str {
    pick(random, &["", "", " HAVING count(*) > 1", " HAVING max(v) > 4"])
}

fn order(random: &mut StdRng) -> &'static str {
    // Ordered by all that makes a row unique, so that LIMIT has one answer.
    pick(random, &["", " ORDER BY k", " ORDER BY k DESC LIMIT 2", " ORDER BY count(*), k LIMIT 3"])
}

fn window(random: &mut StdRng, sliding: bool) -> String {
    let size = random.random_range(1..40);
    let slide = if sliding { random.random_range((size + 4) / 5..=size) } else { size };
    match (slide == size, random.random_bool(0.2)) {
        (true, false) => format!("window(at, '{size} seconds')"),
        (false, false) => format!("window(at, '{size} seconds', '{slide} seconds')"),
        (_, true) => {
            format!("window(at, '{size} seconds', '{slide} seconds', '{} seconds')", random.random_range(0..slide))
        }
    }
}
