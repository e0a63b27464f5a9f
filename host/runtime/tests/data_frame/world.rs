//! A session with streams in memory, and queries that are driven batch by batch.

use arrow::array::{
    ArrayRef, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::util::pretty::pretty_format_batches;
use millstream_common::{ManualClock, Options, OutputMode, StopSignal};
use millstream_plan::{DropDuplicates, EventTime, Query};
use millstream_runtime::{
    DataFrame, QueryRun, QuerySpec, RuntimeError, Session, Settings, StreamSpec, TableSpec, inspect,
};
use millstream_sink::SinkRegistry;
use millstream_sink::SinkSpec;
use millstream_sink::connectors::memory::MemorySinkTables;
use millstream_source::connectors::memory::{MemoryStream, MemoryStreams};
use millstream_source::{SourceRegistry, SourceSpec};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const NAME: &str = "result";

/// The rows of one batch, as lines.
pub(crate) type Batches = BTreeMap<u64, Vec<String>>;

pub(crate) struct World {
    pub(crate) session: Session,
    pub(crate) tables: MemorySinkTables,
    streams: BTreeMap<&'static str, MemoryStream>,
    pub(crate) folder: tempfile::TempDir,
}

fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// `ts TIMESTAMP, word STRING, n BIGINT, tags ARRAY<STRING>`.
pub(crate) fn events_schema() -> SchemaRef {
    let tags = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    Arc::new(Schema::new(vec![
        Field::new("ts", timestamp(), true),
        Field::new("word", DataType::Utf8, true),
        Field::new("n", DataType::Int64, true),
        Field::new("tags", tags, true),
    ]))
}

/// Rows of `(second, word, n)`; the tags are the letters of the word.
pub(crate) fn events(rows: &[(i64, &str, i64)]) -> RecordBatch {
    let mut tags = ListBuilder::new(StringBuilder::new());
    for (_, word, _) in rows {
        for letter in word.chars() {
            tags.values().append_value(letter.to_string());
        }
        tags.append(true);
    }
    let times = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.0 * 1_000_000));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(times.with_timezone("UTC")),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2))),
        Arc::new(tags.finish()),
    ];
    RecordBatch::try_new(events_schema(), columns).unwrap()
}

/// `word STRING, lim BIGINT`.
fn limits() -> RecordBatch {
    let word: ArrayRef = Arc::new(StringArray::from(vec!["ant", "bee", "bee"]));
    let lim: ArrayRef = Arc::new(Int64Array::from(vec![3, 5, 7]));
    let fields = vec![Field::new("word", DataType::Utf8, true), Field::new("lim", DataType::Int64, true)];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![word, lim]).unwrap()
}

impl World {
    /// Streams `events` and `other`, with rows for four batches, and one called `stream`.
    pub(crate) fn new() -> Self {
        let (factory, tables) = (MemoryStreams::new(), MemorySinkTables::new());
        let mut sources = SourceRegistry::with_builtins();
        sources.register("memory", Arc::new(factory.clone()));
        let names = ["events", "other", "stream", "lines"];
        let streams = names.map(|name| (name, factory.create(name, events_schema()))).into();
        let session = Session::builder()
            .clock(Arc::new(ManualClock::at(1_000_000)))
            .sources(sources)
            .sinks(SinkRegistry::with_builtins_over(tables.clone()))
            .build();
        session.set("spark.sql.shuffle.partitions", "2").unwrap();
        Self { session, tables, streams, folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn memory(&self, name: &str) -> MemoryStream {
        self.streams[name].clone()
    }

    /// One of the streams, one unit per batch.
    pub(crate) fn stream(&self, name: &str) -> DataFrame {
        let reader = self.session.read_stream().format("memory").name(name);
        reader.option("maxBatchesPerTrigger", 1).load().unwrap()
    }

    /// The stream `events` with a watermark of 10 seconds.
    pub(crate) fn timed(&self) -> DataFrame {
        self.stream("events").with_watermark("ts", "10 seconds").unwrap()
    }

    pub(crate) fn limits(&self) -> DataFrame {
        let rows = limits();
        self.session.create_data_frame(rows.schema(), vec![rows]).unwrap()
    }

    /// The query of a frame, into memory.
    pub(crate) fn spec(&self, frame: &DataFrame, mode: OutputMode) -> QuerySpec {
        let writer = frame.write_stream().format("memory").query_name(NAME).output_mode(mode);
        writer.option("checkpointLocation", self.checkpoint()).spec().unwrap()
    }

    pub(crate) fn checkpoint(&self) -> String {
        self.folder.path().join("checkpoint").display().to_string()
    }

    /// The query that a query file with this text would be.
    pub(crate) fn sql(&self, text: &str, mode: OutputMode, declared: &Declared) -> QuerySpec {
        let stream = |name: &str, is_declared: bool| StreamSpec {
            source: SourceSpec {
                name: name.into(),
                format: "memory".into(),
                schema: None,
                options: Options::new().with("maxBatchesPerTrigger", "1"),
            },
            event_time: (is_declared && declared.watermark)
                .then(|| EventTime { column: "ts".into(), delay_us: 10_000_000 }),
            drop_duplicates: declared.drop_duplicates.clone().filter(|_| is_declared),
        };
        let rows = limits();
        QuerySpec {
            name: Some(NAME.into()),
            tables: vec![TableSpec::Rows { name: "limits".into(), schema: rows.schema(), rows: vec![rows] }],
            mode,
            checkpoint: Some(self.checkpoint()),
            settings: Settings { partitions: 2, ..Settings::default() },
            ..QuerySpec::new(
                Query::Sql(text.into()),
                vec![stream("events", true), stream("other", false)],
                SinkSpec { format: "memory".into(), options: Options::new() },
            )
        }
    }

    pub(crate) fn open(&self, spec: &QuerySpec) -> Result<QueryRun, RuntimeError> {
        QueryRun::open(&self.session, spec.clone(), StopSignal::new())
    }

    /// What each batch wrote.
    pub(crate) fn written(&self) -> Batches {
        let table = self.tables.get(NAME).unwrap();
        table.batches().into_iter().map(|(id, rows)| (id.0, lines(&rows))).collect()
    }
}

/// What the query file says of the stream `events` beside the text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Declared {
    pub(crate) watermark: bool,
    pub(crate) drop_duplicates: Option<DropDuplicates>,
}

/// Rows as text, with their columns first.
pub(crate) fn lines(rows: &[RecordBatch]) -> Vec<String> {
    let rows: Vec<_> = rows.iter().filter(|rows| rows.num_rows() > 0).cloned().collect();
    let Some(first) = rows.first() else { return Vec::new() };
    let schema = first.schema();
    let header = schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
    let header = header.collect::<Vec<_>>().join(", ");
    let text = pretty_format_batches(&rows).unwrap().to_string();
    let body = text.lines().filter(|line| line.starts_with('|')).skip(1).map(squeezed);
    std::iter::once(header).chain(body).collect()
}

fn squeezed(line: &str) -> String {
    line.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" | ")
}

/// Lines without regard to the order of the rows.
pub(crate) fn sorted(mut batches: Batches) -> Batches {
    for rows in batches.values_mut().filter(|rows| !rows.is_empty()) {
        rows[1..].sort();
    }
    batches
}

/// Runs all batches that there are to run.
pub(crate) fn drain(run: &mut QueryRun) {
    while run.run_next().unwrap().is_some() {}
}

/// Uids and state of a query, without the names of tables before those of columns.
pub(crate) fn state(world: &World, spec: &QuerySpec) -> Vec<(String, String)> {
    let spec = QuerySpec { checkpoint: None, ..spec.clone() };
    let checked = inspect::check(&world.session, &spec).unwrap();
    let unqualified = |text: &str| {
        let words = text.split(' ').map(|word| word.rsplit_once('.').map_or(word, |(_, name)| name));
        words.collect::<Vec<_>>().join(" ")
    };
    checked.state.into_iter().map(|state| (state.uid, unqualified(&state.schema))).collect()
}
