//! Other code takes a sink's place while the query runs, after the same verdict as for every plugin.

use crate::ledger::Mishap;
use crate::place::{Place, ROWS, next};
use millstream_common::{BatchId, Digest};
use millstream_runtime::SwapGrounds;
use millstream_runtime::inspect::CheckpointPlace;
use millstream_runtime::verdict::{Verdict, VerdictReport, VerdictRequest, check_component};
use streaming_stories::component;

fn verdict(place: &Place, file: &str) -> VerdictReport {
    let at = CheckpointPlace { place: "checkpoint".into(), options: Vec::new(), query: Some(place.spec.clone()) };
    let request = VerdictRequest { plugin: None, batches: 4 };
    check_component(&place.world.session, &at, &request, &component(file).unwrap()).unwrap()
}

/// The digest of the plugin that a batch was written with.
fn digest(place: &Place, batch: u64) -> Digest {
    let entry = place.world.checkpoint().unwrap().unwrap().offset_log().get(BatchId(batch)).unwrap().unwrap();
    entry.plugins["out"].digest
}

#[test]
fn a_sink_is_swapped_at_the_border_and_the_log_names_its_code() {
    let place = Place::new("web_sink", ROWS, 1);
    let mut run = place.open().unwrap();
    next(&mut run).unwrap();
    let report = verdict(&place, "web_sink_again");
    assert_eq!(report.verdict, Verdict::Ok, "{report:?}");
    assert_eq!(report.used, ["web"]);
    assert!(report.notes.iter().any(|note| note.contains("what it writes is not compared")), "{report:?}");
    let answer = run.swap("out", component("web_sink_again").unwrap(), SwapGrounds::unasked("swap"), None).unwrap();
    next(&mut run).unwrap();
    assert_eq!(answer.recv().unwrap().unwrap().batch, BatchId(1));
    let opened: Vec<String> =
        place.ledger.book().calls.iter().filter(|call| call.starts_with("open")).cloned().collect();
    assert_eq!(opened, ["open first", "open second"]);
    assert_eq!(digest(&place, 0), Digest::of(&component("web_sink").unwrap()));
    assert_eq!(digest(&place, 1), Digest::of(&component("web_sink_again").unwrap()));
}

#[test]
fn code_without_the_sink_is_rejected_and_less_than_exactly_once_must_be_wanted() {
    let place = Place::new("ledger_sink", ROWS, 1);
    let mut run = place.open().unwrap();
    next(&mut run).unwrap();
    let report = verdict(&place, "text_plugin");
    assert_eq!(report.verdict, Verdict::Reject);
    assert!(report.reasons().contains("sink `ledger` is gone"), "{report:?}");
    let error = run.swap("out", component("text_plugin").unwrap(), SwapGrounds::unasked("swap"), None).unwrap();
    next(&mut run).unwrap();
    assert!(error.recv().unwrap().unwrap_err().contains("sink `ledger` is gone"));

    let report = verdict(&place, "ledger_sink_plain");
    assert_eq!(report.verdict, Verdict::NeedsApproval, "{report:?}");
    assert!(report.reasons().contains("wrote each row once, and would write it at least once"), "{report:?}");
}

#[test]
fn what_old_code_has_prepared_is_committed_by_old_code() {
    let mut place = Place::new("ledger_sink", ROWS, 1);
    place.ledger.book().mishap = Some((2, Mishap::Refused));
    let mut run = place.open().unwrap();
    next(&mut run).unwrap_err();
    drop(run);
    // The code that the file names now has no transaction at all.
    place.spec.plugins[0].component = component("ledger_sink_plain").unwrap();
    let run = place.open().unwrap();
    assert_eq!(place.ledger.batches().len(), 1);
    assert_eq!(place.ledger.book().calls.last().map(String::as_str), Some("commit"));
    run.close();
}
