//! The Yahoo streaming benchmark, from generated files of JSON to a file sink.
//!
//! ```text
//!   events (7 text fields) ──► views only ──► ad, time ──► campaign of the ad ──► count per campaign and 10 s ──► parquet
//! ```
//!
//! As its repository defines it: 100 campaigns of 10 ads, three kinds of events of which a third are views, ids that are UUIDs,
//! times in milliseconds as text. Beyond that definition the counts are compared with those of the generator. CPU time of the
//! process: decoding, engine, state, logs and sink. Run with `./x bench ysb`.

#![allow(clippy::print_stdout, clippy::panic, clippy::unwrap_used, reason = "a program for people")]

mod support;

use arrow::array::{RecordBatch, StringArray};
use millstream_runtime::functions::{col, window};
use millstream_runtime::{Session, Trigger};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use support::{cpu_seconds, schema};

const CAMPAIGNS: u64 = 100;
const ADS: u64 = 10;
const FILES: u64 = 16;
const EVENTS_PER_FILE: u64 = 62_500;
const START_MS: u64 = 1_700_000_000_000;
const ROUNDS: usize = 3;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let (input, bytes, views) = generate(folder.path());
    let events = FILES * EVENTS_PER_FILE;
    println!("{events} events of {} bytes in {FILES} files, {views} of them views", bytes / events);
    let mut rates = Vec::new();
    for round in 0..ROUNDS {
        let out = folder.path().join(format!("out-{round}"));
        let start = cpu_seconds();
        let counted = run(&input, &out);
        let seconds = cpu_seconds() - start;
        assert_eq!(counted, views, "views that were counted");
        rates.push(events as f64 / seconds / 1e6);
    }
    println!("{:.2} M events per CPU second   (aim: 0.8)", support::median(rates));
}

fn mix(i: u64) -> u64 {
    let i = (i ^ (i >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (i ^ (i >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 11
}

fn uuid(kind: u64, number: u64) -> String {
    uuid::Uuid::from_u64_pair(mix(kind << 40 | number), mix(number << 8 | kind)).to_string()
}

/// Writes the events; answers their folder, their bytes, and how many are views.
fn generate(folder: &Path) -> (String, u64, u64) {
    let input = folder.join("events");
    std::fs::create_dir(&input).unwrap();
    let kinds = ["view", "click", "purchase"];
    let types = ["banner", "modal", "sponsored-search", "mail", "mobile"];
    let (mut bytes, mut views) = (0, 0);
    for file in 0..FILES {
        let mut text = Vec::new();
        for number in file * EVENTS_PER_FILE..(file + 1) * EVENTS_PER_FILE {
            let dice = mix(number);
            let kind = kinds[(dice % 3) as usize];
            views += u64::from(kind == "view");
            // Ten events per millisecond, each up to 50 ms out of order.
            let time = START_MS + number / 10 + dice % 50;
            writeln!(
                text,
                "{{\"user_id\":\"{}\",\"page_id\":\"{}\",\"ad_id\":\"{}\",\"ad_type\":\"{}\",\"event_type\":\"{kind}\",\"event_time\":\"{time}\",\"ip_address\":\"1.2.3.4\"}}",
                uuid(1, dice % 100),
                uuid(2, dice / 7 % 100),
                uuid(3, dice / 11 % (CAMPAIGNS * ADS)),
                types[(dice / 13 % 5) as usize],
            )
            .unwrap();
        }
        bytes += text.len() as u64;
        std::fs::write(input.join(format!("{file:03}.json")), text).unwrap();
    }
    (input.display().to_string(), bytes, views)
}

/// Runs the query to its end; answers how many views it counted.
fn run(input: &str, out: &Path) -> u64 {
    let session = Session::new().unwrap();
    session.set("millstream.watermark.finishOnEnd", "true").unwrap();
    session.set("spark.sql.shuffle.partitions", "1").unwrap();
    let ads = StringArray::from_iter_values((0..CAMPAIGNS * ADS).map(|ad| uuid(3, ad)));
    let campaigns = StringArray::from_iter_values((0..CAMPAIGNS * ADS).map(|ad| uuid(4, ad / ADS)));
    let columns = schema("ad_id string, campaign_id string");
    let rows = RecordBatch::try_new(Arc::clone(&columns), vec![Arc::new(ads), Arc::new(campaigns)]).unwrap();
    let campaigns = session.create_data_frame(columns, vec![rows]).unwrap();
    let event = "user_id string, page_id string, ad_id string, ad_type string, event_type string, event_time string, \
                 ip_address string";
    let events = session.read_stream().name("events").format("json").schema(schema(event));
    let events = events.option("maxFilesPerTrigger", 4).load_path(input).unwrap();
    let counts = events
        .filter("event_type = 'view'")
        .and_then(|views| views.select(["ad_id", "timestamp_millis(CAST(event_time AS BIGINT)) AS event_time"]))
        .and_then(|views| views.with_watermark("event_time", "1 second"))
        .and_then(|views| views.join(&campaigns, ["ad_id"], "inner"))
        .and_then(|views| views.group_by([window("event_time", "10 seconds"), col("campaign_id")]).count())
        .and_then(|counts| counts.select(["campaign_id", "window.start AS start", "count"]))
        .unwrap_or_else(|error| panic!("{}", millstream_common::describe_chain(&error)));
    let place = out.display().to_string();
    let writer = counts.write_stream().format("json").trigger(Trigger::AvailableNow);
    let query = writer.option("checkpointLocation", format!("{place}-checkpoint")).start_path(&place);
    query.unwrap().await_termination().unwrap_or_else(|error| panic!("{}", millstream_common::describe_chain(&error)));
    counted(&place).values().sum()
}

/// The counts that the manifests of the output name, per campaign and window.
fn counted(place: &str) -> BTreeMap<(String, String), u64> {
    let mut counts = BTreeMap::new();
    let files = millstream_checkpoint::open_files(place, &[]).unwrap();
    for batch in millstream_sink::connectors::file::read_committed_in(files.as_ref()).unwrap() {
        for file in batch.files {
            for line in String::from_utf8(files.get(&file.name).unwrap().to_vec()).unwrap().lines() {
                let row: serde_json::Value = serde_json::from_str(line).unwrap();
                let key = (row["campaign_id"].to_string(), row["start"].to_string());
                assert!(counts.insert(key, row["count"].as_u64().unwrap()).is_none(), "a window came twice");
            }
        }
    }
    counts
}
