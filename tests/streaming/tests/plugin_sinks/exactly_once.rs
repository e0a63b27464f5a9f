//! A transactional sink: the world outside sees each row once, whatever crashes and whenever.

use crate::ledger::Mishap;
use crate::place::{BATCHES, COUNTS, Place, ROWS, next};
use millstream_checkpoint::faulty::Moment;
use millstream_checkpoint::{Checkpoint, LEASE_MS, LeaseHolder, PreparedEntry, open_files};
use millstream_common::{BatchId, Clock, DurableFiles, Fault, Hint, RunId, ScopedFiles};
use millstream_runtime::replay::replay;
use std::collections::BTreeMap;
use std::sync::Arc;
use streaming_stories::{Call, Fate, MeddledFiles, World};

/// What must be seen of [`ROWS`], and of [`COUNTS`] in output mode update.
fn expected(sql: &str) -> BTreeMap<u64, Vec<String>> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    let batch = |(number, rows): (u64, &&[(&'static str, i64)])| {
        rows.iter().for_each(|(key, _)| *counts.entry(key).or_default() += 1);
        let mut lines: Vec<String> = match sql {
            ROWS => rows.iter().map(|(key, value)| format!(r#"{{"k":"{key}","v":{value}}}"#)).collect(),
            _ => rows.iter().map(|(key, _)| format!(r#"{{"k":"{key}","n":{}}}"#, counts[key])).collect(),
        };
        lines.sort();
        if sql != ROWS {
            lines.dedup();
        }
        (number, lines)
    };
    (0..).zip(&BATCHES).map(batch).collect()
}

fn check(place: &Place, sql: &str, what: &str) {
    assert_eq!(place.ledger.batches(), expected(sql), "{what}");
    let book = place.ledger.book();
    assert!(book.seen.values().all(|shown| shown.len() == 1), "{what}: {:?}", book.seen);
    assert!(book.waiting.is_empty(), "{what}: {:?} are neither seen nor dropped", book.waiting);
    let left = place.world.checkpoint().unwrap().unwrap().prepared().all().unwrap();
    assert!(left.is_empty(), "{what}: {left:?}");
}

#[test]
fn each_row_is_seen_once_with_one_two_and_five_partitions() {
    for partitions in [1, 2, 5] {
        for sql in [ROWS, COUNTS] {
            for restarts in [false, true] {
                let place = Place::new("ledger_sink", sql, partitions);
                let failures = place.run_all(BATCHES.len() + 1, restarts);
                assert!(failures.is_empty(), "{failures:?}");
                check(&place, sql, &format!("{partitions} partitions, {sql}, restarts {restarts}"));
                let commit = place.world.checkpoint().unwrap().unwrap().commit_log().get(BatchId(0)).unwrap().unwrap();
                let tokens = commit.sink.unwrap()["tokens"].as_array().unwrap().len();
                assert_eq!(tokens, partitions as usize);
            }
        }
    }
}

#[test]
fn a_crash_at_any_durable_write_shows_no_row_twice_and_loses_none() {
    for (partitions, sql) in [(1, COUNTS), (2, ROWS), (5, COUNTS)] {
        let whole = Place::new("ledger_sink", sql, partitions);
        whole.world.crash_at(usize::MAX, Moment::Before);
        whole.run_all(1, false);
        let writes = whole.world.history();
        assert!(writes.iter().any(|write| write.contains("prepared/")), "{writes:?}");
        for write in 1..=writes.len() {
            for moment in [Moment::Before, Moment::After] {
                let what = format!("{partitions} partitions, {moment:?} write {write}, `{}`", writes[write - 1]);
                let place = Place::new("ledger_sink", sql, partitions);
                place.world.crash_at(write, moment);
                place.run_all(4, false);
                // What the last start left undone, the next one ends.
                place.run_all(1, false);
                check(&place, sql, &what);
            }
        }
    }
}

#[test]
fn a_request_that_fails_or_is_not_heard_of_shows_no_row_twice_and_loses_none() {
    let whole = Place::new("ledger_sink", ROWS, 2);
    whole.run_all(1, false);
    let calls = whole.ledger.book().calls.len();
    assert_eq!(calls, BATCHES.len() * 2 * 3, "open, prepare, commit of each partition");
    for call in 0..calls {
        for mishap in [Mishap::Refused, Mishap::Unheard] {
            let place = Place::new("ledger_sink", ROWS, 2);
            place.ledger.book().mishap = Some((call, mishap));
            let failures = place.run_all(3, false);
            assert_eq!(failures.len(), 1, "{failures:?}");
            check(&place, ROWS, &format!("{mishap:?} {call}"));
        }
    }
}

#[test]
fn a_commit_that_fails_is_tried_again_before_the_next_batch() {
    let place = Place::new("ledger_sink", ROWS, 1);
    let mut run = place.open().unwrap();
    // Open, prepare, and then the commit.
    place.ledger.book().mishap = Some((2, Mishap::Refused));
    let error = next(&mut run).unwrap_err();
    assert!(error.contains("`commit` is answered with 503"), "{error}");
    assert!(place.world.is_committed(0).unwrap(), "the batch is done");
    assert!(place.ledger.batches().is_empty());
    while next(&mut run).unwrap().is_some() {}
    run.close();
    check(&place, ROWS, "in one run");
}

#[test]
fn what_failed_before_it_was_done_is_aborted_at_once() {
    let place = Place::new("ledger_sink", ROWS, 2);
    let mut run = place.open().unwrap();
    place.ledger.book().mishap = Some((3, Mishap::Refused));
    next(&mut run).unwrap_err();
    let calls = place.ledger.book().calls.clone();
    assert_eq!(calls.iter().filter(|call| *call == "abort").count(), 1, "{calls:?}");
    assert!(place.ledger.book().waiting.is_empty());
    while next(&mut run).unwrap().is_some() {}
    run.close();
    check(&place, ROWS, "in one run");
}

#[test]
fn what_is_prepared_keeps_other_sinks_out_until_it_has_come_to_its_end() {
    let mut other = Place::new("ledger_sink", ROWS, 1);
    other.ledger.book().mishap = Some((2, Mishap::Refused));
    let mut run = other.open().unwrap();
    next(&mut run).unwrap_err();
    drop(run);
    other.spec.sink = millstream_sink::SinkSpec { format: "noop".into(), options: millstream_common::Options::new() };
    let error = other.open().err().unwrap();
    assert!(error.contains("whose rows are prepared in another sink"), "{error}");
    let options = millstream_common::Options::new().with("plugin", "out").with("url", other.ledger.url());
    other.spec.sink = millstream_sink::SinkSpec { format: "plugin".into(), options };
    other.run_all(1, false);
    check(&other, ROWS, "with the sink that it had");
}

/// A place whose storage can be meddled with, and what is below it.
fn meddled() -> (Place, Arc<MeddledFiles>, Arc<dyn DurableFiles>) {
    let disk = open_files("memory:///", &[]).unwrap();
    let files = MeddledFiles::new(Arc::clone(&disk));
    let below: Arc<dyn DurableFiles> = Arc::new(ScopedFiles::new(disk, "checkpoint"));
    (Place::on(World::on(Arc::clone(&files) as _), "ledger_sink", ROWS, 1), files, below)
}

#[test]
fn what_was_committed_is_not_aborted_because_its_file_could_not_be_deleted() {
    let (place, files, _) = meddled();
    let mut run = place.open().unwrap();
    files.once(Call::Delete, "prepared/0", Fate::Fails);
    let error = next(&mut run).unwrap_err();
    assert!(error.contains("cannot delete `checkpoint/prepared/0`"), "{error}");
    assert!(next(&mut run).unwrap().is_some());
    let left = place.world.checkpoint().unwrap().unwrap().prepared().all().unwrap();
    assert!(left.is_empty(), "it is deleted before the next batch: {left:?}");
    while next(&mut run).unwrap().is_some() {}
    run.close();
    check(&place, ROWS, "in one run");
}

#[test]
fn a_file_that_has_outlived_the_entries_of_its_batch_is_only_deleted() {
    let place = Place::new("ledger_sink", ROWS, 1);
    place.run_all(1, false);
    let checkpoint = place.world.checkpoint().unwrap().unwrap();
    let sink = checkpoint.commit_log().get(BatchId(0)).unwrap().unwrap().sink.unwrap();
    checkpoint.prepared().put(&PreparedEntry { batch: BatchId(0), sink }).unwrap();
    for entry in ["offsets/0", "commits/0"] {
        place.world.checkpoint_files().delete(entry).unwrap();
    }
    let calls = place.ledger.book().calls.len();
    place.open().unwrap().close();
    assert_eq!(place.ledger.book().calls.len(), calls, "nobody is asked of it");
    check(&place, ROWS, "after the start");
}

#[test]
fn a_batch_whose_entry_was_written_unheard_is_done_and_its_rows_are_seen() {
    let (place, files, _) = meddled();
    let mut run = place.open().unwrap();
    files.once(Call::Write, "commits/0", Fate::IsUnheard);
    while next(&mut run).unwrap().is_some() {}
    run.close();
    check(&place, ROWS, "in one run");
}

#[test]
fn a_batch_of_which_it_is_not_known_whether_it_is_done_waits_for_the_next_start() {
    let (place, files, _) = meddled();
    let mut run = place.open().unwrap();
    files.once(Call::Write, "commits/0", Fate::Fails);
    for _ in 0..2 {
        let error = run.run_next().unwrap_err();
        assert_eq!((error.fault(), error.may_pass()), (Fault::Outside, false), "{error:?}");
        let text = millstream_common::describe_chain(&error);
        assert!(text.contains("not known whether batch 0 is done") && text.contains("the storage is away"), "{text}");
        assert!(error.hint().unwrap().contains("start the query again"));
    }
    drop(run);
    place.run_all(1, false);
    check(&place, ROWS, "after a start");
}

#[test]
fn a_run_that_has_lost_its_checkpoint_leaves_the_file_to_the_one_that_has_it() {
    let (place, files, below) = meddled();
    let mut run = place.open().unwrap();
    let now_ms = place.world.clock.now_ms();
    let (mut is_prepared, mut is_taken) = (false, false);
    let disk = Arc::clone(&below);
    files.meddle(move |call, path| {
        is_prepared |= call == Call::Write && path.ends_with("prepared/0");
        if is_prepared && !is_taken && call == Call::Read && path.ends_with("lease") {
            is_taken = true;
            let checkpoint = Checkpoint::open(Arc::clone(&disk)).unwrap();
            let holder = LeaseHolder { run: RunId(Default::default()), host: "elsewhere".into(), pid: 1 };
            drop(checkpoint.lease(holder, now_ms + LEASE_MS + 1).unwrap());
            checkpoint.prepared().put(&PreparedEntry { batch: BatchId(0), sink: "of another".into() }).unwrap();
        }
        Fate::Passes
    });
    let error = run.run_next().unwrap_err();
    assert!(!error.may_pass() && error.to_string().contains("no longer holds the lease"), "{error}");
    let left = Checkpoint::open(below).unwrap().prepared().all().unwrap();
    assert_eq!(left, [PreparedEntry { batch: BatchId(0), sink: "of another".into() }]);
    assert_eq!(
        place.ledger.book().calls.last().map(String::as_str),
        Some("abort"),
        "what it prepared itself is dropped"
    );
}

#[test]
fn a_replay_asks_nothing_of_the_sink() {
    let place = Place::new("ledger_sink", COUNTS, 2);
    place.run_all(1, false);
    let calls = place.ledger.book().calls.len();
    for batch in 0..BATCHES.len() as u64 {
        let replayed = replay(&place.world.session, &place.spec, batch, None).unwrap();
        assert!(replayed.is_same, "{replayed:?}");
    }
    assert_eq!(place.ledger.book().calls.len(), calls);
}
