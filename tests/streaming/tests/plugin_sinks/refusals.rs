//! Queries that cannot mean what they say are refused before anything is sent.

use crate::place::{COUNTS, Place, ROWS, next};
use millstream_common::{Options, OutputMode};
use millstream_runtime::inspect::check;
use millstream_sink::SinkSpec;
use millstream_wasm::{FaultPolicy, Permissions};
use std::sync::Arc;
use streaming_stories::component;

/// Why a query does not start.
fn refusal(change: impl FnOnce(&mut Place)) -> String {
    let mut place = Place::new("ledger_sink", ROWS, 1);
    change(&mut place);
    let error = place.open().err().expect("it must be refused");
    assert!(place.ledger.book().calls.is_empty());
    error
}

fn options(change: impl FnOnce(Options) -> Options) -> String {
    refusal(|place| {
        let options = change(Options::new().with("plugin", "out"));
        place.spec.sink = SinkSpec { format: "plugin".into(), options };
    })
}

#[test]
fn options_are_those_that_the_sink_knows() {
    let missing = options(|options| options);
    assert!(missing.contains("option `url` of sink `ledger` is missing"), "{missing}");
    let unknown = options(|options| options.with("url", "http://x").with("ulr", "http://x"));
    assert!(unknown.contains("`ulr`") && unknown.contains("url"), "{unknown}");
    let elsewhere = options(|options| options.with("plugin", "in"));
    assert!(elsewhere.contains("the query has `out`"), "{elsewhere}");
    let other = options(|options| options.with("sink", "web"));
    assert!(other.contains("plugin `out` has the sinks `ledger`"), "{other}");
    let many = options(|options| options.with("url", "http://x").with("partitions", "65"));
    assert!(many.contains("a number from 1 to 64"), "{many}");
    let nobody = refusal(|place| place.spec.sink.options = Options::new());
    assert!(nobody.contains("option `plugin` of sink `plugin` is missing"), "{nobody}");
}

#[test]
fn a_plugin_without_a_sink_is_none() {
    let error = refusal(|place| place.spec.plugins[0].component = component("text_plugin").unwrap());
    assert!(error.contains("that plugin has no sink"), "{error}");
}

#[test]
fn requests_are_granted_by_name() {
    let error = refusal(|place| place.spec.plugins[0].limits.permissions = Arc::new(Permissions::default()));
    assert!(error.contains("imports `http`, which is not granted"), "{error}");
}

#[test]
fn rows_that_are_seen_once_need_a_checkpoint() {
    let error = refusal(|place| place.spec.checkpoint = None);
    assert!(error.contains("the query needs a checkpoint"), "{error}");
}

#[test]
fn late_rows_do_not_go_to_plugins() {
    let error = refusal(|place| place.spec.late_rows = Some(place.spec.sink.clone()));
    assert!(error.contains("late rows cannot go to a sink of a plugin"), "{error}");
}

/// A query over `upper`, a sink of known columns.
fn named(sql: &str) -> Place {
    let mut place = Place::new("named_sink", sql, 1);
    place.spec.sink.options = Options::new().with("plugin", "out");
    place
}

#[test]
fn columns_are_those_that_the_sink_takes() {
    let error = named("SELECT k FROM rows").open().err().unwrap();
    assert!(error.contains("sink `named` takes a column `v`, and the result has k"), "{error}");
    let error = named("SELECT k, CAST(v AS STRING) AS v FROM rows").open().err().unwrap();
    assert!(error.contains("column `v` is Utf8, and sink `named` takes Int64"), "{error}");
    let place = named("SELECT k, v, v + 1 AS more FROM rows");
    assert!(check(&place.world.session, &place.spec).is_ok());
    let mut run = place.open().unwrap();
    assert_eq!(next(&mut run).unwrap().unwrap().sink.num_output_rows, 4);
}

#[test]
fn output_modes_are_those_that_the_sink_takes() {
    let mut place = named(COUNTS.replace("n FROM", "v FROM").as_str());
    place.spec.mode = OutputMode::Complete;
    let error = place.open().err().unwrap();
    assert!(error.contains("cannot take output mode complete; it takes append"), "{error}");
}

#[test]
fn rows_that_a_sink_names_go_by_the_policy_and_what_it_cannot_say_fails_the_batch() {
    let query = "SELECT IF(v = 2, 'bad', k) AS k, v FROM rows";
    let mut place = named(query);
    let error = next(&mut place.open().unwrap()).unwrap_err();
    assert!(error.contains("refused row 1 of the batch in `named`: no bad rows"), "{error}");
    place.spec.plugins[0].on_fault = FaultPolicy::DeadLetter;
    let mut run = place.open().unwrap();
    let progress = next(&mut run).unwrap().unwrap();
    assert_eq!((progress.sink.num_output_rows, progress.plugins[0].faults), (3, 1));
    let letters = place.world.checkpoint_files().get("dead-letters/0.jsonl").unwrap();
    let letters = String::from_utf8(letters.to_vec()).unwrap();
    assert!(letters.contains(r#"\"k\":\"bad\""#) && letters.contains("no bad rows"), "{letters}");

    let mut place = named("SELECT IF(v = 2, 'panic', k) AS k, v FROM rows");
    place.spec.plugins[0].on_fault = FaultPolicy::Skip;
    let error = next(&mut place.open().unwrap()).unwrap_err();
    assert!(error.contains("sink `named` cannot write batch 0") && error.contains("what a row"), "{error}");
}
