//! `ledger_two` with other results over the same state.

use millstream_sdk::prelude::*;
use millstream_sdk::processor::prelude::*;
use test_components::ledger::{self, Number, Seen, Sums, Told};

/// A sum, and of how many.
#[derive(Default, Row)]
struct Ledger {
    total: i64,
    count: i64,
}

#[aggregate_function(state_id = "2")]
impl Ledger {
    fn accumulate(&mut self, v: i64) {
        self.total += v;
        self.count += 1;
    }

    fn merge(&mut self, other: Self) {
        self.total += other.total;
        self.count += other.count;
    }

    fn evaluate(&self) -> i64 {
        -(self.total * 1000 + self.count)
    }
}

/// What is known of a key.
struct Tracker {
    sum: ValueState<Sums>,
    last: ListState<i64>,
    seen: MapState<i64, Seen>,
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
            sum: state.value_with("sum", VariableOptions::default().state_id("2")),
            last: state.list("last"),
            seen: state.map_with("seen", VariableOptions::default().state_id("2")),
        }
    }

    fn handle_input_rows(&mut self, key: &i64, rows: Vec<Number>, call: &mut Call<Told>) -> KeyResult {
        let mut sums = self.sum.get().unwrap_or_default();
        sums.calls += 1;
        sums.sum += rows.iter().map(|row| row.v).sum::<i64>();
        self.sum.update(sums.clone());
        let mut last = self.last.get();
        last.extend(rows.iter().map(|row| row.v));
        let kept = last.split_off(last.len().saturating_sub(3));
        self.last.put(kept.clone());
        for Number { v, .. } in &rows {
            let n = self.seen.get(&(v % 4)).map_or(0, |seen| seen.n) + 1;
            self.seen.update(v % 4, Seen { n, last: *v });
        }
        let seen = self.seen.entries().into_iter().map(|(key, of)| (key, of.n, of.last)).collect::<Vec<_>>();
        if let (true, Some(first)) = (call.timers().is_empty(), rows.first()) {
            call.register_timer(first.at.0 / 1000 + 3000);
        }
        let text = format!("{:?} {seen:?} {} calls", kept, sums.calls);
        call.emit(Told { k: *key, what: "rows".into(), n: -sums.sum, text });
        Ok(())
    }

    fn handle_expired_timer(&mut self, key: &i64, due_ms: i64, call: &mut Call<Told>) -> KeyResult {
        let sums = self.sum.get().unwrap_or_default();
        self.last.clear();
        call.emit(Told {
            k: *key,
            what: "timer".into(),
            n: due_ms / 1000,
            text: format!("{} in {} calls", sums.sum, sums.calls),
        });
        Ok(())
    }
}

plugin!(
    aggregates: Ledger;
    processors: Tracker;
    migrations: ledger::call_from_now, ledger::forget_calls, ledger::last_from_now, ledger::forget_last, ledger::count_from_now, ledger::forget_count
);
