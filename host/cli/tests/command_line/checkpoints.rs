//! Checkpoints: shared, shown, torn.

use crate::console::{COUNTS, Console};

/// A checkpoint with some batches in it.
fn with_batches(count: usize) -> Console {
    let console = Console::with(COUNTS);
    let mut running = console.start(&["run", "query.toml"]);
    running.wait_for_batches(count);
    running.signal("INT");
    running.end().expect(0, &[]);
    console
}

#[test]
fn a_second_process_on_one_checkpoint_is_refused_and_the_first_goes_on() {
    let console = Console::with(COUNTS);
    let mut first = console.start(&["run", "query.toml"]);
    first.wait_for_batches(1);
    let holder = "is in use by run ";
    console
        .run(&["run", "query.toml"])
        .expect(2, &["error: the checkpoint in ", holder, "hint: stop that process first"]);
    let done = console.names("checkpoint/commits").len();
    first.wait_for_batches(done + 2);
    first.signal("INT");
    first.end().expect(0, &["stopped "]);
}

#[test]
fn a_checkpoint_is_shown_with_its_last_batch_and_its_state() {
    let console = with_batches(2);
    let shown = console.run(&["checkpoint", "show", "checkpoint"]).expect(0, &[]);
    shown.prints(&[
        "query      counts ",
        "done       batches 0 to ",
        "source     numbers: ",
        "setting    spark.sql.shuffle.partitions = 2",
        "state      query-aggregate in 2 partitions: version ",
    ]);
    let json = console.run(&["checkpoint", "show", "checkpoint", "--json"]).expect(0, &[]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["name"], "counts");
    assert_eq!(json["state"][0]["uid"], "query-aggregate");
    console.run(&["checkpoint", "verify", "checkpoint"]).expect(0, &[]).prints(&["2 stores read, all whole"]);
}

#[test]
fn a_place_without_a_checkpoint_is_told_and_stays_empty() {
    let console = Console::with(COUNTS);
    for command in ["show", "verify"] {
        let ended = console.run(&["checkpoint", command, "none"]).expect(1, &["error: there is no checkpoint in "]);
        assert!(ended.stderr.contains("hint: check the path"), "{ended:#?}");
    }
    assert!(!console.path("none").exists());
}

#[test]
fn a_torn_log_entry_is_named_by_all_and_nothing_more_is_written() {
    let console = with_batches(2);
    let last = console.names("checkpoint/offsets").iter().map(|name| name.parse::<u64>().unwrap()).max().unwrap();
    let file = format!("offsets/{last}");
    let path = console.path(&format!("checkpoint/{file}"));
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let before = console.names("checkpoint/commits");
    console.run(&["run", "query.toml"]).expect(2, &["error: ", &format!("`{file}`"), "hint: bring "]);
    console.run(&["check", "query.toml"]).expect(2, &[&format!("`{file}`")]);
    console.run(&["checkpoint", "verify", "checkpoint"]).expect(2, &[]).prints(&[&file, "1 thing is wrong"]);
    assert_eq!(console.names("checkpoint/commits"), before);
    std::fs::write(&path, whole).unwrap();
    console.run(&["checkpoint", "verify", "checkpoint"]).expect(0, &[]).prints(&["all whole"]);
}

#[test]
fn a_torn_state_file_is_found_with_the_batches_that_need_it() {
    let console = with_batches(3);
    let folder = "checkpoint/state/query-aggregate/0";
    let first = console.names(folder).into_iter().find(|name| name.starts_with("1-")).unwrap();
    let path = console.path(&format!("{folder}/{first}"));
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let ended = console.run(&["checkpoint", "verify", "checkpoint"]).expect(2, &[]);
    ended.prints(&["state/query-aggregate/0: ", &first, "cannot be returned to", "1 thing is wrong"]);
    console.run(&["run", "query.toml"]).expect(2, &["error: ", &first]);
}

#[test]
fn state_is_spread_over_other_partitions_and_the_query_goes_on_with_them() {
    let console = with_batches(2);
    let partitions = |checkpoint: &str| {
        let shown = console.run(&["checkpoint", "show", checkpoint, "--keys", "--json"]).expect(0, &[]);
        let json: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
        (json["state"][0]["by_partition"].as_array().unwrap().len(), json["state"][0]["keys"].clone())
    };
    assert_eq!(partitions("checkpoint"), (2, 3.into()));
    let ended = console.run(&["checkpoint", "repartition", "query.toml", "--partitions", "5"]).expect(0, &[]);
    ended.prints(&["query-aggregate: 3 keys from 2 to 5 partitions", " done: 2 to 5 partitions"]);
    assert_eq!(partitions("query.toml"), (5, 3.into()));
    let shown = console.run(&["checkpoint", "show", "checkpoint"]).expect(0, &[]);
    shown.prints(&[
        "spreads the state over 5 partitions in place of 2",
        "setting    spark.sql.shuffle.partitions = 5",
        "partition 4: version ",
    ]);
    console.run(&["run", "query.toml", "--trigger", "once"]).expect(0, &["partitions is 2, but the checkpoint has 5"]);
    assert_eq!(partitions("checkpoint"), (5, 3.into()));
    let ended = console.run(&["checkpoint", "repartition", "checkpoint", "--partitions", "1", "--json"]).expect(0, &[]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&ended.stdout).unwrap()["to"], 1);
    console
        .run(&["run", "query.toml", "--trigger", "once"])
        .expect(0, &["state       query-aggregate in 1 partitions"]);
    let ended = console.run(&["checkpoint", "repartition", "checkpoint", "--partitions", "1"]).expect(0, &[]);
    ended.prints(&["the state has 1 partitions already"]);
    console.run(&["checkpoint", "verify", "query.toml"]).expect(0, &[]).prints(&["5 stores read, all whole"]);
}

#[test]
fn the_state_of_a_running_query_is_not_spread() {
    let console = Console::with(COUNTS);
    let repartition =
        |partitions: &str| console.run(&["checkpoint", "repartition", "checkpoint", "--partitions", partitions]);
    repartition("5").expect(1, &["error: there is no checkpoint in "]);
    let mut running = console.start(&["run", "query.toml"]);
    running.wait_for_batches(1);
    repartition("5").expect(2, &["is in use by run ", "hint: stop that process first"]);
    repartition("0").expect(1, &["a number from 1 to 1024 is expected"]);
    running.signal("INT");
    running.end().expect(0, &[]);
}
