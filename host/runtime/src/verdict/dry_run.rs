//! The last batches again, with the code that ran them and with the candidate, from the same state and the same input.
//!
//! ```text
//!                    ┌─ fork, code of the log ──► rows, state, time ─┐
//!   commits/F-1 ─────┼─ fork, candidate ────────► rows, state, time ─┼─► what differs
//!   offsets/F … L    └─ fork, candidate, a fresh instance per call ──┘
//! ```
//!
//! The third run finds what the candidate remembers between calls and what it makes of time and chance. A candidate that
//! fails is run once more with failing rows kept aside, so that they can be named.

use super::rows::{RowChanges, compare};
use super::{Check, Verdict, VerdictFinding};
use crate::query::{Fork, ForkOptions, Ran};
use crate::replay::changed_keys;
use crate::{QuerySpec, RuntimeError, Session};
use arrow::error::ArrowError;
use millstream_checkpoint::{Checkpoint, CommitEntry, OffsetEntry};
use millstream_common::{BatchId, Digest, DurableFiles, describe_chain};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// From how many times the time in the plugin on a person has to want it.
pub(super) const SLOWER: f64 = 3.0;
/// Below so many microseconds in all the times say nothing.
const LEAST_US: u64 = 2_000;
/// The most failing rows that are told.
const FAILING_ROWS: usize = 5;
/// The most changed rows that are shown, old and new.
pub(super) const EXAMPLES: usize = 6;

/// What a dry run showed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DryRun {
    /// The batches that were run again.
    pub batches: Vec<u64>,
    /// Rows that they read.
    pub input_rows: u64,
    /// Rows that came out of the old code.
    pub rows_before: u64,
    /// Rows that came out of the candidate.
    pub rows_after: u64,
    /// Rows of the result that are others; a row that became another one counts once.
    pub rows_changed: u64,
    /// Some of them: `-` and `+`, and the row as JSON.
    pub examples: Vec<String>,
    /// Keys of built-in state that have another value after the last batch.
    pub keys_changed: u64,
    /// Rows at which the candidate fails.
    pub failing_rows: Vec<FailingRow>,
    /// Batches that came out otherwise when the candidate was run a second time.
    pub unsteady: Vec<u64>,
    /// Microseconds in the plugin, with the old code.
    pub old_us: u64,
    /// Microseconds in the plugin, with the candidate.
    pub new_us: u64,
    /// How many times as long the candidate takes; `None` when both are too fast to tell.
    pub cost_ratio: Option<f64>,
    /// Keys of state that were migrated on the way.
    pub migrated_keys: u64,
    /// How long migrating all keys takes, in milliseconds: a start stands still for it, a running query only for what
    /// changes meanwhile.
    pub pause_ms: u64,
}

impl DryRun {
    /// How many times as long the candidate takes; `None` when both are too fast to tell.
    pub(super) fn weigh(&mut self) -> Option<f64> {
        let is_told = self.old_us.max(self.new_us) >= LEAST_US;
        self.cost_ratio = is_told.then(|| self.new_us as f64 / self.old_us.max(1) as f64);
        self.cost_ratio
    }
}

/// A row at which the candidate fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingRow {
    /// The batch.
    pub batch: u64,
    /// The function.
    pub function: String,
    /// Its arguments, as JSON.
    pub arguments: String,
    /// What it said.
    pub message: String,
}

/// What is run.
pub(super) struct Trial<'a> {
    pub(super) session: &'a Session,
    pub(super) spec: &'a QuerySpec,
    pub(super) checkpoint: &'a Checkpoint,
    pub(super) plugin: &'a str,
    /// The code that runs now.
    pub(super) old: (Digest, &'a [u8]),
    /// The candidate.
    pub(super) new: &'a [u8],
    /// How many batches at most.
    pub(super) batches: u64,
    /// Makes the commit that the candidate's batches begin with from the one that the old code's began with, in the files of
    /// a fork; `None` when state needs no change.
    pub(super) migrate: Option<&'a Migrate<'a>>,
}

/// Migrates the state of a commit into files of a fork.
pub(super) type Migrate<'a> = dyn Fn(&CommitEntry, &Arc<dyn DurableFiles>) -> Result<(), RuntimeError> + 'a;

/// A dry run, and what is to be said of it.
pub(super) struct Outcome {
    pub(super) dry_run: Option<DryRun>,
    pub(super) findings: Vec<VerdictFinding>,
    pub(super) notes: Vec<String>,
}

impl Trial<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// When the checkpoint cannot be read. That the batches cannot be run again is a note, that the candidate fails a
    /// finding.
    pub(super) fn run(&self) -> Result<Outcome, RuntimeError> {
        let mut outcome = Outcome { dry_run: None, findings: Vec::new(), notes: Vec::new() };
        let entries = self.entries()?;
        let Some(first) = entries.first() else {
            outcome.notes.push("no dry run: no batch that the running code has done can be run again".to_owned());
            return Ok(outcome);
        };
        let before = match self.play(first.batch, &entries, self.options(self.old.1)?, false) {
            Ok(before) => before,
            Err(error) => {
                let why = describe_chain(&error);
                outcome.notes.push(format!("no dry run: the last batches cannot be run again: {why}"));
                return Ok(outcome);
            }
        };
        let mut dry_run = DryRun { batches: entries.iter().map(|entry| entry.batch.0).collect(), ..DryRun::default() };
        dry_run.input_rows = before.ran.iter().map(|ran| ran.progress.num_input_rows).sum();
        dry_run.rows_before = before.rows();
        let after = match self.play(first.batch, &entries, self.options(self.new)?, true) {
            Ok(after) => after,
            Err(error) => {
                self.name_failing_rows(first.batch, &entries, &mut dry_run);
                let mut what = format!("it fails where the running code does not: {}", describe_chain(&error));
                for failing in &dry_run.failing_rows {
                    let FailingRow { batch, function, arguments, message } = failing;
                    what.push_str(&format!("; batch {batch}, {function}{arguments}: {message}"));
                }
                outcome.findings.push(finding(Verdict::Reject, what));
                outcome.dry_run = Some(dry_run);
                return Ok(outcome);
            }
        };
        dry_run.rows_after = after.rows();
        self.compare(&before, &after, &mut dry_run, &mut outcome.findings)?;
        self.run_again(first.batch, &entries, &after, &mut dry_run, &mut outcome.findings)?;
        self.weigh(first.batch, &entries, (&before, &after), &mut dry_run, &mut outcome.findings)?;
        outcome.dry_run = Some(dry_run);
        Ok(outcome)
    }

    /// The newest done batches that the running code ran one after the other, oldest first.
    fn entries(&self) -> Result<Vec<OffsetEntry>, RuntimeError> {
        let (offsets, commits) = (self.checkpoint.offset_log(), self.checkpoint.commit_log());
        let mut entries = Vec::new();
        let mut next = commits.batches()?.last().copied();
        while let Some(batch) = next.filter(|_| (entries.len() as u64) < self.batches) {
            let Some(entry) = offsets.get(batch)? else { break };
            let is_known = |before: BatchId| {
                Ok::<_, RuntimeError>(commits.get(before)?.is_some() && offsets.get(before)?.is_some())
            };
            let begins = batch.previous().map_or(Ok(true), is_known)?;
            let runs_old = entry.plugins.get(self.plugin).is_some_and(|pin| pin.digest == self.old.0);
            if entry.is_of_state_only() || !begins || !runs_old {
                break;
            }
            next = batch.previous();
            entries.push(entry);
        }
        entries.reverse();
        Ok(entries)
    }

    fn options(&self, component: &[u8]) -> Result<ForkOptions, RuntimeError> {
        let components = BTreeMap::from([(self.plugin.to_owned(), component.to_vec())]);
        Ok(ForkOptions { components, ..ForkOptions::in_memory()? })
    }

    /// Runs all batches with one component.
    fn play(
        &self,
        first: BatchId,
        entries: &[OffsetEntry],
        options: ForkOptions,
        migrates: bool,
    ) -> Result<Played, RuntimeError> {
        if let (Some(migrate), Some(before), true) = (self.migrate, first.previous(), migrates)
            && let Some(commit) = self.checkpoint.commit_log().get(before)?
        {
            migrate(&commit, &options.own)?;
        }
        let mut fork = Fork::before(self.session, self.spec, Arc::clone(self.checkpoint.files()), first, options)?;
        let ran = entries.iter().map(|entry| fork.run(entry)).collect::<Result<Vec<_>, _>>()?;
        Ok(Played { fork, ran })
    }

    fn name_failing_rows(&self, first: BatchId, entries: &[OffsetEntry], dry_run: &mut DryRun) {
        let named = self.options(self.new).and_then(|options| {
            let options = ForkOptions { keeps_failing_rows: true, ..options };
            self.play(first, entries, options, true)
        });
        // Then the error itself is all that can be told.
        let Ok(played) = named else { return };
        let files = played.fork.checkpoint().files();
        for entry in entries {
            let Ok(bytes) = files.get(&format!("dead-letters/{}.jsonl", entry.batch)) else { continue };
            for line in String::from_utf8_lossy(&bytes).lines() {
                let Ok(letter) = serde_json::from_str::<serde_json::Value>(line) else { continue };
                let text = |name: &str| letter[name].as_str().unwrap_or_default().to_owned();
                if dry_run.failing_rows.len() < FAILING_ROWS && text("plugin") == self.plugin {
                    dry_run.failing_rows.push(FailingRow {
                        batch: entry.batch.0,
                        function: text("function"),
                        arguments: text("arguments"),
                        message: text("message"),
                    });
                }
            }
        }
    }

    fn compare(
        &self,
        before: &Played,
        after: &Played,
        dry_run: &mut DryRun,
        findings: &mut Vec<VerdictFinding>,
    ) -> Result<(), RuntimeError> {
        let mut columns = Vec::new();
        let mut changed = Vec::new();
        for (old, new) in before.ran.iter().zip(&after.ran) {
            let RowChanges { count, examples, columns: found } = compared(old, new)?;
            dry_run.rows_changed += count;
            if count > 0 {
                changed.push(old.progress.batch_id);
            }
            let room = EXAMPLES.saturating_sub(dry_run.examples.len());
            dry_run.examples.extend(examples.into_iter().take(room));
            columns = found;
        }
        findings.extend(columns.into_iter().map(|what| finding(Verdict::Reject, what)));
        if self.migrate.is_none() {
            let new = after.fork.state();
            for (uid, files) in before.fork.state() {
                let others = new.get(&uid).map(Vec::as_slice).unwrap_or_default();
                let sides = ((before.fork.checkpoint(), &*files), (after.fork.checkpoint(), others));
                dry_run.keys_changed += changed_keys(sides.0, sides.1, &uid)?;
            }
        }
        if dry_run.rows_changed > 0 || dry_run.keys_changed > 0 {
            let (rows, keys, all) =
                (dry_run.rows_changed, dry_run.keys_changed, dry_run.rows_before.max(dry_run.rows_after));
            let mut what = format!("{rows} of {all} rows of the result come out otherwise{}", of_batches(&changed));
            if keys > 0 {
                what.push_str(&format!(", {keys} keys of state have another value"));
            }
            if let Some(example) = dry_run.examples.first() {
                what.push_str(&format!(", such as {example}"));
            }
            findings.push(finding(Verdict::NeedsApproval, what));
        }
        Ok(())
    }

    /// The candidate once more, with a fresh instance for every call.
    fn run_again(
        &self,
        first: BatchId,
        entries: &[OffsetEntry],
        after: &Played,
        dry_run: &mut DryRun,
        findings: &mut Vec<VerdictFinding>,
    ) -> Result<(), RuntimeError> {
        let options = ForkOptions { is_forgetful: true, ..self.options(self.new)? };
        let again = match self.play(first, entries, options, true) {
            Ok(again) => again,
            Err(error) => {
                let why = describe_chain(&error);
                findings.push(finding(Verdict::NeedsApproval, format!("it ran once and failed when run again: {why}")));
                return Ok(());
            }
        };
        for (once, twice) in after.ran.iter().zip(&again.ran) {
            if compared(once, twice)?.count > 0 {
                dry_run.unsteady.push(once.progress.batch_id);
            }
        }
        let (one, other) = (after.fork.state(), again.fork.state());
        let mut keys = 0;
        for (uid, files) in &one {
            let others = other.get(uid).map(Vec::as_slice).unwrap_or_default();
            keys += changed_keys((after.fork.checkpoint(), files), (again.fork.checkpoint(), others), uid)?;
        }
        if !dry_run.unsteady.is_empty() || keys > 0 {
            let mut what =
                format!("the same rows gave other results when it ran a second time{}", of_batches(&dry_run.unsteady));
            if keys > 0 {
                what.push_str(&format!(", {keys} keys of state differ"));
            }
            what.push_str(": it remembers something between calls, or is not deterministic");
            findings.push(finding(Verdict::NeedsApproval, what));
        }
        Ok(())
    }

    /// What it costs. A first difference is measured again, because the machine does other things, too.
    fn weigh(
        &self,
        first: BatchId,
        entries: &[OffsetEntry],
        (before, after): (&Played, &Played),
        dry_run: &mut DryRun,
        findings: &mut Vec<VerdictFinding>,
    ) -> Result<(), RuntimeError> {
        let (mut old, mut new) = (before.time_us(self.plugin), after.time_us(self.plugin));
        let is_slow = |old: u64, new: u64| new >= LEAST_US && new as f64 >= SLOWER * old.max(1) as f64;
        for _ in 0..2 {
            if is_slow(old, new) {
                old = old.max(self.play(first, entries, self.options(self.old.1)?, false)?.time_us(self.plugin));
                new = new.min(self.play(first, entries, self.options(self.new)?, true)?.time_us(self.plugin));
            }
        }
        (dry_run.old_us, dry_run.new_us) = (old, new);
        dry_run.weigh();
        if is_slow(old, new) {
            let ratio = new as f64 / old.max(1) as f64;
            let (old, new) = (old as f64 / 1000.0, new as f64 / 1000.0);
            let what = format!("it takes {ratio:.1} times as long: {new:.1} ms in the plugin, {old:.1} ms before");
            findings.push(finding(Verdict::NeedsApproval, what));
        }
        Ok(())
    }
}

/// Batches as one component ran them.
struct Played {
    fork: Fork,
    ran: Vec<Ran>,
}

impl Played {
    fn rows(&self) -> u64 {
        self.ran.iter().map(Ran::rows).sum()
    }

    fn time_us(&self, plugin: &str) -> u64 {
        self.ran.iter().map(|ran| ran.time_us(plugin)).sum()
    }
}

pub(super) fn compared(old: &Ran, new: &Ran) -> Result<RowChanges, RuntimeError> {
    compare(&old.output, &new.output).map_err(|error: ArrowError| RuntimeError::Invalid {
        reason: format!("the rows of batch {} cannot be compared: {error}", old.progress.batch_id),
        hint: None,
    })
}

fn finding(verdict: Verdict, what: String) -> VerdictFinding {
    VerdictFinding { verdict, check: Check::DryRun, what }
}

fn of_batches(batches: &[u64]) -> String {
    match batches {
        [] => String::new(),
        [one] => format!(" in batch {one}"),
        [first, .., last] => format!(" in {} batches from {first} to {last}", batches.len()),
    }
}
