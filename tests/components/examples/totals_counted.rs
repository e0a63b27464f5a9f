//! `totals` with a variable more: how often a key came, which begins with nothing. What it gives is the same.

use millstream_sdk::prelude::*;
use millstream_sdk::processor::prelude::*;

/// A number under a key.
#[derive(Clone, Debug, Row)]
pub struct Number {
    v: i64,
}

/// A key and a number.
#[derive(Clone, Debug, Row)]
pub struct Total {
    k: String,
    total: i64,
}

/// Adds up, and counts calls.
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
        self.total.update(total);
        self.calls.update(self.calls.get().unwrap_or(0) + 1);
        call.emit(Total { k: key.clone(), total });
        Ok(())
    }
}

plugin!(processors: Totals);
