//! The examples of `FORMAT.md` are what the program reads and writes.

use crate::{
    BorderPin, CommitEntry, CommitLog, LeaseRecord, Metadata, OffsetEntry, OffsetLog, StateSchemas, SwapEntry,
};
use millstream_common::BatchId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The JSON below a heading.
fn example(heading: &str) -> Value {
    let document = include_str!("../../FORMAT.md");
    let section = document.split(&format!("\n### {heading}\n")).nth(1).unwrap();
    let json = section.split("```json").nth(1).unwrap().split("```").next().unwrap();
    serde_json::from_str(json).unwrap()
}

fn round_trips<T: Serialize + DeserializeOwned>(heading: &str) {
    let json = example(heading);
    let read: T = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), json, "{heading}");
}

#[test]
fn the_examples_of_the_format_document_round_trip() {
    round_trips::<Metadata>("metadata");
    round_trips::<OffsetEntry>("offsets/N");
    round_trips::<CommitEntry>("commits/N");
    round_trips::<SwapEntry>("swaps/N");
    round_trips::<LeaseRecord>("lease");
}

#[test]
fn an_entry_is_written_with_its_schemas_and_read_back() {
    let entry: OffsetEntry = serde_json::from_value(example("offsets/N")).unwrap();
    let bare = OffsetEntry { batch: BatchId(42), state_schemas: StateSchemas::default(), ..entry.clone() };
    let log = OffsetLog::new(super::memory());
    let border = BorderPin { what: "state made anew".into(), restored: Some(BatchId(40)), state: BTreeMap::new() };
    let border = OffsetEntry { batch: BatchId(43), border: Some(border), ..entry.clone() };
    for entry in [entry, bare, border] {
        log.add(&entry).unwrap();
        assert_eq!(log.get(entry.batch).unwrap(), Some(entry));
    }
}

#[test]
fn an_entry_says_the_same_whatever_form_its_state_was_given_in() {
    let entry: CommitEntry = serde_json::from_value(example("commits/N")).unwrap();
    let files = super::memory();
    let log = CommitLog::new(Arc::clone(&files));
    let pins = (entry.output.as_ref(), &entry.inputs, entry.sink.as_ref());
    log.add_state(BatchId(7), entry.next_watermark_ms, &entry.state, pins, None).unwrap();
    log.add(&CommitEntry { batch: BatchId(8), ..entry.clone() }).unwrap();
    assert_eq!(log.get(BatchId(7)).unwrap(), Some(CommitEntry { batch: BatchId(7), ..entry }));
    let text = |file: &str| String::from_utf8(files.get(file).unwrap().to_vec()).unwrap();
    let (one, other) = (text("commits/7"), text("commits/8").replace("\"batch\": 8", "\"batch\": 7"));
    assert_eq!(one.split_once('\n').unwrap().1, other.split_once('\n').unwrap().1);
}

#[test]
fn an_entry_of_the_first_version_is_read_with_what_it_could_not_say() {
    let mut json = example("offsets/N");
    let fields = json.as_object_mut().unwrap();
    for added in ["connectors", "output_mode", "repartition"] {
        fields.remove(added).unwrap();
    }
    fields["state_schemas"]["counts"].as_object_mut().unwrap().remove("families").unwrap();
    let body = serde_json::to_string_pretty(&json).unwrap();
    let head = format!("millstream offset-log 1 crc32={:08x}", crc32fast::hash(body.as_bytes()));
    let files = super::memory();
    files.put_new("offsets/41", format!("{head}\n{body}").into()).unwrap();
    let entry = OffsetLog::new(files).get(BatchId(41)).unwrap().unwrap();
    assert_eq!(entry.state_schemas["counts"].families, Value::Null);
    assert_eq!((entry.connectors.len(), entry.output_mode, entry.repartition), (0, None, None));
}
