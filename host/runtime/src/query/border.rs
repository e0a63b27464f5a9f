//! A border at which state is made anew: other code takes over, and what is stored is migrated for it, or made again by it.
//!
//! ```text
//!   batch N done ──► state of N ─┬─ migrated, mostly beside the query ────┐
//!                                └─ or: the old code runs S … N again    ├─► files that nobody names yet
//!                                   from the state before S, on a fork ──┘            │
//!                    offsets/N+1  reads nothing, names the new code and those files ◄─┘
//!                    commits/N+1  names the files: done                 ──► the new plan goes on with N+2
//! ```
//!
//! Like a repartition it is a batch of its own that reads nothing and reaches no sink, so it is crash-safe by the rules that
//! every batch has. A crash before `offsets/N+1` leaves the old code and its state; after it the new: its files are there,
//! and the next start only writes `commits/N+1`. The batches that were run again have been given out already, and nobody
//! gets them a second time.
//!
//! Rule of its life: all that can fail is done before the batch is defined; what fails leaves the old code running. From the
//! definition on there is no way back but forward: what is left is the entry of the commit log, which is tried again.

use super::fork::{Fork, ForkOptions};
use super::open;
use super::recovery::state_schemas;
use super::run::{QueryRun, pin};
use super::swap::{SwapPause, SwapRequest, Unlogged, log_entry};
use crate::RuntimeError;
use crate::inspect::manifests;
use crate::migration::{Forms, HandedOver, Migration};
use bytes::Bytes;
use millstream_checkpoint::{BorderPin, CheckpointError, CommitEntry, CommitLog, OffsetEntry, OffsetRange, StatePin};
use millstream_common::{BatchId, Digest, DurableError, Hint, OperatorUid};
use millstream_plan::StreamingPlan;
use millstream_state::StateManifest;
use millstream_wasm::{Component, PluginSlot};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// What is made of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remake {
    /// The stored state is migrated.
    Migrate,
    /// The batches since the code last ran are run again with it, from the state before them.
    Restore,
}

/// State per operator, as a commit entry names it.
type NamedState = BTreeMap<String, Vec<serde_json::Value>>;

/// Lets a component take over at a border of its own. What it answers is whether the border could be ended; it is defined,
/// and whoever waits for a swap that it names has been told.
///
/// # Errors
/// Why it is refused; everything is as it was.
pub(super) fn take(run: &mut QueryRun, request: &mut SwapRequest) -> Result<Result<(), RuntimeError>, RuntimeError> {
    let Made { slot, old, entry, base, state, mut plan, handed, mut pause } = make(run, request)?;
    let began = Instant::now();
    let rest = run.opener();
    let opener = handed.opener(&rest);
    let opened = plan.pipeline.for_each_stateful(|operator| {
        let uid = operator.uid().clone();
        let files =
            manifests(entry.batch, uid.as_str(), state.get(uid.as_str()).map(Vec::as_slice).unwrap_or_default())?;
        Ok::<(), RuntimeError>(operator.open(&opener, &files)?)
    });
    drop(opener);
    drop(rest);
    pause.open = began.elapsed();
    let began = Instant::now();
    let swap = Unlogged::at_border(
        request,
        old.digest(),
        if entry.border.as_ref().is_some_and(|b| b.restored.is_some()) { "restored" } else { "migrated" },
    );
    let done = CommitEntry {
        batch: entry.batch,
        next_watermark_ms: base.next_watermark_ms,
        state,
        output: None,
        canary: None,
        inputs: BTreeMap::new(),
        sink: None,
    };
    let defined = opened.and_then(|()| {
        let retained = named_files(&done)?;
        Ok((define(run, &entry, swap)?, retained))
    });
    let (mut told, retained) = match defined {
        Ok(defined) => defined,
        Err(error) => {
            // From memory: what failed may be the place that has it.
            slot.replace(old);
            return Err(error);
        }
    };
    run.take_plan(plan);
    run.retained.push_back((entry.batch, retained));
    run.last_batch_time_ms = entry.batch_time_ms;
    run.next = entry.batch.next();
    run.unended = Some(done);
    let ended = end(run);
    pause.log = began.elapsed();
    let own = told.pop().map(|swap| swap.after(pause));
    told.into_iter().chain(own).for_each(|swap| swap.logged(entry.batch));
    Ok(ended)
}

/// Ends a border that is defined, now or when it could not be before.
///
/// # Errors
/// When the commit log cannot be written, or another run has the checkpoint.
pub(super) fn end(run: &mut QueryRun) -> Result<(), RuntimeError> {
    let Some(done) = &run.unended else { return Ok(()) };
    run.lease.renew(run.clock.now_ms())?;
    let log = run.checkpoint.commit_log();
    match log.add(done) {
        // An attempt that was told to have failed had not.
        Err(CheckpointError::Fenced { .. }) if log.get(done.batch)?.as_ref() == Some(done) => {}
        added => added?,
    }
    run.unended = None;
    Ok(())
}

/// Everything that a border needs, made before it is defined.
struct Made {
    slot: Arc<PluginSlot>,
    /// The code that runs until then.
    old: Arc<Component>,
    entry: OffsetEntry,
    base: CommitEntry,
    state: NamedState,
    plan: StreamingPlan,
    handed: HandedOver,
    pause: SwapPause,
}

fn make(run: &mut QueryRun, request: &mut SwapRequest) -> Result<Made, RuntimeError> {
    let began = Instant::now();
    let invalid = |reason: String| RuntimeError::Invalid { reason, hint: None };
    let last =
        run.next.previous().ok_or_else(|| invalid("no batch has been done: there is no state to make anew".into()))?;
    let (Some(entry), Some(base)) = (run.checkpoint.offset_log().get(last)?, run.checkpoint.commit_log().get(last)?)
    else {
        return Err(invalid(format!("batch {last} is not done")));
    };
    let to = request.component.digest();
    let Some(plugin) = run.plugins.iter().find(|plugin| plugin.slot.name() == request.plugin) else {
        return Err(invalid(format!("the query has no plugin `{}`", request.plugin)));
    };
    let slot = Arc::clone(&plugin.slot);
    let old = slot.component();
    run.checkpoint.plugins().put(&to, Bytes::copy_from_slice(&request.bytes))?;
    slot.replace(Arc::clone(&request.component));
    let remade = plan(run).and_then(|mut plan| {
        let wanted = state_schemas(&mut plan.pipeline);
        let code = began.elapsed();
        let remade = match request.remake {
            Some(Remake::Restore) => restore(run, &request.plugin, (to, &request.bytes), last)?,
            _ => migrate(run, request, (&entry, &base), &wanted)?,
        };
        let pause = SwapPause { code, state: began.elapsed().saturating_sub(code), ..SwapPause::default() };
        Ok((remade, plan, wanted, pause))
    });
    let (remade, plan, wanted, pause) = match remade {
        Ok(made) => made,
        Err(error) => {
            slot.replace(old);
            return Err(error);
        }
    };
    let still = |range: &OffsetRange| OffsetRange { start: range.end.clone(), end: range.end.clone() };
    let Remade { what, restored, state, handed } = remade;
    let border = BorderPin { what, restored, state: state.clone() };
    let entry = OffsetEntry {
        batch: run.next,
        batch_time_ms: run.clock.now_ms().max(run.last_batch_time_ms),
        sources: entry.sources.iter().map(|(name, range)| (name.clone(), still(range))).collect(),
        plugins: run.plugins.iter().map(|plugin| (plugin.slot.name().to_owned(), pin(plugin))).collect(),
        state_schemas: wanted.into(),
        repartition: None,
        border: Some(border),
        query: Some(run.said),
        ..entry
    };
    Ok(Made { slot, old, entry, base, state, plan, handed, pause })
}

/// The query as it is planned with the components that stand in the slots now.
fn plan(run: &QueryRun) -> Result<StreamingPlan, RuntimeError> {
    let slots: Vec<_> = run.plugins.iter().map(|plugin| Arc::clone(&plugin.slot)).collect();
    let session = open::with_plugin_sink(&run.session, &run.spec, slots.clone());
    open::plan(&session, &run.spec, run.tables.clone(), slots, &run.batch_time)
}

/// Defines the border. Answers the swaps that its entry names, its own last: others may have been put in place before it.
fn define(run: &mut QueryRun, entry: &OffsetEntry, swap: Unlogged) -> Result<Vec<Unlogged>, RuntimeError> {
    run.lease.renew(run.clock.now_ms())?;
    run.unlogged.push(swap);
    let told = log_entry(&run.unlogged, &run.unlogged_canaries, entry.batch, entry.batch_time_ms);
    let logged = told.map_or(Ok(()), |swaps| run.checkpoint.swap_log().put(&swaps));
    match logged.and_then(|()| add(run, entry)) {
        Ok(()) => {
            run.unlogged_canaries.clear();
            run.has_undone_swaps = false;
            Ok(std::mem::take(&mut run.unlogged))
        }
        Err(error) => {
            run.unlogged.pop();
            run.has_undone_swaps = true;
            if let Err(error) = forget_undone(run) {
                let text = millstream_common::describe_chain(&error);
                tracing::debug!("the swap log is put right before the next batch: {text}");
            }
            Err(error.into())
        }
    }
}

/// Adds the entry. One that is there although its write failed is there.
fn add(run: &QueryRun, entry: &OffsetEntry) -> Result<(), CheckpointError> {
    let log = run.checkpoint.offset_log();
    match log.add(entry) {
        Err(error) if error.may_pass() && log.get(entry.batch).is_ok_and(|found| found.as_ref() == Some(entry)) => {
            Ok(())
        }
        added => added,
    }
}

/// Takes back what the swap log says of a border that was not defined: the component that it names never ran.
pub(super) fn forget_undone(run: &mut QueryRun) -> Result<(), CheckpointError> {
    let log = run.checkpoint.offset_log();
    let last = log.batches()?.last().map(|newest| log.get(*newest)).transpose()?.flatten();
    run.checkpoint.swap_log().forget_undone(last.as_ref())?;
    run.has_undone_swaps = false;
    Ok(())
}

/// State that was made anew.
pub(super) struct Remade {
    /// In words.
    pub(super) what: String,
    /// The batch whose state the old code went on from.
    pub(super) restored: Option<BatchId>,
    /// The files.
    pub(super) state: NamedState,
    /// Stores that have them open already.
    pub(super) handed: HandedOver,
}

/// Runs the batches since a component last ran again with it, from the state before them.
fn restore(run: &QueryRun, plugin: &str, (to, bytes): (Digest, &[u8]), last: BatchId) -> Result<Remade, RuntimeError> {
    let invalid = |reason: String| RuntimeError::Invalid { reason, hint: None };
    let swaps = run.checkpoint.swap_log().all()?;
    let since = swaps.iter().rev().find(|entry| entry.swaps.get(plugin).is_some_and(|record| record.from == to));
    let since = since.ok_or_else(|| invalid(format!("plugin `{plugin}` never went on from {}", to.short())))?.batch;
    let before = since.previous().filter(|_| since <= last);
    let before = before.ok_or_else(|| invalid("there is no batch to run again".to_owned()))?;
    let components = BTreeMap::from([(plugin.to_owned(), bytes.to_vec())]);
    let options = ForkOptions { components, ..ForkOptions::in_memory()? };
    let own = Arc::clone(&options.own);
    let mut entries = Vec::new();
    for number in since.0..=last.0 {
        let batch = BatchId(number);
        let entry = run.checkpoint.offset_log().get(batch)?;
        entries.push(entry.ok_or_else(|| invalid(format!("batch {batch} is no longer kept")))?);
    }
    let known = run.checkpoint.commit_log().get(before)?;
    let known = known.ok_or_else(|| invalid(format!("the state after batch {before} is no longer kept")))?;
    let files = match entries.iter().find(|entry| !entry.is_of_state_only()) {
        Some(first) => {
            // What only made state anew since then was for other code: the first batch begins with the state before all that.
            if let Some(previous) = first.batch.previous().filter(|previous| *previous != before) {
                CommitLog::new(Arc::clone(&own)).add(&CommitEntry { batch: previous, ..known })?;
            }
            let base = Arc::clone(run.checkpoint.files());
            let mut fork = Fork::before(&run.session, &run.spec, base, first.batch, options)?;
            for entry in entries.iter().filter(|entry| entry.batch >= first.batch) {
                if entry.is_of_state_only() {
                    fork.pass(entry);
                } else {
                    fork.run(entry)?;
                }
            }
            fork.state()
        }
        None => named_files(&known)?,
    };
    let mut state = NamedState::new();
    for (uid, files) in files {
        let mut named = Vec::new();
        for (partition, manifest) in (0_u32..).zip(files) {
            for file in &manifest.files {
                let path = format!("state/{uid}/{partition}/{}", file.name);
                // What is not among the fork's own is in the checkpoint.
                let bytes = match own.get(&path) {
                    Ok(bytes) => bytes,
                    Err(DurableError::Missing { .. }) => continue,
                    Err(source) => return Err(RuntimeError::Keep { what: "restored state".into(), source }),
                };
                match run.checkpoint.files().put_new(&path, bytes) {
                    Ok(()) | Err(DurableError::Exists { .. }) => {}
                    Err(source) => return Err(RuntimeError::Keep { what: "restored state".into(), source }),
                }
            }
            // A batch without changes has no file, and neither has the border.
            let manifest = StateManifest { version: last.0 + 2, ..manifest };
            named.push(serde_json::to_value(&manifest).map_err(|error| invalid(format!("`{uid}`: {error}")))?);
        }
        state.insert(uid.as_str().to_owned(), named);
    }
    let what = format!("batches {since} to {last} run again with {}, from the state after batch {before}", to.short());
    Ok(Remade { what, restored: Some(before), state, handed: HandedOver::nothing() })
}

/// The state files of a commit, per operator and partition.
fn named_files(commit: &CommitEntry) -> Result<BTreeMap<OperatorUid, Vec<StateManifest>>, RuntimeError> {
    let of_operator = |(uid, values): (&String, &Vec<serde_json::Value>)| {
        let named = OperatorUid::new(uid.as_str()).map_err(|error| RuntimeError::Invalid {
            reason: format!("an operator has a wrong name: {error}"),
            hint: None,
        })?;
        Ok((named, manifests(commit.batch, uid, values)?))
    };
    commit.state.iter().map(of_operator).collect()
}

/// Migrates the state of the last batch to what the query keeps with the new code.
fn migrate(
    run: &QueryRun,
    request: &mut SwapRequest,
    (entry, base): (&OffsetEntry, &CommitEntry),
    wanted: &BTreeMap<String, StatePin>,
) -> Result<Remade, RuntimeError> {
    let plugin = run.plugins.iter().find(|plugin| plugin.slot.name() == request.plugin);
    let plugin = plugin.ok_or_else(|| RuntimeError::Invalid {
        reason: format!("the query has no plugin `{}`", request.plugin),
        hint: None,
    })?;
    let before = entry.plugins.get(&request.plugin).map(|pin| pin.digest);
    let mut components = vec![Arc::clone(&request.component)];
    if let Some(before) = before {
        components.push(run.host.load(&request.plugin, &run.checkpoint.plugins().get(&before)?)?);
    }
    let migration = Migration::new(Arc::clone(&plugin.slot), components, run.run_id.0.simple().to_string());
    let forms: Forms<'_> = (&entry.state_schemas, wanted);
    let ways = migration.ways(forms).map_err(|reason| RuntimeError::Invalid { reason, hint: None })?;
    let oldest = run.retained.front().map_or(base.batch, |(batch, _)| *batch);
    let (migrated, handed) = match request.beside.take().filter(|beside| beside.fits(forms, oldest)) {
        None => (migration.run(&run.checkpoint, forms, base)?, HandedOver::nothing()),
        Some(beside) => match beside.finish(&run.checkpoint, base) {
            Ok(finished) => finished,
            Err(error) => {
                let error = millstream_common::describe_chain(&error);
                tracing::warn!("all state is migrated while the query waits: {error}");
                (migration.run(&run.checkpoint, forms, base)?, HandedOver::nothing())
            }
        },
    };
    let what = format!("{} keys migrated: {}", migrated.keys, ways.join("; "));
    Ok(Remade { what, restored: None, state: migrated.state, handed })
}
