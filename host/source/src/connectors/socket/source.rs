//! The socket source: numbers over the lines that were received.

use super::config::SocketConfig;
use super::receiver::{Line, Receiver};
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use millstream_common::ReadLimit;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many rows a batch has at most.
const BATCH_ROWS: usize = 8192;

/// Makes socket sources.
#[derive(Debug, Clone, Copy)]
pub struct SocketSourceFactory;

impl SourceFactory for SocketSourceFactory {
    fn can_be_read_twice(&self) -> bool {
        // Another connection gets other lines.
        false
    }

    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        Ok(SocketConfig::new(spec)?.schema())
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let config = SocketConfig::new(spec)?;
        let fail = |source: std::io::Error| SourceError::Unavailable {
            name: spec.name.clone(),
            action: "connect to",
            place: config.address(),
            source: Box::new(source),
        };
        let stream = connect(&config).map_err(fail)?;
        let clock = Arc::clone(&context.clock);
        let receiver = Receiver::start(&spec.name, stream, config.buffer_bytes, clock).map_err(fail)?;
        let name = spec.name.clone();
        Ok(Box::new(SocketSource { name, config, context, receiver, first: None, frozen: None, frozen_lines: None }))
    }
}

fn connect(config: &SocketConfig) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "the host has no address");
    for address in (config.host.as_str(), config.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

struct SocketSource {
    name: String,
    config: SocketConfig,
    context: SourceContext,
    receiver: Receiver,
    /// The number of the first line in the buffer; `None` until it is known where this run begins.
    first: Option<i64>,
    /// The last number, once everything available was fixed.
    frozen: Option<i64>,
    /// How many lines there were then, if the number of the first was not yet known.
    frozen_lines: Option<i64>,
}

impl SocketSource {
    fn start(&self, start: Option<&Offset>) -> Result<i64, SourceError> {
        start.map_or(Ok(-1), |offset| offset.number(&self.name))
    }

    /// The number of the newest line.
    fn last(&self) -> i64 {
        self.first.unwrap_or(0) + self.receiver.lines().kept.len() as i64 - 1
    }

    fn batch(&self, lines: &[Line], projection: &[usize]) -> Result<RecordBatch, SourceError> {
        let fail = |error: arrow::error::ArrowError| SourceError::Schema {
            name: self.name.clone(),
            reason: error.to_string(),
        };
        let schema = self.config.schema().project(projection).map_err(fail)?;
        let columns: Vec<ArrayRef> = projection
            .iter()
            .map(|column| match column {
                0 => Arc::new(StringArray::from_iter_values(lines.iter().map(|line| &line.text))) as ArrayRef,
                _ => {
                    let times = lines.iter().map(|line| line.arrived_ms.saturating_mul(1000));
                    Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC"))
                }
            })
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(lines.len()));
        RecordBatch::try_new_with_options(Arc::new(schema), columns, &options).map_err(fail)
    }
}

impl Source for SocketSource {
    fn schema(&self) -> SchemaRef {
        self.config.schema()
    }

    fn description(&self) -> String {
        format!("TextSocketStream[host: {}, port: {}]", self.config.host, self.config.port)
    }

    fn latest_offset(&mut self, start: Option<&Offset>, limit: ReadLimit) -> Result<Option<Offset>, SourceError> {
        let from = self.start(start)?;
        // The first line of this run is numbered on after what earlier runs committed.
        let first = *self.first.get_or_insert(from + 1);
        if let Some(lines) = self.frozen_lines.take() {
            self.frozen = Some(first + lines - 1);
        }
        let mut last = self.last().min(self.frozen.unwrap_or(i64::MAX));
        if let ReadLimit::MaxRows(rows) = limit {
            last = last.min(from.saturating_add(i64::try_from(rows).unwrap_or(i64::MAX)));
        }
        Ok(if last > from { Some(last.into()) } else { start.cloned() })
    }

    fn newest_offset(&mut self) -> Option<Offset> {
        self.first.map(|_| self.last().into())
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        let (from, to) = (self.start(start)?, end.number(&self.name)?);
        if to <= from {
            return Ok(vec![]);
        }
        let first = self.first.filter(|first| from + 1 >= *first && to <= self.last());
        let Some(first) = first else {
            return Err(SourceError::Lost {
                name: self.name.clone(),
                range: format!("({from}, {to}]"),
                reason: "a socket cannot send again what it sent before this start".into(),
            });
        };
        let lines: Vec<Line> = {
            let kept = &self.receiver.lines().kept;
            kept.range((from + 1 - first) as usize..=(to - first) as usize).cloned().collect()
        };
        // Neighbours stay together, so that the order of lines is the order of partitions.
        let share = lines.len().div_ceil(self.context.default_parallelism.max(1));
        lines
            .chunks(share)
            .map(|part| part.chunks(BATCH_ROWS).map(|lines| self.batch(lines, projection)).collect())
            .collect()
    }

    fn release(&mut self, end: &Offset) -> Result<(), SourceError> {
        let end = end.number(&self.name)?;
        if let Some(first) = self.first
            && end >= first
        {
            let count = (end - first + 1).min(self.last() - first + 1);
            self.receiver.lines().drop_first(count as usize);
            self.first = Some(first + count);
            self.receiver.wake();
        }
        Ok(())
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        match self.first {
            Some(_) => self.frozen = Some(self.last()),
            None => self.frozen_lines = Some(self.receiver.lines().kept.len() as i64),
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.receiver.stop();
    }
}
