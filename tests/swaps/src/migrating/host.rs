//! One life after the other of a query that is swapped under.

use super::editions::{self, Edition};
use super::step_files::{OnStrike, StepFiles};
use super::{Answer, Order, Shape, Strike, Way};
use crate::query::world_on;
use anyhow::{Context, Result, anyhow, bail, ensure};
use millstream_common::{Digest, DurableFiles, Options, Trigger, describe_chain};
use millstream_plan::EventTime;
use millstream_runtime::verdict::Verdict;
use millstream_runtime::{
    PluginSpec, Progress, QuerySpec, Remake, Settings, StreamSpec, StreamingQuery, SwapGrounds, Swapped,
};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use streaming_stories::World;

/// Rows per batch.
pub(super) const ROWS: i64 = 20;
/// The time of the first rows: what is not later than 1970 is late from the beginning.
pub(super) const START_MS: i64 = 1000;
/// The plugin's name in the query.
pub(crate) const PLUGIN: &str = "ledger";
const PATIENCE: Duration = Duration::from_secs(300);
/// So many batches make a restore too long to be worth the wait.
const LONG: u64 = 60;

/// A query and its life.
pub(super) struct Host {
    shape: Shape,
    disk: Arc<dyn DurableFiles>,
    editions: Vec<Edition>,
    refused: Vec<Vec<u8>>,
    on_strike: OnStrike,
    /// The files of this life.
    files: Option<Arc<StepFiles>>,
    lives: u32,
    life: Option<Life>,
}

struct Life {
    world: World,
    files: Arc<StepFiles>,
    query: StreamingQuery,
    done: Arc<AtomicU64>,
}

/// What an order came to.
enum Outcome {
    Done(Option<Swapped>),
    Passed,
    Died,
}

impl Host {
    /// A host that finds the components in a folder, or makes them.
    pub(super) fn new(
        shape: Shape,
        disk: Arc<dyn DurableFiles>,
        components: Option<&Path>,
        on_strike: OnStrike,
    ) -> Result<Self> {
        let (editions, refused) = (editions::all(components)?, editions::refused(components)?);
        Ok(Self { shape, disk, editions, refused, on_strike, files: None, lives: 0, life: None })
    }

    /// Does what it is told.
    pub(super) fn obey(&mut self, order: &Order) -> Answer {
        let outcome = match order {
            Order::Start { edition, dry_run, strike } => self.start(*edition, *dry_run, strike.clone()),
            Order::Swap { to, way, strike } => {
                self.with_life(|host, life| host.swap(life, (*to, *way), strike.clone()))
            }
            Order::Refuse { which, strike } => self.with_life(|host, life| host.refuse(life, *which, strike.clone())),
            Order::Stop => self.with_life(|_, life| match life.query.stop() {
                Err(error) if life.files.struck().is_none() => bail!("it failed: {}", describe_chain(&*error)),
                _ => Ok(Outcome::Done(None)),
            }),
        };
        let struck = self.files.as_ref().and_then(|files| files.struck());
        match (outcome, struck) {
            (_, Some(step)) => {
                self.life = None;
                Answer::Struck { step }
            }
            (Ok(Outcome::Died), None) => Answer::Wrong { what: "it died without a strike".into() },
            (Ok(Outcome::Done(swapped)), None) => {
                let pause_us = swapped.map(|swapped| swapped.pause.whole().as_micros() as u64);
                if matches!(order, Order::Stop) {
                    self.life = None;
                }
                Answer::Done { pause_us }
            }
            (Ok(Outcome::Passed), None) => Answer::Passed,
            (Err(error), None) => Answer::Wrong { what: format!("{order:?}: {error:#}") },
        }
    }

    fn with_life(&self, act: impl FnOnce(&Self, &Life) -> Result<Outcome>) -> Result<Outcome> {
        act(self, self.life.as_ref().context("the query has not been started")?)
    }

    /// Starts the query and waits for two batches.
    fn start(&mut self, edition: usize, dry_run: u64, strike: Option<Strike>) -> Result<Outcome> {
        let files = Arc::new(StepFiles::new(Arc::clone(&self.disk), Arc::clone(&self.on_strike)));
        let world = world_on(Arc::clone(&files) as Arc<dyn DurableFiles>);
        self.files = Some(Arc::clone(&files));
        self.lives += 1;
        // The clock of each life begins anew: later than every lease of those before.
        (0..self.lives).for_each(|_| world.pass_lease());
        files.ask(strike);
        let done = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&done);
        let listener = move |_: &Progress| {
            counter.fetch_add(1, Ordering::SeqCst);
        };
        let spec = spec(self.shape, &self.editions[edition], dry_run);
        match StreamingQuery::start(&world.session, spec, Some(Box::new(listener))) {
            Ok(query) => {
                let life = Life { world, files, query, done };
                let outcome = life.wait_for(2);
                self.life = Some(life);
                outcome
            }
            Err(_) if files.struck().is_some() => Ok(Outcome::Died),
            Err(error) => bail!("it does not start: {}", describe_chain(&error)),
        }
    }

    fn swap(&self, life: &Life, (to, way): (usize, Way), strike: Option<Strike>) -> Result<Outcome> {
        let runs = life.runs()?;
        let text = |error: millstream_runtime::RuntimeError| anyhow!(describe_chain(&error));
        let (bytes, to) = match way {
            Way::Restore => {
                let log = life.checkpoint()?.swap_log().all()?;
                let newest = life.newest_batch()?;
                let last = log.iter().rev().find(|entry| entry.swaps.contains_key(PLUGIN));
                let Some(last) = last.filter(|last| newest < last.batch.0 + LONG) else { return Ok(Outcome::Passed) };
                ensure!(last.swaps[PLUGIN].to == runs, "the swap log and the offset log name other components");
                match life.query.earlier_component(PLUGIN, None) {
                    Ok((digest, bytes)) if digest != runs => (bytes, editions::number(&self.editions, digest)?),
                    Ok(_) => return Ok(Outcome::Passed),
                    Err(error) => return life.unless_dead(text(error)),
                }
            }
            _ => (self.editions[to].bytes.clone(), to),
        };
        let from = editions::number(&self.editions, runs)?;
        let migrates = self.editions[from].form != self.editions[to].form;
        life.files.ask(strike);
        if matches!(way, Way::Verdict | Way::Shadow) {
            let report = match life.query.verdict(PLUGIN, &bytes, Some(u64::from(way == Way::Verdict))) {
                Ok(report) => report,
                Err(error) => return life.unless_dead(text(error)),
            };
            if life.is_dead() {
                return Ok(Outcome::Died);
            }
            ensure!(report.verdict != Verdict::Reject, "a good edition is rejected: {report}");
            ensure!(report.migration.is_empty() != migrates, "of migrations the verdict says {:?}", report.migration);
            if way == Way::Shadow {
                match life.query.shadow(report, &bytes, 2) {
                    Ok(report) if report.verdict == Verdict::Reject && !life.is_dead() => {
                        bail!("a good edition is rejected in the shadow: {report}")
                    }
                    Ok(_) => {}
                    Err(error) => return life.unless_dead(text(error)),
                }
            }
        }
        let remake = match (way, migrates) {
            (Way::Restore, _) => Some(Remake::Restore),
            (_, true) => Some(Remake::Migrate),
            (_, false) => None,
        };
        let by = if way == Way::Restore { "rollback" } else { "swap" };
        let asked = match life.query.swap_on(PLUGIN, bytes, SwapGrounds::unasked(by), remake) {
            Ok(asked) => asked,
            Err(error) => return life.unless_dead(text(error)),
        };
        match life.answer(&asked)? {
            None => Ok(Outcome::Died),
            Some(Err(reason)) => bail!("a good swap was refused: {reason}"),
            Some(Ok(swapped)) => {
                ensure!(swapped.to == self.editions[to].digest, "another component took over");
                // So that every step after it comes.
                match life.wait_for(2)? {
                    Outcome::Died => Ok(Outcome::Died),
                    _ => Ok(Outcome::Done(Some(swapped))),
                }
            }
        }
    }

    /// A bad one: refused at once, by what it does to the state, or at the border.
    fn refuse(&self, life: &Life, which: usize, strike: Option<Strike>) -> Result<Outcome> {
        let runs = life.runs()?;
        life.files.ask(strike);
        let remake = (which < 2).then_some(Remake::Migrate);
        let asked = life.query.swap_on(PLUGIN, self.refused[which].clone(), SwapGrounds::unasked("swap"), remake);
        if let Ok(asked) = asked {
            match life.answer(&asked)? {
                None => return Ok(Outcome::Died),
                Some(Ok(_)) => bail!("bad component {which} was taken"),
                Some(Err(reason)) => ensure!(!reason.is_empty(), "a refusal without a reason"),
            }
        }
        match life.wait_for(1)? {
            Outcome::Died => Ok(Outcome::Died),
            _ => {
                ensure!(life.runs()? == runs, "after a refusal another component runs");
                Ok(Outcome::Done(None))
            }
        }
    }
}

impl Life {
    fn is_dead(&self) -> bool {
        self.files.struck().is_some()
    }

    /// An error, or the death that caused it.
    fn unless_dead(&self, error: anyhow::Error) -> Result<Outcome> {
        if self.is_dead() { Ok(Outcome::Died) } else { Err(error) }
    }

    fn checkpoint(&self) -> Result<millstream_checkpoint::Checkpoint> {
        self.world.checkpoint()?.context("there is no checkpoint")
    }

    fn newest_batch(&self) -> Result<u64> {
        Ok(self.checkpoint()?.offset_log().batches()?.last().context("no batch was defined")?.0)
    }

    /// The component that the newest batch runs.
    fn runs(&self) -> Result<Digest> {
        let log = self.checkpoint()?.offset_log();
        let newest = log.batches()?.last().copied().context("no batch was defined")?;
        let entry = log.get(newest)?.context("the entry was listed")?;
        Ok(entry.plugins.get(PLUGIN).context("the entry names no plugin")?.digest)
    }

    /// Waits for so many more batches.
    fn wait_for(&self, count: u64) -> Result<Outcome> {
        let (begin, before) = (Instant::now(), self.done.load(Ordering::SeqCst));
        while self.done.load(Ordering::SeqCst) < before + count {
            if self.is_dead() {
                return Ok(Outcome::Died);
            }
            if !self.query.is_active() {
                match self.query.exception() {
                    Some(error) => return self.unless_dead(anyhow!("it failed: {}", describe_chain(&*error))),
                    None => bail!("it has ended"),
                }
            }
            ensure!(begin.elapsed() < PATIENCE, "it stands still");
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(Outcome::Done(None))
    }

    /// What a swap came to; `None` when the query died first.
    fn answer(&self, asked: &Receiver<Result<Swapped, String>>) -> Result<Option<Result<Swapped, String>>> {
        let begin = Instant::now();
        loop {
            let answer = asked.recv_timeout(Duration::from_millis(5));
            if self.is_dead() {
                return Ok(None);
            }
            match answer {
                Ok(answer) => return Ok(Some(answer)),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => bail!("nobody answers a swap"),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    ensure!(begin.elapsed() < PATIENCE, "a swap gets no answer");
                }
            }
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(life) = &self.life {
            life.query.ask_to_stop();
        }
    }
}

fn spec(shape: Shape, edition: &Edition, dry_run: u64) -> QuerySpec {
    static LIMITS: OnceLock<PluginLimits> = OnceLock::new();
    let limits = LIMITS.get_or_init(|| PluginLimits { deadline: Duration::from_secs(10), ..PluginLimits::default() });
    let options = Options::new().with("rowsPerBatch", ROWS.to_string()).with("numPartitions", "1");
    let options = options.with("startTimestamp", START_MS.to_string());
    let source = SourceSpec { name: "numbers".into(), format: "rate-micro-batch".into(), schema: None, options };
    let sql = match shape {
        Shape::Ledger => {
            "SELECT unix_seconds(w.start) AS second, k, total FROM (
               SELECT window(timestamp, '8 seconds') AS w, value % 5 AS k, ledger(value) AS total
               FROM numbers GROUP BY window(timestamp, '8 seconds'), value % 5) t"
        }
        Shape::Tracker => {
            "SELECT * FROM tracker(TABLE(SELECT value % 6 AS k, value AS v, timestamp AS at FROM numbers) PARTITION BY k)"
        }
    };
    QuerySpec {
        // A killed query is gone with its process; here its last retries may outlive it, and would hold its name.
        name: None,
        plugins: vec![PluginSpec {
            name: PLUGIN.into(),
            component: edition.bytes.clone(),
            limits: limits.clone(),
            on_fault: FaultPolicy::Fail,
        }],
        checkpoint: Some("checkpoint".into()),
        // Rows keep coming, and a batch does not cost what a log of thousands would.
        trigger: Trigger::ProcessingTime(Duration::from_millis(5)),
        settings: Settings {
            // Every entry of the offset log is read in the end.
            batches_retained: 1_000_000,
            dry_run_batches: dry_run,
            ..Settings::default()
        },
        ..QuerySpec::new(
            sql,
            vec![StreamSpec {
                source,
                event_time: Some(EventTime { column: "timestamp".into(), delay_us: 0 }),
                drop_duplicates: None,
            }],
            SinkSpec { format: "json".into(), options: Options::new().with("path", "output") },
        )
    }
}
