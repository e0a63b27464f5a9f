//! A canary at work: from the border at which it begins to the one at which it takes over or is given up.
//!
//! ```text
//!   border ──► begun ──► batch: slice in the candidate ──┬─ fails ──► fallbacks/N ──► the same batch without it
//!                 ▲                 │                    └─ done ───► commits/N has what it has shown
//!                 └── goes on ◄── border ──► enough batches: takes over; failed, too dear: rolled back
//! ```
//! What it is stands in every offset entry, what it has shown in every commit entry, so a restart decides as this run would
//! have. Its rows go out as any others do. State is written by the candidate under the keys of the slice; it has the same
//! columns and the same meaning, or there would be no canary, so the running code goes on with it after a rollback.
//!
//! Rule of its life: what is decided, is decided at a border, from what the commit entry before it says.

use super::open::RunningPlugin;
use super::progress::CanaryProgress;
use super::recovery::Recovered;
use super::run::QueryRun;
use super::swap::{SwapRequest, Unlogged};
use crate::RuntimeError;
use bytes::Bytes;
use millstream_checkpoint::{CanaryEvent, CanaryPin, CanaryRecord, CanaryTally, FallbackEntry, OffsetEntry};
use millstream_common::describe_chain;
use millstream_wasm::{Component, Slice, WHOLE};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Below so much CPU time of both together nothing is said about cost.
const LEAST_US: u64 = 5_000;

/// What is wanted of a canary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanaryTerms {
    /// The share of the keys that the candidate computes, in ten-thousandths.
    pub share: u32,
    /// After so many batches that had keys of the slice the candidate takes over.
    pub batches: u64,
    /// Whether an answer that differs from the running code's ends it.
    pub expect_same: bool,
    /// How many times the CPU time of the running code the candidate may take, in percent.
    pub cost_percent: u32,
}

impl CanaryTerms {
    /// How many batches a canary has when nothing else is said.
    pub const BATCHES: u64 = 20;
    /// How many times the CPU time of the running code it may take, in percent.
    pub const COST_PERCENT: u32 = 300;

    /// A canary of a share, in ten-thousandths.
    pub fn of(share: u32) -> Self {
        Self { share, batches: Self::BATCHES, expect_same: false, cost_percent: Self::COST_PERCENT }
    }

    fn check(&self) -> Result<(), String> {
        if self.share == 0 || self.share > WHOLE {
            return Err("the share of a canary is above 0 % and at most 100 %".to_owned());
        }
        if self.batches == 0 {
            return Err("a canary has at least one batch".to_owned());
        }
        Ok(())
    }
}

/// A canary at work.
pub(crate) struct RunningCanary {
    pub(crate) component: Arc<Component>,
    pub(crate) pin: CanaryPin,
    /// What it has shown in the batches that are done.
    pub(crate) tally: CanaryTally,
}

/// What progress tells of it.
pub(super) fn progress(canary: &RunningCanary) -> CanaryProgress {
    let RunningCanary { pin, tally, .. } = canary;
    CanaryProgress {
        candidate: pin.candidate.to_string(),
        share_percent: f64::from(pin.share) / 100.0,
        first_batch: pin.first.0,
        batches: tally.batches,
        of_batches: pin.batches,
        rows: tally.rows,
        differing: tally.differing,
        example: tally.example.clone(),
        cost_ratio: cost_ratio(tally),
        failed: tally.failed.clone(),
    }
}

/// What becomes of a canary at a border.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Turn {
    GoesOn,
    TakesOver,
    RollsBack(String),
}

/// A share for people.
pub(crate) fn percent(share: u32) -> String {
    format!("{} %", f64::from(share) / 100.0)
}

/// How many times the CPU time of the running code the candidate takes; `None` when both took too little to tell.
pub(crate) fn cost_ratio(tally: &CanaryTally) -> Option<f64> {
    let is_told = tally.candidate_us.saturating_add(tally.current_us) >= LEAST_US;
    is_told.then(|| tally.candidate_us as f64 / tally.current_us.max(1) as f64)
}

fn turn(pin: &CanaryPin, tally: &CanaryTally) -> Turn {
    if let Some(why) = &tally.failed {
        return Turn::RollsBack(why.clone());
    }
    if let Some(ratio) = cost_ratio(tally)
        && ratio * 100.0 > f64::from(pin.cost_percent)
    {
        let most = f64::from(pin.cost_percent) / 100.0;
        return Turn::RollsBack(format!(
            "it takes {ratio:.1} times the CPU time of the running code, and {most} times is the limit"
        ));
    }
    if tally.batches >= pin.batches { Turn::TakesOver } else { Turn::GoesOn }
}

/// What it has shown, for people.
fn shown(tally: &CanaryTally) -> String {
    let CanaryTally { batches, rows, differing, .. } = tally;
    let mut text = format!("{rows} rows in {batches} batches, {differing} answers came out otherwise");
    if let Some(example) = &tally.example {
        text.push_str(&format!(", such as {example}"));
    }
    if let Some(ratio) = cost_ratio(tally) {
        text.push_str(&format!("; {ratio:.2} times the CPU time"));
    }
    text
}

impl RunningCanary {
    fn record(&self, event: CanaryEvent, why: String) -> CanaryRecord {
        CanaryRecord { candidate: self.pin.candidate, share: self.pin.share, event, why }
    }
}

/// Takes the canary of the last entry up again; one whose plugin was edited meanwhile is over.
pub(super) fn recover(run: &mut QueryRun, recovered: &Recovered) -> Result<(), RuntimeError> {
    let Some(entry) = recovered.last_entry() else { return Ok(()) };
    let base = recovered.base();
    for plugin in &mut run.plugins {
        let name = plugin.slot.name().to_owned();
        let Some(pin) = entry.plugins.get(&name).filter(|_| !run.given.contains(&name)) else { continue };
        let Some(canary) = &pin.canary else { continue };
        if !recovered.is_rerun() && pin.declared != plugin.declared {
            let why = "the query file names another component".to_owned();
            let (candidate, share) = (canary.candidate, canary.share);
            run.unlogged_canaries.push((name, CanaryRecord { candidate, share, event: CanaryEvent::RolledBack, why }));
            continue;
        }
        let component = run.host.load(&name, &run.checkpoint.plugins().get(&canary.candidate)?)?;
        let tally = base.filter(|base| base.batch >= canary.first).and_then(|base| base.canary.clone());
        plugin.canary = Some(RunningCanary { component, pin: canary.clone(), tally: tally.unwrap_or_default() });
    }
    Ok(())
}

/// Lets a candidate begin; between batches only. `Err` says why it does not, and nothing has changed then.
pub(super) fn begin(run: &mut QueryRun, request: &SwapRequest, terms: &CanaryTerms) -> Result<Unlogged, String> {
    terms.check()?;
    if let Some(other) = run.plugins.iter().find(|plugin| plugin.canary.is_some()) {
        return Err(has_canary(other.slot.name()));
    }
    let next = run.next;
    let Some(plugin) = run.plugins.iter_mut().find(|plugin| plugin.slot.name() == request.plugin) else {
        return Err(format!("the query has no plugin `{}`", request.plugin));
    };
    let (from, candidate) = (plugin.slot.digest(), request.component.digest());
    if from == candidate {
        return Err("it is the component that runs".to_owned());
    }
    let put = || -> Result<(), RuntimeError> {
        plugin.slot.check_swap(&request.component)?;
        Ok(run.checkpoint.plugins().put(&candidate, Bytes::copy_from_slice(&request.bytes))?)
    };
    put().map_err(|error| describe_chain(&error))?;
    let pin = CanaryPin {
        candidate,
        share: terms.share,
        first: next,
        batches: terms.batches,
        expect_same: terms.expect_same,
        cost_percent: terms.cost_percent,
    };
    let canary = RunningCanary { component: Arc::clone(&request.component), pin, tally: CanaryTally::default() };
    let approved = if request.grounds.approved { ", approved" } else { "" };
    let record = canary.record(CanaryEvent::Begun, format!("{}{approved}", request.grounds.verdict));
    tracing::info!(plugin = %request.plugin, candidate = %candidate.short(), share = percent(terms.share), "a canary begins");
    plugin.canary = Some(canary);
    run.unlogged_canaries.push((request.plugin.clone(), record));
    Ok(Unlogged::of_canary(request, from))
}

/// Why nothing else can be done to a plugin now.
pub(super) fn has_canary(plugin: &str) -> String {
    format!("plugin `{plugin}` has a canary: wait until it has ended, or end it with `millstream rollback --canary`")
}

/// Ends the canary of a plugin, if it has one; between batches only.
pub(super) fn end(run: &mut QueryRun, plugin: &str, why: &str) -> Option<CanaryRecord> {
    let plugin = run.plugins.iter_mut().find(|running| running.slot.name() == plugin)?;
    let canary = plugin.canary.take()?;
    plugin.slot.end_canary();
    let record = canary.record(CanaryEvent::RolledBack, format!("{why}; {}", shown(&canary.tally)));
    run.unlogged_canaries.push((plugin.slot.name().to_owned(), record.clone()));
    Some(record)
}

/// Decides about canaries at a border.
pub(super) fn settle(run: &mut QueryRun) {
    for plugin in &mut run.plugins {
        let Some(canary) = &plugin.canary else { continue };
        let mut turn = turn(&canary.pin, &canary.tally);
        let name = plugin.slot.name().to_owned();
        if turn == Turn::TakesOver {
            let from = plugin.slot.digest();
            plugin.slot.end_canary();
            match plugin.slot.swap(Arc::clone(&canary.component)) {
                Ok(()) => {
                    let what = shown(&canary.tally);
                    tracing::info!(plugin = %name, to = %canary.pin.candidate.short(), "the canary takes over: {what}");
                    run.unlogged.push(Unlogged::by_canary(&name, from, canary.pin.candidate, what.clone()));
                    run.unlogged_canaries.push((name.clone(), canary.record(CanaryEvent::Promoted, what)));
                    plugin.swap_refused = None;
                }
                Err(error) => turn = Turn::RollsBack(describe_chain(&error)),
            }
        }
        match turn {
            Turn::GoesOn => continue,
            Turn::TakesOver => {}
            Turn::RollsBack(why) => {
                plugin.slot.end_canary();
                tracing::warn!(plugin = %name, candidate = %canary.pin.candidate.short(), "the canary is rolled back: {why}");
                plugin.swap_refused = Some(format!("the canary was rolled back: {why}"));
                let why = format!("{why}; {}", shown(&canary.tally));
                run.unlogged_canaries.push((name, canary.record(CanaryEvent::RolledBack, why)));
            }
        }
        plugin.canary = None;
    }
}

/// Takes the canaries that a logged batch has, whatever this run had before: on a fork batches follow each other that had
/// others.
pub(super) fn follow(run: &mut QueryRun, entry: &OffsetEntry) -> Result<(), RuntimeError> {
    for plugin in &mut run.plugins {
        let name = plugin.slot.name();
        let pin = entry.plugins.get(name).and_then(|pin| pin.canary.as_ref());
        if run.given.contains(name) || plugin.canary.as_ref().map(|canary| &canary.pin) == pin {
            continue;
        }
        plugin.canary = match pin {
            None => None,
            Some(pin) => {
                let component = run.host.load(name, &run.checkpoint.plugins().get(&pin.candidate)?)?;
                Some(RunningCanary { component, pin: pin.clone(), tally: CanaryTally::default() })
            }
        };
    }
    Ok(())
}

/// Puts the candidates in the slots for a batch. In one that is run again because its candidate failed there is none.
pub(super) fn enter(run: &mut QueryRun, entry: &OffsetEntry, is_logged: bool) -> Result<(), RuntimeError> {
    for plugin in &mut run.plugins {
        let Some(canary) = &mut plugin.canary else {
            plugin.slot.end_canary();
            continue;
        };
        let fallback = if is_logged { run.checkpoint.fallbacks().get(entry.batch)? } else { None };
        match fallback.filter(|fallback| fallback.candidate == canary.pin.candidate) {
            Some(fallback) => {
                canary.tally.failed = Some(fallback.reason);
                plugin.slot.end_canary();
            }
            None => {
                let slice = Slice::new(canary.pin.candidate, canary.pin.share);
                plugin.slot.begin_canary(Arc::clone(&canary.component), slice, canary.pin.expect_same);
            }
        }
    }
    Ok(())
}

/// After a batch has failed: whether it was for a candidate. Then that is written down, and the batch is to be run again
/// without it.
pub(super) fn fall_back(run: &mut QueryRun, entry: &OffsetEntry) -> Result<bool, RuntimeError> {
    let failed = run.plugins.iter_mut().find_map(|plugin| {
        let reason = plugin.slot.canary_failure()?;
        Some((plugin, reason))
    });
    let Some((plugin, reason)) = failed else { return Ok(false) };
    let Some(canary) = &mut plugin.canary else { return Ok(false) };
    tracing::warn!(plugin = plugin.slot.name(), batch = %entry.batch, "the canary fails, the batch runs without it: {reason}");
    let (name, candidate) = (plugin.slot.name().to_owned(), canary.pin.candidate);
    plugin.slot.end_canary();
    canary.tally.failed = Some(reason.clone());
    let fallback = FallbackEntry { batch: entry.batch, plugin: name, candidate, reason };
    run.checkpoint.fallbacks().put(&fallback)?;
    for plugin in &run.plugins {
        // What was told of the first attempt is told again.
        drop((plugin.slot.take_dead_letters(), plugin.slot.take_metrics()));
    }
    run.begin_batch(entry.batch, entry.batch_time_ms);
    Ok(true)
}

/// What the canary has shown with the batch that was just run.
pub(super) fn tally(run: &QueryRun) -> Option<CanaryTally> {
    let plugin = run.plugins.iter().find(|plugin| plugin.canary.is_some())?;
    let mut tally = plugin.canary.as_ref()?.tally.clone();
    if let Some(figures) = plugin.slot.take_canary_figures() {
        tally.batches += u64::from(figures.calls > 0);
        tally.rows += figures.rows;
        tally.candidate_us += figures.candidate_us;
        tally.current_us += figures.current_us;
        tally.differing += figures.differing;
        tally.example = tally.example.or(figures.example);
    }
    Some(tally)
}

/// The batch is in the commit log with that.
pub(super) fn done(plugins: &mut [RunningPlugin], tally: Option<CanaryTally>) {
    if let (Some(tally), Some(canary)) = (tally, plugins.iter_mut().find_map(|plugin| plugin.canary.as_mut())) {
        canary.tally = tally;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_common::{BatchId, Digest};

    fn pin() -> CanaryPin {
        let candidate = Digest::of(b"candidate");
        CanaryPin { candidate, share: 1_000, first: BatchId(4), batches: 3, expect_same: false, cost_percent: 300 }
    }

    fn tally(batches: u64, candidate_us: u64, current_us: u64) -> CanaryTally {
        CanaryTally { batches, candidate_us, current_us, ..CanaryTally::default() }
    }

    #[test]
    fn a_canary_goes_on_until_it_has_its_batches() {
        assert_eq!(turn(&pin(), &tally(2, 9_000, 9_000)), Turn::GoesOn);
        assert_eq!(turn(&pin(), &tally(3, 9_000, 9_000)), Turn::TakesOver);
    }

    #[test]
    fn one_that_failed_or_costs_too_much_is_rolled_back() {
        let Turn::RollsBack(why) = turn(&pin(), &tally(3, 40_000, 10_000)) else { panic!("it is too dear") };
        assert_eq!(why, "it takes 4.0 times the CPU time of the running code, and 3 times is the limit");
        assert_eq!(turn(&pin(), &tally(3, 3_000, 100)), Turn::TakesOver, "too little to tell");
        let failed = CanaryTally { failed: Some("it traps".into()), ..tally(3, 1, 1) };
        assert_eq!(turn(&pin(), &failed), Turn::RollsBack("it traps".into()));
    }

    #[test]
    fn terms_that_make_no_canary_are_refused() {
        assert!(CanaryTerms::of(1_000).check().is_ok());
        assert!(CanaryTerms::of(0).check().is_err());
        assert!(CanaryTerms::of(10_001).check().is_err());
        assert!(CanaryTerms { batches: 0, ..CanaryTerms::of(1) }.check().is_err());
        assert_eq!((percent(1_000), percent(25)), ("10 %".to_owned(), "0.25 %".to_owned()));
    }
}
