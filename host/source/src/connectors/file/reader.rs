//! The rows of files, decoded in parallel.

use super::config::Decoding;
use crate::SourceError;
use crate::decode::{CsvDecoder, DecodeError, JsonDecoder, TextDecoder};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{Schema, SchemaRef};
use millstream_common::StopSignal;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

/// How many rows a batch should have.
const BATCH_ROWS: usize = 8192;
/// How many bytes are read at once; a longer line makes it more.
const CHUNK_BYTES: usize = 1 << 20;
/// Endings of files that are compressed as a whole.
const COMPRESSED: [&str; 9] = [".gz", ".gzip", ".bz2", ".zst", ".zstd", ".lz4", ".snappy", ".xz", ".deflate"];

/// Decodes files of one schema and projection.
pub(super) struct FileReader<'a> {
    name: &'a str,
    schema: &'a SchemaRef,
    projection: &'a [usize],
    decoding: &'a Decoding,
    stop: &'a StopSignal,
    /// The range that is read, for errors.
    range: String,
}

enum Decoder {
    Text { decoder: TextDecoder, whole: bool },
    Json(JsonDecoder),
    Csv(CsvDecoder),
    Parquet,
}

impl<'a> FileReader<'a> {
    pub(super) fn new(
        name: &'a str,
        schema: &'a SchemaRef,
        projection: &'a [usize],
        decoding: &'a Decoding,
        stop: &'a StopSignal,
        range: String,
    ) -> Self {
        Self { name, schema, projection, decoding, stop, range }
    }

    /// Reads `paths` in at most `partitions` groups of neighbours, one thread each; the order is kept.
    pub(super) fn read(&self, paths: &[&str], partitions: usize) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        if paths.is_empty() {
            return Ok(vec![]);
        }
        let decoder = self
            .decoder()
            .map_err(|error| SourceError::Schema { name: self.name.to_owned(), reason: error.to_string() })?;
        let groups: Vec<&[&str]> = paths.chunks(paths.len().div_ceil(partitions.max(1))).collect();
        if let [group] = groups.as_slice() {
            return Ok(vec![self.read_group(&decoder, group)?]);
        }
        let results: Vec<Result<Vec<RecordBatch>, SourceError>> = std::thread::scope(|scope| {
            let handles: Vec<_> = groups.iter().map(|group| scope.spawn(|| self.read_group(&decoder, group))).collect();
            handles
                .into_iter()
                .map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        results.into_iter().collect()
    }

    fn decoder(&self) -> Result<Decoder, DecodeError> {
        Ok(match self.decoding {
            Decoding::Text { whole, separator } => {
                let schema = self.schema.project(self.projection).map_err(|source| DecodeError::Batch { source })?;
                Decoder::Text { decoder: TextDecoder::new(Arc::new(schema), separator.clone()), whole: *whole }
            }
            Decoding::Json(options) => Decoder::Json(JsonDecoder::new(self.schema, self.projection, options.clone())?),
            Decoding::Csv(options) => Decoder::Csv(CsvDecoder::new(self.schema, self.projection, options.clone())?),
            Decoding::Parquet => Decoder::Parquet,
        })
    }

    fn read_group(&self, decoder: &Decoder, paths: &[&str]) -> Result<Vec<RecordBatch>, SourceError> {
        let mut batches = Vec::new();
        for path in paths {
            self.read_file(decoder, path, &mut batches)?;
        }
        Ok(batches)
    }

    fn read_file(&self, decoder: &Decoder, path: &str, batches: &mut Vec<RecordBatch>) -> Result<(), SourceError> {
        let unavailable = |source: io::Error| SourceError::Unavailable {
            name: self.name.to_owned(),
            action: "read",
            place: path.to_owned(),
            source: Box::new(source),
        };
        if self.stop.is_set() {
            return Err(unavailable(io::Error::new(io::ErrorKind::Interrupted, "the query is to stop")));
        }
        if !matches!(decoder, Decoder::Parquet) && COMPRESSED.iter().any(|ending| path.ends_with(ending)) {
            return Err(self.malformed(path, "compressed files are not read yet"));
        }
        let mut file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SourceError::Lost {
                    name: self.name.to_owned(),
                    range: self.range.clone(),
                    reason: format!("file `{path}` vanished before it was read"),
                });
            }
            other => other.map_err(unavailable)?,
        };
        match decoder {
            Decoder::Parquet => self.read_parquet(file, path, batches),
            Decoder::Text { decoder, whole: true } => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map_err(unavailable)?;
                batches.push(decoder.decode_whole(&bytes).map_err(|error| self.malformed(path, &chain(&error)))?);
                Ok(())
            }
            Decoder::Text { decoder, .. } => {
                let separator = decoder.separator();
                self.read_chunks(file, path, separator, |input, _| decoder.decode_some(input, BATCH_ROWS), batches)
            }
            Decoder::Json(decoder) => {
                let separator = decoder.separator();
                self.read_chunks(file, path, separator, |input, _| decoder.decode_some(input, BATCH_ROWS), batches)
            }
            Decoder::Csv(decoder) => {
                let decode = |input: &[u8], first: bool| {
                    let header = if first { decoder.header_length(input) } else { 0 };
                    let (batch, taken) = decoder.decode_some(&input[header..], BATCH_ROWS)?;
                    Ok((batch, header + taken))
                };
                self.read_chunks(file, path, decoder.separator(), decode, batches)
            }
        }
    }

    /// Feeds a file to `decode` in chunks of whole lines.
    fn read_chunks(
        &self,
        file: File,
        path: &str,
        separator: Option<&[u8]>,
        decode: impl Fn(&[u8], bool) -> Result<(RecordBatch, usize), DecodeError>,
        batches: &mut Vec<RecordBatch>,
    ) -> Result<(), SourceError> {
        let mut chunks = Chunks::new(file, separator);
        let mut first = true;
        while let Some(chunk) = chunks.next_chunk().map_err(|source| SourceError::Unavailable {
            name: self.name.to_owned(),
            action: "read",
            place: path.to_owned(),
            source: Box::new(source),
        })? {
            let mut rest = if first { chunk.strip_prefix(b"\xef\xbb\xbf").unwrap_or(chunk) } else { chunk };
            while !rest.is_empty() {
                let (batch, taken) = decode(rest, first).map_err(|error| self.malformed(path, &chain(&error)))?;
                first = false;
                rest = &rest[taken..];
                if batch.num_rows() > 0 {
                    batches.push(batch);
                }
            }
        }
        Ok(())
    }

    fn read_parquet(&self, file: File, path: &str, batches: &mut Vec<RecordBatch>) -> Result<(), SourceError> {
        let fail = |error: &dyn std::fmt::Display| self.malformed(path, &error.to_string());
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| fail(&error))?;
        let wanted = Arc::new(self.schema.project(self.projection).map_err(|error| fail(&error))?);
        let stored = Arc::clone(builder.schema());
        let place = |name: &str| {
            let fields = stored.fields();
            let exact = fields.iter().position(|field| field.name() == name);
            exact.or_else(|| fields.iter().position(|field| field.name().eq_ignore_ascii_case(name)))
        };
        let roots: Vec<usize> = wanted.fields().iter().filter_map(|field| place(field.name())).collect();
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
        let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(|error| fail(&error))?;
        for batch in reader {
            let batch = batch.map_err(|error| fail(&error))?;
            let name_of = |name: &str| place(name).map(|at| stored.field(at).name().as_str());
            batches.push(conform(&batch, &wanted, name_of).map_err(|error| fail(&error))?);
        }
        Ok(())
    }

    fn malformed(&self, path: &str, reason: &str) -> SourceError {
        SourceError::Malformed { name: self.name.to_owned(), place: path.to_owned(), reason: reason.to_owned() }
    }
}

/// The batch with the columns of `wanted`, each found by name and cast; one that is not stored is null.
fn conform<'a>(
    batch: &RecordBatch,
    wanted: &Arc<Schema>,
    stored_name: impl Fn(&str) -> Option<&'a str>,
) -> Result<RecordBatch, arrow::error::ArrowError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let mut columns: Vec<ArrayRef> = Vec::new();
    for field in wanted.fields() {
        let column = stored_name(field.name()).and_then(|name| batch.column_by_name(name));
        columns.push(match column {
            None => new_null_array(field.data_type(), batch.num_rows()),
            Some(column) if column.data_type() == field.data_type() => Arc::clone(column),
            Some(column) => cast_with_options(column, field.data_type(), &options)?,
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(wanted), columns, &options)
}

fn chain(error: &DecodeError) -> String {
    millstream_common::describe_chain(error)
}

/// A file in pieces that end where a line ends.
struct Chunks<'a> {
    file: File,
    separator: Option<&'a [u8]>,
    buffer: Vec<u8>,
    /// How much of the buffer was handed out.
    given: usize,
    at_end: bool,
}

impl<'a> Chunks<'a> {
    fn new(file: File, separator: Option<&'a [u8]>) -> Self {
        Self { file, separator, buffer: Vec::new(), given: 0, at_end: false }
    }

    fn next_chunk(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.drain(..self.given);
        self.given = 0;
        loop {
            if self.at_end {
                self.given = self.buffer.len();
            } else if self.buffer.len() >= CHUNK_BYTES {
                self.given = last_line_end(&self.buffer, self.separator);
            }
            if self.given > 0 {
                return Ok(Some(&self.buffer[..self.given]));
            }
            if self.at_end {
                return Ok(None);
            }
            let before = self.buffer.len();
            // Grows with the buffer, so that one very long line costs no more than its length.
            let wanted = before.max(CHUNK_BYTES);
            let read = Read::by_ref(&mut self.file).take(wanted as u64).read_to_end(&mut self.buffer)?;
            self.at_end = read < wanted;
        }
    }
}

/// Where the last whole line ends; 0 when there is none.
fn last_line_end(bytes: &[u8], separator: Option<&[u8]>) -> usize {
    match separator.filter(|separator| !separator.is_empty()) {
        Some(separator) => {
            bytes.windows(separator.len()).rposition(|window| window == separator).map_or(0, |at| at + separator.len())
        }
        None => {
            // A carriage return at the very end may be half of a line end.
            let safe = bytes.strip_suffix(b"\r").unwrap_or(bytes);
            safe.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1)
        }
    }
}
