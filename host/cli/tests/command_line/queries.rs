//! Queries from start to end.

use crate::console::{COPY, COUNTS, Console, finish};

#[test]
fn check_says_what_the_query_is_and_makes_nothing() {
    let console = Console::with(COUNTS);
    let ended = console.run(&["check", "query.toml"]).expect(0, &[]);
    let ended = ended.prints(&[
        "plan ok: counts\n",
        "source      numbers (rate-micro-batch)",
        "state       query-aggregate in 2 partitions",
        "result      part BIGINT, n BIGINT",
        "sink        noop in mode complete",
        "new, batch 0 is the first",
    ]);
    assert_eq!(ended.stderr, "");
    assert_eq!(console.names(""), ["query.toml"]);
}

#[test]
fn settings_are_shown_with_their_origin() {
    let console = Console::with(COUNTS);
    console.write(
        "host.toml",
        "[settings]\nspark.sql.streaming.pollingDelay = 50\n[object_store]\naws_secret = \"hunter2\"\n",
    );
    let set = "spark.sql.shuffle.partitions=3";
    let arguments = ["check", "query.toml", "--show-settings", "--host-file", "host.toml", "--set", set];
    let mut command = console.command(&arguments);
    command.env("MILLSTREAM_SETTING_SPARK_SQL_ANSI_ENABLED", "false");
    let ended = finish(command.spawn().unwrap()).expect(0, &[]).prints(&["[query file query.toml:4]", "(hidden)"]);
    for (name, rest) in [
        ("spark.sql.shuffle.partitions", "= 3  [flag --set]"),
        ("spark.sql.ansi.enabled", "= false  [environment MILLSTREAM_SETTING_SPARK_SQL_ANSI_ENABLED]"),
        ("spark.sql.streaming.pollingDelay", "= 50  [host file host.toml:2]"),
        ("spark.sql.streaming.minBatchesToRetain", "= 100  [default]"),
        ("output_mode", "= complete  [query file query.toml:4]"),
        ("trigger", "= default  [default]"),
    ] {
        let line = ended.stdout.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        assert!(line.ends_with(rest), "{line}");
    }
    assert!(!ended.stdout.contains("hunter2"));
}

#[test]
fn explain_shows_operators_state_and_result() {
    let console = Console::with(COUNTS);
    console.run(&["explain", "query.toml"]).expect(0, &[]).prints(&[
        "== Logical plan ==",
        "== Operators ==",
        "== Sources ==\n#0 numbers: rate-micro-batch",
        "== State ==\nquery-aggregate: 2 partitions",
        "== Plugins ==\nnone",
        "== Result ==\npart: BIGINT\nn: BIGINT",
    ]);
}

#[test]
fn what_is_available_is_copied_once_and_what_comes_later_with_the_next_run() {
    let console = Console::with(COPY);
    console.write("in/a.txt", "to be\nor not\n");
    console.write("in/b.txt", "to be\n");
    let ended = console.run(&["run", "query.toml", "--progress", "progress.jsonl"]).expect(
        0,
        &[
            "plan ok     lines (text) -> json in mode append",
            "trigger     available now",
            "done        2 batches, 3 rows in, 3 rows out",
        ],
    );
    assert_eq!(ended.stdout, "");
    assert_eq!(rows(&console), ["OR NOT", "TO BE", "TO BE"]);

    console.write("in/c.txt", "that is\n");
    console.run(&["run", "query.toml", "--progress", "progress.jsonl"]).expect(0, &["done        1 batch, 1 rows in"]);
    assert_eq!(rows(&console), ["OR NOT", "THAT IS", "TO BE", "TO BE"]);
    let progress = console.read("progress.jsonl");
    let batches: Vec<_> = progress
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["batchId"].clone())
        .collect();
    assert_eq!(batches, [0, 1, 2]);
    console.run(&["check", "query.toml"]).expect(0, &[]).prints(&["batch 3 is next"]);
}

/// The rows of the output, sorted.
fn rows(console: &Console) -> Vec<String> {
    let files = console.names("out").into_iter().filter(|name| name.ends_with(".json"));
    let text: String = files.map(|name| console.read(&format!("out/{name}"))).collect();
    let row =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["value"].as_str().unwrap().to_owned();
    let mut rows: Vec<_> = text.lines().map(row).collect();
    rows.sort();
    rows
}

#[test]
fn the_console_sink_is_the_only_thing_on_standard_output() {
    let query = COUNTS.replace("noop", "console");
    let console = Console::with(&query);
    let ended = console.run(&["run", "query.toml", "--trigger", "once", "--quiet"]).expect(0, &[]);
    assert_eq!(ended.stderr, "");
    assert!(ended.stdout.contains("Batch: 0") && ended.stdout.contains("part"), "{ended:#?}");
}

#[test]
fn a_console_that_nobody_reads_any_more_ends_the_query_without_noise() {
    let console = Console::with(&COUNTS.replace("noop", "console"));
    let mut child = console.command(&["run", "query.toml", "--quiet"]).spawn().unwrap();
    drop(child.stdout.take());
    let ended = finish(child);
    assert_eq!((ended.code, ended.stderr.contains("panic")), (Some(0), false), "{ended:#?}");
}

#[test]
fn a_batch_that_cannot_be_computed_is_told_with_its_number() {
    let console = Console::with(&COPY.replace("upper(value)", "CAST(value AS INT)"));
    console.write("in/a.txt", "seven\n");
    let ended = console.run(&["run", "query.toml"]).expect(1, &["error: batch 0 failed"]);
    assert!(ended.stderr.contains("seven"), "{ended:#?}");
    assert!(console.names("out").iter().all(|name| !name.ends_with(".json")));
}

#[test]
fn a_progress_file_that_cannot_be_made_is_told_before_the_start() {
    let console = Console::with(COUNTS);
    let arguments = ["run", "query.toml", "--progress", "no/such/folder/p.jsonl"];
    console.run(&arguments).expect(2, &["error: cannot write progress to `no/such/folder/p.jsonl`"]);
    assert_eq!(console.names("checkpoint"), [""; 0]);
}

#[test]
fn a_batch_query_answers_once_and_leaves_no_checkpoint() {
    let console = Console::with(COPY);
    console.write("in/a.txt", "to be\nor not\n");
    console.write("in/b.txt", "to be\n");
    let done = "done        3 rows of lines in, 3 rows out to FileSink[";
    console.run(&["run", "query.toml", "--batch"]).expect(0, &[done]);
    assert_eq!(rows(&console), ["OR NOT", "TO BE", "TO BE"]);
    assert_eq!(console.names(""), ["in", "out", "query.toml"]);
    // Neither a second answer nor a stream writes over it.
    console.run(&["run", "query.toml", "--batch"]).expect(1, &["it belongs to query", "hint: "]);
    console.run(&["run", "query.toml"]).expect(1, &["it belongs to query", "hint: "]);
    assert_eq!(rows(&console), ["OR NOT", "TO BE", "TO BE"]);
    console.run(&["run", "query.toml", "--batch", "--trigger", "once"]).expect(2, &["cannot be used with"]);
}
