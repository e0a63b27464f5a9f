//! Snapshots in the background: old snapshot and changelogs become one new snapshot, file to file.
//!
//! Begun by `commit`, taken into the manifest by a later `prepare`. Here it is made in memory and is one file; when memory
//! is limited and there is much, it is made [in parts](super::parts).
//!
//! Rule of its life: the live tables are never touched, only files that the commit log names. A snapshot that
//! fails costs nothing but the wish: it is told as a warning and tried again some versions later. At most one
//! runs per store; dropping the store waits for it.

use super::chain::Chain;
use super::family::prefix_of;
use super::frame::{Frame, FrameFamily, Lineage};
use super::record::{Reader, Record};
use crate::{StateError, StateFile, StateFileKind};
use bytes::Bytes;
use hashbrown::HashMap;
use millstream_common::{DurableFiles, describe_chain};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

/// What a snapshot is made of.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) files: Arc<dyn DurableFiles>,
    pub(super) inputs: Vec<StateFile>,
    /// The names of its files: one for each part.
    pub(super) names: Vec<String>,
    pub(super) writer: String,
    /// Where parts are made.
    pub(super) scratch: PathBuf,
}

/// The snapshot of a store that is being made, if any.
#[derive(Debug, Default)]
pub(super) struct Background {
    running: Option<JoinHandle<Result<Vec<StateFile>, StateError>>>,
    names: Vec<String>,
    not_before: u64,
}

impl Background {
    /// Whether a snapshot may be begun at `version`.
    pub(super) fn is_free(&self, version: u64) -> bool {
        self.running.is_none() && version >= self.not_before
    }

    /// Begins; when no thread can be had, it is as if the snapshot had failed.
    pub(super) fn begin(&mut self, order: Order, version: u64, pause: u64) {
        self.names = order.names.clone();
        let thread = std::thread::Builder::new().name("snapshot".into());
        match thread.spawn(move || order.make()) {
            Ok(running) => self.running = Some(running),
            Err(error) => tracing::warn!(%error, "cannot begin a state snapshot, will try again later"),
        }
        self.not_before = version.saturating_add(pause);
    }

    /// The files that were begun last: they may be durable and not yet taken.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The snapshot that has become durable since the last look.
    pub(super) fn take(&mut self) -> Option<Vec<StateFile>> {
        if self.running.as_ref().is_some_and(JoinHandle::is_finished) { self.wait() } else { None }
    }

    /// The same, after the end of the one that runs.
    pub(super) fn wait(&mut self) -> Option<Vec<StateFile>> {
        match self.running.take()?.join() {
            Ok(Ok(files)) => Some(files),
            Ok(Err(error)) => {
                tracing::warn!(error = describe_chain(&error), "cannot make a state snapshot, will try again later");
                None
            }
            Err(_) => {
                tracing::warn!("the thread of a state snapshot panicked, will try again later");
                None
            }
        }
    }
}

/// A family while it is merged: what the changelogs say over the old snapshot.
#[derive(Default)]
struct Overlay<'a> {
    keys: HashMap<&'a [u8], Option<&'a [u8]>>,
    gone_through: Option<u64>,
}

impl<'a> Overlay<'a> {
    fn apply(&mut self, record: Record<'a>) {
        match record {
            Record::Put { key, value, .. } => {
                self.keys.insert(key, Some(value));
            }
            Record::Delete { key, .. } => {
                self.keys.insert(key, None);
            }
            Record::DeleteThrough { through, .. } => {
                self.keys.retain(|key, _| prefix_of(key) > through);
                self.gone_through = self.gone_through.max(Some(through));
            }
        }
    }

    /// Whether a key of the old snapshot is still as it was.
    fn spares(&self, key: &[u8]) -> bool {
        self.gone_through.is_none_or(|through| prefix_of(key) > through) && !self.keys.contains_key(key)
    }
}

/// The families of all files under one numbering.
#[derive(Default)]
struct Numbering<'a>(Vec<FrameFamily<'a>>);

impl<'a> Numbering<'a> {
    fn number(&mut self, family: FrameFamily<'a>) -> Result<usize, String> {
        if let Some(number) = self.0.iter().position(|known| known.name == family.name) {
            let known = &mut self.0[number];
            if known.schema_id != family.schema_id {
                return Err(format!("family `{}` changes its schema between files", family.name));
            }
            known.layout = family.layout;
            return Ok(number);
        }
        self.0.push(family);
        Ok(self.0.len() - 1)
    }
}

impl Order {
    fn make(&self) -> Result<Vec<StateFile>, StateError> {
        match self.names.as_slice() {
            [name] => Ok(vec![self.make_whole(name)?]),
            _ => self.make_parts(),
        }
    }

    /// The version of the snapshot.
    pub(super) fn version(&self) -> u64 {
        self.inputs.last().map_or(0, |file| file.version)
    }

    fn make_whole(&self, name: &str) -> Result<StateFile, StateError> {
        let mut chain = Chain::new(&*self.files);
        let bytes = self.inputs.iter().map(|file| chain.get(file)).collect::<Result<Vec<Bytes>, _>>()?;
        let mut families = Numbering::default();
        let mut overlays: Vec<Overlay<'_>> = Vec::new();
        let mut old: Vec<(Frame<'_>, Vec<usize>, &str)> = Vec::new();
        for (file, bytes) in self.inputs.iter().zip(&bytes) {
            let frame = chain.next(file, bytes)?;
            let damaged = |reason| chain.damaged(&file.name, reason);
            let numbers = frame.families.iter().map(|family| families.number(*family));
            let numbers = numbers.collect::<Result<Vec<usize>, String>>().map_err(damaged)?;
            overlays.resize_with(families.0.len(), Overlay::default);
            if frame.kind == StateFileKind::Snapshot {
                old.push((frame, numbers, &file.name));
                continue;
            }
            each_record(&frame, |record| {
                overlays[numbers[record.family()]].apply(record);
                Ok::<(), String>(())
            })
            .map_err(damaged)?;
        }
        let mut body = Vec::with_capacity(old.iter().map(|(frame, ..)| frame.body.len()).sum());
        let mut records = 0;
        for (frame, numbers, name) in &old {
            each_record(frame, |record| {
                if let Record::Put { family, key, value } = record {
                    let family = numbers[family];
                    if overlays[family].spares(key) {
                        Record::Put { family, key, value }.write(&mut body);
                        records += 1;
                    }
                }
                Ok::<(), String>(())
            })
            .map_err(|reason| chain.damaged(name, reason))?;
        }
        for (family, overlay) in overlays.iter().enumerate() {
            for (key, value) in overlay.keys.iter().filter_map(|(key, value)| value.map(|value| (*key, value))) {
                Record::Put { family, key, value }.write(&mut body);
                records += 1;
            }
        }
        self.write(name, families.0, chain.lineage(), (body, records))
    }

    /// Makes one file of the snapshot durable: the body and the number of its records.
    pub(super) fn write(
        &self,
        name: &str,
        families: Vec<FrameFamily<'_>>,
        lineage: Lineage,
        (body, records): (Vec<u8>, u64),
    ) -> Result<StateFile, StateError> {
        let (kind, version) = (StateFileKind::Snapshot, self.version());
        let frame = Frame { kind, version, lineage, writer: &self.writer, families, records, body: &[] };
        let (bytes, crc) = frame.write(std::iter::once(&*body), body.len());
        drop(body);
        let len = bytes.len() as u64;
        self.files.put_new(name, bytes).map_err(|source| StateError::Files { place: self.files.location(), source })?;
        Ok(StateFile { name: name.to_owned(), kind, version, bytes: len, crc })
    }
}

/// Calls `visit` with every record of a file, up to its first error, and checks kind and number of them.
pub(super) fn each_record<'a, E: From<String>>(
    frame: &Frame<'a>,
    mut visit: impl FnMut(Record<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let mut reader = Reader(frame.body);
    let mut count = 0_u64;
    while let Some(record) = reader.record(frame.families.len())? {
        if frame.kind == StateFileKind::Snapshot && !matches!(record, Record::Put { .. }) {
            return Err("a snapshot holds a deletion".to_owned().into());
        }
        count += 1;
        visit(record)?;
    }
    if count == frame.records {
        Ok(())
    } else {
        Err(format!("it has {count} records, its header says {}", frame.records).into())
    }
}
