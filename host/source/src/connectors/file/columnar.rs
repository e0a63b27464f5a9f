//! Files of columns: Parquet, Avro, ORC. Columns are found by name and cast to the types of the schema.
//!
//! Rule of its life: only the columns that are wanted are decoded, where the format allows that. A column that a file does
//! not have is null; a value that does not fit the declared type makes the file bad, never the value null. What a library
//! says of a file comes back as the reason; a panic in one is the business of the caller.

use super::input::InputFile;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{Schema, SchemaRef};
use arrow_avro::reader::{Reader as AvroReader, ReaderBuilder, read_header_info};
use orc_rust::projection::ProjectionMask as OrcMask;
use orc_rust::{ArrowReaderBuilder as OrcReaderBuilder, TimestampPrecision};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fmt::Display;
use std::io::BufReader;
use std::sync::Arc;

/// How many rows a batch should have.
const BATCH_ROWS: usize = 8192;
/// How much of an Avro file is read at a time.
const AVRO_BUFFER: usize = 256 << 10;

/// Why a file cannot be decoded.
pub(super) type Reason = String;

fn said(error: impl Display) -> Reason {
    error.to_string()
}

/// The columns of a Parquet file.
pub(super) fn parquet_schema(file: &InputFile) -> Result<SchemaRef, Reason> {
    Ok(Arc::clone(ParquetRecordBatchReaderBuilder::try_new(file.clone()).map_err(said)?.schema()))
}

/// The rows of a Parquet file.
pub(super) fn read_parquet(file: &InputFile, wanted: &SchemaRef, batches: &mut Vec<RecordBatch>) -> Result<(), Reason> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file.clone()).map_err(said)?;
    let stored: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let roots: Vec<usize> = wanted.fields().iter().filter_map(|field| place(&stored, field.name())).collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(said)?;
    for batch in reader {
        batches.push(conform(&batch.map_err(said)?, wanted, &stored)?);
    }
    Ok(())
}

/// The columns of an Avro file.
pub(super) fn avro_schema(file: &InputFile) -> Result<SchemaRef, Reason> {
    avro_fields(file)?;
    Ok(avro_reader(file, None)?.schema())
}

/// The rows of an Avro file.
pub(super) fn read_avro(file: &InputFile, wanted: &SchemaRef, batches: &mut Vec<RecordBatch>) -> Result<(), Reason> {
    let stored = avro_fields(file)?;
    let mut roots: Vec<usize> = wanted.fields().iter().filter_map(|field| place(&stored, field.name())).collect();
    roots.sort_unstable();
    roots.dedup();
    if roots.is_empty() && !stored.is_empty() {
        // Rows are counted by one of their columns.
        roots.push(0);
    }
    for batch in avro_reader(file, Some(roots))? {
        batches.push(conform(&batch.map_err(said)?, wanted, &stored)?);
    }
    Ok(())
}

fn avro_reader(file: &InputFile, projection: Option<Vec<usize>>) -> Result<AvroReader<impl std::io::BufRead>, Reason> {
    let builder = ReaderBuilder::new().with_batch_size(BATCH_ROWS);
    let builder = match projection {
        Some(projection) => builder.with_projection(projection),
        None => builder,
    };
    builder.build(BufReader::with_capacity(AVRO_BUFFER, file.sequential())).map_err(said)
}

/// The names of the columns. A file must end with its own mark: the reader takes one that breaks off for one that ends.
fn avro_fields(file: &InputFile) -> Result<Vec<String>, Reason> {
    let header = read_header_info(BufReader::with_capacity(AVRO_BUFFER, file.sequential())).map_err(said)?;
    let mark = header.sync();
    let length = parquet::file::reader::Length::len(file);
    let end = file.range(length.saturating_sub(mark.len() as u64), mark.len() as u64).map_err(said)?;
    if end.as_ref() != mark {
        return Err("it breaks off within a block".into());
    }
    let schema = header.writer_schema().map_err(said)?;
    let schema: serde_json::Value = serde_json::from_str(&schema.json_string).map_err(said)?;
    let fields = schema.get("fields").and_then(serde_json::Value::as_array).ok_or("its rows are no records")?;
    Ok(fields.iter().filter_map(|field| Some(field.get("name")?.as_str()?.to_owned())).collect())
}

/// The columns of an ORC file.
pub(super) fn orc_schema(file: &InputFile) -> Result<SchemaRef, Reason> {
    let builder = OrcReaderBuilder::try_new(file.clone()).map_err(said)?;
    Ok(builder.with_timestamp_precision(TimestampPrecision::Microsecond).schema())
}

/// The rows of an ORC file.
pub(super) fn read_orc(file: &InputFile, wanted: &SchemaRef, batches: &mut Vec<RecordBatch>) -> Result<(), Reason> {
    let builder = OrcReaderBuilder::try_new(file.clone()).map_err(said)?;
    let root = builder.file_metadata().root_data_type();
    let stored: Vec<String> = root.children().iter().map(|column| column.name().to_owned()).collect();
    let mut names: Vec<&str> = wanted
        .fields()
        .iter()
        .filter_map(|field| place(&stored, field.name()))
        .filter_map(|at| stored.get(at).map(String::as_str))
        .collect();
    if names.is_empty() {
        // Rows are counted by one of their columns.
        names.extend(stored.first().map(String::as_str));
    }
    let mask = OrcMask::named_roots(root, &names);
    let builder = builder.with_projection(mask).with_batch_size(BATCH_ROWS);
    for batch in builder.with_timestamp_precision(TimestampPrecision::Microsecond).build() {
        batches.push(conform(&batch.map_err(said)?, wanted, &stored)?);
    }
    Ok(())
}

/// Where a column stands in a file: by its name, or by its name in another case.
fn place(stored: &[String], name: &str) -> Option<usize> {
    let exact = stored.iter().position(|stored| stored == name);
    exact.or_else(|| stored.iter().position(|stored| stored.eq_ignore_ascii_case(name)))
}

/// The batch with the columns of `wanted`, each found by name and cast; one that is not stored is null.
fn conform(batch: &RecordBatch, wanted: &Arc<Schema>, stored: &[String]) -> Result<RecordBatch, Reason> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let mut columns: Vec<ArrayRef> = Vec::new();
    for field in wanted.fields() {
        let name = place(stored, field.name()).and_then(|at| stored.get(at));
        let column = name.and_then(|name| batch.column_by_name(name));
        columns.push(match column {
            None => new_null_array(field.data_type(), batch.num_rows()),
            Some(column) if column.data_type() == field.data_type() => Arc::clone(column),
            Some(column) => cast_with_options(column, field.data_type(), &options)
                .map_err(|error| format!("column `{}` does not fit its type: {error}", field.name()))?,
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(wanted), columns, &options).map_err(said)
}
