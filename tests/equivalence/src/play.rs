//! The streaming side: units become batches, with restarts and crashes between and inside them.

use crate::Shape;
use crate::input::{Row, Unit, closing_unit};
use anyhow::{Context, Result, anyhow};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{Schema, SchemaRef};
use millstream_checkpoint::faulty::Moment;
use millstream_common::{Options, StopSignal, describe_chain};
use millstream_plan::ddl::parse_ddl;
use millstream_plan::{DropDuplicates, EventTime};
use millstream_runtime::{QueryRun, QuerySpec, StreamSpec, TableSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use rand::Rng;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use std::sync::Arc;
use streaming_stories::World;

/// What the streaming engine gave.
pub(crate) struct Played {
    /// The rows of each batch, as the sink has them.
    pub(crate) batches: BTreeMap<u64, Vec<String>>,
    /// Crashes and restarts.
    pub(crate) restarts: u64,
}

/// Plays the units, and the one that closes what is open.
///
/// # Errors
/// When the query fails other than by a planned crash.
pub(crate) fn play(shape: &Shape, units: &[Unit], random: &mut StdRng) -> Result<Played> {
    let world = World::new()?;
    let mut spec = spec(shape);
    spec.settings.partitions = random.random_range(1..6);
    let (a, b) = (world.streams.create("a", schema("v")?), world.streams.create("b", schema("w")?));
    let unruly = random.random_bool(0.5);
    let mut life = Life { world, spec, run: None, unruly, restarts: 0 };
    for unit in units.iter().cloned().chain(closing_unit(shape)) {
        // An empty unit is a batch all the same; a stream that the query does not read is none.
        a.add_data(rows(&unit.a, "v")?)?;
        if shape.two_streams {
            b.add_data(rows(&unit.b, "w")?)?;
        }
        // Several units may wait when the query comes to them.
        if random.random_bool(0.7) {
            life.catch_up(random)?;
        }
    }
    life.catch_up(random)?;
    Ok(Played { batches: life.world.recorder.batches(), restarts: life.restarts })
}

struct Life {
    world: World,
    spec: QuerySpec,
    run: Option<QueryRun>,
    unruly: bool,
    restarts: u64,
}

impl Life {
    /// Runs batches until there is nothing to do.
    fn catch_up(&mut self, random: &mut StdRng) -> Result<()> {
        loop {
            if self.unruly && random.random_bool(0.1) {
                let moment = if random.random_bool(0.5) { Moment::Before } else { Moment::After };
                self.world.crash_at(random.random_range(1..6), moment);
                // What is open would go on writing to files that do not crash.
                self.restart(random);
            }
            match self.run_next() {
                Ok(None) if self.world.crashed() => self.come_up(),
                Ok(None) => return Ok(()),
                Ok(Some(())) if random.random_bool(if self.unruly { 0.3 } else { 0.05 }) => self.restart(random),
                Ok(Some(())) => {}
                Err(_) if self.world.crashed() => self.come_up(),
                Err(error) => return Err(error),
            }
        }
    }

    fn run_next(&mut self) -> Result<Option<()>> {
        if self.run.is_none() {
            let run = QueryRun::open(&self.world.session, self.spec.clone(), StopSignal::new());
            self.run = Some(run.map_err(|error| anyhow!(describe_chain(&error)))?);
        }
        let run = self.run.as_mut().context("it was opened")?;
        Ok(run.run_next().map_err(|error| anyhow!(describe_chain(&error)))?.map(|_| ()))
    }

    fn restart(&mut self, random: &mut StdRng) {
        if let Some(run) = self.run.take() {
            if random.random_bool(0.5) {
                run.close()
            } else {
                drop(run)
            }
            self.restarts += 1;
        }
        self.world.pass_lease();
    }

    fn come_up(&mut self) {
        self.run = None;
        self.restarts += 1;
        self.world.revive();
    }
}

/// The columns of a stream; `value` names the last one.
fn schema(value: &str) -> Result<SchemaRef> {
    Ok(Arc::new(Schema::new(parse_ddl(&format!("at timestamp, k string, {value} bigint"))?)))
}

/// Rows as the stream takes them.
///
/// # Errors
/// Never for rows of these types.
pub(crate) fn rows(of: &[Row], value: &str) -> Result<RecordBatch> {
    let times: TimestampMicrosecondArray = of.iter().map(|row| row.at_ms.map(|ms| ms * 1000)).collect();
    let keys: StringArray = of.iter().map(|row| row.k).collect();
    let values: Int64Array = of.iter().map(|row| row.v).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(times.with_timezone("UTC")), Arc::new(keys), Arc::new(values)];
    Ok(RecordBatch::try_new(schema(value)?, columns)?)
}

/// The table `d`: a key twice, a key that no row has, a null.
fn table() -> Result<TableSpec> {
    let schema: SchemaRef = Arc::new(Schema::new(parse_ddl("k string, label string")?));
    let keys = StringArray::from(vec![Some("x"), Some("x"), Some("z"), Some("no row has it"), None]);
    let labels = StringArray::from(vec!["one", "two", "three", "four", "five"]);
    let rows = vec![RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(keys), Arc::new(labels)])?];
    Ok(TableSpec::Rows { name: "d".into(), schema, rows })
}

/// The query of a shape.
///
/// # Panics
/// Never: the table's types are as declared.
pub(crate) fn spec(shape: &Shape) -> QuerySpec {
    let stream = |name: &str| {
        let options = Options::new().with("maxBatchesPerTrigger", "1");
        let columns = shape.duplicates.as_ref().filter(|_| name == "a");
        StreamSpec {
            source: SourceSpec { name: name.into(), format: "memory".into(), schema: None, options },
            event_time: shape.delay_s.map(|delay| EventTime { column: "at".into(), delay_us: delay * 1_000_000 }),
            drop_duplicates: columns.map(|columns| DropDuplicates {
                columns: columns.iter().map(|&column| column.to_owned()).collect(),
                within_watermark: false,
            }),
        }
    };
    QuerySpec {
        name: Some("shape".into()),
        tables: vec![table().expect("the columns have the table's types")],
        mode: shape.mode,
        checkpoint: Some("checkpoint".into()),
        ..QuerySpec::new(
            shape.sql.as_str(),
            vec![stream("a"), stream("b")],
            SinkSpec { format: "recorder".into(), options: Options::new() },
        )
    }
}
