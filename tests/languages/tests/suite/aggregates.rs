//! Aggregate functions have the same states and the same values in every language.

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, new_empty_array};
use arrow::datatypes::{Float64Type, Int64Type};
use language_tests::Guest;
use millstream_wasm::FaultPolicy;
use std::sync::Arc;

use crate::columns::{all, measure, numbers, others, texts};

#[test]
fn every_language_offers_the_same_aggregates() {
    let expected = measure().component().aggregates();
    assert_eq!(expected.len(), 3);
    for guest in others() {
        for signature in expected {
            let found = guest.component().aggregate(&signature.name);
            let (_, found) = found.unwrap_or_else(|| panic!("{} has no {}", guest.name, signature.name));
            assert_eq!(found.arguments, signature.arguments, "{} in {}", signature.name, guest.name);
            assert_eq!(found.state, signature.state, "{} in {}", signature.name, guest.name);
            assert_eq!(found.state_id, signature.state_id, "{} in {}", signature.name, guest.name);
            assert_eq!(found.result, signature.result, "{} in {}", signature.name, guest.name);
            assert_eq!(found.retracts, signature.retracts, "{} in {}", signature.name, guest.name);
        }
    }
}

/// States of two halves, merged, and their values: what one language makes of rows.
fn life(
    guest: &Guest,
    function: &str,
    groups: &[u32],
    column: &ArrayRef,
) -> (Vec<ArrayRef>, ArrayRef, Vec<(u32, String)>) {
    let slot = guest.slot(FaultPolicy::Skip, |_| {}).unwrap();
    let middle = column.len() / 2;
    let mut faults = Vec::new();
    let mut halves = Vec::new();
    for (from, len) in [(0, middle), (middle, column.len() - middle)] {
        let half = slot.accumulate(function, 3, &groups[from..from + len], &[column.slice(from, len)]);
        let half = half.unwrap_or_else(|e| panic!("{function} in {}: {e}", guest.name));
        faults.extend(half.faults.into_iter().map(|fault| (fault.row + from as u32, fault.error)));
        halves.push(half.states);
    }
    let states: Vec<_> = (0..halves[0].len())
        .map(|at| arrow::compute::concat(&[halves[0][at].as_ref(), halves[1][at].as_ref()]).unwrap())
        .collect();
    let merged = slot.merge(function, 3, &[0, 1, 2, 0, 1, 2], &states).unwrap();
    let values = slot.evaluate(function, &merged).unwrap();
    (merged, values.values, faults)
}

fn same_life(function: &str, groups: &[u32], column: &ArrayRef) {
    let expected = life(measure(), function, groups, column);
    for guest in others() {
        assert_eq!(life(guest, function, groups, column), expected, "{function} in {}", guest.name);
    }
}

#[test]
fn aggregates_have_the_states_and_values_of_rust() {
    let floats = |values: Vec<Option<f64>>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
    let some = vec![Some(0.1), None, Some(-2.5), Some(1e300), Some(0.2), Some(7.0), None, Some(0.3)];
    same_life("mean", &[0, 0, 1, 1, 0, 1, 0, 1], &floats(some));
    same_life("mean", &[], &floats(vec![]));
    let words = [Some("aa"), Some("日本"), None, Some(""), Some("ccc"), Some("bb"), Some("🦀🦀🦀"), Some("x")];
    same_life("longest", &[0, 0, 0, 1, 1, 0, 1, 0], &texts(words));
    same_life("strict_sum", &[0, 1, 0, 1, 0, 1], &numbers([1, 2, -1, 1 << 60, 5, -7]));
    let (_, _, faults) = life(measure(), "strict_sum", &[0, 1, 0, 1, 0, 1], &numbers([1, 2, -1, 1 << 60, 5, -7]));
    assert!(faults.len() == 2 && faults[0].0 == 2 && faults[0].1.contains("-1 is negative"), "{faults:?}");
}

#[test]
fn what_was_accumulated_can_be_taken_back() {
    for guest in all() {
        let slot = guest.slot(FaultPolicy::Fail, |_| {}).unwrap();
        let column: ArrayRef = Arc::new(Float64Array::from(vec![4.0, 2.0, 9.0]));
        let states = slot.accumulate("mean", 2, &[0, 0, 1], &[Arc::clone(&column)]).unwrap().states;
        let left = slot.retract("mean", &states, &[0, 1], &[Arc::new(Float64Array::from(vec![2.0, 9.0]))]).unwrap();
        assert_eq!(left[0].as_primitive::<Int64Type>().values(), &[1, 0], "{}", guest.name);
        let values = slot.evaluate("mean", &left).unwrap().values;
        assert_eq!(values.as_primitive::<Float64Type>().value(0), 4.0, "{}", guest.name);
        assert!(values.is_null(1), "{}", guest.name);
    }
}

#[test]
fn a_group_of_no_rows_has_the_state_of_no_rows() {
    for guest in all() {
        let slot = guest.slot(FaultPolicy::Fail, |_| {}).unwrap();
        for signature in guest.component().aggregates() {
            let none: Vec<_> = signature.arguments.iter().map(|field| new_empty_array(field.data_type())).collect();
            let states = slot.accumulate(&signature.name, 2, &[], &none).unwrap().states;
            let values = slot.evaluate(&signature.name, &states).unwrap().values;
            let is_null = signature.name != "strict_sum";
            assert_eq!(values.null_count(), if is_null { 2 } else { 0 }, "{} in {}", signature.name, guest.name);
        }
    }
}
