//! `ledger_one` with other meanings of its state, and ways there that fail at every key.

use millstream_sdk::prelude::*;
use millstream_sdk::processor::prelude::*;
use test_components::ledger::{self, Counted, Greatest, Number, Sums, Told, Total};

/// A sum.
#[derive(Default, Row)]
struct Ledger {
    total: i64,
}

#[aggregate_function(state_id = "never")]
impl Ledger {
    fn accumulate(&mut self, v: i64) {
        self.total += v;
    }

    fn merge(&mut self, other: Self) {
        self.total += other.total;
    }

    fn evaluate(&self) -> i64 {
        self.total
    }
}

/// What is known of a key.
struct Tracker {
    sum: ValueState<i64>,
    last: ListState<i64>,
    seen: MapState<i64, i64>,
}

impl Processor for Tracker {
    const NAME: &'static str = "tracker";
    const KEY: &'static str = "k";
    const TIME_MODE: TimeMode = TimeMode::EventTime;
    type Key = i64;
    type Input = Number;
    type Output = Told;
    type Initial = NoInitial;

    fn init(state: &mut Handle) -> Self {
        Self {
            sum: state.value_with("sum", VariableOptions::default().state_id("never")),
            last: state.list("last"),
            seen: state.map("seen"),
        }
    }

    fn handle_input_rows(&mut self, key: &i64, rows: Vec<Number>, call: &mut Call<Told>) -> KeyResult {
        let sum = self.sum.get().unwrap_or_default() + rows.iter().map(|row| row.v).sum::<i64>();
        self.sum.update(sum);
        let mut last = self.last.get();
        last.extend(rows.iter().map(|row| row.v));
        let kept = last.split_off(last.len().saturating_sub(3));
        self.last.put(kept.clone());
        for Number { v, .. } in &rows {
            self.seen.update(v % 4, self.seen.get(&(v % 4)).unwrap_or(0) + 1);
        }
        let seen = self.seen.entries();
        if let (true, Some(first)) = (call.timers().is_empty(), rows.first()) {
            call.register_timer(first.at.0 / 1000 + 3000);
        }
        let text = format!("{:?} {seen:?}", kept);
        call.emit(Told { k: *key, what: "rows".into(), n: sum, text });
        Ok(())
    }

    fn handle_expired_timer(&mut self, key: &i64, due_ms: i64, call: &mut Call<Told>) -> KeyResult {
        let sum = self.sum.get().unwrap_or_default();
        self.last.clear();
        call.emit(Told { k: *key, what: "timer".into(), n: due_ms / 1000, text: sum.to_string() });
        Ok(())
    }
}

/// No way for anybody.
#[migration(state = "ledger", from_id = "1", to_id = "never")]
fn fail_from_first(old: Total) -> Result<Total, String> {
    Err(format!("no way for {}", old.total))
}

/// No way for anybody.
#[migration(state = "ledger", from_id = "2", to_id = "never")]
fn fail_from_second(old: Counted) -> Result<Total, String> {
    Err(format!("no way for {}", old.total))
}

/// No way for anybody.
#[migration(state = "ledger", from_id = "3", to_id = "never")]
#[allow(clippy::panic, reason = "a test is about it")]
fn fail_from_third(old: Greatest) -> Result<Total, String> {
    panic!("no way for {}", old.total)
}

/// No way for anybody.
#[migration(state = "tracker.sum", from_id = "1", to_id = "never")]
fn fail_from_sum(sum: i64) -> Result<i64, String> {
    Err(format!("no way for {sum}"))
}

/// No way for anybody.
#[migration(state = "tracker.sum", from_id = "2", to_id = "never")]
#[allow(clippy::panic, reason = "a test is about it")]
fn fail_from_sums(old: Sums) -> Result<i64, String> {
    panic!("no way for {}", old.sum)
}

plugin!(
    aggregates: Ledger;
    processors: Tracker;
    migrations: fail_from_first, fail_from_second, fail_from_third, fail_from_sum, fail_from_sums, ledger::forget_last, ledger::unweigh
);
