//! One life of a query, driven batch by batch.

use super::batch::{Definition, execute};
use super::border::{self, Remake};
use super::canary::{self, CanaryTerms};
use super::input_digest::InputPins;
use super::late_rows::{self, LateSink};
use super::open::{self, RunningPlugin, RunningSource};
use super::planned::{Components, Planned};
use super::prepared::{self, Prepared, Remains};
use super::progress::Progress;
use super::recovery::{self, Recovered, RetainedFiles};
use super::restart::{self, Later};
use super::said::SaidQuery;
use super::swap::{self, EndRequest, SwapGrounds, SwapQueue, SwapRequest, Swapped, Unlogged};
use super::tables;
use super::tap::Tap;
use crate::{QuerySpec, RuntimeError, Session, Settings, repartition};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_checkpoint::{
    CanaryRecord, Checkpoint, CheckpointError, CommitEntry, ConnectorPin, Lease, LeaseHolder, OffsetEntry, OffsetRange,
    PluginPin, ResumePoint, StateSchemas,
};
use millstream_common::{
    BatchId, BatchTime, Clock, Digest, DurableFiles, Hint, OperatorUid, OutputMode, QueryId, ReadLimit, RunId,
    ScopedFiles, StopSignal, Trigger, Watermark, WatermarkTracker,
};
use millstream_operators::{Pipeline, StateOpener};
use millstream_plan::{SourceSlot, StaticTable, StreamingPlan};
use millstream_sink::{Sink, SinkContext};
use millstream_source::Offset;
use millstream_state::{LogStore, MemoryBudget, StateError, StateManifest, StateStore, StoreOptions};
use millstream_wasm::{BatchStamp, PluginHost};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// One life of a query: from recovery to stop, one batch per call of [`run_next`](Self::run_next).
///
/// [`StreamingQuery`](super::StreamingQuery) drives it on a thread of its own; tests and tools drive it themselves.
/// Dropping it ends the run where it stands, as a crash would, except that connections are closed.
pub struct QueryRun {
    pub(super) name: Option<String>,
    pub(super) id: QueryId,
    pub(super) run_id: RunId,
    pub(super) mode: OutputMode,
    pub(super) trigger: Trigger,
    pub(super) settings: Settings,
    /// The memory that state may take, if it is limited.
    pub(super) budget: Option<Arc<MemoryBudget>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) stop: StopSignal,
    pub(super) checkpoint: Checkpoint,
    pub(super) lease: Lease,
    pub(super) sources: Vec<RunningSource>,
    /// What each source is, as every entry of the offset log says.
    pub(super) connectors: BTreeMap<String, ConnectorPin>,
    pub(super) slots: Vec<SourceSlot>,
    pub(super) pipeline: Pipeline,
    /// What the state of each operator is made of; the same for the whole run.
    state_schemas: StateSchemas,
    pub(super) schema: SchemaRef,
    pub(super) plugins: Vec<RunningPlugin>,
    pub(super) host: Arc<PluginHost>,
    pub(super) sink: Box<dyn Sink>,
    pub(super) late_sink: Option<LateSink>,
    /// What the sink holds ready.
    pub(super) prepared: Option<Prepared>,
    pub(super) batch_time: BatchTime,
    pub(super) has_watermark: bool,
    pub(super) tracker: WatermarkTracker,
    /// The eviction watermark of the last batch: the next one judges late rows by it.
    pub(super) late: Watermark,
    pub(super) next: BatchId,
    pub(super) last_batch_time_ms: i64,
    /// A batch that is in the offset log and not done.
    pub(super) unfinished: Option<Arc<OffsetEntry>>,
    /// The files of the batches that can be returned to, per operator.
    pub(super) retained: RetainedFiles,
    pub(super) swaps: SwapQueue,
    /// Where somebody may look at batches.
    pub(super) tap: Tap,
    /// Rows of the next batch that were handed over.
    pub(super) fed: Option<Vec<Vec<RecordBatch>>>,
    /// What the last batch that was read had of sources that are on their word.
    pub(super) read_before: Option<(BatchId, InputPins)>,
    pub(super) unlogged: Vec<Unlogged>,
    /// A border that is defined and whose entry of the commit log is still to be written.
    pub(super) unended: Option<CommitEntry>,
    /// Whether the swap log may tell of the next batch what a border wanted that was not defined.
    pub(super) has_undone_swaps: bool,
    /// Swaps of the query file that failed for what may pass: they wait for the border after the next batch.
    pub(super) put_off: Vec<SwapRequest>,
    /// What became of canaries since the last entry of the offset log.
    pub(super) unlogged_canaries: Vec<(String, CanaryRecord)>,
    /// On a fork: the plugins whose component is not that of the log. They have no canary.
    pub(super) given: BTreeSet<String>,
    pub(super) last_trigger_ms: Option<i64>,
    pub(super) is_bounded_read: bool,
    pub(super) logical: String,
    /// What the query says, as the checkpoint keeps it.
    pub(super) said: Digest,
    /// What the query was made of: a border at which state is made anew plans it again.
    pub(super) session: Session,
    pub(super) spec: QuerySpec,
    pub(super) tables: Vec<StaticTable>,
    /// When the tables were read last that change.
    pub(super) tables_read_ms: BTreeMap<String, i64>,
    /// Keeps a checkpoint that lives as long as the run.
    temporary: Option<tempfile::TempDir>,
}

impl QueryRun {
    /// Opens everything and recovers; runs no batch.
    ///
    /// # Errors
    /// When the query, a plugin, the checkpoint, a source or the sink does not fit; nothing has been changed then
    /// but the lease, and a `metadata` file in a new checkpoint.
    pub fn open(session: &Session, spec: QuerySpec, stop: StopSignal) -> Result<Self, RuntimeError> {
        let (place, temporary) = checkpoint_place(&spec)?;
        let files = session.open_checkpoint(&place, &spec.checkpoint_options)?;
        let ground = Ground { place, files, temporary, components: None, is_fed: false, has_moved: false };
        Self::open_on(session, spec, stop, ground)
    }

    /// Opens everything on the ground of a checkpoint, or of a fork of one.
    pub(super) fn open_on(
        session: &Session,
        mut spec: QuerySpec,
        stop: StopSignal,
        ground: Ground,
    ) -> Result<Self, RuntimeError> {
        let Ground { place, files, temporary, components, is_fed, has_moved } = ground;
        let session = &session.for_query(&spec);
        session.declare_found(&mut spec)?;
        let components = components.as_ref();
        let run_id = RunId(uuid::Uuid::new_v4());
        let clock = Arc::clone(session.clock());
        let holder = LeaseHolder::this_process(run_id);
        // Tables are no younger than this.
        let opened_ms = clock.now_ms();
        let mut later = Vec::new();
        let mut moved = BTreeMap::new();
        let (checkpoint, lease, recovered, mut planned) = match existing(&files)? {
            Some(checkpoint) => {
                let lease = checkpoint.lease(holder, clock.now_ms())?;
                let mut recovered = Recovered { point: repartition::resume(&checkpoint, run_id)? };
                if has_moved {
                    moved = recovered.relocate(session, &spec);
                }
                recovered.restore_settings(&mut spec.settings)?;
                checkpoint.swap_log().forget_undone(recovered.last_entry())?;
                let from = (&recovered, components);
                let (planned, waiting) = restart::planned(session, &spec, from, &checkpoint, &stop)?;
                later = waiting;
                if components.is_none() {
                    open::check_place(&planned.session, &spec, &planned.plan.schema, &stop)?;
                }
                (checkpoint, lease, recovered, planned)
            }
            // A query that is refused leaves no checkpoint behind.
            None => {
                let recovered = Recovered { point: ResumePoint::Fresh };
                let planned = Planned::new(session, &spec, (&recovered, components), None, &stop)?;
                if components.is_none() {
                    open::check_place(&planned.session, &spec, &planned.plan.schema, &stop)?;
                }
                let checkpoint = Checkpoint::open_or_create(files, spec.name.as_deref(), clock.now_ms())?;
                let lease = checkpoint.lease(holder, clock.now_ms())?;
                if !matches!(checkpoint.resume()?, ResumePoint::Fresh) {
                    return Err(RuntimeError::Invalid {
                        reason: format!("another process has begun to use the checkpoint `{place}`"),
                        hint: Some("start again to go on from where that one stopped".into()),
                    });
                }
                (checkpoint, lease, recovered, planned)
            }
        };
        let checkpoint = checkpoint.retaining(spec.settings.batches_retained);
        let plan = &mut planned.plan;
        let manifests = recovered.manifests(&mut plan.pipeline)?;
        let id = checkpoint.query();
        let budget = budget(&spec)?;
        let opener = Opener { checkpoint: &checkpoint, run_id, settings: &spec.settings, budget: budget.as_ref() };
        plan.pipeline.for_each_stateful(|operator| {
            let files = &manifests[&operator.uid().clone()];
            operator.open(&opener, files).map_err(RuntimeError::from)
        })?;
        let Planned { session, host, plugins, mut plan, batch_time, tables } = planned;
        // On a fork nobody has edited anything.
        let mut unlogged = Vec::new();
        if components.is_none() {
            later.extend(restart::edited(&session, &spec, &recovered, &checkpoint)?);
            if let Some(entry) = recovered.last_entry().filter(|_| !recovered.is_rerun()) {
                unlogged = restart::swaps(&session, &spec, &checkpoint, entry, &plugins)?;
            }
        }
        let mut sources = match is_fed {
            true => Vec::new(),
            false => open::sources(&session, &spec, &plan, &recovered, &checkpoint, &stop)?,
        };
        for running in &mut sources {
            if let Some(place) = moved.get(&running.name) {
                running.source.was_at(place);
            }
        }
        let mut connectors = recovery::connectors(&session, &spec)?;
        connectors.retain(|name, _| sources.iter().any(|source| source.name == *name));
        let (query_name, stop_sink) = (spec.name.clone(), stop.clone());
        let context = SinkContext { query: id, query_name, clock: Arc::clone(&clock), stop: stop_sink };
        if components.is_none() {
            let (session, checkpoint, plugins, host) = (&session, &checkpoint, &*plugins, &host);
            Remains { session, spec: &spec, checkpoint, host, plugins }.end(&context)?;
        }
        let late_sink = late_rows::open(&session, &spec, context.clone())?;
        let sink = open::sink(&session, &spec, context)?;

        let (late, eviction) = recovered.watermarks();
        let nodes = plan.watermark_nodes.clone();
        let tracker = WatermarkTracker::resume(spec.settings.watermark_policy, nodes, eviction, clock.now_ms())
            .with_idle_timeout(spec.settings.idle_timeout_ms);
        let retained = recovery::retained(&checkpoint)?;
        let said = checkpoint.queries().put(SaidQuery::of(&spec).text()?)?;
        let of_run = spec.clone();
        let mut run = Self {
            session,
            spec: of_run,
            tables_read_ms: tables::read_at(&tables, opened_ms),
            tables,
            name: spec.name,
            id,
            run_id,
            mode: spec.mode,
            trigger: spec.trigger,
            settings: spec.settings,
            budget,
            clock,
            stop,
            lease,
            sources,
            connectors,
            slots: plan.slots,
            state_schemas: recovery::state_schemas(&mut plan.pipeline).into(),
            pipeline: plan.pipeline,
            schema: plan.schema,
            plugins,
            host,
            sink,
            late_sink,
            prepared: None,
            batch_time,
            has_watermark: !plan.watermark_nodes.is_empty(),
            tracker,
            late,
            next: recovered.next_batch(),
            last_batch_time_ms: recovered.last_batch_time_ms(),
            unfinished: match &recovered.point {
                ResumePoint::Rerun { entry, .. } => Some(Arc::new(entry.clone())),
                _ => None,
            },
            checkpoint,
            retained,
            swaps: SwapQueue::default(),
            tap: Tap::default(),
            fed: None,
            read_before: None,
            unlogged,
            unended: None,
            has_undone_swaps: false,
            put_off: Vec::new(),
            unlogged_canaries: Vec::new(),
            given: components.map(|given| given.keys().cloned().collect()).unwrap_or_default(),
            last_trigger_ms: None,
            is_bounded_read: false,
            logical: plan.logical,
            said,
            temporary,
        };
        canary::recover(&mut run, &recovered)?;
        for later in later {
            // Nobody waits for this answer: a refusal is in the log, in progress, and below.
            let Later { plugin, grounds, remake } = later;
            let component = run.host.load(&plugin.name, &plugin.component)?;
            if let Some(running) = run.plugins.iter().find(|running| running.slot.name() == plugin.name)
                && remake.is_none()
            {
                running.slot.check_swap(&component)?;
            }
            let (reply, _) = channel();
            let request = SwapRequest::new(plugin.name, (component, plugin.component), grounds, reply);
            run.swaps.push(SwapRequest { remake, ..request });
        }
        run.store_components()?;
        if run.trigger == Trigger::AvailableNow {
            run.freeze_sources()?;
        }
        Ok(run)
    }

    /// The components that run are in the checkpoint before any entry of the offset log names them.
    fn store_components(&self) -> Result<(), RuntimeError> {
        for plugin in &self.plugins {
            self.checkpoint.plugins().put(&plugin.slot.digest(), plugin.bytes.clone())?;
        }
        Ok(())
    }

    fn freeze_sources(&mut self) -> Result<(), RuntimeError> {
        for running in &mut self.sources {
            running.source.prepare_available_now()?;
        }
        self.is_bounded_read = true;
        Ok(())
    }

    /// Runs the next batch if there is one to run: the unfinished one, one with new rows, or one without rows that
    /// the moved watermark asks for. `None` when there is nothing to do now.
    ///
    /// # Errors
    /// When a step fails. State is as before the batch; calling again runs the same batch again.
    pub fn run_next(&mut self) -> Result<Option<Progress>, RuntimeError> {
        let trigger_ms = self.clock.now_ms();
        prepared::commit(self)?;
        border::end(self)?;
        let definition = match self.unfinished.clone() {
            Some(entry) => Some(Definition { entry, is_logged: true, latest_ms: 0, trigger_ms }),
            None => self.define(trigger_ms)?,
        };
        let Some(definition) = definition else { return Ok(None) };
        let progress = execute(self, definition)?;
        self.last_trigger_ms = Some(trigger_ms);
        Ok(Some(progress))
    }

    /// Lets a component wait for the next border, as [`StreamingQuery::swap_on`](super::StreamingQuery::swap_on) does; the
    /// receiver gets its answer from the call of [`run_next`](Self::run_next) that takes it.
    ///
    /// # Errors
    /// When the bytes are no component of our world.
    pub fn swap(
        &self,
        plugin: &str,
        bytes: Vec<u8>,
        grounds: SwapGrounds,
        remake: Option<Remake>,
    ) -> Result<Receiver<Result<Swapped, String>>, RuntimeError> {
        let component = self.host.load(plugin, &bytes)?;
        let (reply, answer) = channel();
        let request = SwapRequest::new(plugin.to_owned(), (component, bytes), grounds, reply);
        self.swaps.push(SwapRequest { remake, ..request });
        Ok(answer)
    }

    /// Lets a component wait for the next border to compute a slice of the keys from there on, as
    /// [`StreamingQuery::canary`](super::StreamingQuery::canary) does.
    ///
    /// # Errors
    /// When the bytes are no component of our world.
    pub fn canary(
        &self,
        plugin: &str,
        bytes: Vec<u8>,
        grounds: SwapGrounds,
        terms: CanaryTerms,
    ) -> Result<Receiver<Result<Swapped, String>>, RuntimeError> {
        let component = self.host.load(plugin, &bytes)?;
        let (reply, answer) = channel();
        let request = SwapRequest::new(plugin.to_owned(), (component, bytes), grounds, reply);
        self.swaps.push(SwapRequest { canary: Some(terms), ..request });
        Ok(answer)
    }

    /// Ends the canary of a plugin at the next border.
    pub fn end_canary(&self, plugin: &str) -> Receiver<Result<Swapped, String>> {
        let (reply, answer) = channel();
        self.swaps.end_canary(EndRequest { plugin: plugin.to_owned(), reply });
        answer
    }

    /// The component that computes a slice of the keys of a plugin, while one does.
    pub fn candidate(&self, plugin: &str) -> Option<Digest> {
        let running = self.plugins.iter().find(|running| running.slot.name() == plugin)?;
        running.canary.as_ref().map(|canary| canary.pin.candidate)
    }

    /// The digest of the component that a plugin runs now.
    pub fn digest(&self, plugin: &str) -> Option<Digest> {
        self.plugins.iter().find(|running| running.slot.name() == plugin).map(|running| running.slot.digest())
    }

    /// The number of the next batch.
    pub fn next_batch(&self) -> BatchId {
        self.next
    }

    /// Takes the swaps that wait: this is the border between two batches. One whose state is made anew is a batch of its own.
    fn take_swaps(&mut self) -> Result<(), RuntimeError> {
        canary::settle(self);
        for request in self.swaps.take_ends() {
            let current = self.digest(&request.plugin);
            match canary::end(self, &request.plugin, "somebody ended it").zip(current) {
                Some((record, current)) => {
                    self.unlogged.push(Unlogged::end_of_canary(request, (record.candidate, current)));
                }
                None => request.refuse(),
            }
        }
        let mut waiting = self.swaps.take_waiting(&mut self.plugins);
        let mut ended = Ok(());
        while ended.is_ok() {
            let Some(mut request) = waiting.pop_front() else { break };
            let is_restart = request.grounds.by == "restart";
            if is_restart {
                canary::end(self, &request.plugin, "the query file names another component");
            }
            let blocked = self.plugins.iter().find_map(|plugin| {
                let is_meant = request.remake.is_some() || plugin.slot.name() == request.plugin;
                (plugin.canary.is_some() && is_meant).then(|| canary::has_canary(plugin.slot.name()))
            });
            // Whoever swaps knows what the query file names.
            let named = |plugin: &mut RunningPlugin| std::mem::replace(&mut plugin.declared, plugin.named);
            let declared = self.plugin_mut(&request.plugin).map(named);
            let refused = |reason| RuntimeError::Invalid { reason, hint: None };
            let taken = match (blocked, &request.canary, &request.remake) {
                (Some(why), _, _) => Err(refused(why)),
                (None, Some(terms), _) => canary::begin(self, &request, terms).map(Some).map_err(refused),
                (None, None, Some(_)) => border::take(self, &mut request).map(|defined| {
                    ended = defined;
                    None
                }),
                (None, None, None) => {
                    swap::put_in_place(&mut self.plugins, &self.checkpoint, &request).map(Some).map_err(refused)
                }
            };
            let plugin = self.plugin_mut(&request.plugin);
            match taken {
                Ok(swap) => {
                    if let Some(plugin) = plugin {
                        plugin.swap_refused = None;
                    }
                    self.unlogged.extend(swap);
                }
                Err(error) => {
                    let reason = millstream_common::describe_chain(&error);
                    // Nobody would ask again for what the query file names.
                    let is_put_off = is_restart && error.may_pass();
                    let what = if is_put_off { "put off until after the next batch" } else { "refused" };
                    tracing::warn!(plugin = %request.plugin, "swap {what}: {reason}");
                    if let Some(plugin) = plugin {
                        plugin.swap_refused = Some(reason.clone());
                        plugin.declared =
                            if is_restart { plugin.named_before } else { declared.unwrap_or(plugin.named) };
                    }
                    match is_put_off {
                        true => self.put_off.push(request),
                        false => request.refuse(reason),
                    }
                }
            }
        }
        waiting.into_iter().for_each(|request| self.swaps.push(request));
        ended
    }

    fn plugin_mut(&mut self, name: &str) -> Option<&mut RunningPlugin> {
        self.plugins.iter_mut().find(|plugin| plugin.slot.name() == name)
    }

    /// Opens stores as this run does.
    pub(super) fn opener(&self) -> impl StateOpener + use<'_> {
        Opener {
            checkpoint: &self.checkpoint,
            run_id: self.run_id,
            settings: &self.settings,
            budget: self.budget.as_ref(),
        }
    }

    /// Goes on with another plan of the same query, whose stores are open.
    pub(super) fn take_plan(&mut self, mut plan: StreamingPlan) {
        self.plugins.iter().for_each(|plugin| plugin.slot.use_functions(&plan.functions));
        self.state_schemas = recovery::state_schemas(&mut plan.pipeline).into();
        let former = std::mem::replace(&mut self.pipeline, plan.pipeline);
        // Giving much memory back takes long, and nobody waits for it.
        if let Err(error) = std::thread::Builder::new().name("former-state".into()).spawn(move || drop(former)) {
            tracing::debug!("former state was dropped at the border: {error}");
        }
        self.slots = plan.slots;
        self.schema = plan.schema;
        self.logical = plan.logical;
    }

    /// Whether a batch is in the offset log and not done.
    pub fn has_unfinished(&self) -> bool {
        self.unfinished.is_some()
    }

    /// What the next batch is, or `None`. Swaps that wait are taken here: this is the border between two batches.
    fn define(&mut self, trigger_ms: i64) -> Result<Option<Definition>, RuntimeError> {
        self.take_swaps()?;
        // Sources of plugins are asked what is new as part of the batch that may come.
        self.begin_batch(self.next, trigger_ms.max(self.last_batch_time_ms));
        let limited = self.trigger != Trigger::Once;
        let mut ranges = BTreeMap::new();
        let mut has_new = false;
        for running in &mut self.sources {
            let limit = if limited { running.source.read_limit() } else { ReadLimit::AllAvailable };
            let end = running.source.latest_offset(running.at.as_ref(), limit)?;
            has_new |= end.is_some() && end != running.at;
            let value = |offset: &Option<Offset>| offset.as_ref().map(|offset| offset.0.clone());
            ranges.insert(running.name.clone(), OffsetRange { start: value(&running.at), end: value(&end) });
        }
        if !has_new && !self.wants_no_data_batch() && !self.is_due()? && !self.finish() {
            return Ok(None);
        }
        let now = self.clock.now_ms();
        let entry = OffsetEntry {
            batch: self.next,
            batch_time_ms: now.max(self.last_batch_time_ms),
            watermark_ms: self.has_watermark.then(|| self.tracker.global().0),
            sources: ranges,
            settings: self.settings.frozen(),
            plugins: self.plugins.iter().map(|plugin| (plugin.slot.name().to_owned(), pin(plugin))).collect(),
            state_schemas: self.state_schemas.clone(),
            connectors: self.connectors.clone(),
            output_mode: Some(self.mode),
            repartition: None,
            border: None,
            query: Some(self.said),
        };
        let latest_ms = (now - trigger_ms).max(0) as u64;
        let entry = Arc::new(entry);
        Ok(Some(Definition { entry, is_logged: false, latest_ms, trigger_ms }))
    }

    /// Tells the plugins which batch their calls belong to.
    pub(super) fn begin_batch(&self, batch: BatchId, time_ms: i64) {
        let stamp = BatchStamp { query: Some(self.id), batch: Some(batch), time_ms };
        self.plugins.iter().for_each(|plugin| plugin.slot.begin_batch(stamp));
    }

    fn wants_no_data_batch(&mut self) -> bool {
        let (old, new) = (self.late, self.tracker.global());
        if !self.settings.no_data_batches || !self.has_watermark || new <= old || self.next == BatchId::FIRST {
            return false;
        }
        self.pipeline.wants_no_data_batch(old, new)
    }

    /// Whether a timer or the end of an entry's life is due by the clock.
    fn is_due(&mut self) -> Result<bool, RuntimeError> {
        if !self.settings.no_data_batches || self.next == BatchId::FIRST {
            return Ok(false);
        }
        let now = self.clock.now_ms().max(self.last_batch_time_ms);
        Ok(self.pipeline.is_due(now)?)
    }

    /// When everything has been read and the user wants that: nothing is waited for any more. Whether a batch without rows
    /// is needed to close what is open.
    fn finish(&mut self) -> bool {
        let is_wanted = self.settings.finish_on_end && self.trigger == Trigger::AvailableNow;
        if !is_wanted || !self.has_watermark || self.next == BatchId::FIRST || self.tracker.global() >= Watermark::END {
            return false;
        }
        self.tracker.finish();
        self.pipeline.wants_no_data_batch(self.late, self.tracker.global())
    }

    /// The plan, the operators with their uids and state, the plugins with their digests.
    pub fn explain(&mut self) -> String {
        let described = self.slots.iter().map(|slot| {
            let running = self.sources.iter().find(|source| source.name == slot.stream);
            (slot.stream.clone(), running.map(|source| source.source.description()).unwrap_or_default())
        });
        let sources = described.collect::<Vec<_>>();
        explain(&self.logical, &mut self.pipeline, &sources, &self.plugins)
    }

    /// The query's identity.
    pub fn id(&self) -> QueryId {
        self.id
    }

    /// The identity of this life.
    pub fn run_id(&self) -> RunId {
        self.run_id
    }

    /// The columns of the result.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Ends the run between two batches: closes sources and sink, gives the lease back, removes a temporary checkpoint.
    pub fn close(mut self) {
        self.swaps.close("the query has stopped");
        for running in &mut self.sources {
            if self.temporary.is_some() {
                running.source.abandon();
            }
            running.source.stop();
        }
        self.sink.stop();
        if let Some(sink) = &mut self.late_sink {
            sink.stop();
        }
        if let Err(error) = self.lease.release() {
            tracing::warn!("cannot give the lease back: {error}");
        }
        if let Some(temporary) = self.temporary.take()
            && let Err(error) = temporary.close()
        {
            tracing::warn!("cannot remove the temporary checkpoint: {error}");
        }
    }
}

fn explain(logical: &str, pipeline: &mut Pipeline, sources: &[(String, String)], plugins: &[RunningPlugin]) -> String {
    let mut text = format!("== Logical plan ==\n{logical}\n\n== Operators ==\n{}", pipeline.describe());
    text.push_str("\n== Sources ==\n");
    for (index, (stream, description)) in sources.iter().enumerate() {
        text.push_str(format!("#{index} {stream} {description}").trim_end());
        text.push('\n');
    }
    text.push_str("\n== State ==\n");
    for (uid, pin) in recovery::state_schemas(pipeline) {
        text.push_str(&format!("{uid}: {} partitions, {}\n", pin.partitions, pin.schema_text));
    }
    text.push_str("\n== Plugins ==\n");
    for plugin in plugins {
        text.push_str(&format!("{} {}\n", plugin.slot.name(), plugin.slot.digest()));
        let component = plugin.slot.component();
        for function in component.functions() {
            text.push_str(&format!("  {function}\n"));
        }
        for function in component.aggregates() {
            text.push_str(&format!("  {function}\n"));
        }
        for sink in component.sinks() {
            text.push_str(&format!("  {sink}\n"));
        }
    }
    text
}

/// What a run stands on.
pub(super) struct Ground {
    /// The checkpoint, for people.
    pub(super) place: String,
    /// Its files.
    pub(super) files: Arc<dyn DurableFiles>,
    /// Keeps a checkpoint that lives as long as the run.
    pub(super) temporary: Option<tempfile::TempDir>,
    /// On a fork: the components that run in place of those that the log names.
    pub(super) components: Option<Components>,
    /// On a fork: whether rows are handed over, so that no source is opened.
    pub(super) is_fed: bool,
    /// On a fork: whether checkpoint and sources may have moved since.
    pub(super) has_moved: bool,
}

/// What the query's checkpoint says, if there is one. Takes no lease and changes nothing.
pub(crate) fn look(session: &Session, spec: &QuerySpec) -> Result<Option<Recovered>, RuntimeError> {
    let Some(place) = &spec.checkpoint else { return Ok(None) };
    let found = existing(&session.open_checkpoint(place, &spec.checkpoint_options)?)?;
    let point = found.map(|checkpoint| checkpoint.resume()).transpose()?;
    Ok(point.map(|point| Recovered { point }))
}

fn existing(files: &Arc<dyn DurableFiles>) -> Result<Option<Checkpoint>, RuntimeError> {
    match Checkpoint::open(Arc::clone(files)) {
        Ok(checkpoint) => Ok(Some(checkpoint)),
        Err(CheckpointError::Absent { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn pin(plugin: &RunningPlugin) -> PluginPin {
    PluginPin {
        digest: plugin.slot.digest(),
        declared: plugin.declared,
        wit: plugin.slot.component().wit_version().to_owned(),
        config_hash: plugin.config.to_string(),
        canary: plugin.canary.as_ref().map(|canary| canary.pin.clone()),
    }
}

fn checkpoint_place(spec: &QuerySpec) -> Result<(String, Option<tempfile::TempDir>), RuntimeError> {
    if let Some(place) = &spec.checkpoint {
        return Ok((place.clone(), None));
    }
    let temporary =
        tempfile::Builder::new().prefix("millstream-checkpoint-").tempdir().map_err(|error| RuntimeError::Invalid {
            reason: format!("no temporary checkpoint can be made: {error}"),
            hint: Some("set `checkpointLocation`".into()),
        })?;
    Ok((temporary.path().display().to_string(), Some(temporary)))
}

/// The memory that state may take. That its folder takes a file is found out now and not when it is first needed.
fn budget(spec: &QuerySpec) -> Result<Option<Arc<MemoryBudget>>, RuntimeError> {
    let Some(limit) = spec.state.memory else { return Ok(None) };
    let folder = spec.state.spill_folder();
    tempfile::tempfile_in(&folder).map_err(|error| RuntimeError::Invalid {
        reason: format!("the folder `{}` for state beyond the memory limit takes no files: {error}", folder.display()),
        hint: Some("make it, or name another one with `directories.spill` in the host file".into()),
    })?;
    Ok(Some(Arc::new(MemoryBudget::new(limit, folder))))
}

/// Opens stores in the checkpoint.
struct Opener<'a> {
    checkpoint: &'a Checkpoint,
    run_id: RunId,
    settings: &'a Settings,
    budget: Option<&'a Arc<MemoryBudget>>,
}

impl StateOpener for Opener<'_> {
    fn open(
        &self,
        uid: &OperatorUid,
        partition: u32,
        manifest: &StateManifest,
    ) -> Result<Box<dyn StateStore>, StateError> {
        let files: ScopedFiles = self.checkpoint.state_files(uid, partition);
        let options = StoreOptions {
            files: Arc::new(files),
            writer: self.run_id.0.simple().to_string(),
            changelogs_before_snapshot: self.settings.changelogs_before_snapshot,
            budget: self.budget.map(Arc::clone),
        };
        Ok(Box::new(LogStore::open(options, manifest)?))
    }
}
