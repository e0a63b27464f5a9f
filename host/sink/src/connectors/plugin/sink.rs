//! The sink over a plugin.

use super::FORMAT;
use super::config::Config;
use super::partition::{partitions, projected};
use super::prepared::{Prepared, Token};
use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use millstream_common::{BatchId, OutputMode, Panicked, QueryId};
use millstream_wasm::{PluginSlot, SinkOutcome, SinkSignature, SinkTarget, WasmError, sink_fields};
use serde_json::Value;
use std::any::Any;
use std::sync::Arc;

/// Makes sinks over the plugins of one query.
#[derive(Debug, Clone)]
pub struct PluginSinkFactory {
    slots: Vec<Arc<PluginSlot>>,
}

impl PluginSinkFactory {
    /// A factory over the plugins of a query.
    pub fn new(slots: Vec<Arc<PluginSlot>>) -> Self {
        Self { slots }
    }

    /// The sink of a plugin that a spec names, so that a swap looks at it.
    ///
    /// # Errors
    /// When the options do not fit.
    pub fn sink_name(&self, spec: &SinkSpec) -> Result<String, SinkError> {
        Ok(Config::read(spec, &self.slots)?.sink)
    }
}

impl SinkFactory for PluginSinkFactory {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        Config::read(spec, &self.slots).map(drop)
    }

    fn check_columns(&self, spec: &SinkSpec, schema: &SchemaRef) -> Result<(), SinkError> {
        let config = Config::read(spec, &self.slots)?;
        Columns::of(&signature(&config)?, schema).map(drop)
    }

    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        Ok(Box::new(PluginSink { config: Config::read(spec, &self.slots)?, query: context.query, prepared: None }))
    }
}

/// What the component that stands in the slot now says of the sink.
fn signature(config: &Config) -> Result<SinkSignature, SinkError> {
    let component = config.slot.component();
    let found = component.sink(&config.sink).map(|(_, signature)| signature.clone());
    found.ok_or_else(|| schema_error(format!("plugin `{}` has no sink `{}` any more", config.slot.name(), config.sink)))
}

/// The columns of the result that a sink takes.
struct Columns {
    /// Their places in the result.
    indices: Vec<usize>,
    /// As they cross the boundary.
    fields: Vec<FieldRef>,
}

impl Columns {
    fn of(signature: &SinkSignature, schema: &Schema) -> Result<Self, SinkError> {
        if signature.columns.is_empty() {
            let fields = sink_fields(schema.fields()).map_err(schema_error)?;
            return Ok(Self { indices: (0..fields.len()).collect(), fields });
        }
        let mut indices = Vec::new();
        for wanted in &signature.columns {
            let (name, takes) = (wanted.name(), wanted.data_type());
            let (index, field) = schema.column_with_name(name).ok_or_else(|| {
                let known = schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
                schema_error(format!("sink `{}` takes a column `{name}`, and the result has {known}", signature.name))
            })?;
            let given = sink_fields([&Arc::new(field.clone())]).map_err(schema_error)?;
            let given = given.first().map_or(&DataType::Null, |field| field.data_type());
            if !given.equals_datatype(takes) {
                let name_of_sink = &signature.name;
                return Err(schema_error(format!(
                    "column `{name}` is {given}, and sink `{name_of_sink}` takes {takes}: write `CAST({name} AS …) AS {name}`"
                )));
            }
            indices.push(index);
        }
        Ok(Self { indices, fields: signature.columns.clone() })
    }
}

fn schema_error(reason: String) -> SinkError {
    SinkError::Schema { sink: FORMAT.into(), reason }
}

struct PluginSink {
    config: Config,
    query: QueryId,
    prepared: Option<Value>,
}

impl PluginSink {
    fn target(&self, batch: BatchId, partition: u32) -> SinkTarget {
        SinkTarget { query_id: self.query.to_string(), partition, batch, options: self.config.options.clone() }
    }

    fn failed(&self, batch: BatchId, source: WasmError) -> SinkError {
        SinkError::Plugin { sink: self.config.sink.clone(), batch, source: Box::new(source) }
    }

    /// Writes all partitions, at the same time if there are several.
    fn write(
        &self,
        batch: &SinkBatch<'_>,
        fields: &[FieldRef],
        partitions: &[Vec<RecordBatch>],
    ) -> Vec<Result<SinkOutcome, WasmError>> {
        let write = |(partition, rows): (u32, &Vec<RecordBatch>)| {
            let target = self.target(batch.id, partition);
            self.config.slot.write_to_sink(&self.config.sink, &target, (batch.mode, fields), rows)
        };
        let [one] = partitions else {
            return std::thread::scope(|scope| {
                let threads: Vec<_> = (0..).zip(partitions).map(|part| scope.spawn(move || write(part))).collect();
                let joined = threads.into_iter().map(|thread| {
                    let reason = |panic: Box<dyn Any + Send>| Panicked::of(panic.as_ref()).to_string();
                    thread.join().unwrap_or_else(|panic| Err(WasmError::Engine { reason: reason(panic) }))
                });
                joined.collect()
            });
        };
        vec![write((0, one))]
    }

    /// Gives each token that was prepared to the plugin again. The first failure is the answer, after all were tried.
    fn settle(
        &self,
        batch: BatchId,
        prepared: &Prepared,
        settle: impl Fn(&PluginSlot, &SinkTarget, &[u8]) -> Result<(), WasmError>,
    ) -> Result<(), SinkError> {
        let mut first = Ok(());
        for token in &prepared.tokens {
            let bytes = token.bytes().unwrap_or_default();
            let done = settle(&self.config.slot, &self.target(batch, token.partition), &bytes);
            if let (Err(error), true) = (done, first.is_ok()) {
                first = Err(self.failed(batch, error));
            }
        }
        first
    }

    /// What was prepared, if it was prepared here.
    fn own(&self, batch: BatchId, prepared: &Value) -> Result<Prepared, SinkError> {
        let prepared = Prepared::read(batch, prepared)?;
        if prepared.plugin == self.config.slot.name() && prepared.sink == self.config.sink {
            return Ok(prepared);
        }
        let by = format!("sink `{}` of plugin `{}`", prepared.sink, prepared.plugin);
        Err(SinkError::NotPrepared { sink: self.description(), batch, by })
    }

    fn abort_own(&self, batch: BatchId, prepared: &Prepared) -> Result<(), SinkError> {
        let sink = &self.config.sink;
        self.settle(batch, prepared, |slot, target, token| slot.abort_sink(sink, target, token))
    }
}

impl Sink for PluginSink {
    fn description(&self) -> String {
        format!("PluginSink[{}.{}]", self.config.slot.name(), self.config.sink)
    }

    fn guarantee(&self) -> Guarantee {
        match signature(&self.config) {
            Ok(signature) if signature.transactional => Guarantee::ExactlyOnce,
            _ => Guarantee::AtLeastOnce,
        }
    }

    fn supports(&self, mode: OutputMode) -> bool {
        signature(&self.config).is_ok_and(|signature| signature.modes.contains(&mode))
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        self.prepared = None;
        let signature = signature(&self.config)?;
        if !signature.modes.contains(&batch.mode) {
            let known = signature.modes.iter().map(OutputMode::to_string).collect::<Vec<_>>().join(", ");
            return Err(SinkError::Mode { sink: self.config.sink.clone(), mode: batch.mode, known });
        }
        let columns = Columns::of(&signature, batch.schema)?;
        let wrong = |error: ArrowError| schema_error(error.to_string());
        let rows = batch.rows.iter().map(|rows| projected(rows, &columns.indices, &columns.fields));
        let rows = rows.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let parts = partitions(rows, self.config.partitions).map_err(wrong)?;

        let (mut taken, mut tokens, mut failure) = (0, Vec::new(), None);
        for (partition, outcome) in (0..).zip(self.write(batch, &columns.fields, &parts)) {
            match outcome {
                Ok(outcome) => {
                    taken += outcome.rows;
                    tokens.extend(outcome.token.map(|token| Token::new(partition, &token)));
                }
                Err(error) => drop(failure.get_or_insert(error)),
            }
        }
        let (plugin, sink) = (self.config.slot.name().to_owned(), self.config.sink.clone());
        let prepared = Prepared { plugin, sink, tokens };
        if let Some(error) = failure {
            if let Err(error) = self.abort_own(batch.id, &prepared) {
                tracing::warn!(batch = batch.id.0, "what other partitions prepared could not be dropped: {error}");
            }
            return Err(self.failed(batch.id, error));
        }
        self.prepared = signature.transactional.then(|| prepared.write());
        Ok(SinkReport { rows: taken })
    }

    fn take_prepared(&mut self) -> Option<Value> {
        self.prepared.take()
    }

    fn commit(&mut self, batch: BatchId, prepared: &Value) -> Result<(), SinkError> {
        let (prepared, sink) = (self.own(batch, prepared)?, &self.config.sink);
        self.settle(batch, &prepared, |slot, target, token| slot.commit_sink(sink, target, token))
    }

    fn abort(&mut self, batch: BatchId, prepared: &Value) -> Result<(), SinkError> {
        self.abort_own(batch, &self.own(batch, prepared)?)
    }
}
