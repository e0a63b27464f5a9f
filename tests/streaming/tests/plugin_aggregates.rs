//! Aggregate functions of plugins: a stream ends where a batch query over the same rows ends, and a frame is the SQL.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow::datatypes::Schema;
use arrow::util::pretty::pretty_format_batches;
use millstream_common::{Options, OutputMode, StopSignal, describe_chain};
use millstream_plan::ddl::parse_ddl;
use millstream_runtime::batch_query::run_batch_query;
use millstream_runtime::functions::{call_function, col, expr};
use millstream_runtime::{PluginSpec, QueryRun, QuerySpec, Session, StreamSpec};
use millstream_sink::connectors::memory::MemorySinkTables;
use millstream_sink::{SinkRegistry, SinkSpec};
use millstream_source::SourceSpec;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use streaming_stories::component;
use tempfile::TempDir;

const COLUMNS: &str = "at TIMESTAMP, k STRING, v BIGINT, place STRING";

/// Files of rows that look random and never change; times lie in no order.
fn input(files: usize, rows: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut state = 42_u64;
    let mut below = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    for file in 0..files {
        let mut text = String::new();
        for _ in 0..rows {
            let value = below(50);
            let value = if value < 5 { "null".to_owned() } else { value.to_string() };
            let (second, key, place) = (below(600), below(7), below(90));
            let at = format!("2026-05-01T09:{:02}:{:02}Z", second / 60, second % 60);
            writeln!(text, r#"{{"at":"{at}","k":"k{key}","v":{value},"place":"p{place}"}}"#).unwrap();
        }
        std::fs::write(folder.path().join(format!("{file}.json")), text).unwrap();
    }
    folder
}

fn plugin() -> PluginSpec {
    let limits = PluginLimits { rows_per_call: 97, ..PluginLimits::default() };
    let component = component("aggregates").unwrap();
    PluginSpec { name: "stats".into(), component, limits, on_fault: FaultPolicy::Fail }
}

fn spec(folder: &Path, sql: &str) -> QuerySpec {
    let schema = Some(Arc::new(Schema::new(parse_ddl(COLUMNS).unwrap())));
    let options = Options::new().with("path", folder.display().to_string()).with("maxFilesPerTrigger", "1");
    let source = SourceSpec { name: "t".into(), format: "json".into(), schema, options };
    let sink = SinkSpec { format: "memory".into(), options: Options::new() };
    QuerySpec {
        name: Some("answer".into()),
        plugins: vec![plugin()],
        mode: OutputMode::Complete,
        ..QuerySpec::new(sql, vec![StreamSpec { source, event_time: None, drop_duplicates: None }], sink)
    }
}

struct Answers {
    session: Session,
    tables: MemorySinkTables,
}

impl Answers {
    fn new() -> Self {
        let tables = MemorySinkTables::new();
        let session = Session::builder().sinks(SinkRegistry::with_builtins_over(tables.clone())).build();
        Self { session, tables }
    }

    /// The rows of the last batch, in any order.
    fn last(&self) -> Vec<String> {
        let batches = self.tables.get("answer").unwrap().batches();
        let rows = batches.into_values().next_back().unwrap();
        let text = pretty_format_batches(&rows).unwrap().to_string();
        let mut lines: Vec<String> = text.lines().filter(|line| line.starts_with("| ")).map(str::to_owned).collect();
        lines.sort();
        lines
    }

    fn of_stream(&self, spec: QuerySpec) -> Vec<String> {
        let mut run = QueryRun::open(&self.session, spec, StopSignal::new()).unwrap();
        while run.run_next().unwrap().is_some() {}
        run.close();
        self.last()
    }
}

fn of_batch(folder: &Path, sql: &str) -> Vec<String> {
    let answers = Answers::new();
    run_batch_query(&answers.session, &spec(folder, sql), &StopSignal::new()).unwrap().unwrap();
    answers.last()
}

#[test]
fn a_stream_ends_where_the_batch_query_ends() {
    let folder = input(5, 300);
    for sql in [
        "SELECT k, total(v) AS t, longest(place) AS l, count(*) AS c FROM t GROUP BY k",
        "SELECT total(v) AS t, total(v) FILTER (WHERE k = 'k3') AS three, total(v) FILTER (WHERE k = 'none') AS none FROM t",
        "SELECT window(at, '2 minutes', '1 minute').start AS w, k, total(twice(v)) AS t FROM t \
         GROUP BY window(at, '2 minutes', '1 minute'), k HAVING total(v) > 100",
        "SELECT session_window.start AS s, session_window.end AS e, k, total(v) AS t FROM t \
         GROUP BY session_window(at, '3 seconds'), k",
        "SELECT k, grouping(k) AS g, total(v) AS t FROM t GROUP BY ROLLUP(k)",
    ] {
        let answer = of_batch(folder.path(), sql);
        assert!(answer.len() > 1, "{sql}");
        assert_eq!(Answers::new().of_stream(spec(folder.path(), sql)), answer, "{sql}");
    }
}

#[test]
fn a_window_of_rows_slides_over_a_batch_query() {
    let folder = input(1, 60);
    let over = "OVER (PARTITION BY k ORDER BY at, v, place";
    let sql = |value: &str| format!("SELECT k, at, v, {value} AS t FROM t");
    let total = format!("total(v) {over} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)");
    let lag = |rows: u32| format!("coalesce(lag(v, {rows}) {over}), 0)");
    // No value is 0, so 0 is the sum of nulls.
    let sum = format!("nullif(coalesce(v, 0) + {} + {}, 0)", lag(1), lag(2));
    assert_eq!(of_batch(folder.path(), &sql(&total)), of_batch(folder.path(), &sql(&sum)));
}

#[test]
fn a_frame_calls_them_as_sql_does() {
    let folder = input(3, 40);
    let answers = Answers::new();
    answers.session.register_plugin(plugin());
    let rows = answers.session.read_stream().format("json");
    let rows = rows.schema(Arc::new(Schema::new(parse_ddl(COLUMNS).unwrap())));
    let rows = rows.option("maxFilesPerTrigger", 1).load_path(&folder.path().display().to_string()).unwrap();
    let values = [call_function("total", [col("v")]).alias("t"), expr("longest(place) AS l"), expr("count(*) AS c")];
    let frame = rows.group_by(["k"]).agg(values).unwrap();
    let writer = frame.write_stream().format("memory").output_mode(OutputMode::Complete).query_name("answer");
    let sql = "SELECT k, total(v) AS t, longest(place) AS l, count(*) AS c FROM t GROUP BY k";
    assert_eq!(answers.of_stream(writer.spec().unwrap()), of_batch(folder.path(), sql));
}

#[test]
fn a_session_makes_a_plugin_of_the_component_that_sql_names() {
    let (folder, files) = (input(3, 40), tempfile::tempdir().unwrap());
    let file = |name: &str, component: &[u8]| {
        let path = files.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, component).unwrap();
        path.display().to_string()
    };
    let sums = file("sums.wasm", &plugin().component);
    let answers = Answers::new();
    let session = &answers.session;
    let rows = session.read_stream().format("json");
    let rows = rows.schema(Arc::new(Schema::new(parse_ddl(COLUMNS).unwrap())));
    let rows = rows.option("maxFilesPerTrigger", 1).load_path(&folder.path().display().to_string()).unwrap();
    rows.create_or_replace_temp_view("t").unwrap();
    let query = "SELECT k, total(v) AS t, longest(place) AS l, count(*) AS c FROM t GROUP BY k";
    assert!(session.sql(query).is_err(), "nobody knows the function yet");
    for (create, reason) in [
        (format!("CREATE FUNCTION nobody USING COMPONENT '{sums}'; {query}"), "has no function `nobody`"),
        (format!("CREATE FUNCTION total USING COMPONENT '{sums}x'; {query}"), "cannot read"),
    ] {
        let error = describe_chain(&session.sql(&create).map(|_| ()).unwrap_err());
        assert!(error.contains(reason), "{error}");
    }
    let nothing = session.sql(&format!("CREATE OR REPLACE FUNCTION total USING COMPONENT '{sums}'")).unwrap();
    assert!(nothing.columns().is_empty());
    let frame = session.sql(&format!("CREATE FUNCTION total USING COMPONENT '{sums}'; {query}")).unwrap();
    let writer = frame.write_stream().format("memory").output_mode(OutputMode::Complete).query_name("answer");
    assert_eq!(answers.of_stream(writer.spec().unwrap()), of_batch(folder.path(), query));
    assert!(session.sql(query).is_ok(), "it stays");
    let other = file("other/sums.wasm", &component("aggregates_other").unwrap());
    let again = session.sql(&format!("CREATE FUNCTION total USING COMPONENT '{other}'; {query}"));
    let error = describe_chain(&again.map(|_| ()).unwrap_err());
    assert!(error.contains("another component is the plugin `sums`"), "{error}");
}
