//! The rows of several files as one file: lines are put behind each other as they are, columns are read and written again.

use super::super::config::{Encoding, FileConfig};
use super::super::encode::FileEncoder;
use super::choice::Small;
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow_avro::reader::ReaderBuilder;
use bytes::Bytes;
use flate2::Compression as Level;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use millstream_common::{DurableError, DurableFiles, guarded};
use orc_rust::{ArrowReaderBuilder as OrcReaderBuilder, TimestampPrecision};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fmt::Display;
use std::io::{BufReader, Cursor, Read, Write};

/// Several files as one.
#[derive(Debug)]
pub(in super::super) struct MergedBytes {
    pub(in super::super) bytes: Bytes,
    /// Of how many of the files, from the first on.
    pub(in super::super) count: usize,
    /// How many rows it has; 0 when nobody said how many the files have.
    pub(in super::super) rows: u64,
}

/// Why files cannot become one.
#[derive(Debug)]
pub(in super::super) enum Trouble {
    /// They could not be read now.
    Storage(DurableError),
    /// One of them does not go together with others.
    Unfit {
        /// Which one.
        at: usize,
        reason: String,
    },
}

/// The columns and rows of a file.
type Decode = fn(Bytes) -> Result<(SchemaRef, Vec<RecordBatch>), String>;

/// Makes one file of the first ones that go together, of at least two.
pub(super) fn merge(
    files: &dyn DurableFiles,
    config: &FileConfig,
    header: &[u8],
    group: &[Small],
) -> Result<MergedBytes, Trouble> {
    let decode: Decode = match &config.encoding {
        Encoding::Parquet { .. } => decode_parquet,
        Encoding::Avro { .. } => decode_avro,
        Encoding::Orc { .. } => decode_orc,
        Encoding::Json { .. } | Encoding::Csv(_) | Encoding::Text { .. } => return lines(files, config, header, group),
    };
    columns(files, config, decode, group)
}

fn get(files: &dyn DurableFiles, small: &Small) -> Result<Bytes, Trouble> {
    files.get(&small.file.name).map_err(Trouble::Storage)
}

/// What is done when a file does not go together with those before it: they become one, if they are two. One alone is left:
/// it says what the others must be like, and nobody is like it.
fn without(at: usize, reason: &str) -> Result<usize, Trouble> {
    if at >= 2 { Ok(at) } else { Err(Trouble::Unfit { at: 0, reason: reason.to_owned() }) }
}

fn lines(
    files: &dyn DurableFiles,
    config: &FileConfig,
    header: &[u8],
    group: &[Small],
) -> Result<MergedBytes, Trouble> {
    let mut whole: Vec<u8> = Vec::new();
    let mut gzip = (config.gzip && !header.is_empty()).then(|| GzEncoder::new(Vec::new(), Level::default()));
    let (mut count, mut rows) = (0, 0);
    for (at, small) in group.iter().enumerate() {
        let mut bytes = get(files, small)?;
        if gzip.is_some() {
            let mut text = Vec::new();
            if let Err(error) = MultiGzDecoder::new(bytes.as_ref()).read_to_end(&mut text) {
                count = without(at, &error.to_string())?;
                break;
            }
            bytes = text.into();
        }
        let Some(body) = bytes.strip_prefix(header) else {
            count = without(at, "its line of names is another one")?;
            break;
        };
        let body = if at == 0 { bytes.as_ref() } else { body };
        match &mut gzip {
            // Writing to memory cannot fail.
            Some(encoder) => {
                encoder.write_all(body).map_err(|error| Trouble::Unfit { at, reason: error.to_string() })?
            }
            // What is compressed member by member is so behind each other, too.
            None => whole.extend_from_slice(body),
        }
        (count, rows) = (at + 1, rows + small.rows);
    }
    if let Some(encoder) = gzip {
        whole = encoder.finish().map_err(|error| Trouble::Unfit { at: 0, reason: error.to_string() })?;
    }
    Ok(MergedBytes { bytes: whole.into(), count, rows })
}

fn columns(
    files: &dyn DurableFiles,
    config: &FileConfig,
    decode: Decode,
    group: &[Small],
) -> Result<MergedBytes, Trouble> {
    let mut open: Option<(FileEncoder<'_>, SchemaRef)> = None;
    let (mut count, mut rows) = (0, 0);
    for (at, small) in group.iter().enumerate() {
        // A file must be whole before a row of it is in the other one.
        let (schema, batches) = match decoded(decode, get(files, small)?, small.rows) {
            Ok(decoded) => decoded,
            Err(_) if at >= 2 => break,
            Err(reason) => return Err(Trouble::Unfit { at, reason }),
        };
        if open.as_ref().is_some_and(|(_, first)| *first != schema) {
            count = without(at, "the columns of those behind it are others")?;
            break;
        }
        let unfit = |error: &dyn Display| Trouble::Unfit { at, reason: error.to_string() };
        let (encoder, _) = match &mut open {
            Some(open) => open,
            None => {
                let encoder = FileEncoder::new(&config.encoding, config.gzip, &schema);
                open.insert((encoder.map_err(|error| unfit(&error))?, schema))
            }
        };
        for batch in &batches {
            encoder.write(batch).map_err(|error| unfit(&error))?;
            rows += batch.num_rows() as u64;
        }
        count = at + 1;
    }
    let unfit = |reason: String| Trouble::Unfit { at: 0, reason };
    let (encoder, _) = open.ok_or_else(|| unfit("there are no files".into()))?;
    let bytes = encoder.finish().map_err(|error| unfit(error.to_string()))?;
    Ok(MergedBytes { bytes: bytes.into(), count, rows })
}

/// All of a file, which has `rows` rows if that is known.
fn decoded(decode: Decode, bytes: Bytes, rows: u64) -> Result<(SchemaRef, Vec<RecordBatch>), String> {
    let decoded = guarded(|| decode(bytes)).unwrap_or_else(|_| Err("its reader gave up".into()))?;
    let found: u64 = decoded.1.iter().map(|batch| batch.num_rows() as u64).sum();
    match rows {
        0 => Ok(decoded),
        rows if rows == found => Ok(decoded),
        rows => Err(format!("it has {found} rows, and the log says {rows}")),
    }
}

fn said(error: impl Display) -> String {
    error.to_string()
}

fn decode_parquet(bytes: Bytes) -> Result<(SchemaRef, Vec<RecordBatch>), String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(said)?;
    let schema = SchemaRef::clone(builder.schema());
    let batches = builder.build().map_err(said)?.map(|batch| batch.map_err(said));
    Ok((schema, batches.collect::<Result<_, _>>()?))
}

fn decode_avro(bytes: Bytes) -> Result<(SchemaRef, Vec<RecordBatch>), String> {
    let reader = ReaderBuilder::new().build(BufReader::new(Cursor::new(bytes))).map_err(said)?;
    let schema = reader.schema();
    let batches = reader.map(|batch| batch.map_err(said));
    Ok((schema, batches.collect::<Result<_, _>>()?))
}

fn decode_orc(bytes: Bytes) -> Result<(SchemaRef, Vec<RecordBatch>), String> {
    let builder = OrcReaderBuilder::try_new(bytes).map_err(said)?;
    let builder = builder.with_timestamp_precision(TimestampPrecision::Microsecond);
    // Whether a column may be null is said anew by each stripe, by what is in it.
    let fields: Vec<Field> =
        builder.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    let schema = SchemaRef::new(Schema::new(fields));
    let batches = builder.build().map(|batch| {
        let columns = batch.map_err(said)?.columns().to_vec();
        RecordBatch::try_new(SchemaRef::clone(&schema), columns).map_err(said)
    });
    let batches = batches.collect::<Result<_, _>>()?;
    Ok((schema, batches))
}
