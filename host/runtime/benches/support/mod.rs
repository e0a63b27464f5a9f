//! What the benchmarks of queries have in common: a query on memory streams, CPU time, medians, and a table.

#![allow(dead_code, reason = "each benchmark uses its part")]
#![allow(unsafe_code, reason = "clock_gettime")]

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use millstream_common::{DurableFiles, MemoryFiles};
use millstream_plan::EventTime;
use millstream_plan::ddl::parse_ddl;
use millstream_runtime::{
    Options, OutputMode, QueryRun, QuerySpec, Session, Settings, StopSignal, StreamSpec, TableSpec,
};
use millstream_sink::SinkSpec;
use millstream_source::connectors::memory::{MemoryStream, MemoryStreams};
use millstream_source::{Offset, SourceRegistry, SourceSpec};
use std::sync::Arc;

/// CPU seconds of the whole process: helper threads count.
pub(crate) fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec and outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// CPU seconds that `work` takes.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = cpu_seconds();
    let result = work();
    (cpu_seconds() - start, result)
}

/// The middle one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Columns from Spark's DDL.
pub(crate) fn schema(ddl: &str) -> SchemaRef {
    Arc::new(Schema::new(parse_ddl(ddl).expect("the benchmark's own schema")))
}

/// A query on one memory stream `t`, with its checkpoint in memory and a sink that only counts.
pub(crate) struct Bench {
    stream: MemoryStream,
    run: QueryRun,
}

/// What a benchmark's query is made of.
pub(crate) struct Query<'a> {
    pub(crate) sql: &'a str,
    pub(crate) mode: OutputMode,
    pub(crate) schema: SchemaRef,
    /// The delay of the watermark on the column `at` in seconds, if there is one.
    pub(crate) delay_s: Option<i64>,
    pub(crate) partitions: u32,
    pub(crate) tables: Vec<TableSpec>,
}

impl Bench {
    pub(crate) fn new(query: Query<'_>) -> Self {
        let streams = MemoryStreams::new();
        let stream = streams.create("t", query.schema);
        let mut sources = SourceRegistry::with_builtins();
        sources.register("memory", Arc::new(streams));
        let files: Arc<dyn DurableFiles> = Arc::new(MemoryFiles::default());
        let session =
            Session::builder().sources(sources).open_checkpoint(Arc::new(move |_, _| Ok(Arc::clone(&files)))).build();
        let settings = Settings { partitions: query.partitions, ..Settings::default() };
        let spec = QuerySpec {
            tables: query.tables,
            mode: query.mode,
            checkpoint: Some("bench".into()),
            settings,
            ..QuerySpec::new(
                query.sql,
                vec![StreamSpec {
                    source: SourceSpec {
                        name: "t".into(),
                        format: "memory".into(),
                        schema: None,
                        options: Options::new().with("maxBatchesPerTrigger", "1"),
                    },
                    event_time: query
                        .delay_s
                        .map(|delay| EventTime { column: "at".into(), delay_us: delay * 1_000_000 }),
                    drop_duplicates: None,
                }],
                SinkSpec { format: "noop".into(), options: Options::new() },
            )
        };
        let run = QueryRun::open(&session, spec, StopSignal::new())
            .unwrap_or_else(|error| panic!("the benchmark's query: {}", millstream_common::describe_chain(&error)));
        Self { stream, run }
    }

    /// Adds a unit.
    pub(crate) fn add(&self, rows: RecordBatch) -> Offset {
        self.stream.add_data(rows).expect("the rows have the stream's columns")
    }

    /// Runs batches until nothing is left; answers how many there were, and how many rows went out.
    pub(crate) fn run(&mut self) -> (u64, i64) {
        let (mut batches, mut rows) = (0, 0);
        loop {
            match self.run.run_next() {
                Ok(Some(progress)) => {
                    batches += 1;
                    rows += progress.sink.num_output_rows;
                }
                Ok(None) => break,
                Err(error) => panic!("{}", millstream_common::describe_chain(&error)),
            }
        }
        if let Some(end) = self.stream.latest() {
            self.stream.forget(&end).expect("what was read may be forgotten");
        }
        (batches, rows)
    }
}
