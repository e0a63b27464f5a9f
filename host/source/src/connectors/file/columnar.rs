//! Files of columns: Parquet, Avro, ORC. Columns, and the fields of structs in them, are found by name and cast to the
//! types of the schema.
//!
//! Rule of its life: only the columns that are wanted are decoded, where the format allows that. A column that a file does
//! not have is null; a value that does not fit the declared type makes the file bad, never the value null. What a library
//! says of a file comes back as the reason; a panic in one is the business of the caller.

use super::input::InputFile;
use super::spans::Spans;
use arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, MapArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions,
    StructArray, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use arrow_avro::reader::{Reader as AvroReader, ReaderBuilder, read_header_info};
use millstream_client::int96::in_microseconds;
use orc_rust::projection::ProjectionMask as OrcMask;
use orc_rust::{ArrowReaderBuilder as OrcReaderBuilder, TimestampPrecision};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use std::fmt::Display;
use std::io::BufReader;
use std::ops::Range;
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
    Ok(Arc::clone(parquet_metadata(file)?.schema()))
}

/// The rows of a Parquet file.
pub(super) fn read_parquet(file: &InputFile, wanted: &SchemaRef, batches: &mut Vec<RecordBatch>) -> Result<(), Reason> {
    let metadata = parquet_metadata(file)?;
    let stored: Vec<String> = metadata.schema().fields().iter().map(|field| field.name().clone()).collect();
    let roots: Vec<usize> = wanted.fields().iter().filter_map(|field| place(&stored, field.name())).collect();
    let mask = ProjectionMask::roots(metadata.parquet_schema(), roots);
    let input = Spans::new(file, &column_chunks(metadata.metadata(), &mask));
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(input, metadata);
    let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(said)?;
    for batch in reader {
        batches.push(conform(&batch.map_err(said)?, wanted, &stored)?);
    }
    Ok(())
}

/// What a Parquet file says of itself; times of 96 bits are read as [microseconds](millstream_client::int96).
fn parquet_metadata(file: &InputFile) -> Result<ArrowReaderMetadata, Reason> {
    let found = ArrowReaderMetadata::load(file, ArrowReaderOptions::new()).map_err(said)?;
    let leaves = found.parquet_schema().columns().iter();
    let mut is_int96 = leaves.map(|leaf| leaf.physical_type() == PhysicalType::INT96);
    if !is_int96.clone().any(|is_int96| is_int96) {
        return Ok(found);
    }
    let fields = in_microseconds(found.schema().fields(), &mut is_int96);
    let schema = Arc::new(Schema::new_with_metadata(fields, found.schema().metadata().clone()));
    let options = ArrowReaderOptions::new().with_schema(schema);
    ArrowReaderMetadata::try_new(Arc::clone(found.metadata()), options).map_err(said)
}

/// Where the wanted columns lie in a Parquet file: those of each row group.
fn column_chunks(metadata: &ParquetMetaData, mask: &ProjectionMask) -> Vec<Vec<Range<u64>>> {
    let leaves = 0..metadata.file_metadata().schema_descr().num_columns();
    let wanted: Vec<usize> = leaves.filter(|leaf| mask.leaf_included(*leaf)).collect();
    let of_group = |columns: &[ColumnChunkMetaData]| {
        wanted.iter().filter_map(|leaf| columns.get(*leaf)).filter_map(column_chunk).collect::<Vec<_>>()
    };
    metadata.row_groups().iter().map(|group| of_group(group.columns())).collect()
}

/// Where a column of a row group lies, if that can be.
fn column_chunk(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let (start, length) = (u64::try_from(start).ok()?, u64::try_from(column.compressed_size()).ok()?);
    Some(start..start.checked_add(length)?)
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

/// Where a column stands in a file, or a field in a struct: by its name, or by its name in another case.
fn place(stored: &[impl AsRef<str>], name: &str) -> Option<usize> {
    let exact = stored.iter().position(|stored| stored.as_ref() == name);
    exact.or_else(|| stored.iter().position(|stored| stored.as_ref().eq_ignore_ascii_case(name)))
}

/// The batch with the columns of `wanted`, each found by name and cast; one that is not stored is null.
fn conform(batch: &RecordBatch, wanted: &Arc<Schema>, stored: &[String]) -> Result<RecordBatch, Reason> {
    let mut columns: Vec<ArrayRef> = Vec::new();
    for field in wanted.fields() {
        let name = place(stored, field.name()).and_then(|at| stored.get(at));
        let column = name.and_then(|name| batch.column_by_name(name));
        columns.push(match column {
            None => new_null_array(field.data_type(), batch.num_rows()),
            Some(column) => fit(column, field.data_type())
                .map_err(|reason| format!("column `{}` does not fit its type: {reason}", field.name()))?,
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(wanted), columns, &options).map_err(said)
}

/// An array in the type that is wanted. Arrow casts plain values only: it takes the fields of a struct by their order
/// unless all of them are there.
fn fit(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, Reason> {
    match (array.data_type(), wanted) {
        (stored, wanted) if stored == wanted => Ok(Arc::clone(array)),
        (DataType::Null, wanted) => Ok(new_null_array(wanted, array.len())),
        (DataType::Struct(_), DataType::Struct(fields)) => fit_struct(array.as_struct(), fields),
        (DataType::Map(..), DataType::Map(entries, sorted)) => fit_map(array.as_map(), entries, *sorted),
        // What remains to be cast of a list is how it counts.
        (DataType::List(_), DataType::List(item) | DataType::LargeList(item)) => {
            cast(&fit_list(array.as_list::<i32>(), item)?, wanted)
        }
        (DataType::LargeList(_), DataType::List(item) | DataType::LargeList(item)) => {
            cast(&fit_list(array.as_list::<i64>(), item)?, wanted)
        }
        (
            DataType::FixedSizeList(item, _) | DataType::ListView(item) | DataType::LargeListView(item),
            DataType::List(_) | DataType::LargeList(_),
        ) => fit(&cast(array, &DataType::LargeList(Arc::clone(item)))?, wanted),
        (stored, wanted) if has_parts(stored) || has_parts(wanted) => {
            Err(format!("{stored} cannot be read as {wanted}"))
        }
        _ => cast(array, wanted),
    }
}

/// Whether values have parts that are found one by one.
fn has_parts(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Struct(_)
            | DataType::Map(..)
            | DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
    )
}

fn cast(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, Reason> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, wanted, &options).map_err(said)
}

fn fit_struct(stored: &StructArray, fields: &Fields) -> Result<ArrayRef, Reason> {
    let names = stored.column_names();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for field in fields {
        columns.push(match place(&names, field.name()) {
            None => new_null_array(field.data_type(), stored.len()),
            Some(at) => fit(stored.column(at), field.data_type())
                .map_err(|reason| format!("field `{}`: {reason}", field.name()))?,
        });
    }
    let nulls = stored.nulls().cloned();
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, stored.len()).map_err(said)?))
}

fn fit_list<O: OffsetSizeTrait>(stored: &GenericListArray<O>, item: &FieldRef) -> Result<ArrayRef, Reason> {
    let values = fit(stored.values(), item.data_type())?;
    let (offsets, nulls) = (stored.offsets().clone(), stored.nulls().cloned());
    Ok(Arc::new(GenericListArray::try_new(Arc::clone(item), offsets, values, nulls).map_err(said)?))
}

/// Keys and values have other names in every format: they are found by their place.
fn fit_map(stored: &MapArray, entries: &FieldRef, sorted: bool) -> Result<ArrayRef, Reason> {
    let DataType::Struct(fields) = entries.data_type() else { return Err("its entries are no pairs".into()) };
    let [key, value] = &fields[..] else { return Err("its entries are no pairs".into()) };
    let columns = vec![fit(stored.keys(), key.data_type())?, fit(stored.values(), value.data_type())?];
    let pairs = StructArray::try_new(fields.clone(), columns, None).map_err(said)?;
    let (offsets, nulls) = (stored.offsets().clone(), stored.nulls().cloned());
    Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, sorted).map_err(said)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{FixedSizeListArray, Int32Array, StringArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::Field;

    fn struct_of(names: [&str; 2], nullable: bool) -> Fields {
        names.map(|name| Field::new(name, DataType::Int32, nullable)).to_vec().into()
    }

    fn pairs(key: &str, value: &str, data_type: DataType) -> Fields {
        vec![Field::new(key, DataType::Utf8, false), Field::new(value, data_type, true)].into()
    }

    #[test]
    fn lists_of_any_kind_and_maps_with_any_names_are_gone_into() {
        let numbers = |from: i32| Arc::new(Int32Array::from(vec![from, from + 1])) as ArrayRef;
        let stored: ArrayRef =
            Arc::new(StructArray::new(struct_of(["b", "A"], false), vec![numbers(1), numbers(3)], None));
        let wanted = DataType::Struct(struct_of(["a", "c"], true));
        let fitted = fit(&stored, &wanted).unwrap();
        let nothing = new_null_array(&DataType::Int32, 2);
        assert_eq!(fitted.as_struct(), &StructArray::new(struct_of(["a", "c"], true), vec![numbers(3), nothing], None));

        let item = Arc::new(Field::new("item", stored.data_type().clone(), true));
        let fixed: ArrayRef = Arc::new(FixedSizeListArray::new(Arc::clone(&item), 2, Arc::clone(&stored), None));
        let large = cast(&fixed, &DataType::LargeList(item)).unwrap();
        let list = DataType::List(Arc::new(Field::new("element", wanted.clone(), true)));
        for lists in [fixed, large] {
            assert_eq!(fit(&lists, &list).unwrap().as_list::<i32>().values(), &fitted);
        }

        // As ORC names them.
        let keys: ArrayRef = Arc::new(StringArray::from(vec!["k", "l"]));
        let of_orc = pairs("keys", "values", stored.data_type().clone());
        let entries = Arc::new(Field::new_struct("entries", of_orc.clone(), false));
        let both = StructArray::new(of_orc, vec![keys, stored], None);
        let map: ArrayRef = Arc::new(MapArray::new(entries, OffsetBuffer::from_lengths([2]), both, None, false));
        let entries = Arc::new(Field::new_struct("entries", pairs("key", "value", wanted), false));
        assert_eq!(fit(&map, &DataType::Map(entries, false)).unwrap().as_map().values(), &fitted);
    }
}
