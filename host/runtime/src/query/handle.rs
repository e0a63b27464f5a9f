//! A query on a thread of its own, and the handle to it (Spark's `StreamingQuery`).

use super::border::Remake;
use super::canary::CanaryTerms;
use super::progress::{Progress, iso_ms};
use super::run::QueryRun;
use super::swap::{EndRequest, Hold, SwapGrounds, SwapQueue, SwapRequest, Swapped};
use super::tap::Tap;
use crate::migration::Beside;
use crate::query_file::QueryFileError;
use crate::streams::StreamingQueryManager;
use crate::verdict::{Question, Shadow, VerdictReport, judge};
use crate::{QuerySpec, RuntimeError, Session};
use millstream_checkpoint::Checkpoint;
use millstream_common::{BatchId, Digest, Fault, Hint, QueryId, RunId, StopSignal, Trigger, guarded};
use millstream_state::{LogStore, MemoryBudget, StoreOptions};
use millstream_wasm::{PluginHost, PluginSlot};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a batch is tried again after an error that may pass.
const OUTSIDE_RETRIES: u32 = 3;
/// How long the first retry waits; each further one twice as long.
const OUTSIDE_BACKOFF: Duration = Duration::from_millis(200);
/// The name of the thread that migrates state beside a query.
const MIGRATION_THREAD: &str = "migration";
/// The longest wait without a look at the stop signal.
const NAP: Duration = Duration::from_millis(20);

/// What a query does right now (Spark's `StreamingQueryStatus`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryStatus {
    /// For people.
    pub message: String,
    /// Whether the last look found new rows.
    pub is_data_available: bool,
    /// Whether a batch is running.
    pub is_trigger_active: bool,
}

#[derive(Default)]
struct Shown {
    status: QueryStatus,
    recent: VecDeque<Progress>,
    error: Option<Arc<RuntimeError>>,
    is_over: bool,
    /// Looks for something to do that have begun, and the number of the last one that found nothing.
    looks_begun: u64,
    looks_idle: u64,
    explain: String,
}

struct Shared {
    shown: Mutex<Shown>,
    changed: Condvar,
    stop: StopSignal,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut Shown)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

/// Called with the progress of every batch, on the query's thread.
pub type ProgressListener = Box<dyn FnMut(&Progress) + Send>;

/// What a candidate is judged by.
struct Ground {
    session: Session,
    spec: QuerySpec,
    checkpoint: Checkpoint,
    /// How the run opens its stores.
    changelogs_before_snapshot: usize,
    budget: Option<Arc<MemoryBudget>>,
}

/// A running query. Cheap to clone; clones are handles to the same run.
///
/// Dropping the handle does not stop the query; [`stop`](Self::stop) does.
#[derive(Clone)]
pub struct StreamingQuery {
    id: QueryId,
    run_id: RunId,
    name: Option<String>,
    shared: Arc<Shared>,
    swaps: SwapQueue,
    tap: Tap,
    /// Where the plugins stand, for comparing a candidate with what runs.
    slots: Vec<Arc<PluginSlot>>,
    host: Arc<PluginHost>,
    /// What a candidate is judged by.
    ground: Arc<Ground>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl StreamingQuery {
    /// Opens the query, so that everything that can be refused is refused here, and starts its thread.
    ///
    /// # Errors
    /// As [`QueryRun::open`], and when there is no thread to be had.
    pub fn start(
        session: &Session,
        spec: QuerySpec,
        mut listener: Option<ProgressListener>,
    ) -> Result<Self, RuntimeError> {
        let streams = session.streams();
        streams.check_name(spec.name.as_deref())?;
        let stop = StopSignal::new();
        let mut run = QueryRun::open(session, spec.clone(), stop.clone())?;
        let ground = Ground {
            session: session.clone(),
            // With the columns that were found when the run began.
            spec: QuerySpec { streams: run.spec.streams.clone(), ..spec },
            checkpoint: run.checkpoint.clone(),
            changelogs_before_snapshot: run.settings.changelogs_before_snapshot,
            budget: run.budget.clone(),
        };
        let shown = Shown { explain: run.explain(), ..Shown::default() };
        let shared = Arc::new(Shared { shown: Mutex::new(shown), changed: Condvar::new(), stop });
        let query = Self {
            id: run.id,
            run_id: run.run_id,
            name: run.name.clone(),
            shared: Arc::clone(&shared),
            swaps: run.swaps.clone(),
            tap: run.tap.clone(),
            slots: run.plugins.iter().map(|plugin| Arc::clone(&plugin.slot)).collect(),
            host: Arc::clone(&run.host),
            ground: Arc::new(ground),
            thread: Arc::default(),
        };
        let name = format!("query-{}", run.name.as_deref().unwrap_or("unnamed"));
        let of_session = streams.clone();
        let body = move || {
            let mut run = run;
            let (id, run_id) = (run.id, run.run_id);
            // A panic, of the program's listener say, is a failure as any other: whoever waits must hear of it.
            let driven = guarded(|| drive(&mut run, &shared, &mut listener, &of_session));
            let error = match driven.unwrap_or_else(|panicked| Err(panicked.into())) {
                Ok(()) => guarded(|| run.close()).err().map(|panicked| Arc::new(panicked.into())),
                Err(error) => {
                    run.swaps.close("the query has failed");
                    if let Err(panicked) = guarded(|| drop(run)) {
                        tracing::error!("what was left of the query could not be put away: {panicked}");
                    }
                    Some(Arc::new(error))
                }
            };
            shared.update(|shown| shown.error.clone_from(&error));
            // Whoever waited for the end finds it in the session as well.
            of_session.terminated(id, run_id, error);
            shared.update(|shown| {
                shown.is_over = true;
                shown.status = QueryStatus { message: "stopped".into(), ..QueryStatus::default() };
            });
        };
        streams.started(&query, iso_ms(session.clock().now_ms()));
        let thread = std::thread::Builder::new().name(name).spawn(body).map_err(|error| {
            let error = Arc::new(RuntimeError::Thread { reason: error.to_string() });
            streams.terminated(query.id, query.run_id, Some(Arc::clone(&error)));
            RuntimeError::Thread { reason: error.to_string() }
        })?;
        *query.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(query)
    }

    /// The query's identity: lives as long as its checkpoint.
    pub fn id(&self) -> QueryId {
        self.id
    }

    /// The identity of this run.
    pub fn run_id(&self) -> RunId {
        self.run_id
    }

    /// The name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether it still runs.
    pub fn is_active(&self) -> bool {
        !self.shared.lock().is_over
    }

    /// What it does right now.
    pub fn status(&self) -> QueryStatus {
        self.shared.lock().status.clone()
    }

    /// The progress of the last batch.
    pub fn last_progress(&self) -> Option<Progress> {
        self.shared.lock().recent.back().cloned()
    }

    /// The progress of the last batches, oldest first.
    pub fn recent_progress(&self) -> Vec<Progress> {
        self.shared.lock().recent.iter().cloned().collect()
    }

    /// Why it failed, if it did.
    pub fn exception(&self) -> Option<Arc<RuntimeError>> {
        self.shared.lock().error.clone()
    }

    /// Its plan, operators, state and plugins.
    pub fn explain(&self) -> String {
        self.shared.lock().explain.clone()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Why it failed.
    pub fn await_termination(&self) -> Result<(), Arc<RuntimeError>> {
        self.wait(None, |shown| shown.is_over);
        self.exception().map_or(Ok(()), Err)
    }

    /// Waits for its end, at most that long; answers whether it has ended.
    ///
    /// # Errors
    /// Why it failed.
    pub fn await_termination_for(&self, timeout: Duration) -> Result<bool, Arc<RuntimeError>> {
        let is_over = self.wait(Some(timeout), |shown| shown.is_over);
        match self.exception() {
            Some(error) if is_over => Err(error),
            _ => Ok(is_over),
        }
    }

    /// Waits until everything that was available at the call has been processed and committed.
    ///
    /// # Errors
    /// Why it failed meanwhile.
    pub fn process_all_available(&self) -> Result<(), Arc<RuntimeError>> {
        let begun = self.shared.lock().looks_begun;
        self.wait(None, |shown| shown.is_over || shown.looks_idle > begun);
        self.exception().map_or(Ok(()), Err)
    }

    /// Asks it to stop after the running batch and waits for that.
    ///
    /// # Errors
    /// Why it failed, if it had.
    pub fn stop(&self) -> Result<(), Arc<RuntimeError>> {
        self.ask_to_stop();
        let outcome = self.await_termination();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
            && thread.join().is_err()
        {
            tracing::error!("the query's thread panicked");
        }
        outcome
    }

    /// Asks it to stop after the running batch and does not wait.
    pub fn ask_to_stop(&self) {
        self.shared.stop.set();
    }

    /// Compares a component with the running plugin by its functions only, and lets it wait for the next border; the
    /// receiver gets the batch from which on it runs, or why it could not be put in place. Whoever wants to know more
    /// before asks for a verdict.
    ///
    /// # Errors
    /// When the query has no such plugin, the bytes are no component of our world, or its functions are not those that
    /// run: nothing has changed then.
    pub fn swap(&self, plugin: &str, bytes: Vec<u8>) -> Result<Receiver<Result<Swapped, String>>, RuntimeError> {
        self.swap_on(plugin, bytes, SwapGrounds::unasked("swap"), None)
    }

    /// As [`swap`](Self::swap), and keeps in the swap log who wanted it and what was said before. With `remake` the state is
    /// made anew at the border, by a batch of its own.
    ///
    /// # Errors
    /// As there.
    pub fn swap_on(
        &self,
        plugin: &str,
        bytes: Vec<u8>,
        grounds: SwapGrounds,
        remake: Option<Remake>,
    ) -> Result<Receiver<Result<Swapped, String>>, RuntimeError> {
        let component = self.host.load(plugin, &bytes)?;
        // At a border where the state is made anew the query is planned anew as well.
        if remake.is_none() {
            self.slot(plugin)?.check_swap(&component)?;
        }
        let (reply, answer) = channel();
        let request = SwapRequest::new(plugin.to_owned(), (component, bytes), grounds, reply);
        let request = SwapRequest { remake, ..request };
        if request.remake != Some(Remake::Migrate) {
            self.swaps.push(request);
            return Ok(answer);
        }
        // Its state is migrated beside the query first, on a thread that dies with its own work.
        let query = self.clone();
        let spawned = std::thread::Builder::new().name(MIGRATION_THREAD.into()).spawn(move || query.migrate(request));
        spawned.map_err(|error| RuntimeError::Thread { reason: error.to_string() })?;
        Ok(answer)
    }

    /// Migrates the state for a component beside the query and lets it wait for the border; one whose state cannot be
    /// migrated is refused here.
    fn migrate(&self, mut request: SwapRequest) {
        match self.beside(&request) {
            Ok((beside, hold)) => {
                (request.beside, request.hold) = (Some(beside), Some(hold));
                self.swaps.push(request);
            }
            Err(error) => {
                let reason = millstream_common::describe_chain(&error);
                self.note_refused(&request.plugin, &reason);
                request.refuse(reason);
            }
        }
    }

    fn beside(&self, request: &SwapRequest) -> Result<(Beside, Hold), RuntimeError> {
        let Ground { session, spec, checkpoint, changelogs_before_snapshot, budget } = &*self.ground;
        let question =
            Question { session, checkpoint, spec: Some(spec), plugin: &request.plugin, batches: 0, restores: false };
        let writer = uuid::Uuid::new_v4().simple().to_string();
        let newest = checkpoint.commit_log().batches()?.last().copied().unwrap_or(BatchId::FIRST);
        let hold = self.swaps.hold(newest);
        let beside = question.migrate_beside(&request.component, &request.bytes, &|uid, partition, manifest| {
            let options = StoreOptions {
                files: Arc::new(checkpoint.state_files(uid, partition)),
                writer: writer.clone(),
                changelogs_before_snapshot: *changelogs_before_snapshot,
                budget: budget.clone(),
            };
            LogStore::open(options, manifest)
        })?;
        Ok((beside, hold))
    }

    /// Lets a component compute a share of the keys from the next border on, whose rows go out as all others do. After so
    /// many batches it takes over by itself; when it fails, or costs too much, it is given up by itself. The receiver gets
    /// its first batch, or why it could not begin.
    ///
    /// # Errors
    /// When the query has no such plugin, or a component that needs other state or does not fit: nothing has changed then.
    pub fn canary(
        &self,
        plugin: &str,
        bytes: Vec<u8>,
        grounds: SwapGrounds,
        terms: CanaryTerms,
    ) -> Result<Receiver<Result<Swapped, String>>, RuntimeError> {
        let component = self.host.load(plugin, &bytes)?;
        self.slot(plugin)?.check_swap(&component)?;
        let (reply, answer) = channel();
        let request = SwapRequest::new(plugin.to_owned(), (component, bytes), grounds, reply);
        self.swaps.push(SwapRequest { canary: Some(terms), ..request });
        Ok(answer)
    }

    /// Ends the canary of a plugin at the next border: the code that runs computes all keys again.
    ///
    /// # Errors
    /// When the query has no such plugin.
    pub fn end_canary(&self, plugin: &str) -> Result<Receiver<Result<Swapped, String>>, RuntimeError> {
        self.slot(plugin)?;
        let (reply, answer) = channel();
        self.swaps.end_canary(EndRequest { plugin: plugin.to_owned(), reply });
        Ok(answer)
    }

    /// The plugin that had a canary in the last batch, and its candidate.
    pub fn running_canary(&self) -> Option<(String, Digest)> {
        self.slots.iter().find_map(|slot| Some((slot.name().to_owned(), slot.candidate()?.digest())))
    }

    /// A component by the name that a person gave it: a file, or a reference to a package. Where the host file demands a
    /// signature, it has a good one.
    ///
    /// # Errors
    /// When it cannot be had, or is not let in.
    pub fn component(&self, named: &str) -> Result<Vec<u8>, QueryFileError> {
        self.ground.session.packages().component(named)
    }

    /// The verdict on a component, which has not to be one. The query goes on meanwhile; the last `batches` batches (by
    /// default as many as its settings say) are run again beside it.
    ///
    /// # Errors
    /// When the query has no such plugin, or its checkpoint cannot be read.
    pub fn verdict(&self, plugin: &str, bytes: &[u8], batches: Option<u64>) -> Result<VerdictReport, RuntimeError> {
        self.judge(plugin, bytes, batches, false)
    }

    /// The verdict on a component that is to make its state again, from before it last stopped.
    ///
    /// # Errors
    /// As [`verdict`](Self::verdict).
    pub fn verdict_of_restoring(
        &self,
        plugin: &str,
        bytes: &[u8],
        batches: Option<u64>,
    ) -> Result<VerdictReport, RuntimeError> {
        self.judge(plugin, bytes, batches, true)
    }

    fn judge(
        &self,
        plugin: &str,
        bytes: &[u8],
        batches: Option<u64>,
        restores: bool,
    ) -> Result<VerdictReport, RuntimeError> {
        self.slot(plugin)?;
        let Ground { session, spec, checkpoint, .. } = &*self.ground;
        let batches = batches.unwrap_or(spec.settings.dry_run_batches);
        judge(&Question { session, checkpoint, spec: Some(spec), plugin, batches, restores }, bytes)
    }

    /// Lets a component run beside the query over its next `batches` batches, on a fork of its checkpoint; nothing that it
    /// gives reaches the sink. Blocks until then. What it showed is added to the verdict.
    ///
    /// # Errors
    /// When the query ends before.
    pub fn shadow(&self, mut report: VerdictReport, bytes: &[u8], batches: u64) -> Result<VerdictReport, RuntimeError> {
        let Ground { session, spec, checkpoint, .. } = &*self.ground;
        let live = self.tap.open();
        let migrates = !report.migration.is_empty();
        let shadow = Shadow { session, spec, checkpoint, plugin: &report.plugin, component: bytes, migrates };
        let (seen, findings) = shadow.run(&live, batches, &|| !self.is_active())?;
        report.add_shadow(seen, findings);
        Ok(report)
    }

    /// Takes note that a swap was refused before it waited for a border: the plugin's progress tells it.
    pub fn note_refused(&self, plugin: &str, reason: &str) {
        self.swaps.refused(plugin, reason);
    }

    /// A component that a plugin ran earlier, and its bytes: the one before the last swap, or the one whose digest begins
    /// with `to`.
    ///
    /// # Errors
    /// When the query has no such plugin, nothing was ever swapped, or there is no such component.
    pub fn earlier_component(&self, plugin: &str, to: Option<&str>) -> Result<(Digest, Vec<u8>), RuntimeError> {
        self.slot(plugin)?;
        earlier_component(&self.ground.checkpoint, plugin, to)
    }

    fn slot(&self, plugin: &str) -> Result<&Arc<PluginSlot>, RuntimeError> {
        self.slots.iter().find(|slot| slot.name() == plugin).ok_or_else(|| {
            let known = self.slots.iter().map(|slot| slot.name()).collect::<Vec<_>>().join(", ");
            let hint = if known.is_empty() { "the query has no plugins".into() } else { format!("it has {known}") };
            RuntimeError::Invalid { reason: format!("the query has no plugin `{plugin}`"), hint: Some(hint) }
        })
    }

    /// The names of its plugins.
    pub fn plugins(&self) -> Vec<String> {
        self.slots.iter().map(|slot| slot.name().to_owned()).collect()
    }

    fn wait(&self, timeout: Option<Duration>, done: impl Fn(&Shown) -> bool) -> bool {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut shown = self.shared.lock();
        while !done(&shown) {
            let left = deadline.map_or(Duration::from_millis(200), |deadline| {
                deadline.saturating_duration_since(Instant::now()).min(Duration::from_millis(200))
            });
            if left.is_zero() {
                return false;
            }
            shown = self.shared.changed.wait_timeout(shown, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// A component that a plugin ran earlier, as far as the checkpoint has it.
pub(crate) fn earlier_component(
    checkpoint: &Checkpoint,
    plugin: &str,
    to: Option<&str>,
) -> Result<(Digest, Vec<u8>), RuntimeError> {
    let hint = Some("`millstream plugin history` shows which component ran since when".to_owned());
    let invalid = |reason: String| RuntimeError::Invalid { reason, hint: hint.clone() };
    let swaps = checkpoint.swap_log().all()?;
    let of_plugin: Vec<Digest> =
        swaps.iter().rev().filter_map(|entry| entry.swaps.get(plugin)).flat_map(|swap| [swap.from, swap.to]).collect();
    let found = match to {
        None => of_plugin.first().copied(),
        Some(prefix) => of_plugin.iter().copied().find(|digest| digest.to_string().starts_with(prefix)),
    };
    let digest = found.ok_or_else(|| match to {
        None => invalid(format!("plugin `{plugin}` cannot be rolled back: it was never swapped")),
        Some(prefix) => invalid(format!("plugin `{plugin}` never ran a component whose digest begins with `{prefix}`")),
    })?;
    Ok((digest, checkpoint.plugins().get(&digest)?.to_vec()))
}

/// The loop: trigger by trigger until the trigger is done or stopping was asked for.
fn drive(
    run: &mut QueryRun,
    shared: &Shared,
    listener: &mut Option<ProgressListener>,
    streams: &StreamingQueryManager,
) -> Result<(), RuntimeError> {
    let mut told_ms = run.clock.now_ms();
    while !run.stop.is_set() {
        let began_ms = run.clock.now_ms();
        let was_unfinished = run.has_unfinished();
        shared.update(|shown| {
            shown.looks_begun += 1;
            shown.status.is_trigger_active = true;
            shown.status.message = "processing new data".into();
        });
        let progress = match run_with_retries(run) {
            // It has waited for something outside, and is not to wait any longer: the next start runs this batch again.
            Err(error) if run.stop.is_set() && error.fault() == Fault::Outside => {
                let text = millstream_common::describe_chain(&error);
                tracing::warn!("stopped in the middle of a batch, which the next start runs again: {text}");
                return Ok(());
            }
            outcome => outcome?,
        };
        let has_run = progress.is_some();
        if let Some(progress) = progress {
            if let Some(listener) = listener {
                listener(&progress);
            }
            streams.progressed(&progress);
            told_ms = run.clock.now_ms();
            let keep = run.settings.recent_progress;
            shared.update(|shown| {
                shown.recent.push_back(progress);
                while shown.recent.len() > keep {
                    shown.recent.pop_front();
                }
            });
        }
        shared.update(|shown| {
            shown.status.is_trigger_active = false;
            shown.status.is_data_available = has_run;
            if !has_run {
                shown.looks_idle = shown.looks_begun;
                shown.status.message = "waiting for data to arrive".into();
            }
        });
        let now = run.clock.now_ms();
        if !has_run && now.saturating_sub(told_ms) >= run.settings.idle_progress_ms as i64 {
            streams.idle(run.id, run.run_id, iso_ms(now));
            told_ms = now;
        }
        let done = match run.trigger {
            Trigger::Once => !was_unfinished,
            Trigger::AvailableNow => !has_run,
            Trigger::Default | Trigger::ProcessingTime(_) => false,
        };
        if done {
            return Ok(());
        }
        wait_for_trigger(run, began_ms, has_run);
    }
    Ok(())
}

/// Waits until the next batch may start: the trigger's time, and a polling delay when there was nothing to do.
fn wait_for_trigger(run: &QueryRun, began_ms: i64, has_run: bool) {
    let now = run.clock.now_ms();
    let mut until = run.trigger.next_start_ms(began_ms, now);
    if !has_run {
        until = until.max(now + run.settings.polling_delay_ms as i64);
    }
    nap_until(run, until);
}

/// Sleeps until then, or until the query is to stop.
fn nap_until(run: &QueryRun, until_ms: i64) {
    while !run.stop.is_set() {
        let left = until_ms - run.clock.now_ms();
        if left <= 0 {
            return;
        }
        run.clock.sleep(NAP.min(Duration::from_millis(left as u64)));
    }
}

/// Runs the next batch; after an error that may pass it is tried again, with growing pauses.
fn run_with_retries(run: &mut QueryRun) -> Result<Option<Progress>, RuntimeError> {
    let mut pause = OUTSIDE_BACKOFF;
    for attempt in 1..=OUTSIDE_RETRIES {
        match run.run_next() {
            Err(error) if error.may_pass() && !run.stop.is_set() => {
                let text = millstream_common::describe_chain(&error);
                tracing::warn!("attempt {attempt} failed, trying again in {pause:?}: {text}");
                nap_until(run, run.clock.now_ms() + pause.as_millis() as i64);
                pause *= 2;
            }
            outcome => return outcome,
        }
    }
    run.run_next()
}
