//! The examples of `FORMAT.md` are what the program reads and writes.

use crate::{CommitEntry, LeaseRecord, Metadata, OffsetEntry};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

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
    round_trips::<LeaseRecord>("lease");
}
