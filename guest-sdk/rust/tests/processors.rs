//! Processors, run natively by the tester that authors have.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use millstream_sdk::private::Plugin;
use millstream_sdk::processor::prelude::*;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Row)]
struct Item {
    name: String,
    n: Option<i64>,
}

/// A key of two columns.
#[derive(Clone, Debug, PartialEq, Row)]
struct Place {
    city: String,
    house: i32,
}

struct Stock {
    list: ListState<Item>,
    map: MapState<String, i64>,
    last: ValueState<Item>,
}

impl Processor for Stock {
    const NAME: &'static str = "stock";
    const TIME_MODE: TimeMode = TimeMode::ProcessingTime;
    type Key = Place;
    type Input = Item;
    type Output = String;
    type Initial = Item;

    fn init(state: &mut Handle) -> Self {
        let minute = VariableOptions::default().ttl(Duration::from_secs(60)).state_id("items");
        Self { list: state.list("list"), map: state.map("map"), last: state.value_with("last", minute) }
    }

    fn handle_input_rows(&mut self, key: &Place, rows: Vec<Item>, call: &mut Call<String>) -> KeyResult {
        for row in rows {
            match row.n {
                None => self.map.remove(&row.name),
                Some(0) => {
                    self.map.clear();
                    self.list.clear();
                }
                Some(n) if n < 0 => return Err(KeyError::new(format!("{n} of {}", row.name))),
                Some(n) => {
                    self.map.update(row.name.clone(), n);
                    self.list.append(row.clone());
                    call.register_timer(n);
                }
            }
            self.last.update(row);
        }
        call.emit(format!("{} {}: {:?} {}", key.city, key.house, self.map.entries(), self.list.len()));
        Ok(())
    }

    fn handle_expired_timer(&mut self, key: &Place, due_ms: i64, call: &mut Call<String>) -> KeyResult {
        call.emit(format!("{} at {due_ms}: {:?}", key.city, self.last.get().map(|item| item.name)));
        Ok(())
    }

    fn handle_initial_state(&mut self, _key: &Place, initial: Item, _call: &mut Call<String>) -> KeyResult {
        self.list.append(initial);
        Ok(())
    }
}

/// Counts until a key is silent.
struct Counts;

impl GroupFunction for Counts {
    const NAME: &'static str = "counts";
    const TIMEOUT: Timeout = Timeout::ProcessingTime;
    const OUTPUT_MODE: OutputMode = OutputMode::Update;
    type Key = i64;
    type Input = i64;
    type Output = String;
    type State = i64;

    fn call(key: &i64, rows: Vec<i64>, state: &mut GroupState<'_, i64>) -> Result<Vec<String>, KeyError> {
        if state.has_timed_out() {
            let seen = state.get().unwrap_or(0);
            state.remove();
            return Ok(vec![format!("{key} ends with {seen}")]);
        }
        state.update(state.get().unwrap_or(0) + rows.len() as i64);
        if !rows.contains(&0) {
            state.set_timeout_duration(Duration::from_millis(100))?;
        }
        Ok(vec![format!("{key} has {}", state.get().unwrap_or(0))])
    }
}

plugin!(processors: Stock, FlatMapGroups<Counts>);

fn home() -> Place {
    Place { city: "Bree".into(), house: 1 }
}

fn item(name: &str, n: Option<i64>) -> (Place, Item) {
    (home(), Item { name: name.into(), n })
}

#[test]
fn a_processor_is_described_by_its_types() {
    let all = __MillstreamPlugin::processors();
    let described = (all[0].describe)();
    let columns = |fields: &[millstream_sdk::private::Field]| {
        fields
            .iter()
            .map(|f| format!("{} {}{}", f.name, f.format, if f.nullable { "?" } else { "" }))
            .collect::<Vec<_>>()
    };
    assert_eq!((described.name, columns(&described.key)), ("stock", vec!["city u".to_owned(), "house i".into()]));
    assert_eq!(columns(&described.input), ["name u", "n l?"]);
    assert_eq!(columns(&described.output), ["value u"]);
    let variables: Vec<_> =
        described.variables.iter().map(|v| (v.name.as_str(), columns(&v.map_key), v.ttl_ms)).collect();
    assert_eq!(
        variables,
        [("list", vec![], None), ("map", vec!["key u".to_owned()], None), ("last", vec![], Some(60_000))]
    );
    assert_eq!(described.variables[2].state_id, "items");
    let described = (all[1].describe)();
    assert_eq!((described.name, described.time_mode), ("counts", TimeMode::ProcessingTime));
    assert_eq!(described.output_modes, [OutputMode::Update]);
}

#[test]
fn state_is_what_earlier_calls_left() {
    let mut tester = ProcessorTester::<Stock>::new();
    assert_eq!(
        tester.process([item("nut", Some(900)), item("fig", Some(700))]).unwrap(),
        ["Bree 1: [(\"fig\", 700), (\"nut\", 900)] 2"]
    );
    assert_eq!(tester.process([item("nut", None), item("fig", Some(800))]).unwrap(), ["Bree 1: [(\"fig\", 800)] 3"]);
    assert_eq!(tester.timers(&home()), [700, 800, 900]);
    let other = (Place { house: 2, ..home() }, Item { name: "pea".into(), n: Some(5000) });
    assert_eq!(tester.process([other, item("all", Some(0))]).unwrap(), ["Bree 2: [(\"pea\", 5000)] 1", "Bree 1: [] 0"]);
    assert_eq!((tester.entries(&home(), "list"), tester.entries(&home(), "last")), (0, 1));
}

#[test]
fn a_key_that_fails_changes_nothing() {
    let mut tester = ProcessorTester::<Stock>::new();
    tester.process([item("nut", Some(900))]).unwrap();
    let error = tester.process([item("fig", Some(700)), item("pea", Some(-1))]).unwrap_err();
    assert_eq!(error, KeyError::new("-1 of pea"));
    assert_eq!((tester.timers(&home()), tester.entries(&home(), "map")), (vec![900], 1));
}

#[test]
fn timers_fire_once_in_order_and_what_has_lived_is_gone() {
    let mut tester = ProcessorTester::<Stock>::new();
    tester.process([item("nut", Some(900)), item("fig", Some(700)), item("pea", Some(61_000))]).unwrap();
    assert_eq!(tester.set_processing_time_ms(699).unwrap(), Vec::<String>::new());
    assert_eq!(
        tester.set_processing_time_ms(900).unwrap(),
        ["Bree at 700: Some(\"pea\")", "Bree at 900: Some(\"pea\")"]
    );
    assert_eq!(tester.set_processing_time_ms(61_000).unwrap(), ["Bree at 61000: None"]);
    assert_eq!(tester.entries(&home(), "last"), 0);
    tester.initialise([item("old", Some(1))]).unwrap();
    assert_eq!(tester.entries(&home(), "list"), 4);
}

#[test]
fn a_timeout_is_ended_by_the_next_rows_and_fires_after_its_time() {
    let mut tester = ProcessorTester::<FlatMapGroups<Counts>>::new();
    tester.initialise([(1, 10)]).unwrap();
    assert_eq!(tester.process([(1, 5), (2, 5)]).unwrap(), ["1 has 11", "2 has 1"]);
    assert_eq!(tester.set_processing_time_ms(100).unwrap(), Vec::<String>::new(), "it is not over at its time");
    assert_eq!(tester.process([(1, 5)]).unwrap(), ["1 has 12"]);
    assert_eq!(tester.set_processing_time_ms(101).unwrap(), ["2 ends with 1"]);
    assert_eq!(tester.process([(1, 0), (2, 0)]).unwrap(), ["1 has 13", "2 has 1"]);
    assert_eq!(
        tester.set_processing_time_ms(9000).unwrap(),
        Vec::<String>::new(),
        "a call without a timeout ends the last"
    );
    assert_eq!(tester.initialise([(2, 1)]).unwrap_err(), KeyError::new("the key has two initial states"));
}
