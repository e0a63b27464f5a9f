//! `totals` of `processors` with the same state, giving ten times as much.

use millstream_sdk::processor::prelude::*;

/// A number under a key.
#[derive(Clone, Debug, Row)]
struct Number {
    v: i64,
}

/// A key and a number.
#[derive(Clone, Debug, Row)]
struct Total {
    k: String,
    total: i64,
}

struct Totals {
    total: ValueState<i64>,
}

impl Processor for Totals {
    const NAME: &'static str = "totals";
    const KEY: &'static str = "k";
    type Key = String;
    type Input = Number;
    type Output = Total;
    type Initial = Number;

    fn init(state: &mut Handle) -> Self {
        Self { total: state.value("total") }
    }

    fn handle_input_rows(&mut self, key: &String, rows: Vec<Number>, call: &mut Call<Total>) -> KeyResult {
        let total = self.total.get().unwrap_or(0) + rows.iter().map(|row| row.v).sum::<i64>();
        self.total.update(total);
        call.emit(Total { k: key.clone(), total: 10 * total });
        Ok(())
    }
}

plugin!(processors: Totals);
