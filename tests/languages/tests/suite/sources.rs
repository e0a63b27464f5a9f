//! A source has the same offsets, the same rows in the same pages, and the same words in every language.

use arrow::array::RecordBatch;
use language_tests::Guest;
use millstream_wasm::{FaultPolicy, SourceCalls};

use crate::columns::{measure, others};

fn ledger(guest: &Guest, options: &[(&str, &str)], recycle: bool) -> SourceCalls {
    let slot = guest.slot(FaultPolicy::Fail, |limits| limits.recycle_every_call = recycle).unwrap();
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    SourceCalls::new(slot, "ledger", "s", options)
}

/// The pages of a range, and the cursors behind them.
fn pages(source: &SourceCalls, start: &str, end: &str) -> Vec<(RecordBatch, Option<String>)> {
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let page = source.read((start, end), cursor.as_deref(), pages.len() as u64);
        let page = page.unwrap_or_else(|error| panic!("{}: {error}", source.slot().name()));
        pages.push((page.rows, page.next.clone()));
        cursor = page.next;
        if cursor.is_none() {
            return pages;
        }
    }
}

#[test]
fn every_language_offers_the_same_source() {
    let (_, expected) = measure().component().source("ledger").unwrap();
    for guest in others() {
        let (_, found) = guest.component().source("ledger").unwrap_or_else(|| panic!("{} has none", guest.name));
        assert_eq!(found.to_string(), expected.to_string(), "{}", guest.name);
        assert_eq!(found, expected, "{}", guest.name);
    }
}

#[test]
fn offsets_are_those_of_rust() {
    let asked = |guest: &Guest| {
        let source = ledger(guest, &[("rows", "12345678901")], false);
        let latest =
            |start: &str, until: Option<&str>, max: Option<u64>| source.latest_offset(start, until, max).unwrap();
        [
            source.initial_offset().unwrap(),
            latest("0", None, None),
            latest("0", None, Some(1)),
            latest("7", None, Some(12_345_678_893)),
            latest("7", None, Some(20_000_000_000)),
            latest("7", Some("9"), None),
            latest("7", Some("9"), Some(1)),
            latest("12345678901", None, Some(5)),
        ]
    };
    let expected = asked(measure());
    assert_eq!(expected[3..5], ["12345678900", "12345678901"]);
    for guest in others() {
        assert_eq!(asked(guest), expected, "{}", guest.name);
    }
}

#[test]
fn rows_and_pages_are_those_of_rust_also_with_fresh_instances() {
    for (start, end) in [("0", "10"), ("5", "5"), ("3", "1003"), ("999", "3001"), ("0", "8192")] {
        let expected = pages(&ledger(measure(), &[("rows", "10000")], false), start, end);
        assert!(expected.iter().all(|(rows, _)| rows.num_rows() <= 1000));
        for guest in others() {
            for recycle in [false, true] {
                let found = pages(&ledger(guest, &[("rows", "10000")], recycle), start, end);
                assert_eq!(found, expected, "({start}, {end}] in {}", guest.name);
            }
        }
    }
}

#[test]
fn refusals_have_the_same_words_and_are_of_the_same_kind() {
    let told = |guest: &Guest| {
        let source = ledger(guest, &[("rows", "100"), ("away", "50")], false);
        assert_eq!(pages(&source, "51", "100").len(), 1, "{}", guest.name);
        source.commit("100").unwrap();
        let errors = [source.read(("49", "51"), None, 0).map(drop), source.commit("101")];
        errors.map(|told| told.unwrap_err().to_string().replace(&format!("`{}`", guest.name), "NAME"))
    };
    let expected = told(measure());
    assert!(expected[0].contains("cannot compute") && expected[0].contains("row 50 is away"), "{expected:?}");
    assert!(expected[1].contains("refused") && expected[1].contains("there are 100 rows, not 101"), "{expected:?}");
    for guest in others() {
        assert_eq!(told(guest), expected, "{}", guest.name);
    }
}

#[test]
fn a_hundred_ranges_of_eight_thousand_rows_come_right() {
    for guest in others() {
        let source = ledger(guest, &[("rows", "1000000")], false);
        let mut rows = 0;
        for range in 0..100_u64 {
            let (start, end) = ((range * 8192).to_string(), ((range + 1) * 8192).to_string());
            rows += pages(&source, &start, &end).iter().map(|(page, _)| page.num_rows()).sum::<usize>();
        }
        assert_eq!(rows, 819_200, "{}", guest.name);
    }
}
