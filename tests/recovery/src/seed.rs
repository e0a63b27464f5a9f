//! One random run of a count, with crashes and restarts, compared with the model batch by batch.

use crate::model::{Count, Event, Model, Windows};
use anyhow::{Context, Result, anyhow, bail, ensure};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use millstream_checkpoint::faulty::Moment;
use millstream_common::{Options, OutputMode, StopSignal, describe_chain};
use millstream_plan::EventTime;
use millstream_runtime::{Progress, QueryRun, QuerySpec, Settings, StateLimits, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use streaming_stories::{World, unit};

/// What a seed went through.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    /// Batches in the sink.
    pub batches: u64,
    /// Crashes and restarts.
    pub crashes: u64,
}

/// Runs a seed.
///
/// # Errors
/// When a batch differs from the model's, or the query fails other than by a crash.
pub fn run(seed: u64) -> Result<Outcome> {
    let mut random = StdRng::seed_from_u64(seed);
    let count = random_count(&mut random);
    let spec = spec(count, &mut random);
    let about = format!("{count:?}, {} partitions", spec.settings.partitions);
    let world = World::new()?;
    let stream = world.streams.create("events", schema());
    let mut life = Life { world, spec, run: None, random, crashes: 0 };
    let mut model = Model::new(count);
    let mut expected: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut now = 0;
    for _ in 0..life.random.random_range(2..8) {
        // Units that arrive together are batches one after the other, before the watermark asks for one without rows.
        for _ in 0..life.random.random_range(1..4) {
            let events = random_events(&mut life.random, &mut now);
            stream.add_data(unit(&schema(), &text(&events))?)?;
            expected.insert(expected.len() as u64, model.batch(&events));
        }
        while model.wants_no_data() {
            expected.insert(expected.len() as u64, model.batch(&[]));
        }
        life.catch_up(expected.len() as u64).with_context(|| about.clone())?;
        let given = life.world.recorder.batches();
        for (id, rows) in &expected {
            let mut given = given.get(id).cloned().unwrap_or_default();
            given.sort();
            ensure!(given == *rows, "{about}: batch {id} gave {given:?}, and the model {rows:?}");
        }
        ensure!(given.len() == expected.len(), "{about}: {} batches, the model {}", given.len(), expected.len());
    }
    Ok(Outcome { batches: expected.len() as u64, crashes: life.crashes })
}

fn random_count(random: &mut StdRng) -> Count {
    let size = random.random_range(1..20);
    let slide = if random.random_bool(0.5) { size } else { random.random_range(1..=size) };
    let windows = Windows { size, slide, delay: random.random_range(0..15) };
    match random.random_range(0..3) {
        0 => Count::WindowedAppend(windows),
        1 => Count::WindowedUpdate(windows),
        _ => Count::Complete,
    }
}

/// Rows around a time that moves on, some far behind it.
fn random_events(random: &mut StdRng, now: &mut i64) -> Vec<Event> {
    *now += random.random_range(0..15);
    let rows = if random.random_bool(0.1) { 0 } else { random.random_range(1..30) };
    let event = |_| {
        let back = if random.random_bool(0.2) { random.random_range(0..60) } else { random.random_range(0..10) };
        ((*now - back).max(0), format!("k{}", random.random_range(0..6)))
    };
    (0..rows).map(event).collect()
}

fn text(events: &[Event]) -> Vec<Vec<Option<String>>> {
    let row = |(time, key): &Event| {
        let (days, rest) = (time / 86_400, time % 86_400);
        debug_assert_eq!(days, 0, "a run does not last a day");
        let time = format!("{:02}:{:02}:{:02}", rest / 3600, rest % 3600 / 60, rest % 60);
        vec![Some(time), Some(key.clone())]
    };
    events.iter().map(row).collect()
}

fn schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![Field::new("at", time, true), Field::new("k", DataType::Utf8, true)]))
}

fn spec(count: Count, random: &mut StdRng) -> QuerySpec {
    let (sql, mode, event_time) = match count {
        Count::Complete => ("SELECT k, count(*) AS n FROM events GROUP BY k".to_owned(), OutputMode::Complete, None),
        Count::WindowedAppend(windows) | Count::WindowedUpdate(windows) => {
            let window = format!("window(at, '{} seconds', '{} seconds')", windows.size, windows.slide);
            let is_append = matches!(count, Count::WindowedAppend(_));
            let mode = if is_append { OutputMode::Append } else { OutputMode::Update };
            (
                format!(
                    "SELECT unix_seconds({window}.start) AS start, k, count(*) AS n FROM events GROUP BY {window}, k"
                ),
                mode,
                Some(EventTime { column: "at".into(), delay_us: windows.delay * 1_000_000 }),
            )
        }
    };
    let settings = Settings {
        partitions: random.random_range(1..6),
        changelogs_before_snapshot: random.random_range(1..20),
        ..Settings::default()
    };
    let source = SourceSpec {
        name: "events".into(),
        format: "memory".into(),
        schema: None,
        options: Options::new().with("maxBatchesPerTrigger", "1"),
    };
    QuerySpec {
        name: Some("counts".into()),
        mode,
        checkpoint: Some("checkpoint".into()),
        settings,
        state: StateLimits { memory: [None, Some(1), Some(20_000)][random.random_range(0..3)], spill: None },
        ..QuerySpec::new(
            sql,
            vec![StreamSpec { source, event_time, drop_duplicates: None }],
            SinkSpec { format: "recorder".into(), options: Options::new() },
        )
    }
}

/// The lives of a query.
struct Life {
    world: World,
    spec: QuerySpec,
    run: Option<QueryRun>,
    random: StdRng,
    crashes: u64,
}

impl Life {
    /// Runs until there is nothing to do, through random crashes and restarts.
    fn catch_up(&mut self, batches: u64) -> Result<()> {
        for _ in 0..1000 {
            match self.random.random_range(0..10) {
                0 => self.restart(true),
                1 => self.restart(false),
                2 | 3 => {
                    let moment = if self.random.random_bool(0.5) { Moment::Before } else { Moment::After };
                    self.restart(false);
                    self.world.crash_at(self.random.random_range(1..20), moment);
                }
                _ => {}
            }
            match self.run_next() {
                Ok(Some(_)) => {}
                Ok(None) => {
                    ensure!(self.world.is_committed(batches - 1)?, "batch {} is not done", batches - 1);
                    return Ok(());
                }
                Err(_) if self.world.crashed() => {
                    self.crashes += 1;
                    self.run = None;
                    self.world.revive();
                }
                Err(error) => return Err(error),
            }
        }
        bail!("it does not come to an end")
    }

    fn run_next(&mut self) -> Result<Option<Progress>> {
        if self.run.is_none() {
            // What an operator asks for after a restart does not change the state that is there.
            if self.world.checkpoint().is_ok_and(|checkpoint| checkpoint.is_some()) {
                self.spec.settings.changelogs_before_snapshot = self.random.random_range(1..20);
            }
            let run = QueryRun::open(&self.world.session, self.spec.clone(), StopSignal::new());
            self.run = Some(run.map_err(|error| anyhow!(describe_chain(&error)))?);
        }
        let run = self.run.as_mut().context("it was opened")?;
        run.run_next().map_err(|error| anyhow!(describe_chain(&error)))
    }

    fn restart(&mut self, orderly: bool) {
        if let Some(run) = self.run.take() {
            self.crashes += 1;
            if orderly { run.close() } else { drop(run) }
        }
        self.world.revive();
    }
}
