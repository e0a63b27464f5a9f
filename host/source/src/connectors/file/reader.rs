//! The rows of files, decoded in parallel; what becomes of files that cannot be decoded.
//!
//! ```text
//!   file ──► bytes ──► decompressed ──► rows ──► with the columns of its folder
//!              │            │             │
//!              └────────────┴─────────────┴──► bad: fail, keep what was read, skip, or dead letter
//! ```
//!
//! Rule of its life: a decision of an earlier reading binds. A failure of the disk or of the network is never taken for a
//! bad file.

use super::bucket::Bucket;
use super::chunks::Chunks;
use super::columnar;
use super::compression::Compression;
use super::config::{BadFiles, Decoding, FileConfig};
use super::input::InputFile;
use super::log::FileEntry;
use super::partitions;
use super::verdicts::{Verdict, Verdicts};
use crate::SourceError;
use crate::decode::{CsvDecoder, DecodeError, JsonDecoder, TextDecoder, next_line};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{FieldRef, Fields, Schema, SchemaRef};
use millstream_common::{StopSignal, describe_chain, guarded};
use parquet::file::reader::Length;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

/// How many rows a batch should have.
const BATCH_ROWS: usize = 8192;
/// How many objects are on their way at a time.
const OBJECTS_AT_A_TIME: usize = 16;
/// How many letters of a panic are told.
const LAST_WORDS: usize = 200;

/// Decodes files of one schema and projection.
pub(super) struct FileReader<'a> {
    pub(super) name: &'a str,
    pub(super) config: &'a FileConfig,
    pub(super) bucket: Option<&'a Arc<Bucket>>,
    pub(super) projection: &'a [usize],
    pub(super) stop: &'a StopSignal,
    /// The range that is read, for errors.
    pub(super) range: String,
}

/// What a range gives: rows per group of neighbours, and decisions about bad files.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) groups: Vec<Vec<RecordBatch>>,
    pub(super) verdicts: Vec<Verdict>,
}

enum Decoder {
    Text { decoder: TextDecoder, whole: bool },
    Json(JsonDecoder),
    Csv(CsvDecoder),
    Columnar(fn(&InputFile, &SchemaRef, &mut Vec<RecordBatch>) -> Result<(), String>),
}

/// The decoder, and what it decodes to.
struct Plan {
    decoder: Decoder,
    /// The columns that stand in the files.
    stored: SchemaRef,
    /// Those and the ones of the folders.
    schema: SchemaRef,
    /// All columns that the folders have, wanted or not.
    of_folders: Vec<FieldRef>,
    /// Where each column of `schema` comes from.
    origins: Vec<Origin>,
}

/// A column of a batch: its place among those that stand in the file, or among those of the folders.
enum Origin {
    File(usize),
    Folder(usize),
}

/// A file, and how it is decoded.
type Planned<'a> = (&'a FileEntry, Arc<Plan>);

/// Why a file could not be read to its end.
enum Trouble {
    /// It is not there.
    Missing,
    /// Disk or network failed.
    Outside(io::Error),
    /// Its content is bad.
    Bad(String),
}

impl FileReader<'_> {
    /// Reads files in groups of neighbours, one thread each; the order is kept.
    pub(super) fn read(
        &self,
        files: &[&FileEntry],
        verdicts: &Verdicts,
        partitions: usize,
    ) -> Result<Rows, SourceError> {
        if files.is_empty() {
            return Ok(Rows::default());
        }
        let planned = self
            .planned(files)
            .map_err(|error| SourceError::Schema { name: self.name.to_owned(), reason: describe_chain(&error) })?;
        // Objects are far away: waiting for several costs nothing.
        let groups = if self.bucket.is_some() { OBJECTS_AT_A_TIME.max(partitions) } else { partitions.max(1) };
        let groups: Vec<&[Planned<'_>]> = planned.chunks(planned.len().div_ceil(groups)).collect();
        let results: Vec<_> = match groups.as_slice() {
            [group] => vec![self.read_group(group, verdicts)],
            groups => std::thread::scope(|scope| {
                let threads: Vec<_> =
                    groups.iter().map(|group| scope.spawn(|| self.read_group(group, verdicts))).collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect()
            }),
        };
        let mut rows = Rows::default();
        for result in results {
            let (batches, decided) = result?;
            rows.groups.push(batches);
            rows.verdicts.extend(decided);
        }
        Ok(rows)
    }

    /// The files, each with its plan: those whose folders have the same columns have the same.
    fn planned<'a>(&self, files: &[&'a FileEntry]) -> Result<Vec<Planned<'a>>, DecodeError> {
        let mut plans: BTreeMap<Vec<usize>, Arc<Plan>> = BTreeMap::new();
        let mut planned = Vec::with_capacity(files.len());
        for file in files {
            let late = partitions::late(self.config, &file.path);
            let plan = match plans.get(&late) {
                Some(plan) => Arc::clone(plan),
                None => {
                    let plan = Arc::new(self.plan(&late)?);
                    plans.insert(late, Arc::clone(&plan));
                    plan
                }
            };
            planned.push((*file, plan));
        }
        Ok(planned)
    }

    /// How files are decoded whose folders have the columns at `late`: these do not stand in the files then.
    fn plan(&self, late: &[usize]) -> Result<Plan, DecodeError> {
        let all = self.config.data_schema.fields();
        let in_files: Fields = all
            .iter()
            .enumerate()
            .filter(|(column, _)| !late.contains(column))
            .map(|(_, field)| Arc::clone(field))
            .collect();
        let partitions = &self.config.partitions;
        let of_folders = partitions.iter().chain(late.iter().filter_map(|column| all.get(*column))).cloned().collect();
        let (mut stored, mut origins) = (Vec::new(), Vec::new());
        for column in self.projection {
            let folder = late.iter().position(|late| late == column).map(|place| partitions.len() + place);
            origins.push(match column.checked_sub(all.len()).or(folder) {
                Some(folder) => Origin::Folder(folder),
                None => {
                    stored.push(column - late.iter().filter(|late| *late < column).count());
                    Origin::File(stored.len() - 1)
                }
            });
        }
        let data: SchemaRef = Arc::new(Schema::new(in_files));
        let project = |schema: &Schema, columns: &[usize]| {
            schema.project(columns).map(Arc::new).map_err(|source| DecodeError::Batch { source })
        };
        let schema = project(&self.config.schema, self.projection)?;
        let stored_schema = project(&data, &stored)?;
        let decoder = match &self.config.decoding {
            Decoding::Text { whole, separator } => Decoder::Text {
                decoder: TextDecoder::new(Arc::clone(&stored_schema), separator.clone()),
                whole: *whole,
            },
            Decoding::Json(options) => Decoder::Json(JsonDecoder::new(&data, &stored, options.clone())?),
            Decoding::Csv(options) => Decoder::Csv(CsvDecoder::new(&data, &stored, options.clone())?),
            Decoding::Parquet => Decoder::Columnar(columnar::read_parquet),
            Decoding::Avro => Decoder::Columnar(columnar::read_avro),
            Decoding::Orc => Decoder::Columnar(columnar::read_orc),
        };
        Ok(Plan { decoder, stored: stored_schema, schema, of_folders, origins })
    }

    fn read_group(
        &self,
        files: &[Planned<'_>],
        verdicts: &Verdicts,
    ) -> Result<(Vec<RecordBatch>, Vec<Verdict>), SourceError> {
        let (mut batches, mut decided) = (Vec::new(), Vec::new());
        for (file, plan) in files {
            if self.stop.is_set() {
                return Err(
                    self.unavailable(&file.path, io::Error::new(ErrorKind::Interrupted, "the query is to stop"))
                );
            }
            match verdicts.get(file, self.projection) {
                Some(verdict) => batches.extend(self.read_again(plan, file, verdict.kept)?),
                None => decided.extend(self.read_first(plan, file, &mut batches)?),
            }
        }
        Ok((batches, decided))
    }

    /// Reads a file about which nothing is decided; answers what is, if it is bad.
    fn read_first(
        &self,
        plan: &Plan,
        file: &FileEntry,
        batches: &mut Vec<RecordBatch>,
    ) -> Result<Option<Verdict>, SourceError> {
        let before = batches.len();
        let Err(trouble) = self.read_file(plan, file, batches) else { return Ok(None) };
        let (reason, keeps, letter) = match trouble {
            Trouble::Outside(error) => return Err(self.unavailable(&file.path, error)),
            Trouble::Missing if self.config.ignore_missing => {
                ("it vanished before it was read".to_owned(), false, false)
            }
            Trouble::Missing => return Err(self.lost(format!("file `{}` vanished before it was read", file.path))),
            Trouble::Bad(reason) => match self.config.bad_files {
                BadFiles::Fail => {
                    return Err(SourceError::Malformed {
                        name: self.name.to_owned(),
                        place: file.path.to_string(),
                        reason,
                    });
                }
                BadFiles::Keep => (reason, true, false),
                BadFiles::Skip => (reason, false, false),
                BadFiles::DeadLetter => (reason, false, true),
            },
        };
        if !keeps {
            batches.truncate(before);
        }
        let kept = batches[before..].iter().map(|batch| batch.num_rows() as u64).sum();
        tracing::warn!(source = self.name, file = %file.path, reason, rows_kept = kept, "a bad file is passed over");
        Ok(Some(Verdict {
            path: file.path.to_string(),
            offset: file.batch_id,
            columns: self.projection.to_vec(),
            kept,
            reason,
            letter,
        }))
    }

    /// The first rows of a file that was bad when it was read first.
    fn read_again(&self, plan: &Plan, file: &FileEntry, kept: u64) -> Result<Vec<RecordBatch>, SourceError> {
        let mut batches = Vec::new();
        let mut missing = kept;
        if kept == 0 {
            return Ok(batches);
        }
        if let Err(Trouble::Outside(error)) = self.read_file(plan, file, &mut batches) {
            return Err(self.unavailable(&file.path, error));
        }
        for batch in &mut batches {
            let rows = missing.min(batch.num_rows() as u64);
            *batch = batch.slice(0, rows as usize);
            missing -= rows;
        }
        batches.retain(|batch| batch.num_rows() > 0);
        match missing {
            0 => Ok(batches),
            _ => Err(self.lost(format!("file `{}` no longer has the {kept} rows that were read of it", file.path))),
        }
    }

    /// Appends the rows of a file, as far as it can be read.
    fn read_file(&self, plan: &Plan, file: &FileEntry, batches: &mut Vec<RecordBatch>) -> Result<(), Trouble> {
        let opened = match self.bucket {
            Some(bucket) => InputFile::stored(bucket, &file.path),
            None => InputFile::local(&file.path),
        };
        let input = opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => Trouble::Missing,
            _ => Trouble::Outside(error),
        })?;
        let before = batches.len();
        let decoded = self.decode(plan, &input, &file.path, batches);
        // Foreign decoders have no word for a failure of the disk: it is asked for here.
        let decoded = decoded.map_err(|reason| match input.failure() {
            Some(error) if error.kind() == ErrorKind::NotFound => Trouble::Missing,
            Some(error) => Trouble::Outside(error),
            None => Trouble::Bad(reason),
        });
        if !plan.of_folders.is_empty() {
            let columns = match partitions::values(self.config, &plan.of_folders, &file.path) {
                Ok(columns) => columns,
                Err(reason) => {
                    batches.truncate(before);
                    return Err(Trouble::Bad(reason));
                }
            };
            for batch in &mut batches[before..] {
                *batch = with_folders(plan, batch, &columns).map_err(|error| Trouble::Bad(error.to_string()))?;
            }
        }
        decoded
    }

    fn decode(&self, plan: &Plan, input: &InputFile, path: &str, batches: &mut Vec<RecordBatch>) -> Result<(), String> {
        if Length::len(input) == 0 && self.config.is_nothing_when_empty(path) {
            return Ok(());
        }
        if let Decoder::Columnar(read) = plan.decoder {
            // The libraries are careful, but not of hostile files alone: a panic in one is a file that it cannot read.
            return guarded(|| read(input, &plan.stored, batches)).unwrap_or_else(|panicked| {
                let words: String = panicked.message.chars().take(LAST_WORDS).collect();
                Err(format!("its reader gave up: {words}"))
            });
        }
        let compression = Compression::of(path).map_err(|ending| format!("files that end in {ending} are not read"))?;
        let text =
            compression.open(input.sequential(), self.config.max_decompressed).map_err(|error| error.to_string())?;
        match &plan.decoder {
            Decoder::Text { decoder, whole: true } => {
                let mut bytes = Vec::new();
                // More than a decoder takes need not be read.
                let mut text = text.take(crate::decode::MAX_INPUT as u64 + 1);
                text.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
                batches.push(decoder.decode_whole(&bytes).map_err(|error| describe_chain(&error))?);
                Ok(())
            }
            Decoder::Text { decoder, .. } => read_lines(
                text,
                decoder.separator(),
                false,
                |input, _| Ok(decoder.decode_some(input, BATCH_ROWS)?),
                batches,
            ),
            Decoder::Json(decoder) => {
                let decode = |input: &[u8], _: bool| Ok(decoder.decode_some(input, BATCH_ROWS)?);
                read_lines(text, decoder.separator(), decoder.fails_fast(), decode, batches)
            }
            Decoder::Csv(decoder) => {
                let decode = |input: &[u8], first: bool| {
                    let header = if first { decoder.header_length(input) } else { 0 };
                    decoder.check_header(&input[..header]).map_err(Refusal::Said)?;
                    let (batch, taken) = decoder.decode_some(&input[header..], BATCH_ROWS).map_err(|error| {
                        let lines = lines(&input[..header], decoder.separator());
                        Refusal::Decode { error, lines }
                    })?;
                    Ok((batch, header + taken))
                };
                read_lines(text, decoder.separator(), decoder.fails_fast(), decode, batches)
            }
            Decoder::Columnar(_) => Ok(()),
        }
    }

    fn unavailable(&self, place: &str, source: io::Error) -> SourceError {
        let (name, place) = (self.name.to_owned(), place.to_owned());
        SourceError::Unavailable { name, action: "read", place, source: Box::new(source) }
    }

    fn lost(&self, reason: String) -> SourceError {
        SourceError::Lost { name: self.name.to_owned(), range: self.range.clone(), reason }
    }
}

/// Why a decoder of lines stopped.
enum Refusal {
    Said(String),
    /// With how many lines were passed over before the decoder began.
    Decode {
        error: DecodeError,
        lines: u64,
    },
}

impl From<DecodeError> for Refusal {
    fn from(error: DecodeError) -> Self {
        Self::Decode { error, lines: 0 }
    }
}

/// Feeds a text to `decode` in chunks of whole lines; counts lines when errors name them.
fn read_lines(
    text: Box<dyn Read + Send + '_>,
    separator: Option<&[u8]>,
    counts: bool,
    decode: impl Fn(&[u8], bool) -> Result<(RecordBatch, usize), Refusal>,
    batches: &mut Vec<RecordBatch>,
) -> Result<(), String> {
    let mut chunks = Chunks::new(text, separator);
    let (mut first, mut before) = (true, 0);
    while let Some(chunk) = chunks.next_chunk().map_err(|error| error.to_string())? {
        let mut rest = if first { chunk.strip_prefix(b"\xef\xbb\xbf").unwrap_or(chunk) } else { chunk };
        while !rest.is_empty() {
            let (batch, taken) = decode(rest, first).map_err(|refusal| match refusal {
                Refusal::Said(reason) => reason,
                Refusal::Decode { error: DecodeError::Malformed { record, text }, lines } => {
                    format!("line {} is malformed: `{text}`", before + lines + record)
                }
                Refusal::Decode { error, .. } => describe_chain(&error),
            })?;
            first = false;
            if counts {
                before += lines(&rest[..taken], separator);
            }
            rest = &rest[taken..];
            if batch.num_rows() > 0 {
                batches.push(batch);
            }
        }
    }
    Ok(())
}

fn lines(mut text: &[u8], separator: Option<&[u8]>) -> u64 {
    let mut lines = 0;
    while let Some((_, taken)) = next_line(text, separator) {
        text = &text[taken..];
        lines += 1;
    }
    lines
}

/// The batch with the columns that stand in the names of folders.
fn with_folders(
    plan: &Plan,
    batch: &RecordBatch,
    values: &[ArrayRef],
) -> Result<RecordBatch, arrow::error::ArrowError> {
    let rows = batch.num_rows();
    let first = UInt32Array::from_value(0, rows);
    let mut columns = Vec::new();
    for origin in &plan.origins {
        columns.push(match origin {
            Origin::File(column) => Arc::clone(batch.column(*column)),
            Origin::Folder(column) => take(values[*column].as_ref(), &first, None)?,
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(&plan.schema), columns, &options)
}
