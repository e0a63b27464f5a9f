//! What a guest does wrong costs the rows at fault, with the guest's own words, and nothing else.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use language_tests::Guest;
use millstream_wasm::{FaultPolicy, PluginLimits, WasmError};

use crate::columns::{all, numbers, texts};

/// Row 2 is at fault, the others come back. What is said of row 2.
fn fault_of_13(guest: &Guest, function: &str, change: impl FnOnce(&mut PluginLimits)) -> String {
    let slot = guest.slot(FaultPolicy::Skip, change).unwrap();
    let arguments = [numbers([1, 2, 13, 4])];
    let outcome =
        slot.call_scalar(function, 4, &arguments).unwrap_or_else(|e| panic!("{function} in {}: {e}", guest.name));
    let values: Vec<_> = outcome.values.as_primitive::<Int64Type>().iter().collect();
    assert_eq!(values, [Some(1), Some(2), None, Some(4)], "{function} in {}", guest.name);
    assert_eq!(outcome.faults.iter().map(|fault| fault.row).collect::<Vec<_>>(), [2], "{function} in {}", guest.name);
    // The place is as good as new.
    let again = slot.call_scalar("add", 1, &[numbers([40]), numbers([2])]).unwrap();
    assert_eq!(again.values.as_primitive::<Int64Type>().value(0), 42, "after {function} in {}", guest.name);
    outcome.faults[0].error.clone()
}

#[test]
fn what_is_thrown_reaches_the_operator_with_its_text_and_where_it_came_from() {
    for guest in all() {
        let said = fault_of_13(guest, "throws", |_| {});
        assert!(said.contains("thrown on purpose: 13"), "{}: {said}", guest.name);
        // Languages that know where they are say so; C and Zig have no traces.
        let place = match guest.name.as_str() {
            "rust" => "lib.rs:",
            "python" => "at throws (plugin.py:",
            "javascript" | "typescript" => "at ",
            "go" => "scalars.go:",
            _ => "",
        };
        assert!(said.contains(place), "{}: {said}", guest.name);
    }
}

#[test]
fn a_refused_call_is_the_worlds_fault() {
    for guest in all() {
        let slot = guest.slot(FaultPolicy::Skip, |_| {}).unwrap();
        let error = slot.call_scalar("refuses", 3, &[numbers([1, 13, 2])]).unwrap_err();
        let is_away = matches!(&error, WasmError::Unavailable { message, .. } if message == "the world is away");
        assert!(is_away, "{}: {error}", guest.name);
        assert!(slot.call_scalar("refuses", 2, &[numbers([1, 2])]).is_ok(), "{}", guest.name);
    }
}

#[test]
fn an_endless_loop_ends_at_the_deadline() {
    for guest in all() {
        let said = fault_of_13(guest, "loops", |limits| limits.deadline = Duration::from_millis(700));
        assert!(said.contains("did not return"), "{}: {said}", guest.name);
    }
}

#[test]
fn memory_ends_at_the_limit() {
    for guest in all() {
        fault_of_13(guest, "eats", |limits| limits.memory_bytes = 48 << 20);
    }
}

#[test]
fn endless_recursion_ends() {
    for guest in all() {
        fault_of_13(guest, "dives", |_| {});
    }
}

#[test]
fn nothing_but_the_log_is_imported() {
    for guest in all() {
        for import in guest.component().imports() {
            let granted =
                import.starts_with("millstream:plugin/log@") || import.starts_with("millstream:plugin/types@");
            assert!(granted || import.starts_with("wasi:"), "{} imports {import}", guest.name);
        }
    }
}

/// Where the log goes while this test runs.
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
fn a_line_of_log_reaches_the_operator() {
    for guest in all() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let outcome = tracing::subscriber::with_default(subscriber, || {
            guest.scalar("logs", &[texts([Some("hällo"), Some("second line")])])
        });
        let lengths: Vec<_> = outcome.unwrap().values.as_primitive::<Int64Type>().values().to_vec();
        assert_eq!(lengths, [5, 11], "{}", guest.name);
        let written = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        for line in ["hällo", "second line"] {
            let found = written.lines().find(|written| written.contains(line));
            let found = found.unwrap_or_else(|| panic!("{}: `{line}` is not in `{written}`", guest.name));
            assert!(found.contains("INFO") && found.contains("millstream::plugin"), "{}: {found}", guest.name);
        }
    }
}
