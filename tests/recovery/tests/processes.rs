//! Real processes: killed at any moment, and two at once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use millstream_common::StopSignal;
use millstream_runtime::{QueryRun, RuntimeError, Session, Trigger};
use millstream_sink::connectors::file::read_committed;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use recovery_tests::child::{Folders, writer};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

const FILES: u64 = 120;
const KILLS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// Files of a few lines each, a second apart by their own times.
fn write_input(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let mut random = StdRng::seed_from_u64(7);
    for number in 0..FILES {
        let line = |_| {
            let time = (number * 3 + random.random_range(0..9)) % 3600;
            format!("1970-01-01T00:{:02}:{:02}Z,k{}\n", time / 60, time % 60, random.random_range(0..4))
        };
        let path = folder.join(format!("{number:04}.csv"));
        fs::write(&path, (0..8).map(line).collect::<String>()).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + number);
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }
}

fn spawn(folders: &Folders, stay: bool) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recovery-child"));
    command.args([&folders.input, &folders.output, &folders.checkpoint]).stderr(Stdio::piped());
    if stay {
        command.arg("stay");
    }
    command.spawn().unwrap()
}

fn finish(folders: &Folders) {
    let output = spawn(folders, false).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// How many batches are done; the oldest entries of the commit log go after a while.
fn commits(folders: &Folders) -> u64 {
    let Ok(entries) = fs::read_dir(folders.checkpoint.join("commits")) else { return 0 };
    let number = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().to_str()?.parse::<u64>().ok();
    entries.filter_map(number).max().map_or(0, |newest| newest + 1)
}

fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < PATIENCE, "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn manifests(folders: &Folders) -> BTreeMap<u64, Vec<String>> {
    let committed = read_committed(folders.output.to_str().unwrap()).unwrap();
    let rows = |batch: &millstream_sink::connectors::file::CommittedBatch| {
        let text = |name: &String| fs::read_to_string(folders.output.join(name)).unwrap();
        let mut rows: Vec<String> = batch
            .files
            .iter()
            .flat_map(|file| text(&file.name).lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        rows.sort();
        rows
    };
    committed.iter().map(|batch| (batch.batch.0, rows(batch))).collect()
}

#[test]
fn a_process_killed_twenty_times_gives_what_one_life_gives() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("input");
    write_input(&input);
    let whole = Folders::below(&root.path().join("whole"), input.clone());
    finish(&whole);
    let expected = manifests(&whole);
    assert!(expected.len() as u64 > FILES && expected.values().flatten().count() > 100, "{expected:?}");

    let killed = Folders::below(&root.path().join("killed"), input);
    let mut random = StdRng::seed_from_u64(11);
    let mut in_the_middle = 0;
    for kill in 0..KILLS {
        let before = commits(&killed);
        let mut child = spawn(&killed, false);
        // Every fourth one dies while it starts, the others within a few batches.
        if kill % 4 != 3 {
            wait_until("a batch", || commits(&killed) > before || child.try_wait().unwrap().is_some());
        }
        std::thread::sleep(Duration::from_micros(random.random_range(0..40_000)));
        in_the_middle += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(in_the_middle > KILLS / 2, "only {in_the_middle} were alive when they were killed");
    let reached = commits(&killed);
    finish(&killed);
    assert_eq!(manifests(&killed), expected, "{in_the_middle} kills, {reached} batches before the last life");
}

#[test]
fn a_second_process_on_one_checkpoint_is_refused_and_the_first_goes_on() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("input");
    write_input(&input);
    let folders = Folders::below(root.path(), input);
    let mut first = spawn(&folders, true);
    wait_until("a batch", || commits(&folders) > 0);

    let second = spawn(&folders, false).wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && message.contains(&first.id().to_string()), "{message}");

    let session = Session::new().unwrap();
    let spec = writer(&session, &folders, Trigger::AvailableNow).unwrap().spec().unwrap();
    let error = QueryRun::open(&session, spec.clone(), StopSignal::new()).map(drop).unwrap_err();
    let RuntimeError::Checkpoint(millstream_checkpoint::CheckpointError::InUse { .. }) = error else {
        panic!("{error:?}")
    };
    wait_until("the end of the input", || commits(&folders) > FILES);
    assert!(first.try_wait().unwrap().is_none(), "the first process has ended");

    // The lock dies with the process: nobody waits for a lease to end.
    first.kill().unwrap();
    first.wait().unwrap();
    QueryRun::open(&session, spec, StopSignal::new()).unwrap().close();
}
