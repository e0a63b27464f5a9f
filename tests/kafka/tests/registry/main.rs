//! Values in Kafka that say by number what they were written with: a real broker and a real schema registry.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod avro;
mod json;
mod writing;

use kafka_tests::{Kafka, Record, RegistryServer};
use millstream_client::schema_registry::{Schema, SchemaKind, header};
use millstream_common::{Fault, Hint, Options, StopSignal, Trigger, describe_chain};
use millstream_runtime::{QueryRun, QuerySpec, Session, StreamSpec};
use millstream_sink::connectors::memory::MemorySinkTables;
use millstream_sink::{SinkRegistry, SinkSpec};
use millstream_source::SourceSpec;
use serde_json::Value;

/// A topic and its subject.
pub(crate) struct Story {
    pub(crate) kafka: &'static Kafka,
    pub(crate) registry: &'static RegistryServer,
    pub(crate) topic: String,
    pub(crate) subject: String,
    folder: tempfile::TempDir,
}

impl Story {
    pub(crate) fn new(like: &str) -> Self {
        let kafka = Kafka::shared();
        let topic = kafka.topic(like, 1);
        let subject = format!("{topic}-value");
        Self { kafka, registry: RegistryServer::shared(), topic, subject, folder: tempfile::tempdir().unwrap() }
    }

    /// Makes a schema the newest of the subject.
    pub(crate) fn register(&self, schema: &str) -> u32 {
        self.registry.client().register(&self.subject, &Schema::avro(schema)).unwrap()
    }

    pub(crate) fn register_json(&self, schema: &str) -> u32 {
        let schema = Schema { kind: SchemaKind::Json, text: schema.into(), references: Vec::new() };
        self.registry.client().register(&self.subject, &schema).unwrap()
    }

    pub(crate) fn produce(&self, values: Vec<Option<Vec<u8>>>) {
        let records = values.into_iter().map(|value| Record { value, ..Record::of("") });
        self.kafka.produce(&self.topic, &records.collect::<Vec<_>>()).unwrap();
    }

    /// `'SUBJECT', 'ADDRESS'`.
    pub(crate) fn place(&self) -> String {
        format!("'{}', '{}'", self.subject, self.registry.url())
    }

    /// A stream over the topic into memory, from where the last one of this story has ended.
    pub(crate) fn open(&self, sql: &str) -> Result<(QueryRun, MemorySinkTables), String> {
        let options = Options::new()
            .with("kafka.bootstrap.servers", self.kafka.bootstrap())
            .with("subscribe", self.topic.as_str())
            .with("startingOffsets", "earliest");
        let source = SourceSpec { name: "t".into(), format: "kafka".into(), schema: None, options };
        let stream = StreamSpec { source, event_time: None, drop_duplicates: None };
        let sink = SinkSpec { format: "memory".into(), options: Options::new() };
        let tables = MemorySinkTables::new();
        let session = Session::builder().sinks(SinkRegistry::with_builtins_over(tables.clone())).build();
        let mut spec = QuerySpec { name: Some("answer".into()), ..QuerySpec::new(sql, vec![stream], sink) };
        spec.checkpoint = Some(self.folder.path().display().to_string());
        spec.trigger = Trigger::AvailableNow;
        QueryRun::open(&session, spec, StopSignal::new())
            .map(|run| (run, tables))
            .map_err(|error| format!("{}; {}", describe_chain(&error), error.hint().unwrap_or_default()))
    }

    /// The rows that a run gives until nothing is left.
    pub(crate) fn rows(&self, sql: &str) -> Vec<Value> {
        let (mut run, tables) = self.open(sql).unwrap();
        to_the_end(&mut run).unwrap();
        rows(&tables)
    }

    /// The rows of a run and of one of another query over the same records.
    pub(crate) fn failure(&self, sql: &str) -> (Fault, String) {
        let (mut run, _) = self.open(sql).unwrap();
        to_the_end(&mut run).unwrap_err()
    }
}

pub(crate) fn to_the_end(run: &mut QueryRun) -> Result<(), (Fault, String)> {
    loop {
        match run.run_next() {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(error) => return Err((error.fault(), describe_chain(&error))),
        }
    }
}

/// What the sink has got, over all batches: the column `j`, which is JSON, or the bytes of `b` in hexadecimal.
pub(crate) fn rows(tables: &MemorySinkTables) -> Vec<Value> {
    let mut found = Vec::new();
    for (_, batches) in tables.get("answer").map(|table| table.batches()).unwrap_or_default() {
        for batch in batches {
            let column = batch.column_by_name("j").unwrap();
            let texts = arrow::compute::cast(column, &arrow::datatypes::DataType::Utf8).unwrap();
            for text in arrow::array::AsArray::as_string::<i32>(&texts).iter() {
                found.push(text.map_or(Value::Null, |text| serde_json::from_str(text).unwrap()));
            }
        }
    }
    found
}

/// A value behind the number of its schema.
pub(crate) fn framed(id: u32, payload: &[u8]) -> Option<Vec<u8>> {
    Some([&header(id)[..], payload].concat())
}

/// A long in Avro: zigzag, seven bits a byte.
pub(crate) fn long(value: i64) -> Vec<u8> {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    let mut bytes = Vec::new();
    while rest >= 0x80 {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// A text in Avro.
pub(crate) fn text(value: &str) -> Vec<u8> {
    [long(value.len() as i64), value.as_bytes().to_vec()].concat()
}
