//! Swaps in a running query.

use crate::console::{COUNTS, Console, PATIENCE, repository};
use std::process::Command;

/// Components of the same function: what it adds is what differs.
pub(crate) fn component(console: &Console, name: &str, body: &str) -> String {
    let sdk = repository("guest-sdk/rust").display().to_string();
    let folder = format!("{name}-source");
    console.run(&["plugin", "new", name, "--dir", &folder, "--sdk", &sdk]).expect(0, &[]);
    let source = format!(
        "//! A test.\nuse millstream_sdk::prelude::*;\n/// A number.\n#[scalar_function]\nfn shift({body}\nplugin!(shift);\n"
    );
    console.write(&format!("{folder}/src/lib.rs"), source);
    let file = format!("{name}.wasm");
    console.run(&["plugin", "build", &folder, "--out", &file]).expect(0, &[]);
    file
}

#[test]
fn a_plugin_is_swapped_while_the_query_runs_and_what_does_not_fit_is_refused() {
    let console = Console::with("");
    let first = component(&console, "first", "value: i64) -> i64 { value }");
    let second = component(&console, "second", "value: i64) -> i64 { value + 1_000_000 }");
    let other = component(&console, "other", "value: &str) -> i64 { value.len() as i64 }");
    let query = COUNTS.replace("SELECT value % 3", "SELECT max(shift(value)) AS top, value % 3");
    console.write("query.toml", format!("{query}[plugin.shifts]\ncomponent = \"{first}\"\n"));
    let arguments = ["run", "query.toml", "--trigger", "100 ms", "--progress", "progress.jsonl"];
    let mut running = console.start(&arguments);
    running.wait_for_batches(2);
    running.wait_until("the control socket", || !console.names("run").is_empty());

    console.run(&["status"]).expect(0, &[]).prints(&["counts (", "process "]);
    console.run(&["swap", "query.toml", &format!("shifts={other}")]).expect(1, &["error: ", "shift"]);
    console.run(&["swap", "counts", &format!("others={second}")]).expect(1, &["the query has no plugin `others`"]);
    console
        .run(&["swap", "nobody", &format!("shifts={second}")])
        .expect(2, &["no query `nobody` runs here", "counts ("]);
    console.run(&["swap", "counts", "shifts=query.toml"]).expect(1, &["is not a WebAssembly component"]);
    let held = console.run(&["swap", "query.toml", &format!("shifts={second}")]).expect(1, &["error: ", "--approve"]);
    held.prints(&["verdict    needs approval", "rows of the result come out otherwise", "dry run"]);
    let swapped = console.run(&["swap", "query.toml", &format!("shifts={second}"), "--approve"]).expect(0, &[]);
    let swapped = swapped.prints(&["accepted   shifts ", "taken      shifts ", ", from batch "]);
    let from: usize = swapped.stdout.rsplit("from batch ").next().unwrap().split(' ').next().unwrap().parse().unwrap();
    running.wait_for_batches(from + 2);
    let swapped_back = ["swap", "query.toml", &format!("shifts={first}"), "--no-wait", "--batches", "0"];
    let swapped_back = console.run(&swapped_back).expect(0, &[]);
    assert!(!swapped_back.stdout.contains("taken"));
    let history = console.run(&["plugin", "history", "query.toml"]).expect(0, &[]);
    history.prints(&["plugin     shifts", "by start", "by swap: needs approval, approved", "come out otherwise"]);

    console.run(&["stop", "query.toml"]).expect(0, &[]).prints(&["stopping  counts ("]);
    running.end().expect(0, &["done "]);
    let digests: Vec<String> = console
        .read("progress.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["plugins"][0]["digest"].to_string())
        .collect();
    assert_ne!(digests[from - 1], digests[from], "the batch that was named is the first of the new component");
    assert!(digests[..from].iter().all(|digest| *digest == digests[0]));
    console.run(&["checkpoint", "verify", "checkpoint"]).expect(0, &[]).prints(&["2 components", "all whole"]);
    for batch in [0, from - 1, from] {
        let replayed = console.run(&["replay", "query.toml", "--batch", &batch.to_string()]).expect(0, &[]);
        replayed.prints(&[
            "10 rows in",
            "plugin     shifts ",
            "output     ",
            "state      ",
            "the same: query-aggregate",
        ]);
    }
    console.run(&["replay", "query.toml", "--batch", "100000"]).expect(1, &["batch 100000 cannot be run again"]);
    let check = ["plugin", "check", &other, "--against", "query.toml"];
    console
        .run(&check)
        .expect(1, &[])
        .prints(&["verdict    reject", "argument `value` of `shift` was Int64 and is Utf8"]);
    let check = ["plugin", "check", &first, "--against", "checkpoint", "--json"];
    console.run(&check).expect(0, &[]).prints(&["\"verdict\": \"ok\"", "the query was not named"]);
}

#[test]
fn a_candidate_runs_in_the_shadow_of_the_query_and_a_rollback_makes_the_state_anew() {
    let console = Console::with("");
    let first = component(&console, "first", "value: i64) -> i64 { value }");
    let second = component(&console, "second", "value: i64) -> i64 { value + 1_000_000 }");
    let query = COUNTS.replace("SELECT value % 3", "SELECT sum(shift(value)) AS total, value % 3");
    let query = query.replace("format = \"noop\"", "format = \"json\"\noptions = { path = \"out\" }");
    let query = query.replace("\"complete\"", "\"append\"");
    let query = query.replace("GROUP BY value % 3\"", "GROUP BY value % 3, timestamp\"");
    let query = query.replace(
        "format = \"rate-micro-batch\"",
        "format = \"rate-micro-batch\"\nwatermark = { column = \"timestamp\", delay = \"0 seconds\" }",
    );
    console.write("query.toml", format!("{query}[plugin.shifts]\ncomponent = \"{first}\"\n"));
    let mut running = console.start(&["run", "query.toml", "--trigger", "100 ms", "--progress", "progress.jsonl"]);
    running.wait_for_batches(3);
    running.wait_until("the control socket", || !console.names("run").is_empty());
    let shadow = ["swap", "query.toml", &format!("shifts={second}"), "--batches", "0", "--shadow", "3"];
    console.run(&shadow).expect(1, &["rows of live batches come out otherwise"]).prints(&["shadow     batches "]);
    console.run(&[&shadow[..], &["--approve"]].concat()).expect(0, &[]).prints(&["taken      shifts "]);
    let back = console.run(&["rollback", "query.toml", "--restore", "--approve"]).expect(0, &[]);
    let back = back.prints(&["rollback   restores the state", "taken      shifts "]);
    let at: usize = back.stdout.rsplit("from batch ").next().unwrap().split(' ').next().unwrap().parse().unwrap();
    running.wait_for_batches(at + 2);
    console.run(&["stop", "query.toml"]).expect(0, &[]);
    running.end().expect(0, &["done "]);
    let history = console.run(&["plugin", "history", "query.toml"]).expect(0, &[]);
    history.prints(&["by swap", "by rollback", "state restored"]);
    console.run(&["checkpoint", "verify", "checkpoint"]).expect(0, &[]).prints(&["all whole"]);
    let replay = console.run(&["replay", "query.toml", "--batch", &at.to_string()]);
    replay.expect(1, &["it only made state anew", "run again with"]);
    console.run(&["replay", "query.toml", "--batch", &(at + 1).to_string()]).expect(0, &[]).prints(&["the same"]);
}

#[test]
fn an_idle_query_takes_a_swap_only_with_its_next_batch_and_the_client_need_not_wait() {
    let console = Console::with("");
    let first = component(&console, "first", "value: i64) -> i64 { value }");
    let query = COUNTS.replace("SELECT value % 3", "SELECT max(shift(value)) AS top, value % 3");
    console.write("query.toml", format!("{query}[plugin.shifts]\ncomponent = \"{first}\"\n"));
    let mut running = console.start(&["run", "query.toml", "--trigger", "1 day"]);
    running.wait_for_batches(1);
    running.wait_until("the control socket", || !console.names("run").is_empty());
    let swap = ["swap", "query.toml", &format!("shifts={first}"), "--timeout", "300 ms"];
    let ended = console.run(&swap).expect(2, &["error: no batch began within 300ms; it still waits for the next one"]);
    assert!(ended.stdout.contains("\naccepted "), "{ended:#?}");
    running.signal("INT");
    running.end().expect(0, &[]);
}

#[test]
fn the_socket_of_a_killed_query_is_in_nobodys_way() {
    let console = Console::with(COUNTS);
    let mut running = console.start(&["run", "query.toml"]);
    running.wait_for_batches(1);
    running.wait_until("the control socket", || !console.names("run").is_empty());
    running.signal("KILL");
    assert_eq!(running.end().code, None);
    assert_eq!(console.names("run").len(), 1);
    assert_eq!(console.run(&["status"]).expect(0, &[]).stdout, "");
    console.run(&["stop", "query.toml"]).expect(2, &["no query `query.toml` runs here: no query does", "hint: "]);
    let mut again = console.start(&["run", "query.toml"]);
    let began = std::time::Instant::now();
    again.wait_until("the query to be reachable", || {
        assert!(began.elapsed() < PATIENCE);
        Command::new(env!("CARGO_BIN_EXE_millstream"))
            .args(["status", "query.toml"])
            .current_dir(console.path(""))
            .env("MILLSTREAM_RUN_DIR", console.path("run"))
            .output()
            .unwrap()
            .status
            .success()
    });
    again.signal("INT");
    again.end().expect(0, &["stopped "]);
}
