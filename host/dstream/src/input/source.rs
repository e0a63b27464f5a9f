//! An input over any source of the engine.
//!
//! Offsets are the source's own, in the offset log as they are. A direct input reads again what a crash cut short. A
//! received one (the socket) cannot; its rows are kept in the checkpoint before their batch is defined.

use super::{Done, Input, Kept, Opening, Pressure, Slot, count, kept};
use crate::context::frame::Frame;
use crate::context::settings::rows_per_batch;
use crate::listener::{Listeners, ReceiverInfo};
use crate::lock::locked;
use crate::rdd::{InputRange, Rdd};
use crate::{BatchInfo, DStreamError, Data, Refusal, Time};
use arrow::array::RecordBatch;
use millstream_checkpoint::{ConnectorPin, OffsetRange};
use millstream_common::ReadLimit;
use millstream_source::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use std::sync::{Arc, Mutex, MutexGuard};

/// What the rows of a source become, partition by partition.
pub(crate) type Decode<T> = fn(&str, Vec<RecordBatch>) -> Result<Vec<T>, SourceError>;
type WithKept<T> = fn(Option<&Kept>, Time, Vec<Vec<T>>) -> Result<Vec<Vec<T>>, DStreamError>;

/// How a source is used.
pub(crate) enum SourceKind<T> {
    /// Read again when it must be.
    Direct,
    /// Direct, and what is there at the first start is left out.
    DirectFromNow,
    /// Received once.
    Received(WithKept<T>),
}

impl SourceKind<String> {
    /// Lines that are received once.
    pub(crate) fn received_lines() -> Self {
        Self::Received(kept::with_kept)
    }
}

struct Open {
    source: Box<dyn Source>,
    /// Up to where batches were cut.
    position: Option<Offset>,
    kept: Option<Kept>,
    listeners: Arc<Listeners>,
    /// The source keeps to the rate of a partition by itself.
    is_limited: bool,
    stopped: bool,
}

/// An input over a source.
pub(crate) struct SourceInput<T> {
    spec: SourceSpec,
    factory: Arc<dyn SourceFactory>,
    frame: Arc<Frame>,
    kind: SourceKind<T>,
    decode: Decode<T>,
    slot: Arc<Slot<T>>,
    open: Mutex<Option<Open>>,
    pressure: Pressure,
    /// Offsets that the program wants to be committed.
    commits: Mutex<Vec<(serde_json::Value, Done)>>,
}

impl<T: Data> SourceInput<T> {
    /// Over the source of a spec; opened at the start.
    pub(crate) fn new(
        (spec, factory): (SourceSpec, Arc<dyn SourceFactory>),
        frame: Arc<Frame>,
        kind: SourceKind<T>,
        decode: Decode<T>,
    ) -> Result<Self, DStreamError> {
        factory.schema(&spec)?;
        let (slot, open, pressure, commits) = (Arc::default(), Mutex::default(), Pressure::default(), Mutex::default());
        Ok(Self { spec, factory, frame, kind, decode, slot, open, pressure, commits })
    }

    pub(crate) fn slot(&self) -> Arc<Slot<T>> {
        Arc::clone(&self.slot)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        locked(&self.open)
    }

    fn is_received(&self) -> bool {
        matches!(self.kind, SourceKind::Received(_))
    }

    /// How much a batch may take: what the source's options say, and the rates of the settings.
    fn limit(&self, open: &mut Open) -> ReadLimit {
        let settings = self.frame.settings().clone();
        let rate = if self.is_received() { settings.receiver_max_rate } else { settings.direct_max_rate };
        // A source without partitions is one.
        let rate = rate.filter(|_| !open.is_limited);
        let rows = rate.map(|rate| rows_per_batch(rate, self.frame.interval_ms));
        let adapted = self.pressure.rows(self.frame.interval_ms);
        let rows = rows.into_iter().chain(adapted).min();
        match (open.source.read_limit(), rows) {
            (ReadLimit::AllAvailable, Some(rows)) => ReadLimit::MaxRows(rows),
            (ReadLimit::MaxRows(own), Some(rows)) => ReadLimit::MaxRows(own.min(rows)),
            (own, _) => own,
        }
    }

    /// Commits what the program has asked for.
    fn flush(&self, open: &mut Open) -> Result<(), DStreamError> {
        for (offsets, done) in std::mem::take(&mut *locked(&self.commits)) {
            open.source.commit_offsets(&Offset(offsets), done)?;
        }
        Ok(())
    }

    fn read(&self, open: &mut Open, range: &OffsetRange, again: bool) -> Result<Vec<Vec<T>>, DStreamError> {
        let Some(end) = range.end.clone().filter(|_| range.start != range.end) else { return Ok(Vec::new()) };
        let start = range.start.clone().map(Offset);
        let columns: Vec<usize> = (0..open.source.schema().fields().len()).collect();
        let parts = match open.source.read(start.as_ref(), &Offset(end), &columns) {
            // They are kept, or gone with the run that received them.
            Err(SourceError::Lost { .. }) if again && self.is_received() => Vec::new(),
            parts => parts?,
        };
        let decode = |part| (self.decode)(&self.spec.name, part).map_err(DStreamError::from);
        parts.into_iter().map(decode).collect()
    }

    fn tell(&self, listeners: &Listeners, active: bool) {
        let info = ReceiverInfo { input: self.spec.name.clone(), active, last_error: String::new() };
        listeners.tell(|listener| match active {
            true => listener.on_receiver_started(&info),
            false => listener.on_receiver_stopped(&info),
        });
    }
}

impl<T: Data> Input for SourceInput<T> {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn pin(&self) -> Result<ConnectorPin, DStreamError> {
        Ok(ConnectorPin { format: self.spec.format.clone(), place: self.factory.place(&self.spec) })
    }

    fn open(&self, opening: Opening) -> Result<(), DStreamError> {
        let keep = opening.durable && self.is_received() && self.frame.settings().keep_received;
        let kept = keep.then(|| Kept::new(&self.spec.name, Arc::clone(&opening.files)));
        let context = SourceContext {
            files: opening.files,
            clock: opening.clock,
            stop: opening.stop,
            default_parallelism: self.frame.parallelism(),
        };
        let source = self.factory.open(&self.spec, context)?;
        let position = opening.position.map(Offset);
        let mut open = Open { source, position, kept, listeners: opening.listeners, is_limited: false, stopped: false };
        self.pressure.begin(&self.frame);
        if matches!(self.kind, SourceKind::DirectFromNow) && !opening.resumed {
            open.position = open.source.latest_offset(None, ReadLimit::AllAvailable)?;
        }
        if matches!(self.kind, SourceKind::Direct) {
            if open.position.is_none() {
                open.position = open.source.begin()?;
            }
            let rate = self.frame.settings().direct_max_rate;
            let rows = rate.map(|rate| rows_per_batch(rate, self.frame.interval_ms));
            open.is_limited = rows.is_some_and(|rows| open.source.limit_partitions(rows));
        }
        if self.is_received() {
            self.tell(&open.listeners, true);
        }
        *self.lock() = Some(open);
        Ok(())
    }

    fn cut(&self) -> Result<OffsetRange, DStreamError> {
        let mut guard = self.lock();
        let Some(open) = &mut *guard else { return Ok(OffsetRange::default()) };
        self.flush(open)?;
        let limit = self.limit(open);
        let start = open.position.clone();
        let end = open.source.latest_offset(start.as_ref(), limit)?;
        open.position.clone_from(&end);
        Ok(OffsetRange { start: start.map(|offset| offset.0), end: end.map(|offset| offset.0) })
    }

    fn load(&self, time: Time, range: &OffsetRange, again: bool) -> Result<u64, DStreamError> {
        let mut guard = self.lock();
        let Some(open) = &mut *guard else { return Ok(0) };
        let mut parts = self.read(open, range, again)?;
        if let SourceKind::Received(with_kept) = self.kind {
            parts = with_kept(open.kept.as_ref(), time, parts)?;
            if again && parts.is_empty() && range.start != range.end {
                tracing::warn!(input = self.name(), %time, "rows that were received before the restart are lost");
            }
        }
        let found = count(&parts);
        let ranges = match self.kind {
            SourceKind::Received(_) => Vec::new(),
            _ => vec![InputRange { input: self.spec.name.clone(), range: range.clone() }],
        };
        self.slot.put(time, Rdd::of_input(parts, self.frame.parallelism(), ranges));
        Ok(found)
    }

    fn defined(&self, range: &OffsetRange) -> Result<(), DStreamError> {
        if let (Some(open), Some(start)) = (&mut *self.lock(), &range.start) {
            open.source.release(&Offset(start.clone()))?;
        }
        Ok(())
    }

    fn committed(&self, time: Time) {
        if let Some(kept) = self.lock().as_ref().and_then(|open| open.kept.as_ref()) {
            kept.delete(time);
        }
    }

    fn worked(&self, batch: &BatchInfo) {
        self.pressure.learn(&self.spec.name, batch);
    }

    fn commit_async(&self, offsets: serde_json::Value, done: Done) -> Result<(), DStreamError> {
        if !matches!(self.kind, SourceKind::Direct) {
            return Err(Refusal::NoGroups { input: self.spec.name.clone() }.into());
        }
        locked(&self.commits).push((offsets, done));
        Ok(())
    }

    fn has_pending(&self) -> bool {
        let mut guard = self.lock();
        let Some(open) = guard.as_mut().filter(|_| self.is_received()) else { return false };
        let latest = open.source.latest_offset(open.position.as_ref(), ReadLimit::AllAvailable);
        latest.is_ok_and(|latest| latest != open.position)
    }

    fn stop_receiving(&self) {
        if self.is_received() {
            self.stop();
        }
    }

    fn stop(&self) {
        if let Some(open) = &mut *self.lock()
            && !std::mem::replace(&mut open.stopped, true)
        {
            if let Err(error) = self.flush(open) {
                tracing::warn!(input = self.spec.name, "the last offsets are not committed: {error}");
            }
            open.source.stop();
            if self.is_received() {
                self.tell(&open.listeners, false);
            }
        }
    }
}
