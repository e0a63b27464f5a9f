//! A border at which state is made anew: other code takes over, and what is stored is migrated for it, or made again by it.
//!
//! ```text
//!   batch N done ──► state of N ─┬─ migrated ────────────────────────────┐
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
//! Rule of its life: all that can fail is done before the batch is defined; what fails leaves the old code running.

use super::fork::{Fork, ForkOptions};
use super::open;
use super::recovery::state_schemas;
use super::run::{QueryRun, pin};
use super::swap::{SwapRequest, Unlogged, log_entry};
use crate::RuntimeError;
use crate::inspect::manifests;
use crate::migration::{Forms, Migration};
use bytes::Bytes;
use millstream_checkpoint::{BorderPin, CommitEntry, CommitLog, OffsetEntry, OffsetRange, StatePin};
use millstream_common::{BatchId, Digest, DurableError, OperatorUid};
use millstream_plan::StreamingPlan;
use millstream_state::StateManifest;
use std::collections::BTreeMap;
use std::sync::Arc;

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

/// Lets a component take over at a border of its own. `Ok(Err)` is a refusal that left everything as it was.
///
/// # Errors
/// When the batch was defined and could not be ended: the next start ends it.
pub(super) fn take(run: &mut QueryRun, request: &SwapRequest) -> Result<Result<Unlogged, String>, RuntimeError> {
    let made = match make(run, request) {
        Ok(made) => made,
        Err(error) => return Ok(Err(millstream_common::describe_chain(&error))),
    };
    let Made { from, entry, base, state, mut plan } = made;
    let opened = plan.pipeline.for_each_stateful(|operator| {
        let uid = operator.uid().clone();
        let files =
            manifests(entry.batch, uid.as_str(), state.get(uid.as_str()).map(Vec::as_slice).unwrap_or_default())?;
        Ok::<(), RuntimeError>(operator.open(&run.opener(), &files)?)
    });
    let swap = Unlogged::at_border(
        request,
        from,
        if entry.border.as_ref().is_some_and(|b| b.restored.is_some()) { "restored" } else { "migrated" },
    );
    if let Err(error) = opened.and_then(|()| define(run, &entry, &swap)) {
        give_back(run, request, from)?;
        return Ok(Err(millstream_common::describe_chain(&error)));
    }
    // From here on there is no way back but forward.
    let done = CommitEntry {
        batch: entry.batch,
        next_watermark_ms: base.next_watermark_ms,
        state,
        output: None,
        canary: None,
        inputs: BTreeMap::new(),
        sink: None,
    };
    run.checkpoint.commit_log().add(&done)?;
    let retained = named_files(&done)?;
    run.take_plan(plan);
    run.retained.push_back((entry.batch, retained));
    run.last_batch_time_ms = entry.batch_time_ms;
    run.next = entry.batch.next();
    Ok(Ok(swap))
}

/// Everything that a border needs, made before it is defined.
struct Made {
    from: Digest,
    entry: OffsetEntry,
    base: CommitEntry,
    state: NamedState,
    plan: StreamingPlan,
}

fn make(run: &mut QueryRun, request: &SwapRequest) -> Result<Made, RuntimeError> {
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
    let from = old.digest();
    run.checkpoint.plugins().put(&to, Bytes::copy_from_slice(&request.bytes))?;
    slot.replace(Arc::clone(&request.component));
    let remade = plan(run).and_then(|mut plan| {
        let wanted = state_schemas(&mut plan.pipeline);
        let remade = match request.remake {
            Some(Remake::Restore) => restore(run, &request.plugin, (to, &request.bytes), last)?,
            _ => migrate(run, request, (&entry, &base), &wanted)?,
        };
        Ok((remade, plan, wanted))
    });
    let (remade, plan, wanted) = match remade {
        Ok(made) => made,
        Err(error) => {
            slot.replace(old);
            return Err(error);
        }
    };
    let still = |range: &OffsetRange| OffsetRange { start: range.end.clone(), end: range.end.clone() };
    let Remade { what, restored, state } = remade;
    let border = BorderPin { what, restored, state: state.clone() };
    let entry = OffsetEntry {
        batch: run.next,
        batch_time_ms: run.clock.now_ms().max(run.last_batch_time_ms),
        sources: entry.sources.iter().map(|(name, range)| (name.clone(), still(range))).collect(),
        plugins: run.plugins.iter().map(|plugin| (plugin.slot.name().to_owned(), pin(plugin))).collect(),
        state_schemas: wanted.into(),
        repartition: None,
        border: Some(border),
        ..entry
    };
    Ok(Made { from, entry, base, state, plan })
}

/// The query as it is planned with the components that stand in the slots now.
fn plan(run: &QueryRun) -> Result<StreamingPlan, RuntimeError> {
    let slots: Vec<_> = run.plugins.iter().map(|plugin| Arc::clone(&plugin.slot)).collect();
    let session = open::with_plugin_sink(&run.session, &run.spec, slots.clone());
    open::plan(&session, &run.spec, run.tables.clone(), slots, &run.batch_time)
}

fn define(run: &mut QueryRun, entry: &OffsetEntry, swap: &Unlogged) -> Result<(), RuntimeError> {
    run.lease.renew(run.clock.now_ms())?;
    if let Some(swaps) = log_entry(std::slice::from_ref(swap), &run.unlogged_canaries, entry.batch, entry.batch_time_ms)
    {
        run.checkpoint.swap_log().put(&swaps)?;
    }
    run.checkpoint.offset_log().add(entry)?;
    run.unlogged_canaries.clear();
    Ok(())
}

/// The old component goes on.
fn give_back(run: &mut QueryRun, request: &SwapRequest, from: Digest) -> Result<(), RuntimeError> {
    let old = run.host.load(&request.plugin, &run.checkpoint.plugins().get(&from)?)?;
    if let Some(plugin) = run.plugins.iter().find(|plugin| plugin.slot.name() == request.plugin) {
        plugin.slot.replace(old);
    }
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
    Ok(Remade { what, restored: Some(before), state })
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
    request: &SwapRequest,
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
    let migrated = migration.run(&run.checkpoint, forms, base)?;
    let what = format!("{} keys migrated: {}", migrated.keys, ways.join("; "));
    Ok(Remade { what, restored: None, state: migrated.state })
}
