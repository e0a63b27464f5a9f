//! Hostile functions: each ends in its own error, in time, and the slot is as good as new.

use std::time::{Duration, Instant};

use arrow::array::AsArray;
use millstream_wasm::{FaultPolicy, PluginSlot, WasmError};

use crate::components::{constant, numbers, read, slot, slot_with};

/// The error of calling `function` on three rows; afterwards the slot must work.
fn error_of(slot: &PluginSlot, function: &str) -> WasmError {
    let error = slot.call_scalar(function, 3, &[numbers([1, 2, 4])]).unwrap_err();
    still_works(slot);
    error
}

fn still_works(slot: &PluginSlot) {
    let outcome = slot.call_scalar("panics_on", 3, &[numbers([1, 2, 4]), constant(0, 3)]).unwrap();
    assert_eq!(read(&outcome.values), [Some(1), Some(2), Some(4)]);
}

#[test]
fn a_panic_is_a_trap_with_the_panics_text() {
    let error = error_of(&slot("hostile", FaultPolicy::Fail), "panics");
    let WasmError::Trap { function, reason, .. } = error else { panic!("{error}") };
    assert_eq!(function, "panics");
    assert!(reason.contains("no luck with 1") && reason.contains("hostile.rs"), "{reason}");
}

#[test]
fn an_endless_loop_ends_at_the_deadline() {
    let limit = Duration::from_millis(200);
    let slot = slot_with("hostile", FaultPolicy::Fail, |limits| limits.deadline = limit);
    still_works(&slot);
    let start = Instant::now();
    let error = slot.call_scalar("spins", 1, &[numbers([1])]).unwrap_err();
    let took = start.elapsed();
    assert!(matches!(error, WasmError::Deadline { limit: told, .. } if told == limit), "{error}");
    assert!(took >= limit, "killed early, after {took:?}");
    assert!(took < limit + Duration::from_millis(100), "killed after {took:?}");
    still_works(&slot);
}

#[test]
fn a_deadline_may_be_as_far_as_it_can_be_written() {
    still_works(&slot_with("hostile", FaultPolicy::Fail, |limits| limits.deadline = Duration::MAX));
}

#[test]
fn memory_ends_at_the_limit() {
    let slot = slot_with("hostile", FaultPolicy::Fail, |limits| limits.memory_bytes = 16 << 20);
    let error = error_of(&slot, "hoards");
    assert!(matches!(error, WasmError::Memory { limit_bytes, .. } if limit_bytes == 16 << 20), "{error}");
}

#[test]
fn deep_recursion_is_a_trap() {
    // The guest's own stack lies at the start of its memory, or the host's limit of frames comes first.
    let ends = ["out of bounds memory access", "call stack exhausted"];
    let error = error_of(&slot("hostile", FaultPolicy::Fail), "recurses");
    let WasmError::Trap { reason, .. } = &error else { panic!("{error}") };
    assert!(ends.iter().any(|end| reason.contains(end)), "{reason}");
}

#[test]
fn a_result_beyond_the_limit_is_refused() {
    let slot = slot_with("hostile", FaultPolicy::Fail, |limits| limits.result_bytes = 2 << 20);
    let error = error_of(&slot, "swells");
    assert!(matches!(error, WasmError::ResultTooLarge { limit_bytes, .. } if limit_bytes == 2 << 20), "{error}");
    let values = slot.call_scalar("swells", 1, &[numbers([0])]).unwrap().values;
    assert_eq!(values.as_string::<i32>().value(0).len(), 1 << 20);
}

#[test]
fn every_kind_of_garbage_is_named() {
    let slot = slot("garbage", FaultPolicy::Fail);
    for (function, reason) in [
        ("short_values", "values of `y` has 23 bytes, not 24"),
        ("long_values", "values of `y` has 25 bytes, not 24"),
        ("missing_buffer", "no values of `y`"),
        ("extra_buffer", "1 buffers more"),
        ("wrong_rows", "4 values for 3 rows"),
        ("short_bitmap", "validity bitmap of `y` has 2 bytes, not 1"),
        ("falling_offsets", "offset -4 after 0"),
        ("offset_beyond_values", "has 4 bytes, not 1000000000"),
        ("bad_utf8", "column `y`"),
        ("row_error_beyond", "row 10 of 3"),
    ] {
        let error = slot.call_scalar(function, 3, &[numbers([1, 2, 3])]).unwrap_err();
        assert!(
            matches!(&error, WasmError::Garbage { reason: told, .. } if told.contains(reason)),
            "{function}: {error}"
        );
    }
    for (function, reason) in [
        ("unordered_rows", "input row 1 after 2"),
        ("rows_beyond", "input row 3 of 3"),
        ("short_input_rows", "8 bytes, not 12"),
        ("null_where_none", "3 nulls in `y`"),
    ] {
        let error = slot.call_table(function, 3, &[numbers([1, 2, 3])]).unwrap_err();
        assert!(
            matches!(&error, WasmError::Garbage { reason: told, .. } if told.contains(reason)),
            "{function}: {error}"
        );
    }
}

#[test]
fn a_flood_of_log_lines_is_cut_and_the_call_succeeds() {
    let slot = slot_with("hostile", FaultPolicy::Fail, |limits| limits.log_bytes_per_call = 10_000);
    assert_eq!(read(&slot.call_scalar("chatters", 2, &[numbers([1, 2])]).unwrap().values), [Some(1), Some(2)]);
}

#[test]
fn a_leak_costs_an_instance_not_a_batch() {
    let slot = slot_with("hostile", FaultPolicy::Fail, |limits| limits.memory_bytes = 16 << 20);
    for _ in 0..40 {
        slot.call_scalar("leaks", 1, &[numbers([1])]).unwrap();
    }
    let metrics = slot.take_metrics();
    assert!(metrics.instances > 2 && metrics.instances < 10, "{metrics:?}");
}

#[test]
fn a_refused_call_and_a_world_that_is_not_there_have_their_own_errors() {
    let slot = slot("hostile", FaultPolicy::Fail);
    let error = slot.call_scalar("refuses_negatives", 2, &[numbers([1, -1])]).unwrap_err();
    assert_eq!(error.to_string(), "plugin `hostile` refused the call in `refuses_negatives`: a negative number");
    let error = error_of(&slot, "waits_for_the_world");
    assert!(matches!(&error, WasmError::Unavailable { message, .. } if message == "nobody answers 1"), "{error}");
    let error = slot.call_scalar("dislikes_threes", 4, &[numbers([1, 2, 3, 6])]).unwrap_err();
    let text = "plugin `hostile` refused row 2 of the batch in `dislikes_threes`: 3 is a multiple of three";
    assert_eq!(error.to_string(), text);
}

#[test]
fn calls_that_the_signature_does_not_allow_are_our_mistake() {
    let slot = slot("hostile", FaultPolicy::Skip);
    let bad = |result: Result<_, WasmError>| matches!(result, Err(WasmError::BadCall { .. }));
    assert!(bad(slot.call_scalar("nothing", 1, &[numbers([1])])));
    assert!(bad(slot.call_scalar("panics", 1, &[])));
    assert!(bad(slot.call_scalar("panics", 2, &[numbers([1])])));
    assert!(bad(slot.call_scalar("counts_to", 1, &[numbers([1]), numbers([1])])));
}
