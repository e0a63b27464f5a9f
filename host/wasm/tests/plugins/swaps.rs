//! A component takes another's place, or does not.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use millstream_wasm::{FaultPolicy, PluginSlot, WasmError};

use crate::components::{load, slot};

fn words(slot: &PluginSlot, line: &str) -> Vec<String> {
    let column: ArrayRef = Arc::new(StringArray::from(vec![line]));
    let outcome = slot.call_table("words", 1, &[column]).unwrap();
    outcome.columns[0].as_string::<i32>().iter().flatten().map(str::to_owned).collect()
}

#[test]
fn a_component_with_the_same_functions_and_more_takes_over() {
    let slot = slot("text_plugin", FaultPolicy::Fail);
    assert_eq!(words(&slot, "to be"), ["to", "be"]);
    let next = load("words_more").unwrap();
    slot.swap(Arc::clone(&next)).unwrap();
    assert_eq!(slot.digest(), next.digest());
    assert_eq!(words(&slot, "to be"), ["TO", "BE"]);
}

#[test]
fn a_function_that_is_gone_again_is_a_difference() {
    let slot = slot("words_more", FaultPolicy::Fail);
    let error = slot.swap(load("text_plugin").unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "plugin `words_more` cannot be swapped: function `length` is gone");
}

#[test]
fn every_difference_is_told_and_the_old_code_goes_on() {
    let slot = slot("text_plugin", FaultPolicy::Fail);
    let before = slot.digest();
    let next = load("words_other").unwrap();
    let error = slot.swap(next).unwrap_err();
    let WasmError::SwapRefused { reason, .. } = &error else { panic!("{error}") };
    for difference in [
        "argument 1 of `words` was `line` and is `text`",
        "argument `line` of `words` was Utf8 and is Binary",
        "function `words` had 1 results and has 2",
        "function `tokens` is gone",
    ] {
        assert!(reason.contains(difference), "{difference} in {reason}");
    }
    assert_eq!(slot.digest(), before);
    assert_eq!(words(&slot, "to be"), ["to", "be"]);
}

#[test]
fn swaps_under_load_lose_and_mix_nothing() {
    let slot = slot("text_plugin", FaultPolicy::Fail);
    let (old, new) = (slot.component(), load("words_loud").unwrap());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..300 {
                    let words = words(&slot, "to be");
                    assert!(words == ["to", "be"] || words == ["TO", "BE"], "{words:?}");
                }
            });
        }
        for round in 0..200 {
            slot.swap(Arc::clone(if round % 2 == 0 { &new } else { &old })).unwrap();
        }
    });
}
