//! `totals` with a count in its value, and the way from what was there before.

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

/// What is kept of a key.
#[derive(Clone, Debug, Default, Row)]
pub struct Kept {
    total: i64,
    rows: Option<i64>,
}

/// Adds up, and counts rows.
struct Totals {
    total: ValueState<Kept>,
}

impl Processor for Totals {
    const NAME: &'static str = "totals";
    const KEY: &'static str = "k";
    type Key = String;
    type Input = Number;
    type Output = Total;
    type Initial = Number;

    fn init(state: &mut Handle) -> Self {
        Self { total: state.value_with("total", VariableOptions::default().state_id("2")) }
    }

    fn handle_input_rows(&mut self, key: &String, rows: Vec<Number>, call: &mut Call<Total>) -> KeyResult {
        let mut kept = self.total.get().unwrap_or_default();
        kept.total += rows.iter().map(|row| row.v).sum::<i64>();
        kept.rows = Some(kept.rows.unwrap_or(0) + rows.len() as i64);
        self.total.update(kept.clone());
        call.emit(Total { k: key.clone(), total: kept.total });
        Ok(())
    }
}

/// Nobody counted rows before.
#[migration(state = "totals.total", from_id = "1", to_id = "2")]
fn rows_from_now(total: i64) -> Kept {
    Kept { total, rows: None }
}

plugin!(processors: Totals; migrations: rows_from_now);
