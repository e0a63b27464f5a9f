//! The query's rows in the columns of the table, file by file.
//!
//! ```text
//!   batches ──► which rows of which batch are of which partition, and how long ──► files ──► the rows of one file
//! ```
//!
//! Rule of its life: first it is decided which rows become which file, and only the rows of one file are ever put together.
//! A batch of any size can be written so: no column of a file outgrows one array, and no copy of the whole is made.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::compute::{cast, concat_batches, take_record_batch};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, FieldRef, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Schema, SchemaRef, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use delta_kernel::engine::arrow_conversion::TryIntoArrow;
use delta_kernel::expressions::{DecimalData, Scalar};
use delta_kernel::schema::{DataType, PrimitiveType, StructType};
use millstream_client::delta::{all_nullable, kernel_schema, same_type};
use std::collections::HashMap;
use std::sync::Arc;

/// The columns of a table, and how they are found in the query's.
pub(super) struct TableColumns {
    table: StructType,
    partition_by: Vec<String>,
    /// The table's columns as Arrow's, in their order.
    schema: SchemaRef,
    /// Where each column is in the query; `None` for one that the query does not have.
    found: Vec<Option<usize>>,
}

/// A column of the table, and where it is in the query.
type Column<'a> = (&'a FieldRef, Option<usize>);

/// How much a file may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    /// How many rows, at least one.
    pub(super) rows: usize,
    /// How many bytes they are long together, as they are in memory.
    pub(super) bytes: usize,
}

/// Which rows become one file.
#[derive(Debug)]
pub(super) struct FilePlan {
    /// The values of the partition columns.
    pub(super) values: HashMap<String, Scalar>,
    rows: Vec<Span>,
}

/// The rows of one partition.
struct Partition {
    values: HashMap<String, Scalar>,
    rows: Vec<Span>,
}

/// Rows of one of the query's batches, in order.
#[derive(Debug)]
struct Span {
    batch: usize,
    rows: Vec<u32>,
}

/// The query's columns as those of a new table: all nullable.
pub(super) fn new_table(schema: &Schema) -> Result<StructType, String> {
    kernel_schema(&all_nullable(schema)).map_err(|error| error.to_string())
}

impl TableColumns {
    /// Fits the query's columns to the table's.
    ///
    /// # Errors
    /// A sentence about the first column that does not fit.
    pub(super) fn new(table: &StructType, partition_by: &[String], query: &Schema) -> Result<Self, String> {
        let ours = new_table(query)?;
        if let Some(stranger) = ours.fields().find(|field| table.field(field.name()).is_none()) {
            return Err(format!(
                "the table has no column `{}`; add it to the table, or do not select it",
                stranger.name()
            ));
        }
        let schema: Schema = table.try_into_arrow().map_err(|error: ArrowError| error.to_string())?;
        let mut found = Vec::new();
        for field in table.fields() {
            let at = query.fields().iter().position(|column| column.name() == field.name());
            let Some(column) = ours.field(field.name()) else {
                if !field.is_nullable() {
                    return Err(format!(
                        "the table's column `{}` cannot be null; select one of that name",
                        field.name()
                    ));
                }
                found.push(None);
                continue;
            };
            if !same_type(column.data_type(), field.data_type()) {
                return Err(format!(
                    "column `{}` is of type {} and in the table of type {}; cast it",
                    field.name(),
                    column.data_type(),
                    field.data_type()
                ));
            }
            found.push(at);
        }
        Ok(Self { table: table.clone(), partition_by: partition_by.to_vec(), schema: Arc::new(schema), found })
    }

    /// The rows by partition, in files within `most`: partitions in the order of their first rows, rows in order. The same
    /// rows make the same files, in however many batches they come.
    pub(super) fn files(&self, batches: &[RecordBatch], most: Most) -> Result<Vec<FilePlan>, ArrowError> {
        let lengths = batches.iter().map(|batch| self.lengths(batch)).collect::<Result<Vec<_>, _>>()?;
        let mut files = Vec::new();
        for Partition { values, rows } in self.partitions(batches)? {
            let cut = cut(rows, most, |batch, row| lengths[batch][row as usize]);
            files.extend(cut.into_iter().map(|rows| FilePlan { values: values.clone(), rows }));
        }
        Ok(files)
    }

    /// The rows of one file, in the columns of the table that are not partition columns.
    pub(super) fn rows(&self, file: &FilePlan, batches: &[RecordBatch]) -> Result<RecordBatch, ArrowError> {
        let kept = self.kept().map(|(at, _)| at).collect::<Vec<usize>>();
        let schema = Arc::new(self.schema.project(&kept)?);
        let mut pieces = Vec::new();
        for span in &file.rows {
            let Some(batch) = batches.get(span.batch) else { continue };
            let rows = span.of(batch)?;
            let columns = self.kept().map(|(_, column)| self.column(column, &rows)).collect::<Result<_, _>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
            pieces.push(RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?);
        }
        match pieces.len() {
            1 => Ok(pieces.remove(0)),
            _ => concat_batches(&schema, &pieces),
        }
    }

    /// The columns that the files have, with their places in the table.
    fn kept(&self) -> impl Iterator<Item = (usize, Column<'_>)> {
        self.columns().enumerate().filter(|(_, (field, _))| !self.partition_by.contains(field.name()))
    }

    fn columns(&self) -> impl Iterator<Item = Column<'_>> {
        self.schema.fields().iter().zip(self.found.iter().copied())
    }

    /// A column of the table, out of rows of the query.
    fn column(&self, (field, found): Column<'_>, rows: &RecordBatch) -> Result<ArrayRef, ArrowError> {
        match found {
            Some(at) => cast(rows.column(at), field.data_type()),
            None => Ok(new_null_array(field.data_type(), rows.num_rows())),
        }
    }

    /// How many bytes each row of a batch is long in a file's columns.
    fn lengths(&self, batch: &RecordBatch) -> Result<Vec<usize>, ArrowError> {
        let mut lengths = vec![0; batch.num_rows()];
        for (_, (field, found)) in self.kept() {
            match found {
                Some(at) => add_lengths(batch.column(at), &mut lengths)?,
                None => lengths.iter_mut().for_each(|length| *length += fixed_length(field.data_type())),
            }
        }
        Ok(lengths)
    }

    /// The rows of each partition.
    fn partitions(&self, batches: &[RecordBatch]) -> Result<Vec<Partition>, ArrowError> {
        if self.partition_by.is_empty() {
            let rows = batches.iter().enumerate().filter(|(_, rows)| rows.num_rows() > 0);
            let rows = rows.map(|(batch, rows)| Ok(Span { batch, rows: (0..row_number(rows.num_rows())?).collect() }));
            let rows = rows.collect::<Result<Vec<_>, ArrowError>>()?;
            return Ok(vec![Partition { values: HashMap::new(), rows }]);
        }
        let columns = self.partition_by.iter().map(|name| {
            let column = self.columns().find(|(field, _)| field.name() == name);
            column.ok_or_else(|| ArrowError::SchemaError(format!("the table has no partition column `{name}`")))
        });
        let columns: Vec<Column<'_>> = columns.collect::<Result<_, _>>()?;
        let fields = columns.iter().map(|(field, _)| SortField::new(field.data_type().clone())).collect();
        let converter = RowConverter::new(fields)?;
        let mut known: HashMap<Box<[u8]>, usize> = HashMap::new();
        let mut partitions: Vec<Partition> = Vec::new();
        for (number, batch) in batches.iter().enumerate() {
            let keys = columns.iter().map(|column| self.column(*column, batch)).collect::<Result<Vec<_>, _>>()?;
            for (row, key) in converter.convert_columns(&keys)?.iter().enumerate() {
                let at = match known.get(key.as_ref()) {
                    Some(at) => *at,
                    None => {
                        known.insert(key.as_ref().into(), partitions.len());
                        partitions.push(Partition { values: self.values(&keys, row)?, rows: Vec::new() });
                        partitions.len() - 1
                    }
                };
                let (rows, row) = (&mut partitions[at].rows, row_number(row)?);
                match rows.last_mut() {
                    Some(span) if span.batch == number => span.rows.push(row),
                    _ => rows.push(Span { batch: number, rows: vec![row] }),
                }
            }
        }
        Ok(partitions)
    }

    /// The values of the partition columns in a row.
    fn values(&self, keys: &[ArrayRef], row: usize) -> Result<HashMap<String, Scalar>, ArrowError> {
        let value = |(name, key): (&String, &ArrayRef)| {
            let data_type = self.table.field(name).map(|field| field.data_type());
            let data_type = data_type.ok_or_else(|| ArrowError::SchemaError(format!("no column `{name}`")))?;
            Ok((name.clone(), scalar(key.as_ref(), row, data_type)?))
        };
        self.partition_by.iter().zip(keys).map(value).collect()
    }
}

impl Span {
    /// These rows of their batch.
    fn of(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        match (self.rows.first(), self.rows.last()) {
            // The numbers only rise, so these are neighbours.
            (Some(first), Some(last)) if (last - first) as usize + 1 == self.rows.len() => {
                Ok(batch.slice(*first as usize, self.rows.len()))
            }
            _ => take_record_batch(batch, &UInt32Array::from(self.rows.clone())),
        }
    }
}

fn row_number(row: usize) -> Result<u32, ArrowError> {
    u32::try_from(row).map_err(|error| ArrowError::ComputeError(error.to_string()))
}

/// Cuts the rows of one partition into files. A row that is longer than a file may be is alone in one.
fn cut(rows: Vec<Span>, most: Most, length: impl Fn(usize, u32) -> usize) -> Vec<Vec<Span>> {
    let mut files: Vec<Vec<Span>> = Vec::new();
    let mut left = Most { rows: 0, bytes: 0 };
    for span in rows {
        let mut fresh = true;
        for row in span.rows {
            let bytes = length(span.batch, row);
            if left.rows == 0 || left.bytes < bytes {
                files.push(Vec::new());
                left = most;
                fresh = true;
            }
            left = Most { rows: left.rows - 1, bytes: left.bytes.saturating_sub(bytes) };
            let Some(file) = files.last_mut() else { continue };
            match file.last_mut() {
                Some(last) if !fresh => last.rows.push(row),
                _ => file.push(Span { batch: span.batch, rows: vec![row] }),
            }
            fresh = false;
        }
    }
    files
}

/// What a value takes beside its text, bytes or items.
fn fixed_length(data_type: &ArrowType) -> usize {
    match data_type {
        ArrowType::FixedSizeBinary(length) => usize::try_from(*length).unwrap_or(0),
        ArrowType::Struct(_) | ArrowType::FixedSizeList(..) | ArrowType::Dictionary(..) => 0,
        // One for what takes less, and the end of what is of any length.
        other => other.primitive_width().unwrap_or(if *other == ArrowType::Boolean { 1 } else { 4 }),
    }
}

/// Adds how many bytes each value is long.
fn add_lengths(column: &ArrayRef, lengths: &mut [usize]) -> Result<(), ArrowError> {
    let fixed = fixed_length(column.data_type());
    lengths.iter_mut().for_each(|length| *length += fixed);
    match column.data_type() {
        ArrowType::Utf8 => add(lengths, column.as_string::<i32>().offsets().lengths()),
        ArrowType::LargeUtf8 => add(lengths, column.as_string::<i64>().offsets().lengths()),
        ArrowType::Binary => add(lengths, column.as_binary::<i32>().offsets().lengths()),
        ArrowType::LargeBinary => add(lengths, column.as_binary::<i64>().offsets().lengths()),
        ArrowType::Utf8View => add(lengths, column.as_string_view().lengths().map(|length| length as usize)),
        ArrowType::BinaryView => add(lengths, column.as_binary_view().lengths().map(|length| length as usize)),
        ArrowType::Struct(_) => column.as_struct().columns().iter().try_for_each(|one| add_lengths(one, lengths))?,
        ArrowType::List(_) => {
            let list = column.as_list::<i32>();
            let offsets = list.offsets().iter().map(|offset| *offset as usize).collect::<Vec<_>>();
            add(lengths, sums(list.values(), &offsets)?);
        }
        ArrowType::LargeList(_) => {
            let list = column.as_list::<i64>();
            let offsets = list.offsets().iter().map(|offset| *offset as usize).collect::<Vec<_>>();
            add(lengths, sums(list.values(), &offsets)?);
        }
        ArrowType::FixedSizeList(_, length) => {
            let (list, length) = (column.as_fixed_size_list(), usize::try_from(*length).unwrap_or(0));
            let offsets = (0..=list.len()).map(|row| row * length).collect::<Vec<_>>();
            add(lengths, sums(list.values(), &offsets)?);
        }
        ArrowType::Map(..) => {
            let map = column.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let offsets = map.offsets().iter().map(|offset| *offset as usize).collect::<Vec<_>>();
            add(lengths, sums(&entries, &offsets)?);
        }
        // The file has the values in full.
        ArrowType::Dictionary(_, value) => add_lengths(&cast(column, value)?, lengths)?,
        _ => {}
    }
    Ok(())
}

fn add(lengths: &mut [usize], more: impl IntoIterator<Item = usize>) {
    lengths.iter_mut().zip(more).for_each(|(length, more)| *length += more);
}

/// How many bytes the items from one offset to the next are long together.
fn sums(items: &ArrayRef, offsets: &[usize]) -> Result<Vec<usize>, ArrowError> {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return Ok(Vec::new()) };
    let mut lengths = vec![0; last - first];
    add_lengths(&items.slice(*first, last - first), &mut lengths)?;
    let mut lengths = lengths.into_iter();
    Ok(offsets.windows(2).map(|pair| lengths.by_ref().take(pair[1] - pair[0]).sum()).collect())
}

/// The value of a partition column.
fn scalar(array: &dyn Array, row: usize, data_type: &DataType) -> Result<Scalar, ArrowError> {
    if array.is_null(row) {
        return Ok(Scalar::Null(data_type.clone()));
    }
    Ok(match (data_type, array.data_type()) {
        (DataType::Primitive(PrimitiveType::String), ArrowType::Utf8) => {
            Scalar::String(array.as_string::<i32>().value(row).to_owned())
        }
        (DataType::Primitive(PrimitiveType::Boolean), _) => Scalar::Boolean(array.as_boolean().value(row)),
        (DataType::Primitive(PrimitiveType::Byte), _) => Scalar::Byte(array.as_primitive::<Int8Type>().value(row)),
        (DataType::Primitive(PrimitiveType::Short), _) => Scalar::Short(array.as_primitive::<Int16Type>().value(row)),
        (DataType::Primitive(PrimitiveType::Integer), _) => {
            Scalar::Integer(array.as_primitive::<Int32Type>().value(row))
        }
        (DataType::Primitive(PrimitiveType::Long), _) => Scalar::Long(array.as_primitive::<Int64Type>().value(row)),
        (DataType::Primitive(PrimitiveType::Float), _) => Scalar::Float(array.as_primitive::<Float32Type>().value(row)),
        (DataType::Primitive(PrimitiveType::Double), _) => {
            Scalar::Double(array.as_primitive::<Float64Type>().value(row))
        }
        (DataType::Primitive(PrimitiveType::Date), _) => Scalar::Date(array.as_primitive::<Date32Type>().value(row)),
        (DataType::Primitive(PrimitiveType::Timestamp), _) => {
            Scalar::Timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        (DataType::Primitive(PrimitiveType::TimestampNtz), _) => {
            Scalar::TimestampNtz(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        (DataType::Primitive(PrimitiveType::Decimal(decimal)), _) => {
            let bits = array.as_primitive::<Decimal128Type>().value(row);
            let data = DecimalData::try_new(bits, *decimal);
            Scalar::Decimal(data.map_err(|error| ArrowError::ExternalError(Box::new(error)))?)
        }
        _ => {
            let reason = format!("a column of type {data_type} cannot be a partition column here");
            return Err(ArrowError::SchemaError(reason));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, StringArray};
    use arrow::datatypes::Field;

    /// Rows of the columns `k` and `v`.
    fn batch(rows: &[(Option<&str>, &str)]) -> RecordBatch {
        let k: StringArray = rows.iter().map(|(k, _)| *k).collect();
        let v: StringArray = rows.iter().map(|(_, v)| Some(*v)).collect();
        let columns = vec![("k", Arc::new(k) as ArrayRef, true), ("v", Arc::new(v) as ArrayRef, true)];
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    fn columns(batch: &RecordBatch, partition_by: &[&str]) -> TableColumns {
        let names: Vec<String> = partition_by.iter().map(|name| (*name).to_owned()).collect();
        TableColumns::new(&new_table(&batch.schema()).unwrap(), &names, &batch.schema()).unwrap()
    }

    /// The values of the partition columns and those of `v`, file by file.
    fn files(columns: &TableColumns, batches: &[RecordBatch], most: Most) -> Vec<(String, Vec<String>)> {
        let files = columns.files(batches, most).unwrap();
        files
            .iter()
            .map(|file| {
                let rows = columns.rows(file, batches).unwrap();
                let v = rows.column_by_name("v").unwrap().as_string::<i32>();
                let values = file.values.get("k").map_or(String::new(), ToString::to_string);
                (values, v.iter().map(|v| v.unwrap().to_owned()).collect())
            })
            .collect()
    }

    #[test]
    fn many_small_batches_make_the_files_of_one_large_one() {
        let rows: Vec<(Option<&str>, &str)> = vec![
            (Some("a"), "1"),
            (None, "2"),
            (Some("a"), "a long one"),
            (Some("b"), "4"),
            (Some("a"), "5"),
            (None, "6"),
            (Some("a"), "7"),
        ];
        let one = [batch(&rows)];
        let pieces: Vec<RecordBatch> = rows.chunks(1).map(batch).collect();
        let pairs: Vec<RecordBatch> = [&[][..], &rows[..2], &rows[2..5], &rows[5..]].map(batch).into();
        for partition_by in [&["k"][..], &[]] {
            let columns = columns(&one[0], partition_by);
            for most in [(usize::MAX, 1000), (2, 1000), (1, 1000), (usize::MAX, 12), (3, 20)] {
                let most = Most { rows: most.0, bytes: most.1 };
                let expected = files(&columns, &one, most);
                assert_eq!(expected.iter().map(|(_, v)| v.len()).sum::<usize>(), 7, "{most:?}");
                assert_eq!(files(&columns, &pieces, most), expected, "{most:?}");
                assert_eq!(files(&columns, &pairs, most), expected, "{most:?}");
            }
        }
        let columns = columns(&one[0], &["k"]);
        let cut = files(&columns, &pieces, Most { rows: 2, bytes: 15 });
        let cut: Vec<String> = cut.into_iter().map(|(k, v)| format!("{k}: {}", v.join(", "))).collect();
        let expected = ["'a': 1", "'a': a long one", "'a': 5, 7", "null: 2, 6", "'b': 4"];
        assert_eq!(cut, expected, "a text takes its bytes and four more");
    }

    #[test]
    fn a_column_of_more_than_two_gibibytes_is_never_one_array() {
        let text = "x".repeat(1 << 20);
        let one = batch(&[(Some("a"), &text)]);
        let batches = vec![one.clone(); 2100];
        let most = Most { rows: usize::MAX, bytes: 64 << 20 };
        for partition_by in [&["k"][..], &[]] {
            let columns = columns(&one, partition_by);
            let files = columns.files(&batches, most).unwrap();
            let rows: Vec<usize> = files.iter().map(|file| file.rows.len()).collect();
            assert_eq!(rows, [vec![63; 33], vec![21]].concat());
            let last = columns.rows(files.last().unwrap(), &batches).unwrap();
            assert_eq!(last.num_rows(), 21);
        }
    }

    #[test]
    fn a_row_is_as_long_as_what_it_holds_at_any_depth() {
        let lengths = |column: ArrayRef| {
            let mut lengths = vec![0; column.len()];
            add_lengths(&column, &mut lengths).unwrap();
            lengths
        };
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("abc"), None, Some(""), Some("xy")]));
        assert_eq!(lengths(Arc::clone(&texts)), [7, 4, 4, 6]);
        assert_eq!(lengths(texts.slice(2, 2)), [4, 6]);
        for other in [ArrowType::LargeUtf8, ArrowType::Utf8View, ArrowType::Binary, ArrowType::LargeBinary] {
            assert_eq!(lengths(cast(&texts, &other).unwrap()), [7, 4, 4, 6], "{other}");
        }
        let coded = ArrowType::Dictionary(Box::new(ArrowType::Int8), Box::new(ArrowType::Utf8));
        assert_eq!(lengths(cast(&texts, &coded).unwrap()), [7, 4, 4, 6]);
        let item = Arc::new(Field::new("item", ArrowType::Utf8, true));
        let offsets = arrow::buffer::OffsetBuffer::new(vec![0, 1, 1, 4].into());
        let list: ArrayRef = Arc::new(arrow::array::ListArray::new(item, offsets, Arc::clone(&texts), None));
        assert_eq!(lengths(Arc::clone(&list)), [11, 4, 18]);
        assert_eq!(lengths(list.slice(1, 2)), [4, 18]);
        let pair = vec![
            (Arc::new(Field::new("l", list.data_type().clone(), true)), Arc::clone(&list)),
            (Arc::new(Field::new("n", ArrowType::Int32, true)), Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef),
        ];
        let pair: ArrayRef = Arc::new(arrow::array::StructArray::from(pair));
        assert_eq!(lengths(pair), [15, 8, 22]);
    }
}
