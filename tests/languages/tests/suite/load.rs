//! Many batches, and rows that look like data.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use millstream_wasm::FaultPolicy;

use crate::columns::{all, others};

const ROWS: usize = 8192;

fn batch(number: usize) -> (ArrayRef, ArrayRef, ArrayRef) {
    let value = |row: usize| (number * ROWS + row) as i64 * 7919 % 1_000_003 - 500_000;
    let words =
        ["the", "stream", "Ölberg", "of", "a", "river", "carries", "in", "every", "drop", "日本", "an", "offset"];
    let line = |row: usize| {
        let word = |at: usize| words[(row * 31 + at * 7 + number) % words.len()];
        (row % 97 != 5).then(|| (0..row % 9).map(word).collect::<Vec<_>>().join(" "))
    };
    (
        Arc::new(Int64Array::from_iter_values((0..ROWS).map(value))),
        Arc::new((0..ROWS).map(|row| (row % 11 != 3).then(|| value(row) << 40)).collect::<Int64Array>()),
        Arc::new((0..ROWS).map(line).collect::<StringArray>()),
    )
}

/// One instance takes all batches: memory that a guest does not give back, or a collector that comes at a bad time, shows.
#[test]
fn a_hundred_batches_of_8192_rows_are_the_same_in_every_language() {
    let slots: Vec<_> = all().iter().map(|guest| guest.slot(FaultPolicy::Fail, |_| {}).unwrap()).collect();
    for number in 0..100 {
        let (plain, holes, lines) = batch(number);
        let expected_heat = slots[0].call_scalar("heat", ROWS, &[Arc::clone(&plain), Arc::clone(&holes)]).unwrap();
        let expected_shout = slots[0].call_scalar("shout", ROWS, &[Arc::clone(&lines)]).unwrap();
        let expected_words = slots[0].call_table("words", ROWS, &[Arc::clone(&lines)]).unwrap();
        for (guest, slot) in others().iter().zip(&slots[1..]) {
            let heat = slot.call_scalar("heat", ROWS, &[Arc::clone(&plain), Arc::clone(&holes)]).unwrap();
            assert_eq!(&heat.values, &expected_heat.values, "heat of batch {number} in {}", guest.name);
            // Interpreters get every tenth batch of texts: what matters is the memory, and it moves as well.
            if number % 10 == 0 || guest.component().size_bytes() < 1 << 20 {
                let shout = slot.call_scalar("shout", ROWS, &[Arc::clone(&lines)]).unwrap();
                assert_eq!(&shout.values, &expected_shout.values, "shout of batch {number} in {}", guest.name);
                let words = slot.call_table("words", ROWS, &[Arc::clone(&lines)]).unwrap();
                assert_eq!(words.input_rows, expected_words.input_rows, "words of batch {number} in {}", guest.name);
                assert_eq!(words.columns, expected_words.columns, "words of batch {number} in {}", guest.name);
            }
        }
    }
    for (guest, slot) in all().iter().zip(&slots) {
        let metrics = slot.take_metrics();
        assert!(metrics.instances <= 2, "{} needed {} instances", guest.name, metrics.instances);
        assert_eq!(metrics.traps, 0, "{}", guest.name);
    }
}

/// A runtime that frees memory by itself has had to do so many times: what is alive fits, what was ever allocated does
/// not by far.
#[test]
#[ignore = "takes minutes: `cargo test -p language-tests --test suite -- --ignored`"]
fn memory_stays_where_it_is_over_two_thousand_calls() {
    for guest in all().iter().filter(|guest| guest.name == "go" || guest.name == "c") {
        let slot = guest.slot(FaultPolicy::Fail, |limits| limits.memory_bytes = 64 << 20).unwrap();
        for number in 0..700 {
            let (plain, holes, lines) = batch(number % 10);
            slot.call_scalar("heat", ROWS, &[plain, holes]).unwrap();
            slot.call_scalar("shout", ROWS, &[Arc::clone(&lines)]).unwrap();
            slot.call_table("words", ROWS, &[lines]).unwrap();
        }
        let metrics = slot.take_metrics();
        assert_eq!((metrics.instances, metrics.traps), (1, 0), "{}", guest.name);
    }
}
