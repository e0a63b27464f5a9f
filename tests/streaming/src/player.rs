//! Plays a story, batch by batch.

use crate::story::{Action, Story};
use crate::world::{CHECKPOINT, OUTPUT};
use crate::{TextServer, World, component, feed, report, text};
use anyhow::{Context, Result, anyhow, bail, ensure};
use millstream_checkpoint::faulty::Moment;
use millstream_common::{Options, StopSignal, describe_chain};
use millstream_runtime::inspect::CheckpointPlace;
use millstream_runtime::repartition::repartition;
use millstream_runtime::replay::replay;
use millstream_runtime::{PluginSpec, Progress, QueryRun, QuerySpec, Settings, StateLimits, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_source::connectors::memory::MemoryStream;
use millstream_wasm::PluginLimits;
use std::collections::BTreeMap;

/// Where the rows go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SinkKind {
    /// The recorder, which takes every output mode and compares repeated batches.
    #[default]
    Recorder,
    /// The file sink (append only), writing JSON.
    File,
}

/// Where the rows of a story come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceKind {
    /// Streams in memory.
    #[default]
    Memory,
    /// A file per stream, which grows line by line behind a web server, through the plugin `tail`: the columns are `at`, `line`
    /// and `position`, and a line is the values of a row with blanks between them, the first of which is a time.
    Tail,
}

/// How a story is played.
#[derive(Debug, Clone, Copy, Default)]
pub struct Variant {
    /// The number of partitions, if not the story's.
    pub partitions: Option<u32>,
    /// A restart after every batch: in turns an orderly one, and one that leaves everything where it stands.
    pub restart_after_every_batch: bool,
    /// After every batch the state is spread over another number of partitions: 5, 1, 2, and again.
    pub repartition_after_every_batch: bool,
    /// A crash at the n-th durable write, from 1.
    pub crash: Option<(usize, Moment)>,
    /// The sources.
    pub source: SourceKind,
    /// The sink.
    pub sink: SinkKind,
    /// State is only in changelogs: the thread that writes snapshots makes the order of writes vary.
    pub no_snapshots: bool,
    /// In the end every batch is run again on a fork of the checkpoint, and must come out the same.
    pub replays: bool,
    /// A limit for the memory of state, in bytes.
    pub state_memory: Option<u64>,
    /// No call finds what an earlier one left in the memory of an instance.
    pub fresh_instances: bool,
}

/// What a story gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    /// The rows per batch as the sink has them, sorted unless the story is ordered.
    pub batches: BTreeMap<u64, Vec<String>>,
    /// The durable writes, in order; of the last life when there was a crash.
    pub writes: Vec<String>,
    /// How often a batch came to the sink again.
    pub again: u64,
}

/// Plays a story and checks each step.
///
/// # Errors
/// What did not hold, with the steps up to there, offsets, watermark, sink and plan.
pub fn play(story: &Story, variant: Variant) -> Result<Played> {
    let mut player = Player::new(story, variant)?;
    if let Some((write, moment)) = variant.crash {
        player.world.crash_at(write, moment);
    }
    for index in 0..story.steps.len() {
        if let Err(error) = player.step(index) {
            bail!(report::failure(&mut player, index, &format!("{error:#}")));
        }
    }
    player.finish()
}

/// Plays a story with a crash before and after each of its durable writes; answers how many crashes there were.
///
/// # Errors
/// When a crash changes what the sink has in the end.
pub fn crash_everywhere(story: &Story, variant: Variant) -> Result<usize> {
    let variant = Variant { no_snapshots: true, crash: None, ..variant };
    let whole = play(story, variant)?;
    for write in 1..=whole.writes.len() {
        for moment in [Moment::Before, Moment::After] {
            let what = format!("a crash {moment:?} write {write}, `{}`", whole.writes[write - 1]);
            let played = play(story, Variant { crash: Some((write, moment)), ..variant }).context(what.clone())?;
            ensure!(played.batches == whole.batches, "{what} gives {:?}, not {:?}", played.batches, whole.batches);
        }
    }
    Ok(2 * whole.writes.len())
}

/// A story at some step.
pub(crate) struct Player<'a> {
    pub(crate) story: &'a Story,
    variant: Variant,
    pub(crate) world: World,
    streams: BTreeMap<String, MemoryStream>,
    server: Option<TextServer>,
    spec: QuerySpec,
    pub(crate) run: Option<QueryRun>,
    /// The next batch of the story.
    next: u64,
    /// The batches that were done, by the numbers that the query gave them.
    done: Vec<u64>,
    /// Batches that only spread the state anew.
    repartitions: u64,
    /// Of the last batch; none when the process died before it told.
    pub(crate) last: Option<Progress>,
}

impl<'a> Player<'a> {
    fn new(story: &'a Story, variant: Variant) -> Result<Self> {
        let world = World::new()?;
        let streams = story.sources.iter().map(|source| {
            (source.name.clone(), world.streams.create(&source.name, std::sync::Arc::clone(&source.schema)))
        });
        let streams = streams.collect();
        let server = match variant.source {
            SourceKind::Memory => None,
            SourceKind::Tail => Some(TextServer::start()?),
        };
        let spec = spec(story, variant, server.as_ref())?;
        Ok(Self {
            story,
            variant,
            world,
            streams,
            server,
            spec,
            run: None,
            next: 0,
            done: Vec::new(),
            repartitions: 0,
            last: None,
        })
    }

    fn step(&mut self, index: usize) -> Result<()> {
        match &self.story.steps[index].action {
            Action::Add { stream, rows } => {
                if let Some(server) = &self.server {
                    return feed::add(server, stream, rows);
                }
                let stream = self.streams.get(stream).with_context(|| format!("there is no stream `{stream}`"))?;
                stream.add_data(text::unit(stream.schema(), rows)?)?;
                Ok(())
            }
            Action::Batch { with_data, rows } => self.batch(*with_data, rows),
            Action::Failure(text) => self.failure(text),
            Action::Idle => self.idle(),
            Action::Restart => self.restart(),
            Action::Counter { name, value } => self.counter(name, value),
        }
    }

    fn batch(&mut self, with_data: bool, rows: &[String]) -> Result<()> {
        let batch = self.next_id();
        self.last = None;
        loop {
            // The process may have died after the commit.
            if self.world.is_committed(batch)? {
                break;
            }
            match self.run_next() {
                Ok(Some(progress)) => {
                    ensure!(progress.batch_id == batch, "batch {} ran, not {batch}", progress.batch_id);
                    let moved = progress.sources.iter().any(|source| source.start_offset != source.end_offset);
                    ensure!(moved == with_data, "batch {batch} has {} new data", if moved { "got" } else { "no" });
                    self.last = Some(progress);
                }
                Ok(None) | Err(_) if self.world.crashed() => self.come_up(),
                Ok(None) => bail!("there is no batch to run"),
                Err(error) => return Err(error),
            }
        }
        let given = self.batches()?.get(&self.next).cloned().unwrap_or_default();
        let expected = self.in_order(rows.to_vec());
        // The file sink writes JSON, which stories do not spell out.
        if self.variant.sink == SinkKind::Recorder {
            ensure!(given == expected, "batch {batch} gave {given:#?}, not {expected:#?}");
        }
        self.next += 1;
        self.done.push(batch);
        if self.variant.restart_after_every_batch {
            self.restart()?;
        }
        if self.variant.repartition_after_every_batch {
            self.repartition()?;
        }
        Ok(())
    }

    /// The number that the query gives the next batch of the story.
    fn next_id(&self) -> u64 {
        self.next + self.repartitions
    }

    fn repartition(&mut self) -> Result<()> {
        if let Some(run) = self.run.take() {
            run.close();
        }
        let to = [5, 1, 2][self.repartitions as usize % 3];
        let place = CheckpointPlace { place: CHECKPOINT.into(), options: Vec::new(), query: None };
        let before = self.next_id();
        loop {
            self.world.pass_lease();
            // Once the batch is defined, the next start ends it.
            if self.world.is_defined(before)? {
                break;
            }
            match repartition(&self.world.session, &place, to) {
                Ok(done) => ensure!(done.to == to, "it has {} partitions, not {to}", done.to),
                Err(_) if self.world.crashed() => self.come_up(),
                Err(error) => bail!(describe_chain(&error)),
            }
        }
        self.world.recorder.skip(before);
        self.repartitions += 1;
        Ok(())
    }

    fn idle(&mut self) -> Result<()> {
        loop {
            match self.run_next() {
                Ok(None) => return Ok(()),
                Ok(Some(progress)) => bail!("there was something to do: {progress:?}"),
                Err(_) if self.world.crashed() => self.come_up(),
                Err(error) => return Err(error),
            }
        }
    }

    fn failure(&mut self, text: &str) -> Result<()> {
        loop {
            match self.run_next() {
                Err(_) if self.world.crashed() => self.come_up(),
                Err(error) => {
                    ensure!(format!("{error:#}").contains(text), "it failed otherwise: {error:#}");
                    ensure!(!self.world.is_committed(self.next_id())?, "a batch that failed is in the commit log");
                    return Ok(());
                }
                Ok(progress) => bail!("it did not fail: {progress:?}"),
            }
        }
    }

    fn counter(&self, name: &str, value: &str) -> Result<()> {
        if name == "dead_letters" {
            let files = self.world.checkpoint_files();
            let mut letters = 0;
            for file in files.list("dead-letters")? {
                letters += files.get(&format!("dead-letters/{file}"))?.split(|byte| *byte == b'\n').count() - 1;
            }
            ensure!(letters.to_string() == value, "there are {letters} dead letters");
            return Ok(());
        }
        let Some(progress) = &self.last else {
            ensure!(self.variant.crash.is_some(), "a counter comes before the first batch");
            return Ok(());
        };
        let sum = |of: fn(&millstream_runtime::StateOperatorProgress) -> u64| {
            progress.state_operators.iter().map(of).sum::<u64>().to_string()
        };
        let actual = match name {
            "watermark" => {
                let text = progress.event_time.get("watermark").cloned().unwrap_or_default();
                let expected = chrono::DateTime::from_timestamp_millis(text::time_ms(value)?).context("no time")?;
                let expected = expected.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
                ensure!(text == expected, "the watermark is {text}, not {expected}");
                return Ok(());
            }
            "late_rows" => sum(|operator| operator.num_rows_dropped_by_watermark),
            "state_rows" => sum(|operator| operator.num_rows_total),
            "input_rows" => progress.num_input_rows.to_string(),
            "faults" => progress.plugins.iter().map(|plugin| plugin.faults).sum::<u64>().to_string(),
            other => bail!("`{other}` is no counter"),
        };
        ensure!(actual == value, "{name} is {actual}, not {value}");
        Ok(())
    }

    /// Opens the query when it is not open, and runs what is next.
    fn run_next(&mut self) -> Result<Option<Progress>> {
        if self.run.is_none() {
            let run = QueryRun::open(&self.world.session, self.spec.clone(), StopSignal::new());
            self.run = Some(run.map_err(|error| anyhow!(describe_chain(&error)))?);
        }
        let run = self.run.as_mut().context("it was opened")?;
        run.run_next().map_err(|error| anyhow!(describe_chain(&error)))
    }

    /// Stops and lets the next step start again. Every second time nothing is closed.
    fn restart(&mut self) -> Result<()> {
        if let Some(run) = self.run.take() {
            if self.next.is_multiple_of(2) { run.close() } else { drop(run) }
        }
        self.world.pass_lease();
        Ok(())
    }

    fn come_up(&mut self) {
        self.run = None;
        self.world.revive();
    }

    /// What the sink has.
    pub(crate) fn batches(&self) -> Result<BTreeMap<u64, Vec<String>>> {
        let batches = match self.variant.sink {
            SinkKind::Recorder => self.world.recorder.batches(),
            SinkKind::File => self.world.output()?,
        };
        Ok(batches.into_iter().map(|(id, rows)| (self.story_batch(id), self.in_order(rows))).collect())
    }

    /// The batch of the story that a batch of the query is.
    fn story_batch(&self, id: u64) -> u64 {
        let done = self.done.iter().position(|done| *done == id).map(|index| index as u64);
        done.unwrap_or_else(|| id.saturating_sub(self.repartitions))
    }

    fn in_order(&self, mut rows: Vec<String>) -> Vec<String> {
        if !self.story.ordered {
            rows.sort();
        }
        rows
    }

    fn finish(mut self) -> Result<Played> {
        let writes = self.world.history();
        if self.world.crashed() {
            self.come_up();
        }
        let is_failed = self.story.steps.iter().any(|step| matches!(step.action, Action::Failure(_)));
        if self.variant.crash.is_some() && !is_failed {
            // Whatever the crash left can be opened, and nothing else is left in the output.
            self.run = None;
            self.world.revive();
            let run = QueryRun::open(&self.world.session, self.spec.clone(), StopSignal::new());
            run.map_err(|error| anyhow!(describe_chain(&error)))?.close();
            self.no_orphans()?;
        }
        if self.variant.replays {
            self.replay_all()?;
        }
        Ok(Played { batches: self.batches()?, writes, again: self.world.recorder.again() })
    }

    /// Runs every batch again that is done, beside the query that has the checkpoint.
    fn replay_all(&self) -> Result<()> {
        for batch in &self.done {
            let replayed = replay(&self.world.session, &self.spec, *batch, None);
            let replayed = replayed.map_err(|error| anyhow!("batch {batch}: {}", describe_chain(&error)))?;
            ensure!(replayed.is_same && replayed.output.was.is_some(), "batch {batch} again: {replayed:?}");
            ensure!(
                replayed.state.iter().all(|state| state.was.is_some()),
                "batch {batch} again: {:?}",
                replayed.state
            );
        }
        Ok(())
    }

    /// The file sink's folder holds the files that manifests name, and no other.
    fn no_orphans(&self) -> Result<()> {
        if self.variant.sink != SinkKind::File {
            return Ok(());
        }
        let files = self.world.output_files();
        let committed = millstream_sink::connectors::file::read_committed_in(files.as_ref())?;
        let mut named: Vec<_> = committed.into_iter().flat_map(|batch| batch.files).map(|file| file.name).collect();
        named.sort();
        let present = files.list("")?;
        ensure!(present == named, "the output has the files {present:?}, and manifests name {named:?}");
        Ok(())
    }
}

/// The query of a story.
fn spec(story: &Story, variant: Variant, server: Option<&TextServer>) -> Result<QuerySpec> {
    let mut settings = Settings::default();
    for (name, value) in &story.settings {
        settings.set(name, value)?;
    }
    if let Some(partitions) = variant.partitions {
        settings.partitions = partitions;
    }
    if variant.no_snapshots {
        settings.changelogs_before_snapshot = usize::MAX;
    }
    let streams = story.sources.iter().map(|source| StreamSpec {
        source: match server {
            Some(server) => feed::source(server, &source.name),
            None => SourceSpec {
                name: source.name.clone(),
                format: "memory".into(),
                schema: None,
                options: Options::new().with("maxBatchesPerTrigger", "1"),
            },
        },
        event_time: source.event_time.clone(),
        drop_duplicates: source.drop_duplicates.clone(),
    });
    let plugins = story.plugins.iter().map(|plugin| {
        let mut limits = PluginLimits::default();
        limits.deadline = plugin.deadline.unwrap_or(limits.deadline);
        limits.recycle_every_call = variant.fresh_instances;
        let component = component(&plugin.component)?;
        Ok(PluginSpec { name: plugin.component.clone(), component, limits, on_fault: plugin.on_fault })
    });
    let plugins = plugins.chain(server.map(|server| feed::plugin(server, variant.fresh_instances)));
    let sink = match variant.sink {
        SinkKind::Recorder => SinkSpec { format: "recorder".into(), options: Options::new() },
        SinkKind::File => SinkSpec { format: "json".into(), options: Options::new().with("path", OUTPUT) },
    };
    Ok(QuerySpec {
        name: Some(story.name.clone()),
        plugins: plugins.collect::<Result<_>>()?,
        mode: story.mode,
        checkpoint: Some(CHECKPOINT.into()),
        settings,
        state: StateLimits { memory: variant.state_memory, spill: None },
        ..QuerySpec::new(story.sql.clone(), streams.collect(), sink)
    })
}
