//! The checkpoint of a streaming program: what each batch is, and which are done.
//!
//! The offset log has, per batch, its time, the range of each input, the interval, the zero time, the digests of plugins,
//! and the names and forms of state; the commit log the files of state. So a program that goes on can be held against the
//! one that wrote them: state is known by its name, and refused by its name when it would be lost.
//!
//! Rule of its life: one at a time, by the lease. Batch N is defined when N − 1 is done.

use crate::context::frame::Frame;
use crate::schedule::plan::Plan;
use crate::time::zero_time;
use crate::{DStreamError, Time};
use millstream_checkpoint::{
    Checkpoint, ConnectorPin, Lease, LeaseHolder, OffsetEntry, OffsetRange, ResumePoint, StateSchemas,
};
use millstream_common::{BatchId, DurableFiles, OperatorUid, QueryId, RunId};
use millstream_state::{LogStore, StateManifest, StoreOptions};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use uuid::Uuid;

/// How many batches can be read back; a program needs the last alone.
const RETAINED: u64 = 20;
/// Every how many batches older ones are deleted.
const PURGE_EVERY: u64 = 10;
/// After how many changelogs a snapshot of state is made.
const CHANGELOGS_BEFORE_SNAPSHOT: usize = 10;

const INTERVAL: &str = "batch_interval_ms";
const ZERO: &str = "zero_time_ms";
const PLUGIN: &str = "plugin.";

type Manifests = BTreeMap<String, Vec<StateManifest>>;

/// The checkpoint, held by this run.
pub(crate) struct Journal {
    checkpoint: Checkpoint,
    lease: Lease,
    settings: BTreeMap<String, String>,
    schemas: StateSchemas,
    connectors: BTreeMap<String, ConnectorPin>,
    /// The state files of the batches that are kept, oldest first.
    retained: VecDeque<(BatchId, Manifests)>,
}

/// Where the run begins.
pub(crate) struct Begin {
    pub(crate) zero: Time,
    pub(crate) next_batch: BatchId,
    /// The last time that is defined; the zero time before the first batch.
    pub(crate) last: Time,
    /// The batch that is defined and not done.
    pub(crate) again: Option<OffsetEntry>,
    /// How far each input has read, for those that there were.
    pub(crate) positions: BTreeMap<String, Option<serde_json::Value>>,
}

/// What is held against what there was.
struct Found<'a> {
    place: String,
    entry: &'a OffsetEntry,
}

impl Found<'_> {
    fn setting(&self, name: &str) -> Result<i64, DStreamError> {
        let value = self.entry.settings.get(name).and_then(|value| value.parse().ok());
        value.ok_or_else(|| DStreamError::Foreign {
            place: self.place.clone(),
            reason: format!("its last batch does not say `{name}`"),
        })
    }

    fn check(
        &self,
        frame: &Frame,
        plan: &Plan,
        connectors: &BTreeMap<String, ConnectorPin>,
    ) -> Result<(), DStreamError> {
        let interval = self.setting(INTERVAL)?;
        if interval != frame.interval_ms {
            return Err(DStreamError::Differs {
                place: self.place.clone(),
                setting: "a batch interval of".into(),
                was: format!("{interval} ms"),
                now: format!("{} ms", frame.interval_ms),
            });
        }
        for (name, pin) in self.entry.state_schemas.iter() {
            let same =
                plan.stateful.iter().find(|(uid, _)| uid.as_str() == name).map(|(_, operation)| operation.identity());
            let now = match same {
                None => "the program has no operation of that name".to_owned(),
                Some(identity) if identity.schema_id() != pin.schema_id => {
                    format!("the program has {}", identity.schema())
                }
                Some(_) => continue,
            };
            let (place, name, was) = (self.place.clone(), name.clone(), pin.schema_text.clone());
            return Err(DStreamError::StateWouldBeLost { place, name, was, now });
        }
        let words = |pin: &ConnectorPin| match &pin.place {
            Some(place) => format!("{} of `{place}`", pin.format),
            None => pin.format.clone(),
        };
        for (name, pin) in &self.entry.connectors {
            let now = match connectors.get(name) {
                None => "the program has no input of that name".to_owned(),
                Some(other) if other != pin => format!("the program has {}", words(other)),
                Some(_) => continue,
            };
            let (place, name, was) = (self.place.clone(), name.clone(), words(pin));
            return Err(DStreamError::InputWouldBeLost { place, name, was, now });
        }
        Ok(())
    }

    /// A batch that runs again runs with the plugins that it was defined with.
    fn check_plugins(&self, settings: &BTreeMap<String, String>) -> Result<(), DStreamError> {
        for (name, digest) in self.entry.settings.iter().filter(|(name, _)| name.starts_with(PLUGIN)) {
            let now = settings.get(name).map_or("none", String::as_str);
            if now != digest {
                return Err(DStreamError::Differs {
                    place: self.place.clone(),
                    setting: format!("plugin `{}` of its unfinished batch as", name.trim_start_matches(PLUGIN)),
                    was: digest.clone(),
                    now: now.to_owned(),
                });
            }
        }
        Ok(())
    }
}

impl Journal {
    /// Opens or makes the checkpoint, holds it against the program, and opens the stores of its state.
    pub(crate) fn open(
        files: Arc<dyn DurableFiles>,
        (frame, plan): (&Frame, &Plan),
        may_resume: bool,
    ) -> Result<(Self, Begin), DStreamError> {
        let now = frame.clock.now_ms();
        let checkpoint = Checkpoint::open_or_create(files, None, now)?.retaining(RETAINED);
        let run = RunId(Uuid::new_v4());
        let lease = checkpoint.lease(LeaseHolder::this_process(run), now)?;
        let mut journal = Self {
            checkpoint,
            lease,
            settings: BTreeMap::new(),
            schemas: BTreeMap::new().into(),
            connectors: BTreeMap::new(),
            retained: VecDeque::new(),
        };
        match journal.begin((frame, plan), may_resume, run) {
            Ok(begin) => Ok((journal, begin)),
            Err(error) => {
                journal.release();
                Err(error)
            }
        }
    }

    fn begin(&mut self, (frame, plan): (&Frame, &Plan), may_resume: bool, run: RunId) -> Result<Begin, DStreamError> {
        let place = self.checkpoint.location();
        for input in &plan.inputs {
            self.connectors.insert(input.name().to_owned(), input.pin()?);
        }
        for slot in &plan.plugins {
            self.settings.insert(format!("{PLUGIN}{}", slot.name()), slot.digest().to_string());
        }
        let (latest, again, base) = match self.checkpoint.resume()? {
            ResumePoint::Fresh => (None, false, None),
            ResumePoint::Rerun { entry, base, .. } => (Some(entry), true, base),
            ResumePoint::Next { last, commit } => (Some(last), false, Some(commit)),
        };
        if latest.is_some() && !may_resume {
            return Err(DStreamError::Present { place });
        }
        let mut begin = Begin {
            zero: zero_time(frame.clock.now_ms(), frame.interval_ms),
            next_batch: BatchId::FIRST,
            last: Time(0),
            again: None,
            positions: BTreeMap::new(),
        };
        if let Some(entry) = &latest {
            let found = Found { place: place.clone(), entry };
            found.check(frame, plan, &self.connectors)?;
            if again {
                found.check_plugins(&self.settings)?;
            }
            begin.zero = Time(found.setting(ZERO)?);
            begin.next_batch = if again { entry.batch } else { entry.batch.next() };
            begin.positions = entry.sources.iter().map(|(name, range)| (name.clone(), range.end.clone())).collect();
        }
        begin.last = latest.as_ref().map_or(begin.zero, |entry| Time(entry.batch_time_ms));
        let pins = latest.as_ref().map(|entry| entry.state_schemas.clone()).unwrap_or_else(|| BTreeMap::new().into());
        plan.resolve(frame, |uid| pins.get(uid.as_str()).map(|pin| pin.partitions));
        self.settings.insert(INTERVAL.into(), frame.interval_ms.to_string());
        self.settings.insert(ZERO.into(), begin.zero.0.to_string());
        let schemas = plan.stateful.iter().map(|(uid, operation)| (uid.to_string(), operation.identity().pin()));
        self.schemas = schemas.collect::<BTreeMap<_, _>>().into();
        let state = base.map(|commit| commit.state).unwrap_or_default();
        self.open_stores(plan, &self.manifests(&state)?, run)?;
        self.retained = self.read_retained()?;
        begin.again = latest.filter(|_| again);
        Ok(begin)
    }

    /// The manifests of a commit entry.
    fn manifests(&self, state: &BTreeMap<String, Vec<serde_json::Value>>) -> Result<Manifests, DStreamError> {
        let read = |value: &serde_json::Value| {
            serde_json::from_value(value.clone()).map_err(|error| DStreamError::Foreign {
                place: self.checkpoint.location(),
                reason: format!("it names state files in another form: {error}"),
            })
        };
        let of = |(name, parts): (&String, &Vec<serde_json::Value>)| {
            Ok((name.clone(), parts.iter().map(read).collect::<Result<Vec<_>, DStreamError>>()?))
        };
        state.iter().map(of).collect()
    }

    fn open_stores(&self, plan: &Plan, state: &Manifests, run: RunId) -> Result<(), DStreamError> {
        for (uid, operation) in &plan.stateful {
            let manifests = state.get(uid.as_str());
            let mut stores = Vec::new();
            for partition in 0..operation.identity().partitions() {
                let empty = StateManifest { version: 0, files: Vec::new() };
                let manifest = manifests.and_then(|parts| parts.get(partition)).unwrap_or(&empty);
                stores.push(self.open_store(uid, partition, manifest, run)?);
            }
            operation.stores().put(stores);
            operation.restore(manifests.is_none())?;
        }
        Ok(())
    }

    fn open_store(
        &self,
        uid: &OperatorUid,
        partition: usize,
        manifest: &StateManifest,
        run: RunId,
    ) -> Result<LogStore, DStreamError> {
        let files = self.checkpoint.state_files(uid, u32::try_from(partition).unwrap_or(u32::MAX));
        let options = StoreOptions {
            files: Arc::new(files),
            writer: run.0.simple().to_string()[..8].to_owned(),
            changelogs_before_snapshot: CHANGELOGS_BEFORE_SNAPSHOT,
            budget: None,
        };
        Ok(LogStore::open(options, manifest)?)
    }

    fn read_retained(&self) -> Result<VecDeque<(BatchId, Manifests)>, DStreamError> {
        let log = self.checkpoint.commit_log();
        let mut retained = VecDeque::new();
        for batch in log.batches()? {
            if let Some(entry) = log.get(batch)? {
                retained.push_back((batch, self.manifests(&entry.state)?));
            }
        }
        Ok(retained)
    }

    /// The identity of the program, for plugins.
    pub(crate) fn query(&self) -> QueryId {
        self.checkpoint.query()
    }

    /// The folder of an input.
    pub(crate) fn input_files(&self, input: &str) -> Arc<dyn DurableFiles> {
        Arc::new(self.checkpoint.source_files(input))
    }

    /// Defines a batch.
    pub(crate) fn define(
        &mut self,
        batch: BatchId,
        time: Time,
        now_ms: i64,
        ranges: &BTreeMap<String, OffsetRange>,
    ) -> Result<(), DStreamError> {
        self.lease.renew(now_ms)?;
        let entry = OffsetEntry {
            batch,
            batch_time_ms: time.0,
            watermark_ms: None,
            sources: ranges.clone(),
            settings: self.settings.clone(),
            plugins: BTreeMap::new(),
            state_schemas: self.schemas.clone(),
            connectors: self.connectors.clone(),
            output_mode: None,
            repartition: None,
            border: None,
            query: None,
        };
        Ok(self.checkpoint.offset_log().add(&entry)?)
    }

    /// Says that a batch is done: writes its state, and names it.
    pub(crate) fn commit(&mut self, batch: BatchId, now_ms: i64, plan: &Plan) -> Result<(), DStreamError> {
        let mut state = Manifests::new();
        for (uid, operation) in &plan.stateful {
            state.insert(uid.to_string(), operation.stores().prepare()?);
        }
        self.lease.renew(now_ms)?;
        let nothing = BTreeMap::new();
        self.checkpoint.commit_log().add_state(batch, None, &state, (None, &nothing, None), None)?;
        plan.stateful.iter().for_each(|(_, operation)| operation.stores().commit());
        self.retained.push_back((batch, state));
        self.purge(batch, plan)
    }

    fn purge(&mut self, batch: BatchId, plan: &Plan) -> Result<(), DStreamError> {
        if batch.0 < RETAINED || !batch.0.is_multiple_of(PURGE_EVERY) {
            return Ok(());
        }
        let purged = self.checkpoint.purge(batch, &[])?;
        while self.retained.front().is_some_and(|(id, _)| *id < purged.oldest) {
            self.retained.pop_front();
        }
        for (uid, operation) in &plan.stateful {
            let named = self.retained.iter().filter_map(|(_, state)| state.get(uid.as_str()).map(Vec::as_slice));
            operation.stores().retain(&named.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Gives the checkpoint back.
    pub(crate) fn release(self) {
        if let Err(error) = self.lease.release() {
            tracing::warn!(%error, "the lease of a checkpoint was not given back");
        }
    }
}
