//! Swaps in a running query.

use crate::console::{COUNTS, Console, PATIENCE, repository};
use std::process::Command;

/// Components of the same function: what it adds is what differs.
fn component(console: &Console, name: &str, body: &str) -> String {
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
    let swapped = console.run(&["swap", "query.toml", &format!("shifts={second}")]).expect(0, &[]);
    let swapped = swapped.prints(&["accepted  shifts ", "taken     shifts ", ", from batch "]);
    let from: usize = swapped.stdout.rsplit("from batch ").next().unwrap().split(' ').next().unwrap().parse().unwrap();
    running.wait_for_batches(from + 2);
    let swapped_back = console.run(&["swap", "query.toml", &format!("shifts={first}"), "--no-wait"]).expect(0, &[]);
    assert!(!swapped_back.stdout.contains("taken"));

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
    let ended = console.run(&swap).expect(2, &["error: no batch began within 300ms; the swap still waits"]);
    assert!(ended.stdout.starts_with("accepted"), "{ended:#?}");
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
