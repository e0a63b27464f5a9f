//! The state of operators, shown.

use crate::console::{COUNTS, Console};

/// Windows and words from files, with a deduplication before and an aggregation behind.
const WORDS: &str = r#"
name = "words"
sql = "SELECT window(at, '10 minutes') AS w, word, count(*) AS n FROM words GROUP BY window(at, '10 minutes'), word"
output_mode = "update"
trigger = "available now"
checkpoint = "checkpoint"
[[source]]
name = "words"
format = "csv"
schema = "at TIMESTAMP, word STRING, id INT"
options = { path = "in", maxFilesPerTrigger = 1 }
watermark = { column = "at", delay = "1 hour" }
drop_duplicates = { columns = ["id"], within_watermark = true }
[sink]
format = "noop"
"#;

fn words() -> Console {
    let console = Console::with(WORDS);
    console.write("in/a.csv", "2026-01-01T12:01:00Z,to,1\n2026-01-01T12:02:00Z,be,2\n2026-01-01T12:02:30Z,be,2\n");
    console.run(&["run", "query.toml"]).expect(0, &[]);
    console
}

#[test]
fn keys_and_values_are_shown_by_the_names_of_their_columns() {
    let console = words();
    // The checkpoint alone is enough, and so is the query.
    for from in ["checkpoint", "query.toml"] {
        let ended = console.run(&["state", from, "--operator", "query-aggregate"]).expect(0, &[]);
        ended.prints(&[
            "query-aggregate after batch ",
            "|key.window.end     |key.window ",
            "|partition_id|",
            "|2026-01-01 12:10:00|{2026-01-01 12:00:00, 2026-01-01 12:10:00}|be",
            "|2026-01-01 12:10:00|{2026-01-01 12:00:00, 2026-01-01 12:10:00}|to",
        ]);
    }
    let ended = console.run(&["state", "checkpoint", "--operator", "words-dedup"]).expect(0, &[]);
    ended.prints(&[
        ", family seen\n",
        ", family expiry\n",
        "|key.id|value.expires      |",
        "|2     |2026-01-01 13:02:00|",
    ]);
}

#[test]
fn state_is_written_as_json_and_parquet_with_key_value_and_partition() {
    let console = words();
    let ask = |more: &[&str]| console.run(&[&["state", "checkpoint", "--operator"], more].concat());
    let ended = ask(&["query-aggregate", "--format", "json"]).expect(0, &[]);
    let mut lines: Vec<serde_json::Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.sort_by_key(|line| line["key"]["word"].to_string());
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line["partition_id"].is_u64() && line["value"].is_object()), "{lines:?}");
    assert_eq!(ask(&["query-aggregate", "--format", "json", "--limit", "1"]).stdout.lines().count(), 1);
    ask(&["query-aggregate", "--format", "parquet"]).expect(2, &["--out <FILE>"]);
    ask(&["query-aggregate", "--format", "parquet", "--out", "state.parquet"]).expect(0, &[]);
    assert!(std::fs::read(console.path("state.parquet")).unwrap().starts_with(b"PAR1"));
    ask(&["words-dedup", "--format", "json"])
        .expect(1, &["several families", "seen, expiry", "hint: name one of them with `--family`"]);
    ask(&["words-dedup", "--format", "json", "--family", "expiry"])
        .expect(0, &[])
        .prints(&[r#"{"key":{"expires":"2026-01-01T13:0"#]);
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let console = words();
    let ask = |more: &[&str]| console.run(&[&["state", "checkpoint"], more].concat());
    ask(&[]).expect(
        1,
        &["2 operators with state: query-aggregate, words-dedup", "hint: name one of them with `--operator`"],
    );
    ask(&["--operator", "other"]).expect(1, &["no operator `other`", "query-aggregate, words-dedup"]);
    ask(&["--operator", "words-dedup", "--family", "x"]).expect(1, &["no family `x`", "there are seen, expiry"]);
    ask(&["--batch", "99"]).expect(1, &["no state after batch 99", "hint: batches 0 to "]);
    console.run(&["state", "nowhere"]).expect(1, &["error: there is no checkpoint in "]);
    assert!(!console.path("nowhere").exists());
    let stateless = Console::with(crate::console::COPY);
    stateless.write("in/a.txt", "a\n");
    stateless.run(&["state", "query.toml"]).expect(1, &["there is no checkpoint in "]);
    stateless.run(&["run", "query.toml"]).expect(0, &[]);
    stateless.run(&["state", "query.toml"]).expect(1, &["the query keeps no state"]);
}

#[test]
fn the_state_of_a_running_query_is_shown_without_disturbing_it() {
    let console = Console::with(COUNTS);
    let mut running = console.start(&["run", "query.toml"]);
    running.wait_for_batches(2);
    let first = console.run(&["state", "query.toml", "--batch", "0"]).expect(0, &[]);
    first.prints(&["query-aggregate after batch 0\n"]);
    for _ in 0..3 {
        let newest = console.run(&["state", "query.toml"]).expect(0, &[]);
        assert_eq!(newest.stdout.lines().count(), 1 + 4 + 3, "{newest:#?}");
    }
    let done = console.names("checkpoint/commits").len();
    running.wait_for_batches(done + 2);
    running.signal("INT");
    running.end().expect(0, &["stopped "]);
}
