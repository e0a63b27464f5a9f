//! One batch, in the order of its effects. This order is the protocol:
//!
//! 1. the offset log gets the entry: batch N is defined;
//! 2. the sources may forget what came before N;
//! 3. the operators run over the rows of N, state in memory goes from version N to N+1;
//! 4. the changes of state become durable files that nobody names yet;
//! 5. the sink takes the rows: the same N twice counts once; one with two phases prepares them, and what it prepared is
//!    kept;
//! 6. the watermark advances from what N showed;
//! 7. the commit log gets the entry that names the state's files: batch N is done;
//! 8. a sink with two phases lets the rows be seen.
//!
//! A crash between any two of them leaves a checkpoint from which the same batch is run again, or the next one.

use super::border;
use super::canary;
use super::fork::{Output, Ran};
use super::input_digest;
use super::output_digest::output_digest;
use super::prepared;
use super::progress::{
    PluginProgress, Progress, SinkProgress, SourceProgress, StateOperatorProgress, TenantProgress, iso_ms, rate,
};
use super::recovery::RetainedFiles;
use super::run::QueryRun;
use super::swap;
use super::tables;
use super::tap::LiveBatch;
use crate::settings::OUTPUT_DIGESTS;
use crate::{RuntimeError, offline_store};
use arrow::array::RecordBatch;
use bytes::Bytes;
use millstream_checkpoint::{Checkpoint, OffsetEntry, OutputPin};
use millstream_common::{BatchId, Digest, OperatorUid, Watermark, Watermarks};
use millstream_operators::{BatchContext, EventTimeSeen, LateRows};
use millstream_sink::{SinkBatch, SinkReport};
use millstream_source::Offset;
use millstream_state::{StateManifest, StateStore};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

/// A batch about to run.
pub(super) struct Definition {
    pub(super) entry: Arc<OffsetEntry>,
    /// Whether the offset log has the entry already.
    pub(super) is_logged: bool,
    /// Milliseconds spent on asking the sources.
    pub(super) latest_ms: u64,
    /// When the trigger fired.
    pub(super) trigger_ms: i64,
}

/// Runs a batch to its commit. After an error the state is as before and the batch stays unfinished if it was logged.
pub(super) fn execute(run: &mut QueryRun, definition: Definition) -> Result<Progress, RuntimeError> {
    let outcome = steps(run, &definition);
    if let Err(error) = &outcome {
        run.pipeline.abort();
        prepared::give_up(run, error);
    }
    outcome
}

fn steps(run: &mut QueryRun, definition: &Definition) -> Result<Progress, RuntimeError> {
    let entry = &definition.entry;
    let mut timer = Timer::new(run, definition);

    run.lease.renew(run.clock.now_ms())?;
    if !definition.is_logged {
        match swap::log_entry(&run.unlogged, &run.unlogged_canaries, entry.batch, entry.batch_time_ms) {
            Some(swaps) => run.checkpoint.swap_log().put(&swaps)?,
            None if run.has_undone_swaps => border::forget_undone(run)?,
            None => {}
        }
        run.checkpoint.offset_log().add(entry)?;
        run.has_undone_swaps = false;
        run.unfinished = Some(Arc::clone(entry));
        for swap in run.unlogged.drain(..) {
            swap.logged(entry.batch);
        }
        run.unlogged_canaries.clear();
        release_before(run, entry)?;
    }
    timer.step(run, "walCommit");

    run.batch_time.set_ms(entry.batch_time_ms);
    run.begin_batch(entry.batch, entry.batch_time_ms);
    tables::refresh(run)?;
    let (mut inputs, rows_per_source) = read(run, entry)?;
    let pins = input_digest::take(run, entry, &inputs)?;
    timer.step(run, "getBatch");

    let shown = run.tap.is_open().then(|| inputs.clone());
    let rows = computed(run, entry, (&mut inputs, definition.is_logged), true)?;
    let tally = canary::tally(run);
    let manifests = prepare_state(run)?;
    let mut letters = dead_letters(run, entry);
    let output = if run.settings.output_digests { Some(digest(run, entry.batch, &rows)?) } else { None };
    let report =
        run.sink.add_batch(&SinkBatch { id: entry.batch, schema: &run.schema, rows: &rows, mode: run.mode })?;
    letters.push_str(&dead_letters(run, entry));
    prepared::keep(run, entry.batch)?;
    keep_dead_letters(run, entry, letters)?;
    let late = run.pipeline.take_late_rows();
    if let Some(sink) = &mut run.late_sink {
        sink.write(entry.batch, &late)?;
    }
    timer.step(run, "addBatch");

    let seen = run.pipeline.take_event_times();
    let next_watermark = advance_watermark(run, &seen, entry.batch_time_ms);
    run.lease.renew(run.clock.now_ms())?;
    let sink = prepared::of_entry(run);
    let pins = (output.as_ref(), &pins, sink.as_ref());
    let log = run.checkpoint.commit_log();
    if let Err(error) = log.add_state(entry.batch, next_watermark, &manifests, pins, tally.as_ref()) {
        prepared::in_doubt(run, entry.batch, error)?;
    }
    prepared::is_done(run);
    canary::done(&mut run.plugins, tally);
    done(run, entry, manifests)?;
    prepared::commit(run)?;
    timer.step(run, "commitOffsets");
    let progress = progress(run, definition, timer, &rows_per_source, (&seen, &late), &report);
    if let Some(inputs) = shown {
        let output = Output { schema: Some(Arc::clone(&run.schema)), rows };
        let ran = Ran { output, progress: progress.clone() };
        run.tap.show(LiveBatch { entry: OffsetEntry::clone(entry), slots: run.slots.clone(), inputs, ran });
    }
    Ok(progress)
}

/// The rows that a batch reads, per place where they enter.
pub(super) fn inputs(run: &mut QueryRun, entry: &OffsetEntry) -> Result<Vec<Vec<RecordBatch>>, RuntimeError> {
    run.batch_time.set_ms(entry.batch_time_ms);
    run.begin_batch(entry.batch, entry.batch_time_ms);
    Ok(read(run, entry)?.0)
}

/// What a logged batch gives on these rows. Nothing goes out, and the state stays as it was.
pub(super) fn probe(
    run: &mut QueryRun,
    entry: &OffsetEntry,
    mut inputs: Vec<Vec<RecordBatch>>,
) -> Result<Vec<RecordBatch>, RuntimeError> {
    // That a candidate fails on other rows says nothing about the batch.
    let rows = computed(run, entry, (&mut inputs, true), false);
    run.pipeline.abort();
    drop((run.pipeline.take_late_rows(), run.pipeline.take_event_times()));
    for plugin in &run.plugins {
        drop((plugin.slot.take_dead_letters(), plugin.slot.take_metrics(), plugin.slot.take_canary_figures()));
    }
    rows
}

/// Runs the operators over the rows of a batch; once more without a canary when its candidate fails.
fn computed(
    run: &mut QueryRun,
    entry: &OffsetEntry,
    (inputs, is_logged): (&mut [Vec<RecordBatch>], bool),
    falls_back: bool,
) -> Result<Vec<RecordBatch>, RuntimeError> {
    if is_logged {
        canary::follow(run, entry)?;
    }
    canary::enter(run, entry, is_logged)?;
    run.batch_time.set_ms(entry.batch_time_ms);
    run.begin_batch(entry.batch, entry.batch_time_ms);
    let context = context(run, entry);
    let has_canary = falls_back && run.plugins.iter().any(|plugin| plugin.canary.is_some());
    let again = has_canary.then(|| inputs.to_vec());
    let mut rows = run.pipeline.run(inputs, &context);
    if let Some(mut inputs) = again.filter(|_| rows.is_err())
        && canary::fall_back(run, entry)?
    {
        run.pipeline.abort();
        rows = run.pipeline.run(&mut inputs, &context);
    }
    rows.map_err(|source| RuntimeError::Batch { batch: entry.batch, source: Box::new(source) })
}

/// What went out, to be held against another run of the batch.
fn digest(run: &QueryRun, batch: BatchId, rows: &[RecordBatch]) -> Result<OutputPin, RuntimeError> {
    output_digest(&run.schema, rows).map_err(|error| RuntimeError::Invalid {
        reason: format!("batch {batch} has rows of which there is no digest: {error}"),
        hint: Some(format!("set {OUTPUT_DIGESTS} to false")),
    })
}

/// Everything before the batch is committed: the sources may forget it.
fn release_before(run: &mut QueryRun, entry: &OffsetEntry) -> Result<(), RuntimeError> {
    for running in &mut run.sources {
        let start = entry.sources.get(&running.name).and_then(|range| range.start.clone());
        if let Some(start) = start {
            running.source.release(&Offset(start))?;
        }
    }
    Ok(())
}

/// The rows of a batch per slot, and how many there were per source.
type InputRows = (Vec<Vec<RecordBatch>>, BTreeMap<String, u64>);

/// The rows of the batch, per slot, and how many there were per source.
fn read(run: &mut QueryRun, entry: &OffsetEntry) -> Result<InputRows, RuntimeError> {
    let mut counts = BTreeMap::new();
    if let Some(fed) = run.fed.take() {
        for (slot, rows) in run.slots.iter().zip(&fed) {
            *counts.entry(slot.stream.clone()).or_insert(0) += rows.iter().map(|b| b.num_rows() as u64).sum::<u64>();
        }
        return Ok((fed, counts));
    }
    let mut inputs = Vec::with_capacity(run.slots.len());
    for slot in &run.slots {
        let mut batches = Vec::new();
        let range = entry.sources.get(&slot.stream);
        let source = run.sources.iter_mut().find(|running| running.name == slot.stream);
        if let (Some(running), Some(range)) = (source, range)
            && let Some(end) = range.end.clone()
            && range.start != range.end
        {
            let start = range.start.clone().map(Offset);
            let partitions = running.source.read(start.as_ref(), &Offset(end), &slot.projection)?;
            batches.extend(partitions.into_iter().flatten());
        }
        *counts.entry(slot.stream.clone()).or_insert(0) += batches.iter().map(|b| b.num_rows() as u64).sum::<u64>();
        inputs.push(batches);
    }
    Ok((inputs, counts))
}

fn context(run: &QueryRun, entry: &OffsetEntry) -> BatchContext {
    let watermarks = entry.watermark_ms.map(|ms| Watermarks { late: run.late, eviction: Watermark(ms) });
    BatchContext { batch: entry.batch, batch_time_ms: entry.batch_time_ms, watermarks }
}

fn prepare_state(run: &mut QueryRun) -> Result<BTreeMap<OperatorUid, Vec<StateManifest>>, RuntimeError> {
    let mut manifests = BTreeMap::new();
    run.pipeline.for_each_stateful(|operator| {
        let prepared = operator.prepare()?;
        manifests.insert(operator.uid().clone(), prepared);
        Ok::<(), RuntimeError>(())
    })?;
    Ok(manifests)
}

/// What sources passed over, and rows that plugins could not take, since the last question, with what is needed to find and replay them.
fn dead_letters(run: &mut QueryRun, entry: &OffsetEntry) -> String {
    let mut lines = String::new();
    for running in &mut run.sources {
        for letter in running.source.take_dead_letters() {
            let line = serde_json::json!({
                "batchId": entry.batch.0,
                "source": running.name,
                "place": letter.place,
                "message": letter.reason,
                "sources": entry.sources,
            });
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
    }
    for plugin in &run.plugins {
        for letter in plugin.slot.take_dead_letters() {
            let line = serde_json::json!({
                "batchId": entry.batch.0,
                "plugin": plugin.slot.name(),
                "digest": letter.digest.to_string(),
                "function": letter.function,
                "message": letter.message,
                "arguments": letter.arguments,
                "sources": entry.sources,
            });
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
    }
    lines
}

/// Keeps the dead letters of a batch. Written over when it is run again: the rows are the same.
fn keep_dead_letters(run: &QueryRun, entry: &OffsetEntry, lines: String) -> Result<(), RuntimeError> {
    if lines.is_empty() {
        return Ok(());
    }
    let path = format!("dead-letters/{}.jsonl", entry.batch);
    let kept = run.checkpoint.files().put_over(&path, Bytes::from(lines));
    kept.map_err(|source| RuntimeError::Keep { what: "dead letters".into(), source })
}

fn advance_watermark(run: &mut QueryRun, seen: &[EventTimeSeen], batch_time_ms: i64) -> Option<i64> {
    if !run.has_watermark {
        return None;
    }
    for node in seen {
        if let Some(max) = node.advance_us {
            run.tracker.observe(&node.node, max, node.delay_us, batch_time_ms);
        }
    }
    Some(run.tracker.advance(batch_time_ms).0)
}

/// The batch is in the commit log: memory follows.
fn done(
    run: &mut QueryRun,
    entry: &OffsetEntry,
    manifests: BTreeMap<OperatorUid, Vec<StateManifest>>,
) -> Result<(), RuntimeError> {
    run.pipeline.for_each_stateful(|operator| {
        operator.commit();
        Ok::<(), RuntimeError>(())
    })?;
    for running in &mut run.sources {
        if let Some(range) = entry.sources.get(&running.name) {
            running.at = range.end.clone().map(Offset);
        }
    }
    run.unfinished = None;
    run.next = entry.batch.next();
    run.last_batch_time_ms = entry.batch_time_ms;
    if let Some(ms) = entry.watermark_ms {
        run.late = Watermark(ms);
    }
    run.retained.push_back((entry.batch, manifests));
    for request in run.put_off.drain(..) {
        run.swaps.push(request);
    }
    purge(run, entry.batch)
}

/// Forgets batches beyond the retention, some at a time, because folders must be listed for it: entries first, then the
/// files that only they named.
fn purge(run: &mut QueryRun, batch: BatchId) -> Result<(), RuntimeError> {
    let retained = run.settings.batches_retained;
    if batch.0 < retained || !batch.0.is_multiple_of((retained / 2).clamp(10, 50)) {
        return Ok(());
    }
    let running = run.plugins.iter().map(|plugin| plugin.slot.digest());
    let candidates = run.plugins.iter().filter_map(|plugin| plugin.canary.as_ref());
    let mut in_use: Vec<Digest> = running.chain(candidates.map(|canary| canary.pin.candidate)).collect();
    // A rollback goes back to these, however long ago that was.
    in_use.extend(run.checkpoint.swap_log().newest_from()?);
    let purged = run.checkpoint.purge(run.swaps.held().map_or(batch, |held| held.min(batch)), &in_use)?;
    while run.retained.front().is_some_and(|(id, _)| *id < purged.oldest) {
        run.retained.pop_front();
    }
    let (retained, checkpoint) = (&run.retained, &run.checkpoint);
    run.pipeline.for_each_stateful(|operator| {
        let mut per_partition = vec![Vec::new(); operator.partitions() as usize];
        for (_, manifests) in retained {
            // Batches before a repartition may have more partitions than there are now.
            let files = manifests.get(operator.uid()).into_iter().flatten();
            per_partition.iter_mut().zip(files).for_each(|(kept, manifest)| kept.push(manifest));
        }
        operator.retain(&per_partition)?;
        retain_former(checkpoint, operator.uid(), operator.partitions(), retained)
    })
}

/// Deletes the files of partitions that an operator no longer has, as far as no retained batch names them.
fn retain_former(
    checkpoint: &Checkpoint,
    uid: &OperatorUid,
    partitions: u32,
    retained: &RetainedFiles,
) -> Result<(), RuntimeError> {
    let current = retained.back().and_then(|(_, manifests)| of_partition(manifests, uid, 0));
    let version = current.map_or(0, |manifest| manifest.version);
    let folder = format!("state/{uid}");
    let failed = |source| RuntimeError::Keep { what: format!("only the needed files of `{folder}`"), source };
    for name in checkpoint.files().list_folders(&folder).map_err(failed)? {
        let Ok(partition) = name.parse::<u32>() else { continue };
        if partition < partitions {
            continue;
        }
        let named: Vec<_> =
            retained.iter().filter_map(|(_, manifests)| of_partition(manifests, uid, partition)).collect();
        let empty = StateManifest { version, files: Vec::new() };
        offline_store::open(checkpoint, uid, partition, &empty, ("retention", &offline_store::budget()))?
            .retain(&named)?;
    }
    Ok(())
}

/// The state of one partition of an operator, if the batch had it.
fn of_partition<'a>(
    manifests: &'a BTreeMap<OperatorUid, Vec<StateManifest>>,
    uid: &OperatorUid,
    partition: u32,
) -> Option<&'a StateManifest> {
    manifests.get(uid)?.get(partition as usize)
}

/// Measures the steps of a batch.
struct Timer {
    began_ms: i64,
    mark_ms: i64,
    durations: BTreeMap<String, u64>,
}

impl Timer {
    fn new(run: &QueryRun, definition: &Definition) -> Self {
        let durations = BTreeMap::from([("latestOffset".to_owned(), definition.latest_ms)]);
        Self { began_ms: definition.trigger_ms, mark_ms: run.clock.now_ms(), durations }
    }

    fn step(&mut self, run: &QueryRun, name: &str) {
        let now = run.clock.now_ms();
        self.durations.insert(name.to_owned(), (now - self.mark_ms).max(0) as u64);
        self.mark_ms = now;
    }
}

fn progress(
    run: &mut QueryRun,
    definition: &Definition,
    mut timer: Timer,
    rows: &BTreeMap<String, u64>,
    (seen, late): (&[EventTimeSeen], &[LateRows]),
    report: &SinkReport,
) -> Progress {
    let entry = &definition.entry;
    let duration = (run.clock.now_ms() - timer.began_ms).max(0) as u64;
    timer.durations.insert("triggerExecution".to_owned(), duration);
    let since_last = run.last_trigger_ms.map_or(0, |last| (definition.trigger_ms - last).max(0) as u64);
    let total: u64 = rows.values().sum();
    let mut state_operators = Vec::new();
    let is_limited = run.budget.is_some();
    let visited: Result<(), Infallible> = run.pipeline.for_each_stateful(|operator| {
        let partitions = operator.partitions();
        let (uid, metrics) = (operator.uid().as_str(), operator.metrics());
        let mut shown = StateOperatorProgress::new(uid, partitions, &metrics, is_limited);
        let counts = late.iter().filter(|late| late.operator == *operator.uid()).map(|late| late.count);
        if let Some(count) = counts.reduce(|one, other| one + other) {
            shown.custom_metrics.insert("numLateRows".to_owned(), count);
        }
        state_operators.push(shown);
        Ok(())
    });
    match visited {
        Ok(()) => {}
        Err(never) => match never {},
    }
    let sources = run.sources.iter_mut().map(|running| {
        let range = entry.sources.get(&running.name).cloned().unwrap_or_default();
        let rows = rows.get(&running.name).copied().unwrap_or(0);
        SourceProgress {
            name: running.name.clone(),
            description: running.source.description(),
            latest_offset: running.source.newest_offset().map(|offset| offset.0).or_else(|| range.end.clone()),
            metrics: running.source.metrics(range.end.clone().map(Offset).as_ref()),
            start_offset: range.start,
            end_offset: range.end,
            num_input_rows: rows,
            input_rows_per_second: rate(rows, since_last),
            processed_rows_per_second: rate(rows, duration),
        }
    });
    Progress {
        id: run.id,
        run_id: run.run_id,
        name: run.name.clone(),
        timestamp: iso_ms(definition.trigger_ms),
        batch_id: entry.batch.0,
        batch_duration: duration,
        num_input_rows: total,
        input_rows_per_second: rate(total, since_last),
        processed_rows_per_second: rate(total, duration),
        duration_ms: timer.durations,
        event_time: event_time(entry, seen),
        state_operators,
        sources: sources.collect(),
        sink: SinkProgress { description: run.sink.description(), num_output_rows: report.rows as i64 },
        plugins: run.plugins.iter().map(plugin_progress).collect(),
        tenant: run.plugins.iter().find_map(tenant_progress),
    }
}

fn plugin_progress(plugin: &super::open::RunningPlugin) -> PluginProgress {
    let metrics = plugin.slot.take_metrics();
    PluginProgress {
        name: plugin.slot.name().to_owned(),
        digest: plugin.slot.digest().to_string(),
        calls: metrics.calls,
        rows: metrics.rows,
        faults: metrics.faults,
        time_us: metrics.time_us,
        cpu_us: metrics.cpu_us,
        memory_bytes: metrics.memory_bytes,
        traps: metrics.traps,
        throttled_us: metrics.throttled_us,
        canary: plugin.canary.as_ref().map(canary::progress),
        swap_refused: plugin.swap_refused.clone(),
    }
}

fn tenant_progress(plugin: &super::open::RunningPlugin) -> Option<TenantProgress> {
    let (name, spent) = plugin.slot.tenant_spent()?;
    let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Some(TenantProgress {
        name,
        calls: spent.calls,
        rows: spent.rows,
        cpu_us: micros(spent.cpu),
        memory_bytes: spent.memory_bytes,
        memory_high_bytes: spent.memory_high_bytes,
        instances: spent.instances,
        traps: spent.traps,
        throttled_us: micros(spent.throttled),
    })
}

fn event_time(entry: &OffsetEntry, seen: &[EventTimeSeen]) -> BTreeMap<String, String> {
    let mut map = BTreeMap::new();
    let Some(watermark) = entry.watermark_ms else { return map };
    map.insert("watermark".to_owned(), iso_ms(watermark));
    let ranges: Vec<_> = seen.iter().filter_map(|node| node.range_us.map(|range| (node.rows, range))).collect();
    let count: u64 = ranges.iter().map(|(rows, _)| rows).sum();
    if count > 0 {
        let to_ms = |us: i64| iso_ms(us.div_euclid(1000));
        let min = ranges.iter().map(|(_, (min, _, _))| *min).min().unwrap_or(0);
        let max = ranges.iter().map(|(_, (_, max, _))| *max).max().unwrap_or(0);
        let sum: i128 = ranges.iter().map(|(_, (_, _, sum))| *sum).sum();
        let average = i64::try_from(sum / i128::from(count)).unwrap_or(0);
        map.insert("min".to_owned(), to_ms(min));
        map.insert("max".to_owned(), to_ms(max));
        map.insert("avg".to_owned(), to_ms(average));
    }
    let ahead: u64 = seen.iter().map(|node| node.rows_ahead).sum();
    if ahead > 0 {
        map.insert("rowsAhead".to_owned(), ahead.to_string());
    }
    map
}
