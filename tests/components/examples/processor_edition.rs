//! `totals` with another variable, one less, and one of another meaning: what a restart may change, and what not.

use millstream_sdk::processor::prelude::*;

#[derive(Clone, Debug, Row)]
struct Number {
    v: i64,
}

#[derive(Clone, Debug, Row)]
struct Total {
    k: String,
    total: i64,
}

/// Has a variable more: how often a key came.
struct Totals {
    total: ValueState<i64>,
    calls: ValueState<i64>,
}

impl Processor for Totals {
    const NAME: &'static str = "totals";
    const KEY: &'static str = "k";
    type Key = String;
    type Input = Number;
    type Output = Total;
    type Initial = Number;

    fn init(state: &mut Handle) -> Self {
        Self { total: state.value("total"), calls: state.value("calls") }
    }

    fn handle_input_rows(&mut self, key: &String, rows: Vec<Number>, call: &mut Call<Total>) -> KeyResult {
        let total = self.total.get().unwrap_or(0) + rows.iter().map(|row| row.v).sum::<i64>();
        let calls = self.calls.get().unwrap_or(0) + 1;
        self.total.update(total);
        self.calls.update(calls);
        call.emit(Total { k: key.clone(), total: total * 1000 + calls });
        Ok(())
    }
}

plugin!(processors: Totals);
