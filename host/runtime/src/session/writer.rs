//! `frame.write_stream()` (Spark's `DataStreamWriter`).

use super::DataFrame;
use crate::RuntimeError;
use crate::query::StreamingQuery;
use crate::query::{ProgressListener, checkpoint_option, without_checkpoint};
use crate::spec::QuerySpec;
use arrow::array::RecordBatch;
use millstream_common::{BatchId, Options, OutputMode, Trigger};
use millstream_sink::connectors::foreach::{ForeachFactory, ForeachWriter};
use millstream_sink::connectors::foreach_batch::ForeachBatchFactory;
use millstream_sink::{SinkFactory, SinkSpec};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

const FOREACH: &str = "foreach";
const FOREACH_BATCH: &str = "foreachBatch";

/// Describes a query's output, part by part, until `start`.
#[must_use]
pub struct DataStreamWriter {
    frame: DataFrame,
    name: Option<String>,
    mode: OutputMode,
    trigger: Trigger,
    format: Option<String>,
    options: Options,
    listener: Option<ProgressListener>,
    /// The sink over code of the program, if it is one.
    own: Option<Arc<dyn SinkFactory>>,
    uids: BTreeMap<String, String>,
}

impl DataStreamWriter {
    pub(super) fn new(frame: DataFrame) -> Self {
        Self {
            frame,
            name: None,
            mode: OutputMode::Append,
            trigger: Trigger::Default,
            format: None,
            options: Options::new(),
            listener: None,
            own: None,
            uids: BTreeMap::new(),
        }
    }

    /// Which rows go out.
    pub fn output_mode(mut self, mode: OutputMode) -> Self {
        self.mode = mode;
        self
    }

    /// The connector: `console`, `memory`, `parquet`, …
    pub fn format(mut self, format: &str) -> Self {
        self.format = Some(format.to_owned());
        self.own = None;
        self
    }

    /// Hands each batch to a function: the rows, in at least one piece, and the batch's id. When it fails, the batch fails and the
    /// query stops; the next start hands over the same batch with the same id. So rows may come twice, and the id tells.
    pub fn foreach_batch<E: Into<Box<dyn Error + Send + Sync>>>(
        self,
        mut function: impl FnMut(&[RecordBatch], BatchId) -> Result<(), E> + Send + 'static,
    ) -> Self {
        let factory = ForeachBatchFactory::new(move |rows, batch| function(rows, batch).map_err(Into::into));
        self.own_sink(FOREACH_BATCH, Arc::new(factory))
    }

    /// Hands each row to a writer, at least once; see [`ForeachWriter`].
    pub fn foreach(self, writer: impl ForeachWriter) -> Self {
        self.own_sink(FOREACH, Arc::new(ForeachFactory::new(writer)))
    }

    fn own_sink(mut self, format: &str, factory: Arc<dyn SinkFactory>) -> Self {
        self.format = Some(format.to_owned());
        self.own = Some(factory);
        self
    }

    /// Lets a stateful operator that would be called `natural` be called `uid`: keeps its state when a name has changed.
    pub fn uid(mut self, natural: &str, uid: &str) -> Self {
        self.uids.insert(natural.to_owned(), uid.to_owned());
        self
    }

    /// An option, with Spark's name; `checkpointLocation` is the query's.
    pub fn option(mut self, key: &str, value: impl ToString) -> Self {
        self.options.set(key, value.to_string());
        self
    }

    /// The columns that rows are put into folders by, of sinks that have folders: `parquet`, `json`, …, `delta`.
    pub fn partition_by(self, columns: &[&str]) -> Self {
        let names = serde_json::Value::from(columns.to_vec());
        self.option("partitionBy", names)
    }

    /// When batches start.
    pub fn trigger(mut self, trigger: Trigger) -> Self {
        self.trigger = trigger;
        self
    }

    /// The query's name.
    pub fn query_name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Calls `listener` with the progress of every batch, on the query's thread.
    pub fn on_progress(mut self, listener: ProgressListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// The query as it would start. One with `foreach` or `foreach_batch` starts by [`start`](Self::start) only: no other session
    /// has its sink.
    ///
    /// # Errors
    /// When there is no format.
    pub fn spec(&self) -> Result<QuerySpec, RuntimeError> {
        let format = self.format.clone().ok_or_else(|| RuntimeError::Invalid {
            reason: "a query needs a sink".into(),
            hint: Some("call .format(\"console\"), .format(\"memory\"), …".into()),
        })?;
        let reads = self.frame.reads();
        let session = self.frame.session();
        Ok(QuerySpec {
            name: self.name.clone(),
            streams: reads.streams.clone(),
            tables: reads.tables.clone(),
            plugins: session.plugins(),
            query: self.frame.frame().clone().into(),
            mode: self.mode,
            trigger: self.trigger,
            checkpoint: checkpoint_option(&self.options),
            sink: SinkSpec { format, options: without_checkpoint(&self.options) },
            checkpoint_options: Vec::new(),
            settings: session.settings(),
            uids: self.uids.clone(),
            state: session.state_limits(),
            late_rows: None,
        })
    }

    /// Starts the query.
    ///
    /// # Errors
    /// When anything does not fit; see [`StreamingQuery::start`].
    pub fn start(mut self) -> Result<StreamingQuery, RuntimeError> {
        let spec = self.spec()?;
        let session = self.frame.session();
        let session = match self.own.take() {
            Some(factory) => session.with_sink(&spec.sink.format, factory),
            None => session.clone(),
        };
        StreamingQuery::start(&session, spec, self.listener.take())
    }

    /// Starts the query, writing to a folder or file.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_path(self, path: &str) -> Result<StreamingQuery, RuntimeError> {
        self.option("path", path).start()
    }
}
