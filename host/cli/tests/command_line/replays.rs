//! Replays on another machine: a copy of checkpoint and input, in another folder, by another process.

use crate::console::{Console, repository};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

const QUERY: &str = r#"
name = "totals"
sql = "SELECT k, total(v) AS total FROM events GROUP BY k"
output_mode = "update"
checkpoint = "checkpoint"
[[source]]
name = "events"
format = "csv"
schema = "k STRING, v BIGINT"
options = { path = "in", maxFilesPerTrigger = 1 }
[sink]
format = "noop"
[plugin.code]
component = "first.wasm"
"#;

/// An aggregate function; the second edition counts as well, and knows the ways between.
const FIRST: &str = r#"//! A test.
use millstream_sdk::prelude::*;
/// A sum.
#[derive(Row, Default)]
struct Total {
    sum: i64,
}
#[aggregate_function(state_id = "sum")]
impl Total {
    fn accumulate(&mut self, v: i64) {
        self.sum += v;
    }
    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
    }
    fn evaluate(&self) -> i64 {
        self.sum
    }
}
plugin!(aggregates: Total);
"#;

const SECOND: &str = r#"//! A test.
use millstream_sdk::prelude::*;
/// A sum, and of how many.
#[derive(Row, Default)]
struct Total {
    sum: i64,
    count: i64,
}
#[aggregate_function(state_id = "sum and count")]
impl Total {
    fn accumulate(&mut self, v: i64) {
        self.sum += v;
        self.count += 1;
    }
    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }
    fn evaluate(&self) -> i64 {
        self.sum * 1000 + self.count
    }
}
/// The sum of before.
#[derive(Row, Default)]
struct Sum {
    sum: i64,
}
/// Nobody counted.
#[migration(state = "total", from_id = "sum", to_id = "sum and count")]
fn count_from_now(old: Sum) -> Total {
    Total { sum: old.sum, count: 0 }
}
/// The count is forgotten.
#[migration(state = "total", from_id = "sum and count", to_id = "sum")]
fn forget_count(old: Total) -> Sum {
    Sum { sum: old.sum }
}
plugin!(aggregates: Total; migrations: count_from_now, forget_count);
"#;

fn build(console: &Console, name: &str, source: &str) {
    let sdk = repository("guest-sdk/rust").display().to_string();
    let folder = format!("{name}-source");
    console.run(&["plugin", "new", name, "--dir", &folder, "--sdk", &sdk]).expect(0, &[]);
    console.write(&format!("{folder}/src/lib.rs"), source);
    console.run(&["plugin", "build", &folder, "--out", &format!("{name}.wasm")]).expect(0, &[]);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn all_retained_batches_come_out_the_same_on_another_machine_after_swaps_and_rollbacks() {
    let console = Console::with(QUERY);
    build(&console, "first", FIRST);
    build(&console, "second", SECOND);
    let mut files = 0_u64;
    let mut add = |count: u64| {
        for _ in 0..count {
            files += 1;
            let rows: String = (0..5).map(|row| format!("k{},{}\n", (files + row) % 4, files * 10 + row)).collect();
            console.write("next.csv", rows);
            let time = SystemTime::now() - Duration::from_secs(100_000 - files);
            fs::File::options().write(true).open(console.path("next.csv")).unwrap().set_modified(time).unwrap();
            fs::create_dir_all(console.path("in")).unwrap();
            fs::rename(console.path("next.csv"), console.path(&format!("in/{files:04}.csv"))).unwrap();
        }
        files
    };
    add(30);
    let mut running = console.start(&["run", "query.toml", "--trigger", "10 ms", "--progress", "progress.jsonl"]);
    let done = |console: &Console| {
        let commits = console.names("checkpoint/commits");
        commits.iter().filter_map(|name| name.parse::<u64>().ok()).max().map_or(0, |newest| newest + 1)
    };
    running.wait_until("the first files", || done(&console) >= 30);
    running.wait_until("the control socket", || !console.names("run").is_empty());
    let mut borders = 0;
    let asks: [&[&str]; 4] = [
        &["swap", "query.toml", "code=second.wasm", "--approve", "--batches", "1"],
        &["rollback", "query.toml", "--approve", "--batches", "1"],
        &["swap", "query.toml", "code=second.wasm", "--approve", "--batches", "1"],
        &["rollback", "query.toml", "--restore", "--approve", "--batches", "1"],
    ];
    for ask in asks {
        console.run(ask).expect(0, &[]).prints(&["taken      code "]);
        borders += 1;
        let files = add(20);
        running.wait_until("more files", || done(&console) >= files + borders);
    }
    console.run(&["stop", "query.toml"]).expect(0, &[]);
    running.end().expect(0, &["done "]);
    console.run(&["plugin", "history", "query.toml"]).expect(0, &[]).prints(&["state migrated", "state restored"]);

    // Another folder, in which the query was edited since; what it was made from is gone.
    let other = Console::with("");
    for folder in ["checkpoint", "in"] {
        copy(&console.path(folder), &other.path(&format!("deeper/{folder}")));
    }
    let edited = QUERY.replace("total(v) AS total", "total(v + 1) AS total").replace("first.wasm", "second.wasm");
    other.write("deeper/query.toml", edited);
    fs::copy(console.path("second.wasm"), other.path("deeper/second.wasm")).unwrap();
    drop(console);
    let all = other.run(&["replay", "deeper/query.toml", "--all"]).expect(0, &[]);
    let told = all.stdout.lines().filter(|line| line.starts_with("batch ") && line.contains("the same")).count();
    assert!(
        told >= 99 && all.stdout.contains(&format!("{told} batches run again: {told} the same, 0 not")),
        "{all:#?}"
    );
    let one = other.run(&["replay", "deeper/query.toml", "--batch", "100"]).expect(0, &[]);
    one.prints(&["note       the query was edited since: its SQL of then was run", "the same: query-aggregate"]);

    // What is not as it was is told.
    other.write("deeper/in/0098.csv", "k1,5\n");
    let edited = other.run(&["replay", "deeper/query.toml", "--all"]).expect(1, &[]);
    assert!(edited.stdout.contains(&format!("{} the same, 1 not", told - 1)), "{edited:#?}");
    let state = other.path("deeper/checkpoint/state/query-aggregate");
    let partitions = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path());
    let stored = partitions.flat_map(|partition| fs::read_dir(partition).unwrap().map(|entry| entry.unwrap().path()));
    let newest = stored.max_by_key(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        name.split('-').next().unwrap().parse::<u64>().unwrap()
    });
    let mut bytes = fs::read(newest.as_ref().unwrap()).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(newest.unwrap(), bytes).unwrap();
    let last = other.run(&["replay", "deeper/query.toml", "--batch", &(files + borders - 1).to_string()]);
    assert!(last.code != Some(0) && last.stderr.contains("checksum"), "{last:#?}");
}
