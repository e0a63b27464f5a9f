//! Aggregate functions: states, whatever they were cut into, and whatever the guest does.

use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, StringArray};
use arrow::datatypes::Int64Type;
use millstream_wasm::{FaultPolicy, PluginSlot, RowFault, WasmError};

use crate::components::{load, numbers, read, slot, slot_with};

fn column(state: &ArrayRef) -> Vec<i64> {
    state.as_primitive::<Int64Type>().values().to_vec()
}

fn rows(faults: &[RowFault]) -> Vec<u32> {
    faults.iter().map(|fault| fault.row).collect()
}

/// Accumulates a function of one number; its first state column.
fn sums(
    slot: &PluginSlot,
    function: &str,
    groups: usize,
    of_row: &[u32],
    values: &[i64],
) -> Result<Vec<i64>, WasmError> {
    let outcome = slot.accumulate(function, groups, of_row, &[numbers(values.iter().copied())])?;
    Ok(column(&outcome.states[0]))
}

#[test]
fn an_aggregate_function_says_what_its_state_is() {
    let component = load("aggregates").unwrap();
    let shown: Vec<String> = component.aggregates().iter().map(ToString::to_string).collect();
    assert_eq!(
        shown[0],
        "aggregate total(x Int64 not null) -> value Int64, state (count Int64 not null, sum Int64 not null) `count and sum`"
    );
    assert_eq!(component.functions().len(), 1);
    let names = |name: &str| format!("millstream:plugin/{name}@0.2.0");
    assert!(component.exports().contains(&names("aggregate")) && component.exports().contains(&names("scalar")));
    // Without functions of rows there are no exports for them.
    let mut exports = load("hostile_aggregates").unwrap().exports().to_vec();
    exports.sort();
    assert_eq!(exports, [names("aggregate"), names("describe")]);
}

#[test]
fn states_do_not_depend_on_how_the_rows_were_cut() {
    let whole = slot("aggregates", FaultPolicy::Fail);
    let cut = slot_with("aggregates", FaultPolicy::Fail, |limits| limits.rows_per_call = 3);
    let few_bytes = slot_with("aggregates", FaultPolicy::Fail, |limits| limits.argument_bytes_per_call = 40);
    let fresh = slot_with("aggregates", FaultPolicy::Fail, |limits| {
        limits.recycle_every_call = true;
        limits.rows_per_call = 7;
    });
    let groups: Vec<u32> = (0..50).map(|row| row * row % 7).collect();
    let places: ArrayRef = std::sync::Arc::new(StringArray::from_iter_values((0..50).map(|row| format!("p{row}"))));
    let weight = |row: i32| (row % 3 != 0).then_some(f64::from(row) / 2.0);
    let weights: ArrayRef = std::sync::Arc::new((0..50).map(weight).collect::<Float64Array>());
    let trail = |slot: &PluginSlot| {
        let outcome =
            slot.accumulate("trail", 8, &groups, &[ArrayRef::clone(&places), ArrayRef::clone(&weights)]).unwrap();
        assert!(outcome.faults.is_empty());
        outcome.states
    };
    let expected = trail(&whole);
    assert_eq!(whole.take_metrics().calls, 1);
    for slot in [&cut, &few_bytes, &fresh] {
        assert_eq!(trail(slot), expected);
        assert!(slot.take_metrics().calls > 10);
    }
    let values = whole.evaluate("trail", &expected).unwrap().values;
    let values = values.as_string::<i32>();
    assert_eq!((values.value(3), values.value(7)), ("", ""));
    assert!(values.value(0).starts_with("p0 p7=3.5 p14=7"), "{}", values.value(0));
}

#[test]
fn states_merge_in_the_order_of_their_rows_however_many_there_are() {
    let whole = slot("aggregates", FaultPolicy::Fail);
    let cut = slot_with("aggregates", FaultPolicy::Fail, |limits| limits.rows_per_call = 4);
    let places: ArrayRef = std::sync::Arc::new(StringArray::from_iter_values((0..60).map(|row| format!("p{row}"))));
    let weights: ArrayRef = std::sync::Arc::new(Float64Array::from(vec![None; 60]));
    let single: Vec<u32> = (0..60).collect();
    let states = whole.accumulate("trail", 60, &single, &[places, weights]).unwrap().states;
    // One group of most states, one of two, one of one.
    let groups: Vec<u32> = (0..60).map(|row| u32::from(row == 17 || row == 40) + 2 * u32::from(row == 59)).collect();
    let expected = whole.merge("trail", 3, &groups, &states).unwrap();
    assert_eq!(cut.merge("trail", 3, &groups, &states).unwrap(), expected);
    let text = whole.evaluate("trail", &expected).unwrap().values;
    let text = text.as_string::<i32>();
    assert_eq!((text.value(1), text.value(2)), ("p17 p40", "p59"));
    assert!(text.value(0).starts_with("p0 p1 p2") && text.value(0).ends_with("p57 p58"));
    // A state merged with nothing costs no call.
    whole.take_metrics();
    assert_eq!(whole.merge("trail", 60, &single, &states).unwrap(), states);
    assert_eq!(whole.take_metrics().calls, 0);
}

#[test]
fn rows_are_taken_back() {
    let slot = slot_with("aggregates", FaultPolicy::Fail, |limits| limits.rows_per_call = 2);
    let states = slot.accumulate("total", 2, &[0, 1, 0, 0], &[numbers([1, 2, 3, 4])]).unwrap().states;
    let less = slot.retract("total", &states, &[0, 0, 1], &[numbers([1, 4, 2])]).unwrap();
    assert_eq!((column(&less[0]), column(&less[1])), (vec![1, 0], vec![3, 0]));
    assert_eq!(read(&slot.evaluate("total", &less).unwrap().values), [Some(3), None]);
    let error = slot.retract("longest", &states[..1], &[], &[]).unwrap_err();
    assert!(matches!(error, WasmError::BadCall { .. }), "{error}");
}

#[test]
fn rows_with_nulls_are_left_out() {
    let slot = slot("garbage_aggregates", FaultPolicy::Fail);
    let values: ArrayRef = std::sync::Arc::new(arrow::array::Int64Array::from(vec![Some(1), None, Some(2)]));
    let states = slot.accumulate("more_groups", 2, &[0, 1, 0], &[values]).unwrap().states;
    assert_eq!(column(&states[0]), [3, 0]);
}

#[test]
fn rows_at_fault_are_left_out_and_the_others_count() {
    let slot = slot("aggregates", FaultPolicy::DeadLetter);
    let outcome = slot.accumulate("total", 2, &[0, 1, 0, 1], &[numbers([1, -2, 3, 4])]).unwrap();
    assert_eq!((column(&outcome.states[1]), rows(&outcome.faults)), (vec![4, 4], vec![1]));
    let letters = slot.take_dead_letters();
    assert_eq!((letters[0].arguments.as_str(), letters[0].message.as_str()), (r#"{"x":-2}"#, "-2 is negative"));
    let strict = crate::components::slot("aggregates", FaultPolicy::Fail);
    let error = strict.accumulate("total", 1, &[0, 0], &[numbers([1, -2])]).unwrap_err();
    assert_eq!(error.to_string(), "plugin `aggregates` refused row 1 of the batch in `total`: -2 is negative");
}

#[test]
fn trapping_rows_are_found_and_their_groups_are_as_without_them() {
    let slot = slot("hostile_aggregates", FaultPolicy::Skip);
    let values: Vec<i64> = (0..5000).map(|row| if [0, 77, 4999].contains(&row) { 13 } else { 1 }).collect();
    let groups: Vec<u32> = (0..5000).map(|row| row % 3).collect();
    let outcome = slot.accumulate("panics_on13", 4, &groups, &[numbers(values)]).unwrap();
    assert_eq!(rows(&outcome.faults), [0, 77, 4999]);
    assert_eq!(column(&outcome.states[0]), [1666, 1666, 1665, 0]);
    // Only such rows: the state of no rows.
    let outcome = slot.accumulate("panics_on13", 1, &[0, 0], &[numbers([13, 13])]).unwrap();
    assert_eq!(column(&outcome.states[0]), [0]);
}

#[test]
fn every_end_of_a_call_has_its_error_and_the_slot_is_as_good_as_new() {
    let slot = slot_with("hostile_aggregates", FaultPolicy::Fail, |limits| {
        limits.deadline = Duration::from_millis(150);
        limits.memory_bytes = 32 << 20;
        limits.result_bytes = 3 << 20;
    });
    let still_works = || assert_eq!(sums(&slot, "panics_on13", 2, &[0, 1, 0], &[1, 2, 3]).unwrap(), [4, 2]);
    let accumulated = |function: &str| sums(&slot, function, 1, &[0, 0], &[1, 13]).unwrap_err();
    assert!(matches!(accumulated("panics_on13"), WasmError::Trap { reason, .. } if reason.contains("hit 13")));
    still_works();
    let start = Instant::now();
    assert!(matches!(accumulated("spins_on13"), WasmError::Deadline { .. }));
    assert!(start.elapsed() < Duration::from_secs(1));
    still_works();
    assert!(matches!(accumulated("hoards_on13"), WasmError::Memory { .. }));
    still_works();
    let error = sums_of_swells(&slot).unwrap_err();
    assert!(matches!(error, WasmError::ResultTooLarge { .. }), "{error}");
    still_works();
    let states = [numbers([1, 2])];
    let merged = |function: &str| slot.merge(function, 1, &[0, 0], &states).unwrap_err();
    assert!(matches!(merged("panics_in_merge"), WasmError::Trap { reason, .. } if reason.contains("no luck with 3")));
    assert!(matches!(merged("spins_in_merge"), WasmError::Deadline { .. }));
    still_works();
    let error = slot.evaluate("spins_in_evaluate", &states).unwrap_err();
    assert!(matches!(error, WasmError::Deadline { .. }), "{error}");
    let error = slot.evaluate("panics_at13", &[numbers([1, 13])]).unwrap_err();
    assert!(matches!(&error, WasmError::Trap { reason, .. } if reason.contains("hit the state 13")), "{error}");
    still_works();
}

fn sums_of_swells(slot: &PluginSlot) -> Result<(), WasmError> {
    slot.accumulate("swells", 4, &[0, 1, 2, 3], &[numbers([1, 1, 1, 1])]).map(drop)
}

#[test]
fn a_state_that_cannot_be_merged_is_never_left_out() {
    let slot = slot("hostile_aggregates", FaultPolicy::Skip);
    let error = slot.merge("panics_in_merge", 1, &[0, 0], &[numbers([1, 2])]).unwrap_err();
    assert!(matches!(error, WasmError::Trap { .. }), "{error}");
}

#[test]
fn a_state_without_a_value_has_null_where_the_policy_goes_on() {
    let slot = slot("hostile_aggregates", FaultPolicy::DeadLetter);
    let outcome = slot.evaluate("panics_at13", &[numbers([1, 13, 2])]).unwrap();
    assert_eq!((read(&outcome.values), rows(&outcome.faults)), (vec![Some(1), None, Some(2)], vec![1]));
    assert_eq!(slot.take_dead_letters()[0].arguments, r#"{"sum":13}"#);
}

#[test]
fn every_kind_of_garbage_is_named_in_rows_and_in_states() {
    let slot = slot("garbage_aggregates", FaultPolicy::Fail);
    for (function, reason) in [
        ("fewer_groups", "1 states for 2 groups"),
        ("more_groups", "3 states for 2 groups"),
        ("short_states", "values of `sum` has 15 bytes, not 16"),
        ("extra_buffer", "1 buffers more"),
        ("missing_buffer", "no values of `sum`"),
        ("null_state", "2 nulls in `sum`"),
        ("row_error_beyond", "row 4294967295 of 4"),
    ] {
        let told = |error: WasmError| match &error {
            WasmError::Garbage { reason: told, .. } => assert!(told.contains(reason), "{function}: {error}"),
            _ => panic!("{function}: {error}"),
        };
        told(sums(&slot, function, 2, &[0, 1, 0, 1], &[1, 2, 13, 4]).unwrap_err());
        told(slot.merge(function, 2, &[0, 1, 0, 1], &[numbers([1, 2, 13, 4])]).unwrap_err());
        assert_eq!(sums(&slot, function, 2, &[0, 1], &[1, 2]).unwrap(), [1, 2]);
    }
    let error = sums(&slot, "group_of_nowhere", 1, &[0], &[13]).unwrap_err();
    assert!(matches!(error, WasmError::Trap { .. }), "{error}");
    // Under a policy that goes on, garbage is isolated like a trap.
    let skip = crate::components::slot("garbage_aggregates", FaultPolicy::Skip);
    let outcome = skip.accumulate("fewer_groups", 2, &[0, 1, 0], &[numbers([1, 13, 2])]).unwrap();
    assert_eq!((column(&outcome.states[0]), rows(&outcome.faults)), (vec![3, 0], vec![1]));
}

#[test]
fn calls_that_do_not_fit_are_our_mistake() {
    let slot = slot("aggregates", FaultPolicy::Skip);
    let bad = |error: WasmError| assert!(matches!(error, WasmError::BadCall { .. }), "{error}");
    bad(sums(&slot, "nothing", 1, &[0], &[1]).unwrap_err());
    bad(sums(&slot, "twice", 1, &[0], &[1]).unwrap_err());
    bad(sums(&slot, "total", 1, &[1], &[1]).unwrap_err());
    bad(sums(&slot, "total", 1, &[0, 0], &[1]).unwrap_err());
    bad(slot.accumulate("total", 1, &[0], &[]).unwrap_err());
    bad(slot.merge("total", 2, &[0], &[numbers([1]), numbers([1])]).unwrap_err());
    bad(slot.merge("total", 1, &[0], &[numbers([1])]).unwrap_err());
    let null: ArrayRef = std::sync::Arc::new(arrow::array::Int64Array::from(vec![None]));
    bad(slot.merge("total", 1, &[0], &[numbers([1]), ArrayRef::clone(&null)]).unwrap_err());
    bad(slot.evaluate("total", &[numbers([1]), null]).unwrap_err());
    assert!(slot.accumulate("total", 0, &[], &[numbers([])]).unwrap().states[0].is_empty());
}

#[test]
fn a_component_takes_over_only_with_the_same_states() {
    let slot = slot("aggregates", FaultPolicy::Fail);
    let states = slot.accumulate("total", 1, &[0], &[numbers([5])]).unwrap().states;
    slot.swap(load("aggregates_next").unwrap()).unwrap();
    assert_eq!(read(&slot.evaluate("total", &states).unwrap().values), [Some(-5)]);
    let error = slot.swap(load("aggregates_other").unwrap()).unwrap_err();
    let WasmError::SwapRefused { reason, .. } = &error else { panic!("{error}") };
    for difference in [
        "the state of `total` meant `count and sum` and means `count and sum of squares`",
        "function `longest` had 1 state columns and has 2",
    ] {
        assert!(reason.contains(difference), "{difference} in {reason}");
    }
    let error = slot.swap(load("hostile_aggregates").unwrap()).unwrap_err();
    assert!(error.to_string().contains("aggregate function `total` is gone"), "{error}");
}
