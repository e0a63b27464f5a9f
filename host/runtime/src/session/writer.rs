//! `frame.write_stream()` (Spark's `DataStreamWriter`).

use super::DataFrame;
use super::data_frame::Content;
use crate::RuntimeError;
use crate::query::StreamingQuery;
use crate::query::{ProgressListener, checkpoint_option, without_checkpoint};
use crate::spec::{QuerySpec, StreamSpec};
use millstream_common::{Options, OutputMode, Trigger};
use millstream_sink::SinkSpec;
use std::collections::BTreeMap;

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
        self
    }

    /// An option, with Spark's name; `checkpointLocation` is the query's.
    pub fn option(mut self, key: &str, value: impl ToString) -> Self {
        self.options.set(key, value.to_string());
        self
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

    /// The query as it would start.
    ///
    /// # Errors
    /// When there is no format, or views refer to each other in a circle.
    pub fn spec(&self) -> Result<QuerySpec, RuntimeError> {
        let format = self.format.clone().ok_or_else(|| RuntimeError::Invalid {
            reason: "a query needs a sink".into(),
            hint: Some("call .format(\"console\"), .format(\"memory\"), …".into()),
        })?;
        let (streams, sql) = resolve(&self.frame);
        let session = &self.frame.session;
        Ok(QuerySpec {
            name: self.name.clone(),
            streams,
            tables: Vec::new(),
            plugins: session.plugins(),
            sql,
            mode: self.mode,
            trigger: self.trigger,
            checkpoint: checkpoint_option(&self.options),
            sink: SinkSpec { format, options: without_checkpoint(&self.options) },
            checkpoint_options: Vec::new(),
            settings: session.settings(),
            uids: BTreeMap::new(),
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
        StreamingQuery::start(&self.frame.session, spec, self.listener.take())
    }
}

/// The streams behind a frame, and its SQL. Views over queries become WITH clauses of their names.
fn resolve(frame: &DataFrame) -> (Vec<StreamSpec>, String) {
    let sql = match &frame.content {
        Content::Stream(stream) => {
            let mut stream = stream.as_ref().clone();
            stream.source.name = "stream".into();
            return (vec![stream], "SELECT * FROM stream".into());
        }
        Content::Query(sql) => sql.clone(),
    };
    let mut streams = Vec::new();
    let mut views = Vec::new();
    for (name, view) in frame.session.views() {
        match view.content {
            Content::Stream(mut stream) => {
                stream.source.name = name;
                streams.push(*stream);
            }
            Content::Query(sql) => views.push((name, sql)),
        }
    }
    (streams, millstream_plan::with_views(&sql, &views))
}
