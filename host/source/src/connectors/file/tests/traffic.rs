use super::formats::{avro_of, orc_of};
use super::*;
use crate::connectors::file::bucket::{Bucket, Traffic, WHOLE_BYTES};
use crate::connectors::file::columnar::{read_avro, read_orc, read_parquet};
use crate::connectors::file::input::InputFile;
use arrow::array::ArrayRef;
use parquet::file::properties::WriterProperties;

/// Rows of so many columns `c0`, `c1`, … of numbers that do not compress.
fn numbers(columns: i64, rows: i64) -> RecordBatch {
    let number = |at: i64| at.wrapping_mul(0x5851_F42D_4C95_7F2D);
    let column = |n: i64| Int64Array::from_iter_values((0..rows).map(|row| number(row * columns + n)));
    let named = (0..columns).map(|n| (format!("c{n}"), Arc::new(column(n)) as ArrayRef, true));
    RecordBatch::try_from_iter_with_nullable(named).unwrap()
}

/// Two row groups with many pages in each column.
fn many_pages(rows: &RecordBatch) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(rows.num_rows().div_ceil(2)))
        .set_data_page_row_count_limit(5_000)
        .set_write_batch_size(1_000)
        .build();
    let mut bytes = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, rows.schema(), Some(properties)).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
    bytes
}

type Read = fn(&InputFile, &SchemaRef, &mut Vec<RecordBatch>) -> Result<(), String>;

/// Reads columns of an object; answers what it took. The rows must be those that were written.
fn traffic_of(read: Read, rows: &RecordBatch, bucket: &Arc<Bucket>, columns: &[usize]) -> Traffic {
    let before = bucket.traffic();
    let file = InputFile::stored(bucket, "object").unwrap();
    let wanted = rows.project(columns).unwrap();
    let mut batches = Vec::new();
    read(&file, &wanted.schema(), &mut batches).unwrap();
    let found = arrow::compute::concat_batches(&wanted.schema(), &batches).unwrap();
    assert!(found == wanted, "the rows are not those that were written");
    let after = bucket.traffic();
    Traffic { requests: after.requests - before.requests, bytes: after.bytes - before.bytes }
}

#[test]
fn a_large_parquet_object_is_fetched_once_and_only_the_columns_that_are_read() {
    let rows = numbers(24, 100_000);
    let content = many_pages(&rows);
    let size = content.len() as u64;
    assert!(size > 2 * WHOLE_BYTES, "{size}");
    let bucket = Arc::new(Bucket::open("memory://traffic-parquet/", &[]).unwrap());
    bucket.put("object", &content);
    let all = traffic_of(read_parquet, &rows, &bucket, &(0..24).collect::<Vec<_>>());
    assert!(all.bytes < size + size / 10 && all.requests < 12, "{all:?} of {size}");
    let one = traffic_of(read_parquet, &rows, &bucket, &[17]);
    assert!(one.bytes < size / 20 && one.requests < 8, "{one:?} of {size}");
    let apart = traffic_of(read_parquet, &rows, &bucket, &[0, 23]);
    assert!(apart.bytes < size / 10 && apart.requests < 10, "{apart:?} of {size}");
}

#[test]
fn large_objects_of_the_other_formats_are_read_as_well() {
    let rows = numbers(2, 600_000);
    let nothing: ArrayRef = Arc::new(StringArray::new_null(rows.num_rows()));
    let columns = rows.columns().iter().cloned().chain([nothing]).zip(["a", "b", "nothing"]);
    let rows = RecordBatch::try_from_iter_with_nullable(columns.map(|(column, name)| (name, column, true))).unwrap();
    for (name, content, read) in [("avro", avro_of(&rows), read_avro as Read), ("orc", orc_of(&rows), read_orc)] {
        let size = content.len() as u64;
        assert!(size > WHOLE_BYTES, "{name}: {size}");
        let bucket = Arc::new(Bucket::open(&format!("memory://traffic-{name}/"), &[]).unwrap());
        bucket.put("object", &content);
        let all = traffic_of(read, &rows, &bucket, &[0, 1, 2]);
        assert!(all.bytes < 2 * size + WHOLE_BYTES, "{name}: {all:?} of {size}");
    }
}
