//! A processor keeps the same state, sets the same timers and gives the same rows in every language.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::Int64Type;
use language_tests::Guest;
use millstream_wasm::FaultPolicy;
use millstream_wasm::processor::{Entries, Invocation, Outcome, Step, Timers};

use crate::columns::{all, measure, others};

/// What is kept of one user.
#[derive(Debug, Clone, Default, PartialEq)]
struct Kept {
    visits: Option<i64>,
    history: Vec<String>,
    per_page: BTreeMap<String, i64>,
    timers: BTreeSet<i64>,
}

/// The state of the processor, as a host keeps it.
#[derive(Debug, Clone, Default, PartialEq)]
struct Host {
    users: BTreeMap<String, Kept>,
}

fn strings<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn read(column: &ArrayRef) -> Vec<String> {
    column.as_string::<i32>().iter().map(|text| text.unwrap_or_default().to_owned()).collect()
}

fn longs(column: &ArrayRef) -> Vec<i64> {
    column.as_primitive::<Int64Type>().values().to_vec()
}

impl Host {
    /// A call for some users, with what is kept of them.
    fn call(&self, users: &[&str], key_of_row: Vec<u32>, rows: Vec<ArrayRef>) -> Invocation {
        let kept: Vec<Kept> = users.iter().map(|user| self.users.get(*user).cloned().unwrap_or_default()).collect();
        let mut state = [Entries::default(), Entries::default(), Entries::default()];
        let (mut values, mut pages, mut map_keys, mut counts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut timers = Timers::default();
        for (key, kept) in (0..).zip(&kept) {
            if let Some(visits) = kept.visits {
                state[0].key_of_entry.push(key);
                values.push(visits);
            }
            for page in &kept.history {
                state[1].key_of_entry.push(key);
                pages.push(page.as_str());
            }
            for (page, count) in &kept.per_page {
                state[2].key_of_entry.push(key);
                map_keys.push(page.as_str());
                counts.push(*count);
            }
            kept.timers.iter().for_each(|due| timers.push(key, *due));
        }
        state[0].columns = vec![Arc::new(Int64Array::from(values))];
        state[1].columns = vec![strings(pages)];
        state[2].map_keys = vec![strings(map_keys)];
        state[2].columns = vec![Arc::new(Int64Array::from(counts))];
        Invocation {
            key_count: users.len(),
            keys: vec![strings(users.iter().copied())],
            key_of_row,
            rows,
            state: state.into(),
            timers,
            batch_time_ms: 1_000,
            watermark_ms: Some(500),
        }
    }

    fn kept(&mut self, users: &[&str], key: u32) -> &mut Kept {
        self.users.entry(users[key as usize].to_owned()).or_default()
    }

    /// Keeps what changes.
    fn keep(&mut self, users: &[&str], outcome: &Outcome, due: &Timers) {
        let [value, list, map] = &outcome.changes[..] else { panic!("three variables: {outcome:?}") };
        value.cleared.iter().for_each(|key| self.kept(users, *key).visits = None);
        list.cleared.iter().for_each(|key| self.kept(users, *key).history.clear());
        map.cleared.iter().for_each(|key| self.kept(users, *key).per_page.clear());
        for (key, visits) in value.put.key_of_entry.iter().zip(longs(&value.put.columns[0])) {
            self.kept(users, *key).visits = Some(visits);
        }
        for (key, page) in list.put.key_of_entry.iter().zip(read(&list.put.columns[0])) {
            self.kept(users, *key).history.push(page);
        }
        let pages = read(&map.put.map_keys[0]).into_iter().zip(longs(&map.put.columns[0]));
        for (key, (page, count)) in map.put.key_of_entry.iter().zip(pages) {
            self.kept(users, *key).per_page.insert(page, count);
        }
        let failed: BTreeSet<u32> = outcome.faults.iter().map(|fault| fault.key).collect();
        for (key, due) in due.iter().filter(|(key, _)| !failed.contains(key)) {
            self.kept(users, key).timers.remove(&due);
        }
        for (key, due) in outcome.deleted.iter() {
            self.kept(users, key).timers.remove(&due);
        }
        for (key, due) in outcome.registered.iter() {
            self.kept(users, key).timers.insert(due);
        }
    }
}

/// The rows that came out, and the keys that failed, for comparison.
type Told = (Vec<u32>, Vec<ArrayRef>, Vec<(u32, String)>);

fn told(outcome: &Outcome) -> Told {
    let faults = outcome.faults.iter().map(|fault| (fault.key, fault.error.clone())).collect();
    (outcome.key_of_row.clone(), outcome.rows.clone(), faults)
}

fn visits(pages: &[(u32, &str, i64)]) -> (Vec<u32>, Vec<ArrayRef>) {
    let at = TimestampMicrosecondArray::from_iter_values(pages.iter().map(|(_, _, at)| *at)).with_timezone("UTC");
    let rows: Vec<ArrayRef> = vec![strings(pages.iter().map(|(_, page, _)| *page)), Arc::new(at)];
    (pages.iter().map(|(key, _, _)| *key).collect(), rows)
}

/// Three batches, timers and initial rows: everything that was told, and what is kept in the end.
fn story(guest: &Guest) -> (Vec<Told>, Host) {
    let slot = guest.slot(FaultPolicy::Skip, |_| {}).unwrap();
    let mut host = Host::default();
    let mut all = Vec::new();
    let mut step = |users: &[&str], step: Step, (key_of_row, rows): (Vec<u32>, Vec<ArrayRef>)| {
        let call = host.call(users, key_of_row, rows);
        let outcome = slot.call_processor("visits", &step, &call).unwrap_or_else(|e| panic!("{}: {e}", guest.name));
        let due = if let Step::Expire(due) = step { due } else { Timers::default() };
        host.keep(users, &outcome, &due);
        all.push(told(&outcome));
    };
    let initial: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![100, 7]))];
    step(&["ann"], Step::Initialise, (vec![0, 0], initial));
    step(&["ann", "bob"], Step::Process, visits(&[(0, "a", 5_000_000), (0, "b", 4_000_999), (1, "ü", -1)]));
    // A page that fails its key, between keys that go on.
    let second = [(0, "a", 9_000_000), (1, "a", 1), (1, "boom", 2), (2, "c", 3_000_000), (2, "c", 1_000_000)];
    step(&["ann", "bob", "cid"], Step::Process, visits(&second));
    let mut due = Timers::default();
    due.push(0, 9_999);
    due.push(1, 13_000);
    step(&["bob", "cid"], Step::Expire(due), (vec![], visits(&[]).1));
    step(&["bob", "cid"], Step::Process, visits(&[(0, "again", 20_000_000), (1, "d", i64::MAX / 2)]));
    (all, host)
}

#[test]
fn every_language_offers_the_same_processor() {
    let (_, expected) = measure().component().processor("visits").unwrap();
    for guest in others() {
        let (_, found) = guest.component().processor("visits").unwrap_or_else(|| panic!("{} has none", guest.name));
        assert_eq!(found.to_string(), expected.to_string(), "{}", guest.name);
        assert_eq!(found, expected, "{}", guest.name);
    }
}

#[test]
fn state_timers_and_rows_are_those_of_rust() {
    let (expected, kept) = story(measure());
    assert_eq!(kept.users["ann"].visits, Some(10));
    assert_eq!(kept.users["bob"].history, ["again"]);
    assert_eq!(kept.users["bob"].timers, BTreeSet::from([30_000]));
    assert_eq!(expected[2].2.len(), 1, "bob met boom: {:?}", expected[2].2);
    for guest in others() {
        let (found, found_kept) = story(guest);
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "step {at} in {}", guest.name);
        }
        assert_eq!(found_kept, kept, "{}", guest.name);
    }
}

#[test]
fn many_keys_keep_their_state_apart() {
    let users: Vec<String> = (0..2000).map(|number| format!("user {number}")).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    let pages: Vec<_> =
        (0..4000u32).map(|row| (row / 2, if row % 3 == 0 { "a" } else { "b" }, i64::from(row) * 1000)).collect();
    let mut expected = None;
    for guest in all() {
        let slot = guest.slot(FaultPolicy::Fail, |_| {}).unwrap();
        let mut host = Host::default();
        for _ in 0..3 {
            let (key_of_row, rows) = visits(&pages);
            let outcome = slot.call_processor("visits", &Step::Process, &host.call(&users, key_of_row, rows)).unwrap();
            host.keep(&users, &outcome, &Timers::default());
        }
        let expected = expected.get_or_insert_with(|| host.clone());
        assert!(host == *expected, "{} keeps other state than rust", guest.name);
    }
}
