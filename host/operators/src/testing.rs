//! What the tests of this crate share: state stores over files in memory, rows of words in time, and a small loop
//! of batches that does what the runtime does, as far as operators can tell.

use crate::{BatchContext, EventTimeSeen, FamilyReader, OperatorMetrics, Pipeline, StateOpener, Stateful};
use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType};
use arrow::util::display::array_value_to_string;
use millstream_common::{
    BatchId, DurableFiles, MemoryFiles, OperatorUid, ScopedFiles, Watermark, WatermarkPolicy, WatermarkTracker,
    Watermarks,
};
use millstream_state::{ByteRows, LogStore, StateError, StateManifest, StateStore, StoreOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The folder of all stores of a test.
#[derive(Clone, Default)]
pub(crate) struct StateFolder {
    files: Arc<MemoryFiles>,
    opened: Arc<AtomicUsize>,
}

impl StateOpener for StateFolder {
    fn open(
        &self,
        uid: &OperatorUid,
        partition: u32,
        manifest: &StateManifest,
    ) -> Result<Box<dyn StateStore>, StateError> {
        Ok(Box::new(self.store(uid, partition, manifest)?))
    }
}

impl StateFolder {
    fn store(&self, uid: &OperatorUid, partition: u32, manifest: &StateManifest) -> Result<LogStore, StateError> {
        let files: Arc<dyn DurableFiles> = Arc::<MemoryFiles>::clone(&self.files);
        let options = StoreOptions {
            files: Arc::new(ScopedFiles::new(files, format!("state/{uid}/{partition}"))),
            writer: format!("run{}", self.opened.fetch_add(1, Ordering::Relaxed)),
            changelogs_before_snapshot: 3,
            budget: None,
        };
        LogStore::open(options, manifest)
    }

    /// Every key and value is what the operator says of its families, in the partition where it belongs.
    fn check_families(&self, state: &dyn Stateful, manifests: &[StateManifest]) {
        let (uid, partitions, families) = (state.uid(), state.partitions(), state.families());
        for (partition, manifest) in (0..partitions).zip(manifests) {
            let mut store = self.store(uid, partition, manifest).unwrap();
            for spec in store.families() {
                let family = families.iter().find(|family| family.name == spec.name);
                let family = family.unwrap_or_else(|| panic!("{uid} does not tell of its family {}", spec.name));
                assert_eq!(family.schema_id, spec.schema_id, "{uid} {}", spec.name);
                assert!(family.is_spread() || partitions == 1, "{uid} {}", spec.name);
                let (mut keys, mut values) = (ByteRows::new(), ByteRows::new());
                let id = store.family(&spec).unwrap();
                store
                    .scan(id, &mut |key, value| {
                        keys.push(key);
                        values.push(value);
                    })
                    .unwrap();
                let reader = FamilyReader::try_new(family).unwrap();
                reader.read(&keys, &values).unwrap();
                let owners = reader.partitions(&keys, partitions).unwrap();
                assert!(owners.iter().all(|owner| *owner == partition as usize), "{uid} {}", spec.name);
            }
        }
    }
}

/// A row of the tests: seconds of event time, a word, a number.
pub(crate) type Event<'a> = (Option<i64>, Option<&'a str>, Option<i64>);

fn window_fields() -> Fields {
    let time = DataType::Timestamp(TimeUnit::Microsecond, None);
    Fields::from(vec![Field::new("start", time.clone(), true), Field::new("end", time, true)])
}

/// Columns `ts, word, n, w` (tumbling window of 10 s), `ws` (list of sliding windows of 10 s every 5 s).
pub(crate) fn events_schema() -> SchemaRef {
    let window = DataType::Struct(window_fields());
    Arc::new(Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("word", DataType::Utf8, true),
        Field::new("n", DataType::Int64, true),
        Field::new("w", window.clone(), false),
        Field::new("ws", DataType::List(Arc::new(Field::new_list_field(window, true))), true),
    ]))
}

fn windows(starts: &[i64]) -> StructArray {
    let start = TimestampMicrosecondArray::from_iter_values(starts.iter().map(|s| s * 1_000_000));
    let end = TimestampMicrosecondArray::from_iter_values(starts.iter().map(|s| (s + 10) * 1_000_000));
    StructArray::new(window_fields(), vec![Arc::new(start), Arc::new(end)], None)
}

/// Rows of [`events_schema`].
pub(crate) fn events(rows: &[Event<'_>]) -> RecordBatch {
    let seconds = |row: &Event<'_>| row.0.unwrap_or(0);
    let tumbling: Vec<i64> = rows.iter().map(|row| seconds(row).div_euclid(10) * 10).collect();
    let sliding: Vec<i64> = rows
        .iter()
        .flat_map(|row| {
            let last = seconds(row).div_euclid(5) * 5;
            [last - 5, last]
        })
        .collect();
    let schema = events_schema();
    let DataType::List(item) = schema.field(4).data_type() else { panic!("ws is a list") };
    let lists = ListArray::new(
        Arc::clone(item),
        OffsetBuffer::from_lengths(rows.iter().map(|_| 2)),
        Arc::new(windows(&sliding)),
        None,
    );
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampMicrosecondArray::from_iter(rows.iter().map(|row| row.0.map(|s| s * 1_000_000)))),
        Arc::new(StringArray::from_iter(rows.iter().map(|row| row.1))),
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.2))),
        Arc::new(windows(&tumbling)),
        Arc::new(lists),
    ];
    RecordBatch::try_new(schema, columns).unwrap()
}

/// Rows that only have a time, in seconds.
pub(crate) fn times(seconds: &[i64]) -> RecordBatch {
    events(&seconds.iter().map(|&s| (Some(s), None, None)).collect::<Vec<_>>())
}

fn cell(array: &ArrayRef, row: usize) -> String {
    match array.data_type() {
        _ if array.is_null(row) => "null".to_owned(),
        DataType::Struct(_) => {
            let parts = array.as_struct();
            let second = |i: usize| parts.column(i).as_primitive::<TimestampMicrosecondType>().value(row) / 1_000_000;
            format!("[{},{})", second(0), second(1))
        }
        DataType::Timestamp(_, _) => {
            format!("{}s", array.as_primitive::<TimestampMicrosecondType>().value(row) / 1_000_000)
        }
        _ => array_value_to_string(array, row).unwrap(),
    }
}

/// Rows as text, in order.
pub(crate) fn texts(batches: &[RecordBatch]) -> Vec<String> {
    let row_text =
        |batch: &RecordBatch, row| batch.columns().iter().map(|column| cell(column, row)).collect::<Vec<_>>().join(" ");
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| row_text(batch, row))).collect()
}

/// Rows as text, sorted.
pub(crate) fn sorted(batches: &[RecordBatch]) -> Vec<String> {
    let mut rows = texts(batches);
    rows.sort();
    rows
}

/// What one batch of a story did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) rows: Vec<String>,
    pub(crate) metrics: Vec<OperatorMetrics>,
    pub(crate) eviction_s: i64,
}

impl Step {
    /// Total, updated, removed, dropped of the operator nearest the sink.
    pub(crate) fn counts(&self) -> [u64; 4] {
        let metrics = &self.metrics[0];
        [metrics.rows_total, metrics.rows_updated, metrics.rows_removed, metrics.rows_dropped_by_watermark]
    }
}

/// A query with its checkpoint, batch by batch, as the runtime runs it.
pub(crate) struct Story {
    build: Box<dyn Fn() -> Pipeline>,
    pub(crate) pipeline: Pipeline,
    files: StateFolder,
    manifests: Vec<Vec<StateManifest>>,
    tracker: WatermarkTracker,
    late: Watermark,
    last_eviction: Watermark,
    next: BatchId,
    restarts: bool,
    watermarked: bool,
    /// The time of the next batch.
    pub(crate) now_ms: i64,
}

impl Story {
    /// A story; `restarts` reopens everything before every batch.
    pub(crate) fn new(build: impl Fn() -> Pipeline + 'static, restarts: bool) -> Self {
        let mut story = Self {
            pipeline: build(),
            build: Box::new(build),
            files: StateFolder::default(),
            manifests: Vec::new(),
            tracker: WatermarkTracker::resume(WatermarkPolicy::Min, [], Watermark::START, 0),
            late: Watermark::START,
            last_eviction: Watermark::START,
            next: BatchId::FIRST,
            restarts,
            watermarked: true,
            now_ms: 0,
        };
        story.open();
        story
    }

    /// Takes the watermark out of the story.
    pub(crate) fn without_watermark(mut self) -> Self {
        self.watermarked = false;
        self
    }

    /// Stops, and starts from the last commit.
    pub(crate) fn restart(&mut self) {
        self.pipeline = (self.build)();
        self.open();
    }

    fn open(&mut self) {
        let (files, manifests) = (self.files.clone(), &mut self.manifests);
        let mut index = 0;
        let opened: Result<(), StateError> = self.pipeline.for_each_stateful(|state| {
            if manifests.len() == index {
                manifests.push(vec![StateManifest::default(); state.partitions() as usize]);
            }
            index += 1;
            state.open(&files, &manifests[index - 1])
        });
        opened.unwrap();
    }

    /// The facts of the next batch.
    pub(crate) fn context(&self) -> BatchContext {
        let eviction = self.tracker.global();
        let watermarks = self.watermarked.then_some(Watermarks { late: self.late, eviction });
        BatchContext { batch: self.next, batch_time_ms: self.now_ms, watermarks }
    }

    /// A batch with rows of one source.
    pub(crate) fn batch(&mut self, rows: &[RecordBatch]) -> Step {
        self.batch_of(&mut [rows.to_vec()])
    }

    /// A batch with rows of several sources.
    pub(crate) fn batch_of(&mut self, inputs: &mut [Vec<RecordBatch>]) -> Step {
        if self.restarts {
            self.restart();
        }
        let context = self.context();
        let rows = self.pipeline.run(inputs, &context).unwrap();
        let (mut manifests, mut metrics) = (Vec::new(), Vec::new());
        let files = self.files.clone();
        let done: Result<(), StateError> = self.pipeline.for_each_stateful(|state| {
            let prepared = state.prepare()?;
            files.check_families(state, &prepared);
            manifests.push(prepared);
            state.commit();
            metrics.push(state.metrics());
            Ok(())
        });
        done.unwrap();
        self.manifests = manifests;
        for seen in self.pipeline.take_event_times() {
            self.observe(&seen);
        }
        let eviction = self.tracker.global();
        (self.late, self.last_eviction) = (eviction, eviction);
        self.tracker.advance(0);
        self.next = self.next.next();
        for metric in &mut metrics {
            (metric.updates_ms, metric.removals_ms, metric.commit_ms, metric.memory_bytes) = (0, 0, 0, 0);
        }
        Step { rows: sorted(&rows), metrics, eviction_s: eviction.0 / 1000 }
    }

    fn observe(&mut self, seen: &EventTimeSeen) {
        if let Some(greatest) = seen.advance_us {
            self.tracker.observe(&seen.node, greatest, seen.delay_us, 0);
        }
    }

    /// The no-data batch, if a stateful operator wants one.
    pub(crate) fn settle(&mut self) -> Option<Step> {
        let (old, new) = (self.last_eviction, self.tracker.global());
        self.pipeline.wants_no_data_batch(old, new).then(|| self.batch_of(&mut [Vec::new(), Vec::new()]))
    }
}
