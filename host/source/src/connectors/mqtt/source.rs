//! The source of MQTT behind the contract of a source: numbers of the spool are its offsets.

use super::config::MqttConfig;
use super::receiver::{Receiver, Shared, State};
use super::released::Released;
use super::spool::{Head, Spool};
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSettings, SourceSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::ReadLimit;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many messages a batch query reads at a time, where the user names no limit.
const BATCH_QUERY_ENTRIES: u64 = 100_000;

/// Makes sources of MQTT.
#[derive(Debug, Clone, Default)]
pub struct MqttSourceFactory {
    settings: SourceSettings,
}

impl SourceFactory for MqttSourceFactory {
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        MqttConfig::new(spec).map(|_| MqttConfig::schema())
    }

    fn with_settings(&self, settings: &SourceSettings) -> Option<Arc<dyn SourceFactory>> {
        Some(Arc::new(Self { settings: settings.clone() }))
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(MqttSource::new(spec, context, self.settings.batches_retained, false)?))
    }

    fn open_bounded(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(MqttSource::new(spec, context, self.settings.batches_retained, true)?))
    }
}

/// The source.
struct MqttSource {
    name: String,
    config: MqttConfig,
    context: SourceContext,
    /// Whether it is read to its end once.
    is_bounded: bool,
    shared: Arc<Shared>,
    /// What the newest file of the spool said when the source was opened.
    head: Option<Head>,
    /// What receives, once something new is asked for.
    receiver: Option<Receiver>,
    /// The number of the last message, once everything available was fixed.
    frozen: Option<u64>,
    /// The ends of the batches that may be read again.
    released: Released,
}

impl MqttSource {
    fn new(
        spec: &SourceSpec,
        context: SourceContext,
        batches_retained: u64,
        is_bounded: bool,
    ) -> Result<Self, SourceError> {
        let config = MqttConfig::new(spec)?;
        let (spool, head) = Spool::open(&spec.name, context.files.as_ref())?;
        let released = Released::open(&spec.name, Arc::clone(&context.files), batches_retained)?;
        Ok(Self {
            name: spec.name.clone(),
            config,
            context,
            is_bounded,
            shared: Arc::new(Shared::new(spool)),
            head: Some(head),
            receiver: None,
            frozen: None,
            released,
        })
    }

    /// The number in an offset; 0 before the first message.
    fn number(&self, offset: Option<&Offset>) -> Result<u64, SourceError> {
        let Some(offset) = offset else { return Ok(0) };
        u64::try_from(offset.number(&self.name)?)
            .map_err(|_| SourceError::ForeignOffset { name: self.name.clone(), offset: offset.to_string() })
    }

    fn offset(number: u64) -> Offset {
        Offset(number.into())
    }

    fn lost(&self, from: u64, to: u64, reason: &str) -> SourceError {
        SourceError::Lost { name: self.name.clone(), range: format!("({from}, {to}]"), reason: reason.to_owned() }
    }

    /// Lets messages come from now on.
    fn receive(&mut self) -> Result<(), SourceError> {
        if self.receiver.is_some() {
            return Ok(());
        }
        let head = match self.head.take() {
            Some(head) => head,
            // A thread has ended, and the files know best how far it came.
            None => {
                let (spool, head) = Spool::open(&self.name, self.context.files.as_ref())?;
                self.shared.state().spool = spool;
                head
            }
        };
        let begun = (&self.shared, &head);
        self.receiver = Some(Receiver::start(&self.name, &self.config, &self.context, begun, self.is_bounded)?);
        Ok(())
    }

    /// Waits until it is enough, or until nobody wants to wait any longer.
    fn wait_until(&mut self, is_enough: impl Fn(&State) -> bool) -> Result<(), SourceError> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        while !is_enough(&state) && !self.context.stop.is_set() {
            if let Some(failure) = state.failure.take() {
                drop(state);
                self.receiver = None;
                return Err(failure);
            }
            state = shared.wait(state);
        }
        Ok(())
    }
}

impl Source for MqttSource {
    fn schema(&self) -> SchemaRef {
        MqttConfig::schema()
    }

    fn description(&self) -> String {
        format!("MqttMessages[{} at {}]", self.config.filters.join(", "), self.config.address.place())
    }

    fn read_limit(&self) -> ReadLimit {
        match self.config.most_entries {
            Some(most) => ReadLimit::MaxRows(most),
            None if self.is_bounded => ReadLimit::MaxRows(BATCH_QUERY_ENTRIES),
            None => ReadLimit::AllAvailable,
        }
    }

    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let from = self.number(start)?;
        {
            let mut state = self.shared.state();
            state.taken = state.taken.max(from);
            let last = state.spool.last();
            if from > last {
                return Err(self.lost(from, from, &format!("the spool in the checkpoint ends before, at {last}")));
            }
        }
        if self.frozen.is_none() {
            self.receive()?;
            // Where a query begins is where the broker first says that it gives the topics.
            self.wait_until(|state| state.spool.last() > from || (state.is_receiving && state.failure.is_none()))?;
        }
        let last = self.shared.state().spool.last().min(self.frozen.unwrap_or(u64::MAX));
        let most = match limit {
            ReadLimit::MaxRows(most) => most.max(1),
            _ => u64::MAX,
        };
        let end = last.min(from.saturating_add(most));
        Ok(if end > from { Some(Self::offset(end)) } else { start.cloned() })
    }

    fn newest_offset(&mut self) -> Option<Offset> {
        Some(self.shared.state().spool.last()).filter(|last| *last > 0).map(Self::offset)
    }

    fn metrics(&mut self, at: Option<&Offset>) -> BTreeMap<String, String> {
        let mut metrics = BTreeMap::new();
        let state = self.shared.state();
        if let Ok(at) = self.number(at) {
            metrics.insert("entriesBehindLatest".to_owned(), state.spool.last().saturating_sub(at).to_string());
        }
        if state.lost_sessions > 0 {
            metrics.insert("sessionsLost".to_owned(), state.lost_sessions.to_string());
        }
        metrics
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let (from, to) = (self.number(start)?, self.number(Some(end))?);
        if to <= from {
            return Ok(Vec::new());
        }
        let gone = "the spool in the checkpoint has them no more, or not yet";
        let parts = self.shared.state().spool.range(from, to);
        let parts = parts.ok_or_else(|| self.lost(from, to, gone))?;
        let mut batches = Vec::with_capacity(parts.len());
        for part in parts {
            let rows = part.read(&self.name, &self.context.files, projection)?;
            batches.extend(rows.ok_or_else(|| self.lost(from, to, gone))?);
        }
        // Neighbours stay together, so that the order of messages is the order of partitions.
        let share = batches.len().div_ceil(self.context.default_parallelism.max(1)).max(1);
        Ok(batches.chunks(share).map(<[RecordBatch]>::to_vec).collect())
    }

    fn release(&mut self, end: &Offset) -> Result<(), SourceError> {
        let end = self.number(Some(end))?;
        let Some(until) = self.released.add(end) else { return Ok(()) };
        let forgotten = self.shared.state().spool.forget(until);
        for path in forgotten {
            if let Err(error) = self.context.files.delete(&path) {
                tracing::warn!(source = self.name, %error, "a file of the spool that is no longer needed stays");
            }
        }
        Ok(())
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        self.receive()?;
        self.shared.state().wants_all = true;
        self.wait_until(|state| state.has_all)?;
        self.frozen = Some(self.shared.state().spool.last());
        Ok(())
    }

    fn stop(&mut self) {
        self.receiver = None;
    }
}
