//! The state store: hot state in memory, one changelog file per batch, snapshots in the background.
//!
//! ```text
//!   get_many / put_many / delete_through            files of the partition
//!        │                                              ▲          │
//!        ▼            prepare: records of the batch     │          │ old snapshot + changelogs
//!   tables in memory ─────────────────────────► 8-w.changelog      ▼
//!        ▲   │  ▲                                          7-w.snapshot (own thread)
//!        │   ▼  └── recall: before a key is read or changed
//!        │  spill: rows that a memory limit leaves no room for; ends with the run
//!        └── abort: undo, backwards
//! ```
//!
//! Rule of its life: `open` reads exactly the files that the manifest names. Every file has a name that was never
//! used before. A snapshot enters the manifest with the first `prepare` after it is durable; until then, and
//! for as long as retained batches name them, the files that it replaces stay.
//!
//! It does not decide which version is right, nor when a batch is done: the commit log does.

mod chain;
mod changes;
mod eviction;
mod family;
mod frame;
mod lookup;
mod open_batch;
mod parts;
mod record;
mod room;
mod snapshot;
mod spill;
#[cfg(test)]
mod spilled_tests;
mod table;
#[cfg(test)]
mod tests;
mod unlogged;

use crate::budget::Share;
use crate::{
    ByteRows, FamilyId, FamilySpec, MemoryBudget, StateError, StateFile, StateFileKind, StateManifest, StateMetrics,
    StateStore, StoreOptions,
};
use chain::Chain;
pub use changes::{StateChange, visit_changes};
use family::Family;
use frame::{Frame, FrameFamily, Lineage};
use hashbrown::DefaultHashBuilder;
use lookup::Found;
use millstream_common::DurableError;
use open_batch::OpenBatch;
use record::Record;
use room::ROWS_AT_ONCE;
use snapshot::{Background, Order, each_record};
use std::io;
use std::sync::Arc;
use table::Entry;

/// The least bytes that one record takes in a file: limits what a record count may reserve.
const LEAST_RECORD: u64 = 4;

/// How many names are tried for one changelog.
const MOST_NAMES: u32 = 1000;

/// A [`StateStore`] over durable files.
#[derive(Debug)]
pub struct LogStore {
    options: StoreOptions,
    hasher: DefaultHashBuilder,
    families: Vec<Family>,
    batch: OpenBatch,
    found: Found,
    share: Share,
    /// Whether it was told that the limit is too small.
    is_told: bool,
    version: u64,
    /// The files of `version`.
    files: Vec<StateFile>,
    lineage: Lineage,
    prepared: Option<Prepared>,
    background: Background,
    /// The version of the last name given and how often that version was named, per kind.
    names: [(u64, u32); 2],
}

#[derive(Debug)]
struct Prepared {
    file: Option<StateFile>,
    lineage: Lineage,
}

impl LogStore {
    /// Opens exactly the version that `manifest` names; no files at all is the empty store.
    ///
    /// # Errors
    /// When a file is missing, has another length or checksum, does not follow the one before it, or contradicts
    /// it on a schema.
    pub fn open(options: StoreOptions, manifest: &StateManifest) -> Result<Self, StateError> {
        let files = Arc::clone(&options.files);
        let share = Share::new(options.budget.clone());
        let mut store = Self {
            options,
            hasher: DefaultHashBuilder::default(),
            families: Vec::new(),
            batch: OpenBatch::new(share.budget().map(MemoryBudget::limit)),
            found: Found::default(),
            share,
            is_told: false,
            version: manifest.version,
            files: manifest.files.clone(),
            lineage: Lineage::default(),
            prepared: None,
            background: Background::default(),
            names: [(0, 0); 2],
        };
        let mut chain = Chain::new(&*files);
        for file in &manifest.files {
            let bytes = chain.get(file)?;
            let frame = chain.next(file, &bytes)?;
            store.load(&frame).map_err(|failure| match failure {
                LoadFailure::Damaged(reason) => chain.damaged(&file.name, reason),
                LoadFailure::Spill(error) => store.spilled(error),
            })?;
        }
        chain.end(manifest)?;
        store.lineage = chain.lineage();
        store.rest();
        Ok(store)
    }

    /// Plays one file over the tables.
    fn load(&mut self, frame: &Frame<'_>) -> Result<(), LoadFailure> {
        let mut numbers = Vec::new();
        for family in &frame.families {
            let number = match self.families.iter().position(|known| known.name == family.name) {
                Some(number) if self.families[number].schema_id != family.schema_id => {
                    let reason = format!("family `{}` changes its schema between files", family.name);
                    return Err(LoadFailure::Damaged(reason));
                }
                Some(number) => number,
                None => {
                    self.families.push(Family::new(family.name, family.schema_id, family.layout));
                    self.families.len() - 1
                }
            };
            numbers.push(number);
        }
        if let ([only], StateFileKind::Snapshot, false) = (&*numbers, frame.kind, self.share.is_limited()) {
            let most = frame.records.min(frame.body.len() as u64 / LEAST_RECORD);
            self.families[*only].reserve(&self.hasher, most as usize);
        }
        let mut records: Vec<Record<'_>> = Vec::with_capacity(ROWS_AT_ONCE);
        each_record(frame, |record| {
            records.push(record.of_family(numbers[record.family()]));
            if records.len() < ROWS_AT_ONCE {
                return Ok(());
            }
            let loaded = self.load_records(&records);
            records.clear();
            loaded.map_err(LoadFailure::Spill)
        })?;
        self.load_records(&records).map_err(LoadFailure::Spill)
    }

    fn load_records(&mut self, records: &[Record<'_>]) -> io::Result<()> {
        if self.share.is_limited() {
            self.make_room(0, 0)?;
            self.tidy()?;
            for (number, family) in self.families.iter_mut().enumerate() {
                let keys = records.iter().filter(|record| record.family() == number).filter_map(Record::key);
                family.recall(&self.hasher, keys, 0)?;
            }
        }
        let (hasher, families) = (&self.hasher, &mut self.families);
        for record in records {
            match *record {
                Record::Put { family, key, value } => match families[family].find_mut(hasher, key) {
                    Some(entry) if entry.value().len() == value.len() => entry.value_mut().copy_from_slice(value),
                    _ => families[family].put_back(hasher, Entry::new(key, value, 0)),
                },
                Record::Delete { family, key } => {
                    families[family].remove(hasher, key, 0);
                }
                Record::DeleteThrough { family, through } => {
                    families[family].take_through(hasher, through)?;
                }
            }
        }
        Ok(())
    }

    /// A file name that this run has not used: `<version>-<writer>.<kind>`, with a number from the second attempt on.
    fn name(&mut self, kind: StateFileKind, version: u64) -> String {
        let (slot, ending) = match kind {
            StateFileKind::Changelog => (0, "changelog"),
            StateFileKind::Snapshot => (1, "snapshot"),
        };
        let (last, attempts) = &mut self.names[slot];
        *attempts = if *last == version { *attempts + 1 } else { 1 };
        *last = version;
        let writer = &self.options.writer;
        match *attempts {
            1 => format!("{version}-{writer}.{ending}"),
            again => format!("{version}-{writer}-{again}.{ending}"),
        }
    }

    fn frame_families(&self) -> Vec<FrameFamily<'_>> {
        let families = self.families.iter();
        families
            .map(|family| FrameFamily { name: &family.name, schema_id: &family.schema_id, layout: family.layout() })
            .collect()
    }

    /// Writes the records of the open batch as the changelog that leads to `version`.
    fn write_changelog(&mut self, version: u64) -> Result<StateFile, StateError> {
        let (records, room, count) = self.batch.records();
        let frame = Frame {
            kind: StateFileKind::Changelog,
            version,
            lineage: self.lineage,
            writer: &self.options.writer,
            families: self.frame_families(),
            records: count,
            body: &[],
        };
        let (bytes, crc) = frame.write(records, room);
        let len = bytes.len() as u64;
        let mut attempt = 1;
        loop {
            let name = self.name(StateFileKind::Changelog, version);
            match self.options.files.put_new(&name, bytes.clone()) {
                // The run opened this store before and wrote the file for an attempt that it gave up.
                Err(DurableError::Exists { .. }) if attempt < MOST_NAMES => attempt += 1,
                Err(source) => return Err(self.failed(source)),
                Ok(()) => return Ok(StateFile { name, kind: StateFileKind::Changelog, version, bytes: len, crc }),
            }
        }
    }

    fn failed(&self, source: DurableError) -> StateError {
        StateError::Files { place: self.options.files.location(), source }
    }

    /// Lets a finished snapshot stand for the files that it was made of.
    fn take_snapshot(&mut self, finished: Option<Vec<StateFile>>) {
        let Some(snapshot) = finished else { return };
        if let Some(version) = snapshot.first().map(|part| part.version) {
            self.files.retain(|file| file.kind == StateFileKind::Changelog && file.version > version);
            self.files.splice(0..0, snapshot);
        }
    }

    /// Begins a snapshot when the changelogs are many and weigh more than the last one.
    fn begin_snapshot(&mut self) {
        let changelogs = self.files.iter().filter(|file| file.kind == StateFileKind::Changelog);
        let (count, weight) = changelogs.fold((0, 0), |(count, weight), file| (count + 1, weight + file.bytes));
        let snapshot: u64 =
            self.files.iter().filter(|file| file.kind == StateFileKind::Snapshot).map(|file| file.bytes).sum();
        let wanted = count > 0 && count >= self.options.changelogs_before_snapshot && weight > snapshot;
        let Some(version) = self.files.last().map(|file| file.version) else {
            return;
        };
        if !wanted || !self.background.is_free(self.version) {
            return;
        }
        let budget = self.share.budget();
        let parts = budget.map_or(1, |budget| parts::parts(weight + snapshot, budget.limit()));
        let scratch = budget.map(|budget| budget.folder().to_owned()).unwrap_or_default();
        let order = Order {
            files: Arc::clone(&self.options.files),
            inputs: self.files.clone(),
            names: (0..parts).map(|_| self.name(StateFileKind::Snapshot, version)).collect(),
            writer: self.options.writer.clone(),
            scratch,
        };
        self.background.begin(order, self.version, self.options.changelogs_before_snapshot as u64);
    }

    /// The families that there are, in files or declared since.
    pub fn families(&self) -> Vec<FamilySpec> {
        let spec = |family: &Family| FamilySpec {
            name: family.name.clone(),
            layout: family.layout(),
            schema_id: family.schema_id.clone(),
        };
        self.families.iter().map(spec).collect()
    }

    /// The files of the version that stands.
    pub fn manifest(&self) -> StateManifest {
        StateManifest { version: self.version, files: self.files.clone() }
    }

    /// Moves on to a later version without a change: the batches between changed nothing here.
    ///
    /// # Panics
    /// When the version is an earlier one, or a batch is open.
    pub fn skip_to(&mut self, version: u64) {
        assert!(version >= self.version && self.batch.is_empty(), "only a closed store moves on, and only forward");
        self.prepared = None;
        self.version = version;
    }

    /// Waits for the snapshot that is being made, so that the next `prepare` takes it up.
    pub fn finish_snapshot(&mut self) {
        let finished = self.background.wait();
        self.take_snapshot(finished);
    }
}

impl StateStore for LogStore {
    fn version(&self) -> u64 {
        self.version
    }

    fn family(&mut self, spec: &FamilySpec) -> Result<FamilyId, StateError> {
        let Some(number) = self.families.iter().position(|family| family.name == spec.name) else {
            self.families.push(Family::new(&spec.name, &spec.schema_id, spec.layout));
            return Ok(FamilyId(self.families.len() - 1));
        };
        let family = &mut self.families[number];
        if family.schema_id != spec.schema_id {
            return Err(StateError::Schema {
                place: self.options.files.location(),
                family: spec.name.clone(),
                found: family.schema_id.clone(),
                wanted: spec.schema_id.clone(),
            });
        }
        // The undo of an open batch holds tables of the old layout; both layouts answer alike.
        if self.batch.is_empty() {
            family.relayout(&self.hasher, spec.layout);
        }
        Ok(FamilyId(number))
    }

    fn families(&self) -> Vec<FamilySpec> {
        Self::families(self)
    }

    fn get_many(&mut self, family: FamilyId, keys: &ByteRows) -> Result<Vec<Option<&[u8]>>, StateError> {
        if self.share.is_limited() {
            self.recall(family.0, keys, 0..keys.len())?;
        }
        let Self { found, families, hasher, .. } = self;
        Ok(found.look_up(hasher, (family.0, &families[family.0]), keys))
    }

    fn put_many(&mut self, family: FamilyId, keys: &ByteRows, values: &ByteRows) -> Result<(), StateError> {
        assert_eq!(keys.len(), values.len(), "every key has a value");
        self.prepared = None;
        for range in self.pieces(keys.len()) {
            if self.share.is_limited() {
                self.recall(family.0, keys, range.clone())?;
            }
            let found = (&self.found, range);
            self.batch.put_many(&self.hasher, (family.0, &mut self.families[family.0]), (keys, values), found);
        }
        Ok(())
    }

    fn delete_many(&mut self, family: FamilyId, keys: &ByteRows) -> Result<(), StateError> {
        self.prepared = None;
        let mut rows = keys.iter();
        for range in self.pieces(keys.len()) {
            if self.share.is_limited() {
                self.recall(family.0, keys, range.clone())?;
            }
            let target = &mut self.families[family.0];
            for key in rows.by_ref().take(range.len()) {
                self.batch.delete(&self.hasher, (family.0, &mut *target), key);
            }
        }
        Ok(())
    }

    fn delete_through(&mut self, family: FamilyId, through: u64) -> Result<u64, StateError> {
        self.prepared = None;
        let target = (family.0, &mut self.families[family.0]);
        let deleted = self.batch.delete_through(&self.hasher, target, through);
        deleted.map_err(|error| self.spilled(error))
    }

    fn scan_through(
        &self,
        family: FamilyId,
        through: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), StateError> {
        self.families[family.0].scan_through(through, visit).map_err(|error| self.spilled(error))
    }

    fn scan(&self, family: FamilyId, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StateError> {
        self.families[family.0].scan(visit).map_err(|error| self.spilled(error))
    }

    fn keys_of(&self, family: FamilyId) -> Result<u64, StateError> {
        Ok(self.families[family.0].keys())
    }

    fn prepare(&mut self) -> Result<StateManifest, StateError> {
        let finished = self.background.take();
        self.take_snapshot(finished);
        self.make_room(0, 0).map_err(|error| self.spilled(error))?;
        let version = self.version + 1;
        if self.prepared.is_none() {
            let file = if self.batch.is_empty() { None } else { Some(self.write_changelog(version)?) };
            let lineage = match &file {
                Some(file) => Lineage { version, crc: file.crc },
                None => self.lineage,
            };
            self.prepared = Some(Prepared { file, lineage });
        }
        let new = self.prepared.iter().filter_map(|prepared| prepared.file.as_ref());
        Ok(StateManifest { version, files: self.files.iter().chain(new).cloned().collect() })
    }

    fn commit(&mut self) {
        let prepared = self.prepared.take().expect("commit follows prepare, with no change between");
        self.version += 1;
        self.files.extend(prepared.file);
        self.lineage = prepared.lineage;
        self.batch.close(&mut self.families);
        self.found.forget(self.batch.kept_keys());
        self.rest();
        let finished = self.background.take();
        self.take_snapshot(finished);
        self.begin_snapshot();
    }

    fn abort(&mut self) {
        self.prepared = None;
        self.batch.undo(&self.hasher, &mut self.families);
        self.found.forget(self.batch.kept_keys());
    }

    fn retain(&mut self, retained: &[&StateManifest]) -> Result<(), StateError> {
        let oldest = retained.iter().map(|manifest| manifest.version).min().unwrap_or(self.version).min(self.version);
        let named = retained.iter().flat_map(|manifest| &manifest.files).chain(&self.files);
        let kept: hashbrown::HashSet<&str> = named.map(|file| file.name.as_str()).collect();
        let files = Arc::clone(&self.options.files);
        for name in files.list("").map_err(|source| self.failed(source))? {
            // What is not older than the retained versions may be named yet: by this run, or by the run that took over.
            let begun = self.background.names().contains(&name);
            if !begun && !kept.contains(name.as_str()) && version_of(&name).is_some_and(|version| version < oldest) {
                files.delete(&name).map_err(|source| self.failed(source))?;
            }
        }
        Ok(())
    }

    fn metrics(&self) -> StateMetrics {
        let sum = |of: fn(&Family) -> u64| self.families.iter().map(of).sum::<u64>();
        StateMetrics {
            keys: sum(Family::keys),
            memory_bytes: self.memory(),
            spilled_keys: sum(Family::spilled_keys),
            spilled_bytes: sum(Family::spilled_bytes),
        }
    }
}

impl Drop for LogStore {
    fn drop(&mut self) {
        self.background.wait();
    }
}

/// Why a file cannot be played.
enum LoadFailure {
    /// What is wrong with it.
    Damaged(String),
    /// The spill failed.
    Spill(io::Error),
}

impl From<String> for LoadFailure {
    fn from(reason: String) -> Self {
        Self::Damaged(reason)
    }
}

/// The version in the name of a state file; `None` for a file that is none of ours.
fn version_of(name: &str) -> Option<u64> {
    let (version, rest) = name.split_once('-')?;
    (rest.ends_with(".changelog") || rest.ends_with(".snapshot")).then(|| version.parse().ok())?
}
