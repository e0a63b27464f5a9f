//! Canaries in a running query.

use crate::console::{COUNTS, Console};
use crate::swaps::component;

#[test]
fn a_canary_is_asked_for_seen_ended_and_promoted() {
    let console = Console::with("");
    let first = component(&console, "first", "value: i64) -> i64 { value }");
    let second = component(&console, "second", "value: i64) -> i64 { value + 1_000_000 }");
    let query = COUNTS.replace("SELECT value % 3", "SELECT max(shift(value)) AS top, value % 3");
    console.write("query.toml", format!("{query}[plugin.shifts]\ncomponent = \"{first}\"\n"));
    let mut running = console.start(&["run", "query.toml", "--trigger", "100 ms", "--progress", "progress.jsonl"]);
    running.wait_for_batches(2);
    running.wait_until("the control socket", || !console.names("run").is_empty());
    let shifts = format!("shifts={second}");
    for (share, said) in [("0%", "a share from"), ("10", "a share from"), ("101%", "a share from")] {
        console.run(&["swap", "query.toml", &shifts, "--canary", share]).expect(2, &[said]);
    }
    console.run(&["swap", "query.toml", &shifts, "--cost", "2"]).expect(2, &["--canary"]);
    console.run(&["rollback", "query.toml", "--canary"]).expect(1, &["the query has no canary"]);
    let canary = ["swap", "query.toml", &shifts, "--canary", "100%", "--canary-batches", "100000", "--cost", "1000"];
    console.run(&canary).expect(1, &["--approve"]);
    let begun = console.run(&[&canary[..], &["--approve"]].concat()).expect(0, &[]);
    let begun =
        begun.prints(&["verdict    needs approval", "accepted   shifts ", "canary     shifts ", ", from batch "]);
    let from: usize = begun.stdout.rsplit("from batch ").next().unwrap().split(' ').next().unwrap().parse().unwrap();
    running.wait_for_batches(from + 2);
    console.run(&["status", "query.toml"]).expect(0, &[]).prints(&[
        "canary ",
        " on 100 % of the keys, ",
        "answers otherwise",
    ]);
    console.run(&canary).expect(1, &["plugin `shifts` has a canary", "rollback --canary"]);
    console
        .run(&["plugin", "history", "query.toml"])
        .expect(0, &[])
        .prints(&["canary on 100 % of the keys", "running"]);
    console.run(&["checkpoint", "show", "checkpoint"]).expect(0, &[]).prints(&["canary     shifts: "]);
    // Killed in the middle of it, it goes on with it.
    running.signal("KILL");
    running.end();
    let mut running = console.start(&["run", "query.toml", "--trigger", "100 ms", "--progress", "progress.jsonl"]);
    let done = console.names("checkpoint/commits").len();
    running.wait_for_batches(done + 2);
    running.wait_until("the canary of the new run", || {
        let status = console.run(&["status", "query.toml"]);
        status.stdout.contains("canary ")
    });
    let ended = console.run(&["rollback", "query.toml", "--canary"]).expect(0, &[]);
    ended.prints(&["accepted   the canary ", "ended      "]);
    let short = ["swap", "query.toml", &shifts, "--canary", "100%", "--canary-batches", "2", "--cost", "1000"];
    console
        .run(&[&short[..], &["--approve", "--batches", "0"]].concat())
        .expect(0, &[])
        .prints(&["canary     shifts "]);
    running.wait_until("the promotion", || {
        console.run(&["plugin", "history", "query.toml"]).stdout.contains("by canary: its canary has shown enough")
    });
    console.run(&["stop", "query.toml"]).expect(0, &[]);
    running.end().expect(0, &["done "]);
    let history = console.run(&["plugin", "history", "query.toml"]).expect(0, &[]);
    history.prints(&["rolled back", "somebody ended it", "promoted", "answers came out otherwise"]);
    console.run(&["checkpoint", "verify", "checkpoint"]).expect(0, &[]).prints(&["all whole"]);
    for batch in [from - 1, from, from + 1] {
        console.run(&["replay", "query.toml", "--batch", &batch.to_string()]).expect(0, &[]).prints(&["the same"]);
    }
}
