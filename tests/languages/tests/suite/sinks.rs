//! A sink gets the same rows, tells the same and has the same tokens in every language.

use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::FieldRef;
use language_tests::Guest;
use millstream_common::{BatchId, OutputMode};
use millstream_wasm::{FaultPolicy, PluginLimits, PluginSlot, SinkOutcome, SinkTarget, WasmError};

use crate::columns::{all, measure, others};

fn rows(rows: &[(i64, Option<&str>)]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
    let items: ArrayRef = Arc::new(StringArray::from_iter(rows.iter().map(|row| row.1)));
    RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("item", items, true)]).unwrap()
}

fn target(options: &[(&str, &str)]) -> SinkTarget {
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    SinkTarget { query_id: "8c1f".into(), partition: 3, batch: BatchId(1 << 40), options }
}

fn fields(slot: &PluginSlot) -> Vec<FieldRef> {
    slot.component().sink("diary").unwrap().1.columns.clone()
}

fn write(slot: &PluginSlot, options: &[(&str, &str)], batches: &[RecordBatch]) -> Result<SinkOutcome, WasmError> {
    slot.write_to_sink("diary", &target(options), (OutputMode::Update, &fields(slot)), batches)
}

fn slot(guest: &Guest, policy: FaultPolicy, change: impl FnOnce(&mut PluginLimits)) -> Arc<PluginSlot> {
    guest.slot(policy, change).unwrap()
}

const TAG: &[(&str, &str)] = &[("tag", "päge")];

#[test]
fn every_language_offers_the_same_sink() {
    let expected = measure().component().sinks();
    assert_eq!(expected.len(), 1);
    for guest in others() {
        assert_eq!(guest.component().sinks(), expected, "{}", guest.name);
    }
}

#[test]
fn sinks_take_the_rows_and_make_the_tokens_of_rust() {
    let many: Vec<(i64, Option<&str>)> = (0..3000).map(|id| (id - 1500, Some("tee 🍵"))).collect();
    let inputs = [
        vec![],
        vec![rows(&[])],
        vec![rows(&[(i64::MIN, Some("")), (1, None), (i64::MAX, Some("日本")), (-1, None)]), rows(&[(7, None)])],
        vec![rows(&many)],
    ];
    for batches in inputs {
        // Small calls, so that a partition takes several.
        let outcome = |guest: &Guest| {
            let slot = slot(guest, FaultPolicy::Skip, |limits| limits.rows_per_call = 700);
            write(&slot, TAG, &batches).unwrap_or_else(|error| panic!("{}: {error}", guest.name))
        };
        let expected = outcome(measure());
        let token = String::from_utf8(expected.token.clone().unwrap()).unwrap();
        assert!(token.starts_with("päge 3 1099511627776 update"), "{token}");
        assert_eq!(token.lines().count() as u64, expected.rows + 1);
        for guest in others() {
            assert_eq!(outcome(guest), expected, "{}", guest.name);
        }
    }
}

#[test]
fn rows_that_are_not_wanted_have_no_token() {
    for guest in all() {
        let slot = slot(guest, FaultPolicy::Fail, |_| {});
        let outcome = write(&slot, &[("tag", "a"), ("skip", "all")], &[rows(&[(1, None)])]).unwrap();
        assert_eq!((outcome.is_wanted, outcome.rows, outcome.token), (false, 0, None), "{}", guest.name);
    }
}

#[test]
fn what_a_sink_refuses_fails_the_batch_with_its_words() {
    for guest in all() {
        let slot = slot(guest, FaultPolicy::Skip, |_| {});
        let error = write(&slot, &[("tag", "a"), ("skip", "away")], &[]).unwrap_err();
        assert!(
            matches!(&error, WasmError::Unavailable { message, .. } if message == "the world is away"),
            "{}: {error}",
            guest.name
        );
        let error = write(&slot, TAG, &[rows(&[(1, Some("tea")), (2, Some("boom"))])]).unwrap_err();
        assert!(matches!(&error, WasmError::Refused { message, .. } if message == "boom"), "{}: {error}", guest.name);
        let failing = guest.slot(FaultPolicy::Fail, |_| {}).unwrap();
        let error = write(&failing, TAG, &[rows(&[(1, Some("tea"))]), rows(&[(2, None)])]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("row 1 of the batch") && text.contains("2 has no item"), "{}: {text}", guest.name);
    }
}

#[test]
fn tokens_are_committed_and_aborted_in_any_instance_and_as_often_as_it_takes() {
    for guest in all() {
        let slot = slot(guest, FaultPolicy::Fail, |_| {});
        let token = write(&slot, TAG, &[rows(&[(1, Some("tea"))])]).unwrap().token.unwrap();
        for _ in 0..3 {
            slot.commit_sink("diary", &target(TAG), &token).unwrap_or_else(|error| panic!("{}: {error}", guest.name));
            slot.abort_sink("diary", &target(TAG), &token).unwrap_or_else(|error| panic!("{}: {error}", guest.name));
        }
        for error in [
            slot.commit_sink("diary", &target(TAG), b"other").unwrap_err(),
            slot.abort_sink("diary", &target(TAG), &[0xff, 0]).unwrap_err(),
        ] {
            assert!(error.to_string().contains("not of this diary"), "{}: {error}", guest.name);
        }
    }
}

/// Where the log goes while a test runs.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_was_opened_is_closed_once_with_what_went_wrong() {
    for guest in all() {
        let slot = slot(guest, FaultPolicy::Fail, |_| {});
        let log = |options: &[(&str, &str)], batches: &[RecordBatch]| {
            let lines = Lines::default();
            let writer = lines.clone();
            let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
            // What comes of it is another test's matter.
            let _ = tracing::subscriber::with_default(subscriber, || write(&slot, options, batches));
            let written = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
            let closed = written.lines().filter_map(|line| Some(line[line.find("closed")?..].to_owned()));
            closed.collect::<Vec<_>>()
        };
        let closed = log(TAG, &[rows(&[(1, Some("tea"))])]);
        assert!(closed.len() == 1 && !closed[0].contains("after"), "{}: {closed:?}", guest.name);
        let closed = log(&[("tag", "a"), ("skip", "all")], &[]);
        assert!(closed.len() == 1 && !closed[0].contains("after"), "{}: {closed:?}", guest.name);
        let closed = log(TAG, &[rows(&[(1, Some("boom"))])]);
        assert!(
            closed.len() == 1 && closed[0].contains("closed after") && closed[0].contains("boom"),
            "{}: {closed:?}",
            guest.name
        );
        assert!(log(&[("tag", "a"), ("skip", "away")], &[]).is_empty(), "{}", guest.name);
    }
}
