use crate::connectors::file::tests::context;
use crate::connectors::file::{
    CommittedBatches, FileFormat, FileSinkFactory, OpenFiles, read_live_files, read_spark_log,
};
use crate::{Sink, SinkBatch, SinkContext, SinkFactory, SinkSpec};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::Int64Type;
use millstream_checkpoint::faulty::{Counted, FaultyFiles, Moment};
use millstream_client::file_log::unquote;
use millstream_common::{BatchId, DurableFiles, ManualClock, MemoryFiles, Options, OutputMode};
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

/// Rows whose `id` tells them apart, in two folders `k=0` and `k=1`.
fn rows(ids: std::ops::Range<i64>) -> RecordBatch {
    let all: Vec<i64> = ids.collect();
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("id", Arc::new(Int64Array::from(all.clone())), true),
        ("k", Arc::new(StringArray::from_iter_values(all.iter().map(|id| (id % 2).to_string()))), true),
        ("x", Arc::new(Float64Array::from_iter(all.iter().map(|id| (id % 3 > 0).then_some(*id as f64)))), true),
        ("b", Arc::new(BooleanArray::from_iter(all.iter().map(|id| (id % 5 > 0).then_some(id % 2 == 0)))), true),
        ("d", Arc::new(Date32Array::from_iter(all.iter().map(|id| Some(*id as i32)))), true),
        ("at", Arc::new(TimestampMicrosecondArray::from(all).with_timezone("UTC")), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

struct World {
    files: Arc<dyn DurableFiles>,
    clock: Arc<ManualClock>,
    spec: SinkSpec,
}

impl World {
    fn new(format: &str, options: &[(&str, &str)]) -> Self {
        let mut all = Options::new().with("path", "x").with("format", format).with("partitionBy", "k");
        options.iter().for_each(|(name, value)| all.set(*name, *value));
        let spec = SinkSpec { format: "file".into(), options: all };
        Self { files: Arc::new(MemoryFiles::default()), clock: Arc::new(ManualClock::at(0)), spec }
    }

    fn open(&self, files: Arc<dyn DurableFiles>) -> Result<Box<dyn Sink>, crate::SinkError> {
        let open: Arc<OpenFiles> = Arc::new(move |_: &str| Ok(Arc::clone(&files)));
        let context = SinkContext { clock: Arc::clone(&self.clock) as _, ..context(1) };
        FileSinkFactory::opening(None, open).open(&self.spec, context)
    }

    /// Batches of four rows, an hour each, until one fails; how many are done.
    fn run(&self, files: Arc<dyn DurableFiles>, batches: std::ops::Range<u64>) -> u64 {
        let Ok(mut sink) = self.open(files) else { return batches.start };
        for number in batches.clone() {
            self.clock.advance(HOUR);
            let rows = [rows(number as i64 * 4..number as i64 * 4 + 4)];
            let schema = rows[0].schema();
            let batch = SinkBatch { id: BatchId(number), schema: &schema, rows: &rows, mode: OutputMode::Append };
            if sink.add_batch(&batch).is_err() {
                return number;
            }
        }
        batches.end
    }

    /// The names of the files that a reader of the log reads.
    fn live(&self, files: &dyn DurableFiles) -> Vec<String> {
        if self.spec.options.get("sparkMetadata").is_none() {
            return read_live_files(files).unwrap().into_iter().map(|file| file.name).collect();
        }
        let root = format!("{}/", files.location());
        let named = read_spark_log(files).unwrap();
        named.iter().map(|file| unquote(file.path.strip_prefix(&root).unwrap())).collect()
    }

    fn data(&self, files: &dyn DurableFiles) -> Vec<String> {
        let folders = files.list_folders("").unwrap().into_iter().filter(|folder| folder.contains('='));
        folders
            .flat_map(|folder| files.list(&folder).unwrap().into_iter().map(move |f| format!("{folder}/{f}")))
            .collect()
    }

    /// The ids that a reader of the log reads, sorted.
    fn ids(&self, files: &dyn DurableFiles) -> Vec<i64> {
        let mut ids = Vec::new();
        for name in self.live(files) {
            let bytes = files.get(&name).unwrap();
            let folder = name.split('/').next().unwrap().strip_prefix("k=").unwrap().parse::<i64>().unwrap();
            let found = ids_of(self.spec.options.get("format").unwrap(), &name, bytes);
            assert!(found.iter().all(|id| id % 2 == folder), "{name}: {found:?}");
            ids.extend(found);
        }
        ids.sort_unstable();
        ids
    }
}

fn ids_of(format: &str, name: &str, bytes: bytes::Bytes) -> Vec<i64> {
    let text = || {
        let mut text = String::new();
        let mut plain = bytes.as_ref();
        let read = match name.ends_with(".gz") {
            true => std::io::Read::read_to_string(&mut flate2::read::MultiGzDecoder::new(plain), &mut text),
            false => std::io::Read::read_to_string(&mut plain, &mut text),
        };
        read.unwrap();
        text
    };
    let ids = |batches: Vec<RecordBatch>| -> Vec<i64> {
        let columns = batches.iter().map(|batch| batch.column_by_name("id").unwrap().as_primitive::<Int64Type>());
        columns.flat_map(|column| column.values().to_vec()).collect()
    };
    match format {
        "json" => text()
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_i64().unwrap())
            .collect(),
        "csv" => {
            let text = text();
            assert_eq!(text.matches("id,x").count(), 1, "one line of names: {text}");
            text.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect()
        }
        "parquet" => {
            let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(bytes.clone());
            ids(builder.unwrap().build().unwrap().map(Result::unwrap).collect())
        }
        "avro" => {
            let input = std::io::Cursor::new(bytes.clone());
            ids(arrow_avro::reader::ReaderBuilder::new().build(input).unwrap().map(Result::unwrap).collect())
        }
        _ => ids(orc_rust::ArrowReaderBuilder::try_new(bytes.clone()).unwrap().build().map(Result::unwrap).collect()),
    }
}

fn all(batches: u64) -> Vec<i64> {
    (0..batches as i64 * 4).collect()
}

#[test]
fn small_files_of_every_format_become_few_and_readers_see_each_row_once_all_the_time() {
    for (format, more) in [
        ("parquet", vec![]),
        ("avro", vec![]),
        ("orc", vec![]),
        ("json", vec![]),
        ("json", vec![("compression", "gzip")]),
        ("csv", vec![("header", "true")]),
        ("csv", vec![("header", "true"), ("compression", "gzip")]),
    ] {
        let options = [&[("compactAfterFiles", "3"), ("compactRetention", "5h")][..], &more].concat();
        let world = World::new(format, &options);
        let files = Arc::clone(&world.files);
        for number in 0..10 {
            assert_eq!(world.run(Arc::clone(&files), number..number + 1), number + 1);
            assert_eq!(world.ids(files.as_ref()), all(number + 1), "{format} {more:?} after batch {number}");
        }
        // In each folder three files became one with batches 3, 6 and 9, which had a file of their own.
        let live = world.live(files.as_ref());
        assert_eq!(live.len(), 8, "{format}: {live:#?}");
        let data = world.data(files.as_ref());
        // Those of batches 0 to 2 were replaced six hours ago, those of 3 to 5 three hours ago.
        assert_eq!(data.len(), live.len() + 12, "{format}: {data:#?}");
        let rows: u64 = CommittedBatches::new(files.as_ref()).unwrap().map(|batch| batch.unwrap().rows).sum();
        assert_eq!(rows, 40, "what was put together is not counted again");
    }
}

#[test]
fn a_crash_at_any_write_while_files_are_put_together_neither_loses_nor_doubles_rows() {
    const BATCHES: u64 = 7;
    for spark in [&[][..], &[("sparkMetadata", "true"), ("compactInterval", "2")]] {
        let options = [&[("compactAfterFiles", "2"), ("compactRetention", "2h")][..], spark].concat();
        let world = |files| World { files, ..World::new("json", &options) };
        let whole = world(Arc::new(MemoryFiles::default()));
        let counted = Arc::new(FaultyFiles::new(Arc::clone(&whole.files), Counted::ALL));
        assert_eq!(whole.run(Arc::clone(&counted) as _, 0..BATCHES), BATCHES);
        let expected = whole.live(whole.files.as_ref()).len();
        assert!(expected < 14, "{:#?}", whole.live(whole.files.as_ref()));
        let deletes = counted.history().iter().filter(|write| write.starts_with("delete k=")).count();
        assert!(deletes > 0, "{:#?}", counted.history());
        for write in 1..=counted.writes() {
            for moment in [Moment::Before, Moment::After] {
                let now = world(Arc::new(MemoryFiles::default()));
                let faulty = FaultyFiles::new(Arc::clone(&now.files), Counted::ALL).crash_at(write, moment);
                let died_in = now.run(Arc::new(faulty), 0..BATCHES);
                let what = format!("{spark:?}: write {write} ({}), {moment:?}", counted.history()[write - 1]);
                let seen = now.ids(now.files.as_ref()).len() as u64 / 4;
                assert!(
                    seen == died_in || seen == died_in + 1,
                    "{what}: {seen} batches are there, {died_in} were done"
                );
                assert_eq!(now.ids(now.files.as_ref()), all(seen), "{what}");
                assert_eq!(now.run(Arc::clone(&now.files), died_in.min(BATCHES - 1)..BATCHES), BATCHES, "{what}");
                assert_eq!(now.ids(now.files.as_ref()), all(BATCHES), "{what}");
                // Two more batches: what died is past, and what was replaced is deleted in time.
                now.clock.advance(HOUR * 9);
                assert_eq!(now.run(Arc::clone(&now.files), BATCHES..BATCHES + 1), BATCHES + 1);
                now.clock.advance(HOUR * 9);
                assert_eq!(now.run(Arc::clone(&now.files), BATCHES + 1..BATCHES + 2), BATCHES + 2);
                let (mut live, mut data) = (now.live(now.files.as_ref()), now.data(now.files.as_ref()));
                live.sort();
                data.sort();
                data.retain(|name| !name.contains(&format!("/part-{}-", BATCHES + 1)));
                live.retain(|name| !name.contains(&format!("/part-{}-", BATCHES + 1)));
                let replaced_last: Vec<&String> = data.iter().filter(|name| !live.contains(name)).collect();
                assert!(replaced_last.len() <= 8, "{what}: strays {replaced_last:#?}");
                assert!(live.iter().all(|name| data.contains(name)), "{what}");
                assert_eq!(now.ids(now.files.as_ref()), all(BATCHES + 2), "{what}");
            }
        }
    }
}

#[test]
fn a_file_that_is_damaged_or_has_other_columns_stays_as_it_is_and_no_batch_fails() {
    let world = World::new("parquet", &[("compactAfterFiles", "3")]);
    let files = Arc::clone(&world.files);
    world.run(Arc::clone(&files), 0..2);
    let damaged = world.live(files.as_ref()).into_iter().find(|name| name.starts_with("k=0/part-1-")).unwrap();
    let whole = files.get(&damaged).unwrap();
    files.put_over(&damaged, whole.slice(..whole.len() - 9)).unwrap();
    assert_eq!(world.run(Arc::clone(&files), 2..9), 9);
    let live = world.live(files.as_ref());
    assert!(live.contains(&damaged), "{live:#?}");
    assert!(live.iter().filter(|name| name.starts_with("k=0/")).count() <= 5, "{live:#?}");
    files.put_over(&damaged, whole).unwrap();
    assert_eq!(world.ids(files.as_ref()), all(9));

    // A query that goes on with another column.
    let mut sink = world.open(Arc::clone(&files)).unwrap();
    for number in 9..16 {
        let narrow = rows(number * 4..number * 4 + 4).project(&[0, 1, 2]).unwrap();
        let (rows, schema) = ([narrow.clone()], narrow.schema());
        let id = BatchId(number as u64);
        let batch = SinkBatch { id, schema: &schema, rows: &rows, mode: OutputMode::Append };
        assert_eq!(sink.add_batch(&batch).unwrap().rows, 4);
    }
    assert_eq!(world.ids(files.as_ref()), all(16));
    let left = world.live(files.as_ref()).len();
    assert!(left <= 16, "{left}");
}

#[test]
fn what_the_format_cannot_hold_is_refused_by_name() {
    let world = World::new("orc", &[]);
    let factory = FileSinkFactory::new(Some(FileFormat::Orc));
    let spec = SinkSpec { format: "orc".into(), options: Options::new().with("path", "x") };
    factory.check_columns(&spec, &rows(0..1).schema()).unwrap();
    let decimal = arrow::array::Decimal128Array::from(vec![1]).with_precision_and_scale(7, 2).unwrap();
    let refused = RecordBatch::try_from_iter([("price", Arc::new(decimal) as ArrayRef)]).unwrap();
    let error = factory.check_columns(&spec, &refused.schema()).unwrap_err().to_string();
    assert!(error.contains("format `orc` cannot hold column `price`"), "{error}");
    world.run(Arc::clone(&world.files), 0..1);
    let name = &world.live(world.files.as_ref())[0];
    let read = orc_rust::ArrowReaderBuilder::try_new(world.files.get(name).unwrap()).unwrap();
    let read = read.with_timestamp_precision(orc_rust::TimestampPrecision::Microsecond);
    let batch = read.build().next().unwrap().unwrap();
    let expected = rows(0..4);
    for column in ["id", "x", "b", "d", "at"] {
        let expected = expected.column_by_name(column).unwrap();
        let of_folder = arrow::compute::take(expected, &arrow::array::UInt32Array::from(vec![0, 2]), None).unwrap();
        assert_eq!(batch.column_by_name(column).unwrap().to_data(), of_folder.to_data(), "{column}");
    }
}
