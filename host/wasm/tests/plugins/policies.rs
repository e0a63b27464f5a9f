//! Which rows are at fault, and that nothing else is lost.

use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use millstream_wasm::{FaultPolicy, RowFault, WasmError};

use crate::components::{constant, numbers, read, slot, slot_with};

fn rows(faults: &[RowFault]) -> Vec<u32> {
    faults.iter().map(|fault| fault.row).collect()
}

#[test]
fn trapping_rows_are_found_exactly_and_the_rest_is_computed() {
    let slot = slot("hostile", FaultPolicy::Skip);
    let n = 50_000i64;
    let bad = [0, 1, 777, 16_383, 16_384, 49_999];
    let arguments = [numbers(0..n), numbers((0..n).map(|i| if bad.contains(&i) { i } else { -1 }))];
    let outcome = slot.call_scalar("panics_on", 50_000, &arguments).unwrap();
    assert_eq!(rows(&outcome.faults), bad.map(|row| u32::try_from(row).unwrap()));
    assert!(outcome.faults[2].error.contains("hit 777"), "{}", outcome.faults[2].error);
    let expected: Vec<Option<i64>> = (0..n).map(|i| (!bad.contains(&i)).then_some(i)).collect();
    assert_eq!(read(&outcome.values), expected);
    let metrics = slot.take_metrics();
    assert_eq!((metrics.rows, metrics.faults, metrics.output_rows), (50_000, 6, 50_000));
    assert!(metrics.traps > 6 && metrics.calls > metrics.traps, "{metrics:?}");
    assert_eq!(slot.take_metrics().rows, 0);
    assert!(slot.take_dead_letters().is_empty());
}

#[test]
fn table_functions_lose_only_the_rows_at_fault() {
    let slot = slot("hostile", FaultPolicy::Skip);
    let arguments = [numbers([2, 5, 0, 3]), numbers([-1, 5, -1, -1])];
    let outcome = slot.call_table("counts_to", 4, &arguments).unwrap();
    assert_eq!(rows(&outcome.faults), [1]);
    assert_eq!(outcome.input_rows.values(), &[0, 0, 3, 3, 3]);
    assert_eq!(read(&outcome.columns[0]), [0, 1, 0, 1, 2].map(Some));

    let outcome = slot.call_table("stumbles", 3, &[numbers([3, 2, 1])]).unwrap();
    assert_eq!(rows(&outcome.faults), [1]);
    assert_eq!(outcome.input_rows.values(), &[0, 0, 0, 2]);
}

#[test]
fn dead_letters_carry_the_arguments() {
    let slot = slot("hostile", FaultPolicy::DeadLetter);
    let second: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![None, Some(2), None]));
    slot.call_scalar("panics_on", 3, &[numbers([1, 2, 3]), second]).unwrap();
    slot.call_scalar("dislikes_threes", 3, &[numbers([1, 3, 5])]).unwrap();
    let letters = slot.take_dead_letters();
    assert_eq!(letters.len(), 2);
    assert_eq!(letters[0].arguments, r#"{"x":2,"at":2}"#);
    assert_eq!((letters[0].function.as_str(), letters[0].digest), ("panics_on", slot.digest()));
    assert!(letters[0].message.contains("hit 2"));
    assert_eq!(
        (letters[1].arguments.as_str(), letters[1].message.as_str()),
        (r#"{"x":3}"#, "3 is a multiple of three")
    );
    assert!(slot.take_dead_letters().is_empty());
}

#[test]
fn rows_that_the_plugin_names_need_no_search() {
    let slot = slot("hostile", FaultPolicy::Skip);
    let outcome = slot.call_scalar("dislikes_threes", 1000, &[numbers(0..1000)]).unwrap();
    assert_eq!(outcome.faults.len(), 334);
    assert_eq!(outcome.values.null_count(), 334);
    assert_eq!(slot.take_metrics().calls, 1);
}

#[test]
fn refused_calls_are_searched_and_a_missing_world_is_not() {
    let slot = slot("hostile", FaultPolicy::Skip);
    let outcome = slot.call_scalar("refuses_negatives", 5, &[numbers([1, -1, 2, 3, -4])]).unwrap();
    assert_eq!(rows(&outcome.faults), [1, 4]);
    let error = slot.call_scalar("waits_for_the_world", 1, &[numbers([1])]).unwrap_err();
    assert!(matches!(error, WasmError::Unavailable { .. }));
}

#[test]
fn garbage_is_isolated_like_a_trap() {
    let slot = slot("garbage", FaultPolicy::Skip);
    let outcome = slot.call_scalar("short_values", 5, &[numbers(0..5)]).unwrap();
    assert_eq!(rows(&outcome.faults), [0, 1, 2, 3, 4]);
    assert_eq!(outcome.values.null_count(), 5);
}

#[test]
fn the_search_ends_when_its_calls_are_spent() {
    let slot = slot_with("hostile", FaultPolicy::Skip, |limits| {
        limits.isolation_calls = 10;
        limits.rows_per_call = 100;
    });
    let mut at = vec![-1; 1000];
    (300..400).step_by(3).for_each(|row| at[row] = i64::try_from(row).unwrap());
    let outcome = slot.call_scalar("panics_on", 1000, &[numbers(0..1000), numbers(at)]).unwrap();
    let faulty = rows(&outcome.faults);
    assert!(faulty.iter().all(|row| (300..400).contains(row)), "only the unproven range: {faulty:?}");
    assert!(faulty.len() > 34, "as a whole: {faulty:?}");
    assert_eq!(outcome.values.null_count(), faulty.len());
    assert!(slot.take_metrics().traps < 60);
}

#[test]
fn a_row_that_never_ends_costs_deadlines_not_the_batch() {
    let slot = slot_with("hostile", FaultPolicy::Skip, |limits| limits.deadline = Duration::from_millis(60));
    let arguments = [numbers(0..64), constant(20, 64)];
    let outcome = slot.call_scalar("spins_on", 64, &arguments).unwrap();
    assert_eq!(rows(&outcome.faults), [20]);
    assert_eq!(outcome.values.null_count(), 1);
}

#[test]
fn the_search_ends_when_its_time_is_spent() {
    let slot = slot_with("hostile", FaultPolicy::Skip, |limits| {
        limits.deadline = Duration::from_millis(30);
        limits.isolation_time = Duration::from_millis(200);
        limits.rows_per_call = 10;
    });
    let start = Instant::now();
    let outcome = slot.call_scalar("spins", 5000, &[numbers(0..5000)]).unwrap();
    assert!(start.elapsed() < Duration::from_millis(600), "{:?}", start.elapsed());
    assert_eq!(outcome.faults.len(), 5000);
}

#[test]
fn a_fresh_instance_for_every_call_changes_no_output() {
    let n = 40_000usize;
    let lines: Vec<String> = (0..n).map(|i| format!("line {i} of  some {} words", i % 7)).collect();
    let column: ArrayRef = std::sync::Arc::new(arrow::array::StringArray::from(lines));
    let run = |recycle| {
        let slot = slot_with("text_plugin", FaultPolicy::Skip, |limits| {
            limits.recycle_every_call = recycle;
            limits.rows_per_call = 1000;
        });
        let mut outcomes = Vec::new();
        for function in ["words", "tokens"] {
            for _ in 0..2 {
                let outcome = slot.call_table(function, n, std::slice::from_ref(&column)).unwrap();
                outcomes.push((outcome.input_rows, outcome.columns, outcome.faults));
            }
        }
        (outcomes, slot.take_metrics().instances)
    };
    let (kept, few) = run(false);
    let (recycled, many) = run(true);
    assert_eq!(kept, recycled);
    assert_eq!((few, many), (1, 160));
}

#[test]
fn what_a_component_hides_in_its_memory_is_gone_after_a_trap() {
    let slot = slot("hostile", FaultPolicy::Skip);
    let seen = |slot: &millstream_wasm::PluginSlot| {
        let outcome = slot.call_scalar("rows_seen", 1, &[numbers([1])]).unwrap();
        outcome.values.as_primitive::<Int64Type>().value(0)
    };
    assert_eq!((seen(&slot), seen(&slot)), (1, 2));
    slot.call_scalar("panics", 1, &[numbers([1])]).unwrap();
    assert_eq!(seen(&slot), 1);
}

#[test]
fn many_threads_share_a_slot() {
    let slot = slot("hostile", FaultPolicy::Skip);
    std::thread::scope(|scope| {
        for thread in 0..8i64 {
            let slot = &slot;
            scope.spawn(move || {
                for round in 0..20i64 {
                    let at = (thread + round) % 10;
                    let outcome = slot.call_scalar("panics_on", 10, &[numbers(0..10), constant(at, 10)]).unwrap();
                    assert_eq!(rows(&outcome.faults), [u32::try_from(at).unwrap()]);
                }
            });
        }
    });
    assert_eq!(slot.take_metrics().faults, 160);
}

#[test]
fn large_batches_are_split_by_rows_and_by_bytes() {
    let slot = slot_with("text_plugin", FaultPolicy::Fail, |limits| limits.argument_bytes_per_call = 100_000);
    let lines: Vec<String> = (0..300).map(|i| format!("{i} {}", "x".repeat(5000))).collect();
    let column: ArrayRef = std::sync::Arc::new(arrow::array::StringArray::from(lines));
    let outcome = slot.call_table("words", 300, &[column]).unwrap();
    assert_eq!(outcome.input_rows.len(), 600);
    assert_eq!(outcome.columns[0].as_string::<i32>().value(598), "299");
    assert!(slot.take_metrics().calls > 15);
}
