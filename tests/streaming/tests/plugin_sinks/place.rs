//! A query with a plugin as sink, in a world that can crash.

use crate::ledger::Ledger;
use arrow::datatypes::{Schema, SchemaRef};
use millstream_common::{Options, OutputMode, StopSignal, describe_chain};
use millstream_plan::ddl::parse_ddl;
use millstream_runtime::{PluginSpec, Progress, QueryRun, QuerySpec, Settings, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_source::connectors::memory::MemoryStream;
use millstream_wasm::{FaultPolicy, HttpGrant, Permissions, PluginLimits};
use std::sync::Arc;
use std::time::Duration;
use streaming_stories::{World, component, unit};

pub(crate) const COUNTS: &str = "SELECT k, count(*) AS n FROM rows GROUP BY k";
pub(crate) const ROWS: &str = "SELECT k, v FROM rows";

/// The rows of each batch: keys and values.
pub(crate) const BATCHES: [&[(&str, i64)]; 4] = [
    &[("a", 1), ("b", 2), ("c", 3), ("a", 4)],
    &[("b", 5), ("d", 6)],
    &[("a", 7), ("a", 7), ("e", 8), ("f", 9), ("g", 10)],
    &[("c", 11)],
];

pub(crate) fn plugin(file: &str) -> PluginSpec {
    let http = HttpGrant { hosts: vec!["127.0.0.1".parse().unwrap()], private: true, response_bytes: 1 << 20 };
    let permissions = Permissions { http: Some(http), ..Permissions::default() };
    PluginSpec {
        name: "out".into(),
        component: component(file).unwrap(),
        limits: PluginLimits {
            permissions: Arc::new(permissions),
            deadline: Duration::from_secs(20),
            ..PluginLimits::default()
        },
        on_fault: FaultPolicy::Fail,
    }
}

pub(crate) struct Place {
    pub(crate) world: World,
    pub(crate) ledger: Ledger,
    pub(crate) spec: QuerySpec,
    rows: MemoryStream,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(parse_ddl("k string, v bigint").unwrap()))
}

impl Place {
    /// A query with all its rows before it.
    pub(crate) fn new(file: &str, sql: &str, partitions: u32) -> Self {
        Self::on(World::new().unwrap(), file, sql, partitions)
    }

    /// The same in that world.
    pub(crate) fn on(world: World, file: &str, sql: &str, partitions: u32) -> Self {
        let ledger = Ledger::start();
        let rows = world.streams.create("rows", schema());
        let stream = StreamSpec {
            source: SourceSpec {
                name: "rows".into(),
                format: "memory".into(),
                schema: None,
                options: Options::new().with("maxBatchesPerTrigger", "1"),
            },
            event_time: None,
            drop_duplicates: None,
        };
        let options = Options::new().with("plugin", "out").with("url", ledger.url());
        let options = options.with("partitions", partitions.to_string());
        let mode = if sql == COUNTS { OutputMode::Update } else { OutputMode::Append };
        let spec = QuerySpec {
            name: Some("sinks".into()),
            plugins: vec![plugin(file)],
            mode,
            checkpoint: Some("checkpoint".into()),
            settings: Settings { partitions: 2, changelogs_before_snapshot: usize::MAX, ..Settings::default() },
            ..QuerySpec::new(sql, vec![stream], SinkSpec { format: "plugin".into(), options })
        };
        let place = Self { world, ledger, spec, rows };
        BATCHES.iter().for_each(|rows| place.add(rows));
        place
    }

    pub(crate) fn add(&self, rows: &[(&str, i64)]) {
        let rows: Vec<Vec<Option<String>>> =
            rows.iter().map(|(k, v)| vec![Some((*k).to_owned()), Some(v.to_string())]).collect();
        self.rows.add_data(unit(&schema(), &rows).unwrap()).unwrap();
    }

    pub(crate) fn open(&self) -> Result<QueryRun, String> {
        self.world.pass_lease();
        QueryRun::open(&self.world.session, self.spec.clone(), StopSignal::new())
            .map_err(|error| describe_chain(&error))
    }

    /// Runs all batches, with as many starts as it takes; at most `starts`. With `restarts` there is one after each batch.
    pub(crate) fn run_all(&self, starts: usize, restarts: bool) -> Vec<String> {
        let mut failures = Vec::new();
        for _ in 0..starts {
            let mut run = match self.open() {
                Ok(run) => run,
                Err(error) => {
                    failures.push(error);
                    self.world.revive();
                    continue;
                }
            };
            loop {
                match next(&mut run) {
                    Ok(Some(_)) if restarts => break,
                    Ok(Some(_)) => {}
                    Ok(None) => {
                        run.close();
                        // A crash behind the last batch stops nobody; the next start finds what it left.
                        if self.world.crashed() {
                            self.world.revive();
                        }
                        return failures;
                    }
                    Err(error) => {
                        failures.push(error);
                        break;
                    }
                }
            }
            drop(run);
            if self.world.crashed() {
                self.world.revive();
            }
        }
        panic!("{starts} starts are not enough: {failures:#?}");
    }
}

pub(crate) fn next(run: &mut QueryRun) -> Result<Option<Progress>, String> {
    run.run_next().map_err(|error| describe_chain(&error))
}
