//! Snapshots in the background: old snapshot and changelogs become one new snapshot, file to file.
//!
//! Begun by `commit`, taken into the manifest by a later `prepare`.
//!
//! Rule of its life: the live tables are never touched, only files that the commit log names. A snapshot that
//! fails costs nothing but the wish: it is told as a warning and tried again some versions later. At most one
//! runs per store; dropping the store waits for it.

use super::chain::Chain;
use super::family::prefix_of;
use super::frame::{Frame, FrameFamily};
use super::record::{Reader, Record};
use crate::{StateError, StateFile, StateFileKind};
use bytes::Bytes;
use hashbrown::HashMap;
use millstream_common::{DurableFiles, describe_chain};
use std::sync::Arc;
use std::thread::JoinHandle;

/// What a snapshot is made of.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) files: Arc<dyn DurableFiles>,
    pub(super) inputs: Vec<StateFile>,
    pub(super) name: String,
    pub(super) writer: String,
}

/// The snapshot of a store that is being made, if any.
#[derive(Debug, Default)]
pub(super) struct Background {
    running: Option<JoinHandle<Result<StateFile, StateError>>>,
    name: Option<String>,
    not_before: u64,
}

impl Background {
    /// Whether a snapshot may be begun at `version`.
    pub(super) fn is_free(&self, version: u64) -> bool {
        self.running.is_none() && version >= self.not_before
    }

    /// Begins; when no thread can be had, it is as if the snapshot had failed.
    pub(super) fn begin(&mut self, order: Order, version: u64, pause: u64) {
        self.name = Some(order.name.clone());
        let thread = std::thread::Builder::new().name("snapshot".into());
        match thread.spawn(move || order.make()) {
            Ok(running) => self.running = Some(running),
            Err(error) => tracing::warn!(%error, "cannot begin a state snapshot, will try again later"),
        }
        self.not_before = version.saturating_add(pause);
    }

    /// The file that was begun last: it may be durable and not yet taken.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The snapshot that has become durable since the last look.
    pub(super) fn take(&mut self) -> Option<StateFile> {
        if self.running.as_ref().is_some_and(JoinHandle::is_finished) { self.wait() } else { None }
    }

    /// The same, after the end of the one that runs.
    pub(super) fn wait(&mut self) -> Option<StateFile> {
        match self.running.take()?.join() {
            Ok(Ok(file)) => Some(file),
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
struct Families<'a> {
    named: Vec<FrameFamily<'a>>,
    overlays: Vec<Overlay<'a>>,
}

impl<'a> Families<'a> {
    fn number(&mut self, family: FrameFamily<'a>) -> Result<usize, String> {
        if let Some(number) = self.named.iter().position(|known| known.name == family.name) {
            let known = &mut self.named[number];
            if known.schema_id != family.schema_id {
                return Err(format!("family `{}` changes its schema between files", family.name));
            }
            known.layout = family.layout;
            return Ok(number);
        }
        self.named.push(family);
        self.overlays.push(Overlay::default());
        Ok(self.named.len() - 1)
    }
}

impl Order {
    fn make(&self) -> Result<StateFile, StateError> {
        let mut chain = Chain::new(&*self.files);
        let bytes = self.inputs.iter().map(|file| chain.get(file)).collect::<Result<Vec<Bytes>, _>>()?;
        let mut families = Families::default();
        let mut old: Option<(Frame<'_>, Vec<usize>, &str)> = None;
        for (file, bytes) in self.inputs.iter().zip(&bytes) {
            let frame = chain.next(file, bytes)?;
            let damaged = |reason| chain.damaged(&file.name, reason);
            let numbers = frame.families.iter().map(|family| families.number(*family));
            let numbers = numbers.collect::<Result<Vec<usize>, String>>().map_err(damaged)?;
            if frame.kind == StateFileKind::Snapshot {
                old = Some((frame, numbers, &file.name));
                continue;
            }
            each_record(&frame, |record| {
                families.overlays[numbers[record.family()]].apply(record);
                Ok::<(), String>(())
            })
            .map_err(damaged)?;
        }
        let mut body = Vec::with_capacity(old.as_ref().map_or(0, |(frame, ..)| frame.body.len()));
        let mut records = 0;
        if let Some((frame, numbers, name)) = &old {
            each_record(frame, |record| {
                if let Record::Put { family, key, value } = record {
                    let family = numbers[family];
                    if families.overlays[family].spares(key) {
                        Record::Put { family, key, value }.write(&mut body);
                        records += 1;
                    }
                }
                Ok::<(), String>(())
            })
            .map_err(|reason| chain.damaged(name, reason))?;
        }
        for (family, overlay) in families.overlays.iter().enumerate() {
            for (key, value) in overlay.keys.iter().filter_map(|(key, value)| value.map(|value| (*key, value))) {
                Record::Put { family, key, value }.write(&mut body);
                records += 1;
            }
        }
        let version = self.inputs.last().map_or(0, |file| file.version);
        let frame = Frame {
            kind: StateFileKind::Snapshot,
            version,
            lineage: chain.lineage(),
            writer: &self.writer,
            families: families.named,
            records,
            body: &[],
        };
        let (bytes, crc) = frame.write(std::iter::once(&*body), body.len());
        drop(body);
        let len = bytes.len() as u64;
        self.files
            .put_new(&self.name, bytes)
            .map_err(|source| StateError::Files { place: self.files.location(), source })?;
        Ok(StateFile { name: self.name.clone(), kind: StateFileKind::Snapshot, version, bytes: len, crc })
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
