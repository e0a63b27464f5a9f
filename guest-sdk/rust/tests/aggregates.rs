//! Aggregate functions, called as the exports of a component call them, but natively.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use millstream_sdk::prelude::*;
use millstream_sdk::private::{Aggregate, Aggregation, Batch, Plugin, Schema, StatesOutput};

/// A sum that minds its limits.
#[derive(Row, Default, Debug, PartialEq)]
struct SmallSum {
    count: i64,
    sum: i64,
}

#[aggregate_function(state_id = "sum/1")]
impl SmallSum {
    /// Fails half-way on purpose.
    fn accumulate(&mut self, value: i64) -> Result<(), String> {
        self.count += 1;
        self.sum += value;
        if self.sum > 100 { Err(format!("{} is too much", self.sum)) } else { Ok(()) }
    }

    fn merge(&mut self, other: Self) -> Result<(), String> {
        self.count += other.count;
        self.sum += other.sum;
        if self.sum > 1000 { Err("too much".into()) } else { Ok(()) }
    }

    fn retract(&mut self, value: i64) {
        self.count -= 1;
        self.sum -= value;
    }

    fn evaluate(&self) -> Result<Option<i64>, String> {
        if self.sum < 0 { Err("below zero".into()) } else { Ok((self.count > 0).then_some(self.sum)) }
    }
}

mod inner {
    use millstream_sdk::prelude::*;

    /// Nested columns, arguments that borrow, nulls that arrive.
    #[derive(Row, Default)]
    pub(super) struct Pairs {
        seen: Vec<Seen>,
        nulls: i64,
    }

    #[derive(Row)]
    struct Seen {
        key: String,
        weight: Option<f64>,
    }

    #[aggregate_function(name = "all_pairs")]
    impl Pairs {
        fn accumulate(&mut self, key: &str, weight: Option<f64>) {
            self.nulls += i64::from(weight.is_none());
            self.seen.push(Seen { key: key.to_owned(), weight });
        }

        fn merge(&mut self, other: Self) {
            self.nulls += other.nulls;
            self.seen.extend(other.seen);
        }

        fn evaluate(&self) -> String {
            let seen = self.seen.iter().map(|seen| format!("{}={:?}", seen.key, seen.weight));
            seen.collect::<Vec<_>>().join(" ")
        }
    }
}

/// An ordinary function beside them.
#[scalar_function]
fn same(x: i64) -> i64 {
    x
}

plugin!(same; aggregates: SmallSum, inner::Pairs);

const SUM: &Aggregate = SmallSum::AGGREGATE;
const PAIRS: &Aggregate = inner::Pairs::AGGREGATE;

fn described(fill: fn(&mut Schema)) -> Vec<String> {
    let mut schema = Schema::default();
    fill(&mut schema);
    let shown = schema.fields.iter();
    shown.map(|f| format!("{} {}{} {}", f.name, f.format, if f.nullable { "?" } else { "" }, f.children)).collect()
}

fn i64s(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn u32s(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn numbers(values: &[i64]) -> Batch {
    Batch { rows: u32::try_from(values.len()).unwrap(), buffers: vec![vec![], i64s(values)] }
}

fn sums(output: &StatesOutput) -> Vec<(i64, i64)> {
    let read = |buffer: &[u8]| buffer.as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b)).collect::<Vec<_>>();
    let [nulls, counts, more_nulls, sums] = output.states.buffers.as_slice() else { panic!("four buffers") };
    assert!(nulls.is_empty() && more_nulls.is_empty());
    read(counts).into_iter().zip(read(sums)).collect()
}

#[test]
fn descriptions_follow_the_state_and_its_methods() {
    assert_eq!((SUM.name, SUM.state_id, SUM.retract.is_some()), ("small_sum", "sum/1", true));
    assert_eq!((PAIRS.name, PAIRS.state_id, PAIRS.retract.is_some()), ("all_pairs", "", false));
    assert_eq!(described(SUM.arguments), ["value l 0"]);
    assert_eq!(described(SUM.state), ["count l 0", "sum l 0"]);
    assert_eq!(described(SUM.result), ["value l? 0"]);
    assert_eq!(described(PAIRS.arguments), ["key u 0", "weight g? 0"]);
    assert_eq!(described(PAIRS.state), ["seen +l 1", "item +s? 2", "key u 0", "weight g? 0", "nulls l 0"]);
    assert_eq!((__MillstreamPlugin::FUNCTIONS.len(), __MillstreamPlugin::AGGREGATES.len()), (1, 2));
    assert_eq!(same(1), 1);
}

#[test]
fn rows_go_to_their_groups_and_a_group_without_rows_has_the_default() {
    let output = (SUM.accumulate)(3, &u32s(&[0, 2, 0]), &numbers(&[1, 2, 3])).unwrap();
    assert_eq!(sums(&output), [(2, 4), (0, 0), (1, 2)]);
    assert_eq!(sums(&(SUM.accumulate)(1, &[], &numbers(&[])).unwrap()), [(0, 0)]);
    // A null is not passed to a function that does not take it.
    let nulls = Batch { rows: 2, buffers: vec![vec![0b01], i64s(&[5, 7])] };
    assert_eq!(sums(&(SUM.accumulate)(1, &u32s(&[0, 0]), &nulls).unwrap()), [(1, 5)]);
}

#[test]
fn a_failed_row_leaves_no_trace_in_its_group() {
    let rows = numbers(&[60, 1, 50, 30, 200, 5]);
    let output = (SUM.accumulate)(2, &u32s(&[0, 1, 0, 0, 1, 0]), &rows).unwrap();
    assert_eq!(sums(&output), [(3, 95), (1, 1)]);
    let errors: Vec<(u32, &str)> = output.row_errors.iter().map(|(row, text)| (*row, text.as_str())).collect();
    assert_eq!(errors, [(2, "110 is too much"), (4, "201 is too much")]);
}

#[test]
fn states_merge_in_order_and_rows_are_taken_back() {
    let first = (SUM.accumulate)(2, &u32s(&[0, 1]), &numbers(&[1, 2])).unwrap().states;
    let [_, counts, _, sum] = first.buffers.as_slice() else { panic!("four buffers") };
    let twice = Batch { rows: 4, buffers: vec![vec![], counts.repeat(2), vec![], sum.repeat(2)] };
    let merged = (SUM.merge)(2, &u32s(&[0, 1, 0, 1]), &twice).unwrap();
    assert_eq!(sums(&merged), [(2, 2), (2, 4)]);
    let less = (SUM.retract.unwrap())(&merged.states, &u32s(&[1]), &numbers(&[2])).unwrap();
    assert_eq!(sums(&less), [(2, 2), (1, 2)]);
    let large = Batch { rows: 2, buffers: vec![vec![], i64s(&[1, 1]), vec![], i64s(&[900, 200])] };
    let output = (SUM.merge)(1, &u32s(&[0, 0]), &large).unwrap();
    assert_eq!(output.row_errors, [(1, "too much".to_owned())]);
}

#[test]
fn states_are_evaluated_one_by_one() {
    let states = Batch { rows: 3, buffers: vec![vec![], i64s(&[1, 0, 1]), vec![], i64s(&[7, 0, -1])] };
    let output = (SUM.evaluate)(&states).unwrap();
    assert_eq!(output.values.buffers, [vec![0b001], i64s(&[7, 0, 0])]);
    assert_eq!(output.row_errors, [(2, "below zero".to_owned())]);
}

#[test]
fn nested_states_come_back_as_they_were() {
    let offsets = u32s(&[0, 1, 2, 3]);
    let weights: Vec<u8> = [0.5f64, 0.0, 1.5].iter().flat_map(|weight| weight.to_le_bytes()).collect();
    let rows = Batch { rows: 3, buffers: vec![vec![], offsets, b"abc".to_vec(), vec![0b101], weights] };
    let states = (PAIRS.accumulate)(2, &u32s(&[0, 1, 0]), &rows).unwrap().states;
    let again = (PAIRS.merge)(1, &u32s(&[0, 0]), &states).unwrap().states;
    let values = (PAIRS.evaluate)(&again).unwrap().values;
    assert_eq!(values.buffers[2], b"a=Some(0.5) c=Some(1.5) b=None");
}

#[test]
fn states_stay_ordinary() {
    let mut sum = SmallSum::default();
    sum.accumulate(4).unwrap();
    sum.merge(SmallSum { count: 1, sum: 2 }).unwrap();
    assert_eq!(sum.evaluate(), Ok(Some(6)));
    assert_eq!(sum, SmallSum { count: 2, sum: 6 });
}
