//! Queries from memory streams into a database, over a checkpoint that can crash.

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use millstream_common::{Options, describe_chain};
use millstream_runtime::{OutputMode, QueryRun, QuerySpec, RuntimeError, StopSignal};
use millstream_source::connectors::memory::MemoryStream;
use std::sync::Arc;
use streaming_stories::World;

/// A world with a stream `events(k string, v bigint)` and a query over it.
pub struct Story {
    /// The world.
    pub world: World,
    /// The stream.
    pub events: MemoryStream,
    spec: QuerySpec,
}

impl Story {
    /// The query `sql` over `events`, into a sink.
    pub fn new(sql: &str, mode: OutputMode, format: &str, options: &Options) -> Self {
        let world = World::new().unwrap();
        Self::in_world(world, sql, mode, format, options)
    }

    /// As [`new`](Self::new), in a world that is there.
    pub fn in_world(world: World, sql: &str, mode: OutputMode, format: &str, options: &Options) -> Self {
        let schema = rows(&[]).schema();
        let events = world.streams.create("events", schema);
        let reader = world.session.read_stream().format("memory").name("events");
        reader.load().unwrap().create_or_replace_temp_view("events").unwrap();
        let mut writer = world.session.sql(sql).unwrap().write_stream().output_mode(mode).format(format);
        for (name, value) in options.iter() {
            writer = writer.option(name, value);
        }
        let spec = writer.option("checkpointLocation", "checkpoint").spec().unwrap();
        Self { world, events, spec }
    }

    /// Adds a unit of rows.
    pub fn add(&self, pairs: &[(&str, i64)]) {
        self.events.add_data(rows(pairs)).unwrap();
    }

    /// The query, to be changed before it runs.
    pub fn spec(&mut self) -> &mut QuerySpec {
        &mut self.spec
    }

    /// Opens a run.
    ///
    /// # Errors
    /// When the query cannot start.
    pub fn open(&self) -> Result<QueryRun, RuntimeError> {
        QueryRun::open(&self.world.session, self.spec.clone(), StopSignal::new())
    }

    /// Runs what there is to run; answers how many batches that were.
    ///
    /// # Errors
    /// When a batch fails, in words.
    pub fn run(&self) -> Result<usize, String> {
        self.world.pass_lease();
        let mut run = self.open().map_err(|error| describe_chain(&error))?;
        let mut batches = 0;
        while run.run_next().map_err(|error| describe_chain(&error))?.is_some() {
            batches += 1;
        }
        run.close();
        Ok(batches)
    }
}

/// Rows of `k string, v bigint`.
pub fn rows(pairs: &[(&str, i64)]) -> RecordBatch {
    let keys: ArrayRef = Arc::new(StringArray::from_iter_values(pairs.iter().map(|(key, _)| *key)));
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(pairs.iter().map(|(_, value)| *value)));
    let columns = [("k", keys, true), ("v", values, true)];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// The columns of some rows.
pub fn schema_of(rows: &RecordBatch) -> SchemaRef {
    rows.schema()
}

/// A query over the changes of a table, into a recorder that compares what comes again.
pub struct Changes {
    /// The world.
    pub world: World,
    spec: QuerySpec,
}

impl Changes {
    /// The query `sql` over the stream `changes` of a format.
    ///
    /// # Errors
    /// When the stream cannot be described, in words.
    pub fn new(world: World, sql: &str, format: &str, options: &Options) -> Result<Self, String> {
        let mut reader = world.session.read_stream().format(format).name("changes");
        for (name, value) in options.iter() {
            reader = reader.option(name, value);
        }
        let changes = reader.load().map_err(|error| describe_chain(&error))?;
        changes.create_or_replace_temp_view("changes").unwrap();
        let writer = world.session.sql(sql).unwrap().write_stream().output_mode(OutputMode::Append).format("recorder");
        let spec = writer.option("checkpointLocation", "checkpoint").spec().unwrap();
        Ok(Self { world, spec })
    }

    /// The query, to be changed before it runs.
    pub fn spec(&mut self) -> &mut QuerySpec {
        &mut self.spec
    }

    /// Opens a run.
    ///
    /// # Errors
    /// When the query cannot start.
    pub fn open(&self) -> Result<QueryRun, RuntimeError> {
        self.world.pass_lease();
        QueryRun::open(&self.world.session, self.spec.clone(), StopSignal::new())
    }

    /// Runs what there is to run, in a run of its own; answers how many batches that were.
    ///
    /// # Errors
    /// When a batch fails, in words.
    pub fn run(&self) -> Result<usize, String> {
        let mut run = self.open().map_err(|error| describe_chain(&error))?;
        let mut batches = 0;
        while run.run_next().map_err(|error| describe_chain(&error))?.is_some() {
            batches += 1;
        }
        run.close();
        Ok(batches)
    }

    /// What the batches gave, in order.
    pub fn batches(&self) -> Vec<Vec<String>> {
        let plain = |rows: Vec<String>| rows.iter().map(|row| row.replace(" | ", ", ")).collect();
        self.world.recorder.batches().into_values().map(plain).collect()
    }

    /// The rows of all batches, in order.
    pub fn rows(&self) -> Vec<String> {
        self.batches().into_iter().flatten().collect()
    }
}
