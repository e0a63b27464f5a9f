//! `totals` whose variable means something else and has another type.

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

/// Adds up numbers with a fraction.
struct Totals {
    total: ValueState<f64>,
}

impl Processor for Totals {
    const NAME: &'static str = "totals";
    const KEY: &'static str = "k";
    type Key = String;
    type Input = Number;
    type Output = Total;
    type Initial = Number;

    fn init(state: &mut Handle) -> Self {
        Self { total: state.value_with("total", VariableOptions::default().state_id("fraction")) }
    }

    fn handle_input_rows(&mut self, key: &String, rows: Vec<Number>, call: &mut Call<Total>) -> KeyResult {
        let total = self.total.get().unwrap_or(0.0) + rows.iter().map(|row| row.v as f64).sum::<f64>();
        self.total.update(total);
        call.emit(Total { k: key.clone(), total: total as i64 });
        Ok(())
    }
}

plugin!(processors: Totals);
