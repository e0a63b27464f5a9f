//! The inputs of a context.

use super::StreamingContext;
use crate::input::{
    Decode, DirectOptions, Input, QueueInput, RddQueue, Receiver, ReceiverInput, Record, Slot, SourceInput, SourceKind,
    record_rows, value_lines,
};
use crate::lock::locked;
use crate::rdd::Rdd;
use crate::stream::{DStream, NewStream, Role};
use crate::{DStreamError, Data, Item, Refusal};
use millstream_common::Options;
use millstream_source::{SourceFactory, SourceSpec};
use std::sync::Arc;

impl StreamingContext {
    /// The stream of an input.
    fn input<T: Data>(&self, input: Arc<dyn Input>, slot: Arc<Slot<T>>) -> DStream<T> {
        let new = NewStream {
            operation: "an input",
            slide_ms: self.inner.frame.interval_ms,
            parents: Vec::new(),
            role: Role::Input(input),
            refusal: None,
            compute: Box::new(move |time| Ok(slot.rows(time))),
        };
        DStream::new(&self.inner.frame, &self.inner.outputs, new)
    }

    /// The name of an input that the program gave none: that of its kind, with a number from the second on.
    fn input_name(&self, kind: &str) -> String {
        let mut build = locked(&self.inner.build);
        let count = build.names.entry(kind.to_owned()).or_default();
        *count += 1;
        if *count == 1 { kind.to_owned() } else { format!("{kind}-{count}") }
    }

    fn source(
        &self,
        format: &str,
        options: DirectOptions,
    ) -> Result<(SourceSpec, Arc<dyn SourceFactory>), DStreamError> {
        self.before_start("an input")?;
        let name = match options.name {
            None => self.input_name(format),
            Some(name) if name.is_empty() => return Err(Refusal::Name { what: "an input", name }.into()),
            Some(name) => name,
        };
        let spec = SourceSpec { name, format: format.to_owned(), schema: options.schema, options: options.options };
        let factory = Arc::clone(locked(&self.inner.build).registry.factory(&spec)?);
        Ok((spec, factory))
    }

    /// The stream of what a source gives.
    fn rows_of<T: Data>(
        &self,
        source: (SourceSpec, Arc<dyn SourceFactory>),
        kind: SourceKind<T>,
        decode: Decode<T>,
    ) -> Result<DStream<T>, DStreamError> {
        let input = SourceInput::new(source, Arc::clone(&self.inner.frame), kind, decode)?;
        let slot = input.slot();
        Ok(self.input(Arc::new(input), slot))
    }

    /// The lines that a server sends over a socket, as UTF-8. They cannot be asked for again: with a checkpoint they are kept
    /// there before their batch runs, and what no batch had taken is lost when the program dies.
    ///
    /// # Errors
    /// When the address cannot be one, or the context has been started. The connection is made at the start.
    pub fn socket_text_stream(&self, host: &str, port: u16) -> Result<DStream<String>, DStreamError> {
        let options = Options::new().with("host", host).with("port", port.to_string());
        let source = self.source("socket", DirectOptions::new(options))?;
        self.rows_of(source, SourceKind::received_lines(), value_lines)
    }

    /// The lines of files that come into a folder after the start; each file must come in whole, by a rename. What is there
    /// at the first start is left out.
    ///
    /// # Errors
    /// When the folder cannot be one, or the context has been started. It must be there at the start.
    pub fn text_file_stream(&self, folder: &str) -> Result<DStream<String>, DStreamError> {
        let options = Options::new().with("path", folder);
        let source = self.source("text", DirectOptions::new(options))?;
        self.rows_of(source, SourceKind::DirectFromNow, value_lines)
    }

    /// The rows of files of a format (`json`, `csv`, `parquet`, …) that come into a folder after the start, as
    /// [`text_file_stream`](Self::text_file_stream).
    ///
    /// # Errors
    /// As `text_file_stream`, and when the options do not fit the format.
    pub fn file_stream(&self, format: &str, options: DirectOptions) -> Result<DStream<Record>, DStreamError> {
        let source = self.source(format, options)?;
        self.rows_of(source, SourceKind::DirectFromNow, record_rows)
    }

    /// The rows of any source of the engine (`kafka`, `rate`, …), from where its options say. Each batch reads a range of
    /// its offsets, which is in the checkpoint before the batch runs, and which
    /// [`offset_ranges`](Rdd::offset_ranges) tells.
    ///
    /// # Errors
    /// When there is no such source, its options do not fit, or the context has been started.
    pub fn direct_stream(&self, format: &str, options: DirectOptions) -> Result<DStream<Record>, DStreamError> {
        let source = self.source(format, options)?;
        self.rows_of(source, SourceKind::Direct, record_rows)
    }

    /// The rows of a queue, one entry per batch. A program with a checkpoint cannot have it.
    ///
    /// # Errors
    /// When the context has been started.
    pub fn queue_stream<T: Data>(&self, queue: &RddQueue<T>) -> Result<DStream<T>, DStreamError> {
        self.queue_stream_with(queue, true, None)
    }

    /// As `queue_stream`; with all entries in each batch unless `one_at_a_time`, and with `default` for a batch when the
    /// queue is empty.
    ///
    /// # Errors
    /// When the context has been started.
    pub fn queue_stream_with<T: Data>(
        &self,
        queue: &RddQueue<T>,
        one_at_a_time: bool,
        default: Option<Rdd<T>>,
    ) -> Result<DStream<T>, DStreamError> {
        self.before_start("an input")?;
        let input = QueueInput::new(self.input_name("queue"), queue.clone(), one_at_a_time, default);
        let slot = input.slot();
        Ok(self.input(Arc::new(input), slot))
    }

    /// The rows that a receiver of the program stores.
    ///
    /// # Errors
    /// When the context has been started.
    pub fn receiver_stream<T: Item>(&self, receiver: impl Receiver<T>) -> Result<DStream<T>, DStreamError> {
        self.before_start("an input")?;
        let frame = Arc::clone(&self.inner.frame);
        let input = ReceiverInput::new(self.input_name("receiver"), frame, Arc::new(receiver));
        let slot = input.slot();
        Ok(self.input(Arc::new(input), slot))
    }
}
