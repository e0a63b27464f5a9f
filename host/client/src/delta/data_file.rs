//! The rows of a data file.
//!
//! ```text
//!   a file with timestamps of 96 bits, as Spark writes them ──► read here, as microseconds
//!   any other file                                          ──► the kernel's reader
//! ```
//!
//! The kernel takes [timestamps of 96 bits](crate::int96) for nanoseconds.
//!
//! Rule of its life: it waits for the kernel, so it is called in [`apart`](DeltaTable::apart). It knows nothing of partition
//! columns, nor of rows that are marked as deleted.

use super::DeltaTable;
use crate::int96::in_microseconds;
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use bytes::Bytes;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::engine::arrow_utils::{fixup_parquet_read, parquet_read_plan};
use delta_kernel::engine::reader_options;
use delta_kernel::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use delta_kernel::parquet::basic::Type as PhysicalType;
use delta_kernel::parquet::errors::ParquetError;
use delta_kernel::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use delta_kernel::schema::{DataType as KernelType, PrimitiveType, SchemaRef};
use delta_kernel::{Engine, FileMeta, KernelError, KernelResult};
use std::ops::Range;
use std::sync::Arc;
use url::Url;

/// How much of a file's end is read first to find out what it holds.
const FOOTER_BYTES: u64 = 64 << 10;
/// How many rows come at once.
const ROWS_AT_ONCE: usize = 8192;

/// Rows of a file, batch by batch.
pub type FileRows = Box<dyn Iterator<Item = KernelResult<RecordBatch>>>;

impl DeltaTable {
    /// The rows of a data file with these columns, in the file's order; a column that the file does not have is null.
    ///
    /// # Errors
    /// When the file is gone or damaged, or has other types.
    pub fn file_rows(&self, file: FileMeta, columns: &SchemaRef) -> KernelResult<FileRows> {
        let timestamps = columns.fields().any(|field| holds_timestamps(field.data_type()));
        if timestamps && old_columns(&self.footer(&file)?).any(|old| old) {
            return old_timestamps(self.bytes(&file.location, None)?, Arc::clone(columns));
        }
        let read = self.engine().parquet_handler().read_parquet_files(&[file], Arc::clone(columns), None)?;
        Ok(Box::new(read.map(|data| Ok(ArrowEngineData::try_from_engine_data(data?)?.record_batch().clone()))))
    }

    fn bytes(&self, location: &Url, range: Option<Range<u64>>) -> KernelResult<Bytes> {
        let mut files = self.engine().storage_handler().read_files(vec![(location.clone(), range)])?;
        files.next().unwrap_or_else(|| Err(KernelError::generic(format!("nothing could be read of `{location}`"))))
    }

    fn footer(&self, file: &FileMeta) -> KernelResult<ParquetMetaData> {
        let mut length = FOOTER_BYTES.min(file.size);
        loop {
            let end = self.bytes(&file.location, Some(file.size - length..file.size))?;
            let mut reader = ParquetMetaDataReader::new();
            match reader.try_parse_sized(&end, file.size) {
                Ok(()) => return Ok(reader.finish()?),
                Err(ParquetError::NeedMoreData(more)) if more as u64 > length => length = file.size.min(more as u64),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn holds_timestamps(data_type: &KernelType) -> bool {
    match data_type {
        KernelType::Primitive(primitive) => {
            matches!(primitive, PrimitiveType::Timestamp | PrimitiveType::TimestampNtz)
        }
        KernelType::Array(array) => holds_timestamps(&array.element_type),
        KernelType::Map(map) => holds_timestamps(&map.key_type) || holds_timestamps(&map.value_type),
        KernelType::Struct(fields) => fields.fields().any(|field| holds_timestamps(field.data_type())),
        _ => false,
    }
}

/// Which of the file's columns, nested ones too, are timestamps of 96 bits.
fn old_columns(file: &ParquetMetaData) -> impl Iterator<Item = bool> {
    let columns = file.file_metadata().schema_descr().columns();
    columns.iter().map(|column| column.physical_type() == PhysicalType::INT96)
}

/// Reads a file with timestamps of 96 bits; all else is as the kernel does it.
fn old_timestamps(bytes: Bytes, columns: SchemaRef) -> KernelResult<FileRows> {
    let file = ArrowReaderMetadata::load(&bytes, reader_options())?;
    let fields = in_microseconds(file.schema().fields(), &mut old_columns(file.metadata()));
    let options = reader_options().with_schema(Arc::new(Schema::new(fields)));
    let file = ArrowReaderMetadata::try_new(Arc::clone(file.metadata()), options)?;
    let (order, wanted) = parquet_read_plan(&columns, &file)?;
    let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, file).with_batch_size(ROWS_AT_ONCE);
    if let Some(wanted) = wanted {
        reader = reader.with_projection(wanted);
    }
    let rows = reader.build()?.map(move |batch| {
        let rows = fixup_parquet_read(batch?, &order, None, None, Some(&columns))?;
        Ok(rows.record_batch().clone())
    });
    Ok(Box::new(rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType};
    use delta_kernel::parquet::data_type::{Int64Type as Long, Int96, Int96Type};
    use delta_kernel::parquet::file::writer::SerializedFileWriter;
    use delta_kernel::parquet::schema::parser::parse_message_type;
    use delta_kernel::schema::{ArrayType, StructField, StructType};

    const DAY: i64 = 86_400_000_000;

    /// A time as Spark writes it: nanoseconds of the day, and the number of the day.
    fn old(micros: i64) -> Int96 {
        let nanos = micros.rem_euclid(DAY) * 1000;
        let mut value = Int96::new();
        value.set_data(nanos as u32, (nanos >> 32) as u32, (micros.div_euclid(DAY) + 2_440_588) as u32);
        value
    }

    /// A file with the columns `n`, `at` and `all`, a list; `at` is null in its last row.
    fn file_of_spark(times: &[i64]) -> Vec<u8> {
        let message = "message spark_schema { optional int64 n; optional int96 at; \
                       optional group all (LIST) { repeated group list { optional int96 element; } } }";
        let mut bytes = Vec::new();
        let schema = Arc::new(parse_message_type(message).unwrap());
        let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
        let mut rows = file.next_row_group().unwrap();
        let values: Vec<Int96> = times.iter().map(|micros| old(*micros)).collect();
        let here = vec![1; times.len()];
        let numbers: Vec<i64> = (0..=times.len() as i64).collect();
        let mut column = rows.next_column().unwrap().unwrap();
        column.typed::<Long>().write_batch(&numbers, Some(&[&here[..], &[1]].concat()), None).unwrap();
        column.close().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        column.typed::<Int96Type>().write_batch(&values, Some(&[&here[..], &[0]].concat()), None).unwrap();
        column.close().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        // All in the list of the first row; the others have none.
        let there = [vec![3; times.len()], vec![0; times.len()]].concat();
        let within: Vec<i16> = (0..there.len()).map(|at| i16::from(at > 0 && at < times.len())).collect();
        column.typed::<Int96Type>().write_batch(&values, Some(&there), Some(&within)).unwrap();
        column.close().unwrap();
        rows.close().unwrap();
        file.close().unwrap();
        bytes
    }

    #[test]
    fn times_that_spark_writes_in_96_bits_are_what_they_are_in_every_year() {
        // The years 1, 1969, 2024 and 9999.
        let times = [-62_135_596_800_000_000, -1, 1_714_521_600_000_001, 253_402_214_400_000_000];
        let folder = std::env::temp_dir().join(format!("millstream-int96-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let bytes = file_of_spark(&times);
        std::fs::write(folder.join("part.parquet"), &bytes).unwrap();
        let table = DeltaTable::open(folder.to_str().unwrap(), &[]).unwrap();
        let list = ArrayType::new(KernelType::TIMESTAMP, true);
        let columns = [
            StructField::nullable("at", KernelType::TIMESTAMP),
            StructField::nullable("all", list),
            StructField::nullable("gone", KernelType::TIMESTAMP),
            StructField::nullable("n", KernelType::LONG),
        ];
        let read = |columns: &[StructField]| {
            let columns = Arc::new(StructType::try_new(columns.iter().cloned()).unwrap());
            let location = table.url().join("part.parquet").unwrap();
            let file = FileMeta { location, last_modified: 0, size: bytes.len() as u64 };
            let rows = table.apart("read", || table.file_rows(file, &columns)?.collect::<KernelResult<Vec<_>>>());
            rows.unwrap().remove(0)
        };
        let rows = read(&columns);
        assert_eq!(rows.num_rows(), 5);
        let at = rows.column(0).as_primitive::<TimestampMicrosecondType>();
        assert_eq!(at.data_type(), &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
        assert_eq!(&at.values()[..4], &times);
        assert!(at.is_null(4) && rows.column(2).is_null(0));
        let all = rows.column(1).as_list::<i32>().value(0);
        assert_eq!(all.as_primitive::<TimestampMicrosecondType>().values(), &times);
        // The kernel alone gives other times: when it does not any more, this file has nothing left to do.
        let location = table.url().join("part.parquet").unwrap();
        let file = FileMeta { location, last_modified: 0, size: bytes.len() as u64 };
        let only_at = Arc::new(StructType::try_new(columns[..1].iter().cloned()).unwrap());
        let misread = table.apart("read", || {
            let data = table.engine().parquet_handler().read_parquet_files(&[file], only_at, None)?.next().unwrap()?;
            Ok(ArrowEngineData::try_from_engine_data(data)?.record_batch().clone())
        });
        let misread = misread.unwrap();
        let misread = misread.column(0).as_primitive::<TimestampMicrosecondType>();
        assert_eq!(misread.values()[1..3], times[1..3]);
        assert!(misread.value(0) != times[0] && misread.value(3) != times[3], "{misread:?}");
        let rows = read(&columns[3..]);
        assert_eq!(rows.column(0).as_primitive::<Int64Type>().values(), &[0, 1, 2, 3, 4]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
