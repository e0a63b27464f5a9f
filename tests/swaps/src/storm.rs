//! Swaps, refused swaps and kills, in random order, until there were enough swaps.

use crate::editions::{self, Edition};
use crate::query::{PLUGIN, spec, world};
use crate::verdict;
use anyhow::{Context, Result, anyhow, bail, ensure};
use millstream_checkpoint::faulty::Moment;
use millstream_common::{Digest, describe_chain};
use millstream_runtime::{Progress, StreamingQuery};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use streaming_stories::World;

const PATIENCE: Duration = Duration::from_secs(30);

/// What a storm did and found.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    /// Swaps that took place.
    pub done: u64,
    /// Swaps that were refused, as they had to be.
    pub refused: u64,
    /// Crashes and stops.
    pub kills: u64,
    /// Swaps whose asker was told nothing, because the query died first.
    pub unanswered: u64,
    /// Batches in the output.
    pub batches: u64,
    /// Rows that are missing.
    pub lost: u64,
    /// Rows that were counted more than once.
    pub doubled: u64,
    /// Rows whose numbers are not of the component that the offset log names for their batch.
    pub unexplained: u64,
    /// The pause that 99 of 100 swaps do not exceed, in milliseconds.
    pub pause_p99_ms: f64,
}

/// The end of a batch, and the component that ran it.
struct BatchEnd {
    batch: u64,
    digest: String,
    at: Instant,
}

type BatchEnds = Arc<Mutex<Vec<BatchEnd>>>;

/// A query that lives many times.
struct Storm {
    world: World,
    editions: Vec<Edition>,
    refused: Vec<Vec<u8>>,
    query: Option<StreamingQuery>,
    /// Ends of batches of this life.
    ends: BatchEnds,
    random: StdRng,
    pauses: Vec<Duration>,
    outcome: Outcome,
}

/// Swaps so often, with refused swaps and kills between, and counts what the output has.
///
/// # Errors
/// When something else goes wrong than a row that is lost, doubled or unexplained: a swap that had to be refused is
/// taken, a good one is refused, the query fails or stands still.
pub fn storm(swaps: u64, seed: u64) -> Result<Outcome> {
    let mut storm = Storm {
        world: world()?,
        editions: editions::all()?,
        refused: editions::refused()?,
        query: None,
        ends: BatchEnds::default(),
        random: StdRng::seed_from_u64(seed),
        pauses: Vec::new(),
        outcome: Outcome::default(),
    };
    storm.start()?;
    while storm.outcome.done < swaps {
        match storm.random.random_range(0..10) {
            0 | 1 => storm.ask_for_what_must_be_refused()?,
            2 => storm.crash()?,
            3 => storm.stop()?,
            _ => storm.swap()?,
        }
    }
    storm.finish()
}

impl Storm {
    /// Starts the query, under a crash at a later write now and then. The query always names the first edition: what a
    /// swap put in place goes on after a restart.
    fn start(&mut self) -> Result<()> {
        self.ends = BatchEnds::default();
        let ends = Arc::clone(&self.ends);
        let listener = move |progress: &Progress| {
            let at = Instant::now();
            for plugin in &progress.plugins {
                let end = BatchEnd { batch: progress.batch_id, digest: plugin.digest.clone(), at };
                ends.lock().unwrap_or_else(PoisonError::into_inner).push(end);
            }
        };
        let query = StreamingQuery::start(&self.world.session, spec(&self.editions[0]), Some(Box::new(listener)));
        self.query = Some(query.map_err(|error| anyhow!(describe_chain(&error)))?);
        self.wait_for_batches(1)
    }

    fn query(&self) -> Result<&StreamingQuery> {
        self.query.as_ref().context("the query has not been started")
    }

    /// Waits until so many batches of this life are done, or the query has died as planned.
    fn wait_for_batches(&self, count: usize) -> Result<()> {
        let begin = Instant::now();
        while self.count() < count {
            if !self.query()?.is_active() {
                return self.check_death();
            }
            ensure!(begin.elapsed() < PATIENCE, "the query stands still");
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    fn count(&self) -> usize {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn check_death(&self) -> Result<()> {
        if self.world.crashed() {
            return Ok(());
        }
        match self.query()?.exception() {
            Some(error) => bail!("the query failed: {}", describe_chain(&*error)),
            None => bail!("the query has ended"),
        }
    }

    /// A good swap: taken, unless the query dies first.
    fn swap(&mut self) -> Result<()> {
        let next = self.random.random_range(0..self.editions.len());
        let (bytes, to) = (self.editions[next].bytes.clone(), self.editions[next].digest);
        let asked = self.query()?.swap(PLUGIN, bytes).map_err(|error| anyhow!(describe_chain(&error)))?;
        match asked.recv_timeout(PATIENCE) {
            Ok(Ok(swapped)) => {
                ensure!(swapped.to == to, "another component took over");
                self.outcome.done += 1;
                self.measure_pause(swapped.batch.0, swapped.from, to)
            }
            Ok(Err(_)) | Err(_) if self.world.crashed() => {
                self.outcome.unanswered += 1;
                self.restart()
            }
            Ok(Err(reason)) => bail!("a good swap was refused: {reason}"),
            Err(error) => bail!("nobody answers a swap: {error}"),
        }
    }

    /// The time between the last end of the old and the first end of the new; see the crate's head.
    fn measure_pause(&mut self, batch: u64, from: Digest, to: Digest) -> Result<()> {
        let begin = Instant::now();
        loop {
            let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(position) = ends.iter().position(|end| end.batch == batch) {
                ensure!(ends[position].digest == to.to_string(), "batch {batch} did not run {to}");
                if let Some(before) = position.checked_sub(1).map(|before| &ends[before])
                    && from != to
                {
                    ensure!(before.digest == from.to_string(), "the batch before {batch} did not run {from}");
                    self.pauses.push(ends[position].at - before.at);
                }
                return Ok(());
            }
            drop(ends);
            if !self.query()?.is_active() {
                self.check_death()?;
                return self.restart();
            }
            ensure!(begin.elapsed() < PATIENCE, "batch {batch} does not end");
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// A bad swap: refused at once, or at the border.
    fn ask_for_what_must_be_refused(&mut self) -> Result<()> {
        let which = self.random.random_range(0..self.refused.len());
        let query = self.query()?;
        if let Ok(asked) = query.swap(PLUGIN, self.refused[which].clone()) {
            match asked.recv_timeout(PATIENCE) {
                Ok(Ok(_)) => bail!("bad component {which} was taken"),
                Ok(Err(_)) | Err(_) if self.world.crashed() => return self.restart(),
                Ok(Err(reason)) => ensure!(!reason.is_empty(), "a refusal without a reason"),
                Err(error) => bail!("nobody answers a bad swap: {error}"),
            }
        }
        self.outcome.refused += 1;
        Ok(())
    }

    /// An orderly stop between two batches.
    fn stop(&mut self) -> Result<()> {
        match self.query()?.stop() {
            Err(error) if !self.world.crashed() => bail!("the query failed: {}", describe_chain(&*error)),
            _ => self.restart(),
        }
    }

    /// Starts again with a death at one of the next durable writes, which may come while a swap is on its way.
    fn crash(&mut self) -> Result<()> {
        let _ = self.query()?.stop();
        self.outcome.kills += 1;
        self.query = None;
        self.world.revive();
        let moment = if self.random.random_bool(0.5) { Moment::Before } else { Moment::After };
        self.world.crash_at(self.random.random_range(4..60), moment);
        match self.start() {
            // It died on the way up.
            Err(_) if self.world.crashed() => self.restart(),
            started => started,
        }
    }

    fn restart(&mut self) -> Result<()> {
        self.outcome.kills += 1;
        self.query = None;
        self.world.revive();
        self.start()
    }

    /// Lets the query run on for a few batches, stops it, and counts.
    fn finish(mut self) -> Result<Outcome> {
        if self.world.crashed() || !self.query()?.is_active() {
            self.restart()?;
        }
        let _ = self.query()?.stop();
        self.query = None;
        self.world.revive();
        self.start()?;
        self.wait_for_batches(3)?;
        self.query()?.stop().map_err(|error| anyhow!(describe_chain(&*error)))?;
        self.query = None;
        self.pauses.sort();
        let at = (self.pauses.len() * 99).div_ceil(100).saturating_sub(1);
        self.outcome.pause_p99_ms = self.pauses.get(at).map_or(0.0, |pause| pause.as_secs_f64() * 1e3);
        verdict::count(&self.world, &self.editions, &mut self.outcome)?;
        Ok(self.outcome)
    }
}
