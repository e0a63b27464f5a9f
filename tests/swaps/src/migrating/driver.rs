//! Random orders and deaths, episode after episode, until there were enough swaps.

use super::editions::{self, Edition};
use super::host::Host;
use super::process::Process;
use super::{Answer, Order, Shape, Strike, Way, oracle};
use anyhow::{Context, Result, bail, ensure};
use millstream_checkpoint::open_files;
use millstream_common::DurableFiles;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use streaming_stories::World;

/// Swaps of one episode.
const EPISODE: u64 = 25;
/// Steps at which a host dies.
const STEPS: [&str; 30] = [
    "asked: component, before",
    "asked: component, after",
    "asked: state beside, before",
    "asked: state beside, after",
    "asked: state, before",
    "asked: state, after",
    "asked: offsets, before",
    "asked: offsets, after",
    "asked: rows, before",
    "asked: rows, after",
    "asked: commit, before",
    "asked: commit, after",
    "border: swap log, before",
    "border: swap log, after",
    "border: offsets, before",
    "border: offsets, after",
    "border: state, before",
    "border: state, after",
    "border: rows, before",
    "border: rows, after",
    "border: commit, before",
    "border: commit, after",
    "after: offsets, before",
    "after: offsets, after",
    "after: state, before",
    "after: state, after",
    "after: rows, before",
    "after: rows, after",
    "after: commit, before",
    "after: commit, after",
];
/// What a kill at any moment is called.
const ANY: &str = "at any moment";

/// What a storm did and found.
#[derive(Debug, Clone, Default)]
pub struct Storm {
    /// Swaps that took place.
    pub done: u64,
    /// Of those, in processes of their own.
    pub in_processes: u64,
    /// By kind: what was asked for and took place.
    pub kinds: BTreeMap<String, u64>,
    /// Swaps that were refused, as they had to be.
    pub refused: u64,
    /// Deaths, by step.
    pub deaths: BTreeMap<String, u64>,
    /// Processes that were killed with SIGKILL.
    pub kills: u64,
    /// Batches in all logs, borders among them.
    pub batches: u64,
    /// Batches that only made state anew.
    pub borders: u64,
    /// Rows that had to come out.
    pub rows: u64,
    /// Rows that are missing or others.
    pub lost: u64,
    /// Rows that are too many or others.
    pub doubled: u64,
    /// The first row that is missing or too much, and its batch.
    pub example: Option<String>,
    /// The longest time that a query stood still for a swap, in microseconds.
    pub longest_pause_us: u64,
}

impl Storm {
    /// All deaths.
    pub fn all_deaths(&self) -> u64 {
        self.deaths.values().sum()
    }
}

/// Swaps so often; `in_processes` of them in processes of their own, which run `program`. `tell` hears of every episode.
///
/// # Errors
/// When something else goes wrong than a row that is lost or doubled: a swap that had to be refused is taken, a good one is
/// refused, a query fails or stands still.
pub fn migrating_storm(
    swaps: u64,
    (in_processes, program): (u64, &Path),
    seed: u64,
    tell: &mut dyn FnMut(&Storm),
) -> Result<Storm> {
    let mut storm = Storm::default();
    let editions = editions::all(None)?;
    let mut number = 0;
    while storm.done < swaps {
        let is_process = storm.in_processes < in_processes;
        let left = if is_process { in_processes - storm.in_processes } else { swaps - storm.done };
        let shape = if number % 2 == 0 { Shape::Ledger } else { Shape::Tracker };
        let random = StdRng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(number));
        let folder = is_process.then(tempfile::tempdir).transpose()?;
        let (hosting, disk) = match &folder {
            Some(folder) => {
                let disk = open_files(folder.path().to_str().context("a path is no UTF-8")?, &[])?;
                editions::write(&folder.path().join("components"))?;
                (Hosting::Process(Process::new(program, folder.path(), shape)), disk)
            }
            None => {
                let disk = open_files("memory:///", &[])?;
                (Hosting::Inside(Box::new(Host::new(shape, Arc::clone(&disk), None, Arc::new(|_: &str| {}))?)), disk)
            }
        };
        let mut episode = Episode { hosting, random, named: 0, storm: &mut storm };
        let played = episode.play(left.min(EPISODE), editions.len());
        played.with_context(|| format!("episode {number} of seed {seed}, {shape:?}"))?;
        drop(episode);
        settle(&mut storm, shape, &editions, disk)
            .with_context(|| format!("episode {number} of seed {seed}, {shape:?}"))?;
        tell(&storm);
        number += 1;
    }
    Ok(storm)
}

fn settle(storm: &mut Storm, shape: Shape, editions: &[Edition], disk: Arc<dyn DurableFiles>) -> Result<()> {
    let compared = oracle::compare(&World::on(disk), shape, editions)?;
    storm.batches += compared.batches;
    storm.borders += compared.borders;
    storm.rows += compared.rows;
    storm.lost += compared.lost;
    storm.doubled += compared.doubled;
    if storm.example.is_none() {
        storm.example = compared.example;
    }
    Ok(())
}

enum Hosting {
    Inside(Box<Host>),
    Process(Process),
}

/// A query of its own, and what happens to it.
struct Episode<'a> {
    hosting: Hosting,
    random: StdRng,
    /// The edition that the query file names.
    named: usize,
    storm: &'a mut Storm,
}

impl Episode<'_> {
    fn play(&mut self, swaps: u64, editions: usize) -> Result<()> {
        self.start(false)?;
        let until = self.storm.done + swaps;
        while self.storm.done < until {
            let to = self.random.random_range(0..editions);
            let strike = self.strike();
            let way = match self.random.random_range(0..100) {
                0..10 => {
                    self.refuse(strike)?;
                    continue;
                }
                10..18 => {
                    self.restart_with(to)?;
                    continue;
                }
                18..28 => Way::Verdict,
                28..36 => Way::Shadow,
                36..48 => Way::Restore,
                _ => Way::Swap,
            };
            let order = Order::Swap { to, way, strike };
            if let Some(pause_us) = self.order(&order)? {
                self.storm.longest_pause_us = self.storm.longest_pause_us.max(pause_us);
                self.count(&format!("{way:?}").to_lowercase());
            }
        }
        // As a query that goes on: once more up, some batches, and an orderly end.
        self.stop()?;
        self.start(false)?;
        self.stop()
    }

    fn count(&mut self, kind: &str) {
        self.storm.done += 1;
        if matches!(self.hosting, Hosting::Process(_)) {
            self.storm.in_processes += 1;
        }
        *self.storm.kinds.entry(kind.to_owned()).or_default() += 1;
    }

    /// A step to die at, more often where processes are killed.
    fn strike(&mut self) -> Option<Strike> {
        let often = if matches!(self.hosting, Hosting::Process(_)) { 0.9 } else { 0.5 };
        self.random.random_bool(often).then(|| Strike {
            step: STEPS[self.random.random_range(0..STEPS.len())].to_owned(),
            passes: u32::from(self.random.random_bool(0.3)),
        })
    }

    fn refuse(&mut self, strike: Option<Strike>) -> Result<()> {
        let which = self.random.random_range(0..4);
        if self.order(&Order::Refuse { which, strike })?.is_some() {
            self.storm.refused += 1;
        }
        Ok(())
    }

    /// The query file is edited, and the query is started again.
    fn restart_with(&mut self, edition: usize) -> Result<()> {
        self.stop()?;
        let is_other = edition != self.named;
        self.named = edition;
        self.start(true)?;
        if is_other {
            self.count("restart");
        }
        Ok(())
    }

    /// Stops until it has stopped: one that dies of it is up again.
    fn stop(&mut self) -> Result<()> {
        for _ in 0..20 {
            if self.order(&Order::Stop)?.is_some() {
                return Ok(());
            }
        }
        bail!("it dies of every stop")
    }

    /// Starts until it lives.
    fn start(&mut self, may_die: bool) -> Result<()> {
        for attempt in 0..20 {
            let strike = if may_die && attempt < 2 { self.strike() } else { None };
            let dry_run = u64::from(self.random.random_bool(0.3));
            match self.tell(&Order::Start { edition: self.named, dry_run, strike })? {
                Answer::Done { .. } => return Ok(()),
                Answer::Struck { .. } => {}
                other => bail!("a start came to {other:?}"),
            }
        }
        bail!("it dies again and again")
    }

    /// Gives an order; when the host died, it is started again, and the answer is `None`.
    fn order(&mut self, order: &Order) -> Result<Option<u64>> {
        match self.tell(order)? {
            Answer::Done { pause_us } => Ok(Some(pause_us.unwrap_or(0))),
            Answer::Passed => Ok(None),
            Answer::Struck { .. } => {
                let may_die = self.random.random_bool(0.3);
                self.start(may_die)?;
                Ok(None)
            }
            Answer::Wrong { what } => bail!(what),
        }
    }

    fn tell(&mut self, order: &Order) -> Result<Answer> {
        let answer = match &mut self.hosting {
            Hosting::Inside(host) => host.obey(order),
            Hosting::Process(process) => {
                let is_swap = matches!(order, Order::Swap { strike: None, .. });
                match is_swap.then(|| self.random.random_range(0..150)) {
                    Some(ms) => process.obey_until(order, Duration::from_millis(ms), ANY)?,
                    None => process.obey(order)?,
                }
            }
        };
        if let Hosting::Process(process) = &mut self.hosting {
            self.storm.kills += std::mem::take(&mut process.kills);
        }
        if let Answer::Struck { step } = &answer {
            *self.storm.deaths.entry(step.clone()).or_default() += 1;
            ensure!(step == ANY || STEPS.contains(&step.as_str()), "an unknown step: {step}");
        }
        Ok(answer)
    }
}
