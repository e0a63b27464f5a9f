//! The plugin `http` against a real server: what does not go well is sent again with the same key and the same body.

use crate::ledger::Mishap;
use crate::place::{BATCHES, COUNTS, Place, ROWS, next};
use millstream_checkpoint::faulty::Moment;
use std::collections::BTreeSet;

fn place(sql: &str, partitions: u32) -> Place {
    let mut place = Place::new("http_plugin", sql, partitions);
    let url = format!("{}/keyed", place.ledger.url());
    place.spec.sink.options.set("url", url);
    place.spec.sink.options.set("rows_per_request", "2");
    place
}

/// All rows that the server has, whatever request they came in.
fn rows(place: &Place) -> Vec<String> {
    let mut rows: Vec<String> =
        place.ledger.book().keyed.values().flat_map(|body| body.lines().map(str::to_owned)).collect();
    rows.sort();
    rows
}

fn expected() -> Vec<String> {
    let mut rows: Vec<String> = BATCHES
        .iter()
        .flat_map(|rows| rows.iter().map(|(key, value)| format!(r#"{{"k":"{key}","v":{value}}}"#)))
        .collect();
    rows.sort();
    rows
}

#[test]
fn each_request_has_a_key_of_query_partition_batch_and_number() {
    let place = place(ROWS, 1);
    assert!(place.run_all(1, false).is_empty());
    assert_eq!(rows(&place), expected());
    let id = place.world.checkpoint().unwrap().unwrap().query().to_string();
    let keys: BTreeSet<String> = place.ledger.book().keyed.keys().cloned().collect();
    let wanted = ["0-0-0", "0-0-1", "0-1-0", "0-2-0", "0-2-1", "0-2-2", "0-3-0"];
    assert_eq!(keys, wanted.iter().map(|key| format!("{id}-{key}")).collect());
}

#[test]
fn a_request_that_fails_or_is_not_heard_of_is_sent_again() {
    for mishap in [Mishap::Refused, Mishap::Unheard] {
        for call in 0..7 {
            let place = place(ROWS, 1);
            place.ledger.book().mishap = Some((call, mishap));
            assert!(place.run_all(1, false).is_empty(), "the plugin tries again by itself");
            assert_eq!(rows(&place), expected(), "{mishap:?} {call}");
        }
    }
}

#[test]
fn a_server_that_is_away_fails_the_batch_and_a_crash_doubles_no_row() {
    let mut away = place(ROWS, 2);
    let url = away.spec.sink.options.get("url").unwrap().to_owned();
    away.spec.sink.options.set("url", "http://127.0.0.1:9/keyed");
    let error = next(&mut away.open().unwrap()).unwrap_err();
    assert!(error.contains("sink `http` cannot write batch 0") && error.contains("after 3 attempts"), "{error}");
    away.spec.sink.options.set("url", url);
    assert!(away.run_all(1, false).is_empty());
    assert_eq!(rows(&away), expected());

    let whole = place(COUNTS, 2);
    whole.world.crash_at(usize::MAX, Moment::Before);
    whole.run_all(1, false);
    for write in 1..=whole.world.history().len() {
        let place = place(COUNTS, 2);
        place.world.crash_at(write, Moment::Before);
        place.run_all(4, false);
        // The server itself checks that a key never has two bodies.
        assert_eq!(rows(&place), rows(&whole), "crash {write}");
    }
}

#[test]
fn hosts_that_were_not_granted_are_not_reached() {
    let mut place = place(ROWS, 1);
    place.spec.sink.options.set("url", "http://localhost:1/keyed");
    let error = next(&mut place.open().unwrap()).unwrap_err();
    assert!(error.contains("is at a host that was not granted"), "{error}");
}
