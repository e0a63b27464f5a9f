//! Stateful processors, each with another part of what a processor may have.

use millstream_sdk::processor::prelude::*;
use std::time::Duration;

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

/// Adds up; fails at 13, panics at 99, loops at -1.
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
        let mut total = self.total.get().unwrap_or(0);
        for Number { v } in rows {
            self.total.update(v);
            match v {
                13 => return Err(KeyError::new("13 is unlucky")),
                #[allow(clippy::panic, reason = "a test is about it")]
                99 => panic!("99 is too much"),
                -1 => loop {
                    std::hint::spin_loop();
                },
                v => total += v,
            }
        }
        self.total.update(total);
        call.emit(Total { k: key.clone(), total });
        Ok(())
    }

    fn handle_initial_state(&mut self, _key: &String, initial: Number, _call: &mut Call<Total>) -> KeyResult {
        self.total.update(self.total.get().unwrap_or(0) + initial.v);
        Ok(())
    }
}

/// A visit at some time.
#[derive(Clone, Debug, Row)]
pub struct Visit {
    at: Timestamp,
}

/// A key that was silent for ten seconds.
#[derive(Clone, Debug, Row)]
pub struct Silent {
    k: String,
    /// When the ten seconds were over.
    since: Timestamp,
    /// Younger than the watermark.
    told: Timestamp,
    n: i64,
}

/// Tells of keys that were silent for ten seconds of event time.
struct Silence {
    visits: ValueState<i64>,
}

impl Processor for Silence {
    const NAME: &'static str = "silence";
    const KEY: &'static str = "k";
    const TIME_MODE: TimeMode = TimeMode::EventTime;
    type Key = String;
    type Input = Visit;
    type Output = Silent;
    type Initial = NoInitial;

    fn init(state: &mut Handle) -> Self {
        Self { visits: state.value("visits") }
    }

    fn handle_input_rows(&mut self, _key: &String, rows: Vec<Visit>, call: &mut Call<Silent>) -> KeyResult {
        self.visits.update(self.visits.get().unwrap_or(0) + rows.len() as i64);
        let last = rows.iter().map(|row| row.at.0 / 1000).chain(call.timers().iter().map(|due| due - 10_000)).max();
        call.timers().into_iter().for_each(|due| call.delete_timer(due));
        call.register_timer(last.unwrap_or(0) + 10_000);
        Ok(())
    }

    fn handle_expired_timer(&mut self, key: &String, due_ms: i64, call: &mut Call<Silent>) -> KeyResult {
        let n = self.visits.get().unwrap_or(0);
        self.visits.clear();
        let told = Timestamp((call.watermark_ms() + 1) * 1000);
        call.emit(Silent { k: key.clone(), since: Timestamp(due_ms * 1000), told, n });
        Ok(())
    }
}

/// An item of a basket; none of it takes it out, less empties the basket.
#[derive(Clone, Debug, Row)]
pub struct Item {
    item: String,
    n: i64,
}

/// What a basket was before and what came in, as text.
#[derive(Clone, Debug, Row)]
pub struct Basket {
    k: String,
    items: String,
    history: String,
}

/// A list and a map per key.
struct Baskets {
    items: MapState<String, i64>,
    history: ListState<Item>,
}

impl Processor for Baskets {
    const NAME: &'static str = "baskets";
    const KEY: &'static str = "k";
    type Key = String;
    type Input = Item;
    type Output = Basket;
    type Initial = NoInitial;

    fn init(state: &mut Handle) -> Self {
        Self { items: state.map("items"), history: state.list("history") }
    }

    fn handle_input_rows(&mut self, key: &String, rows: Vec<Item>, call: &mut Call<Basket>) -> KeyResult {
        for Item { item, n } in rows {
            match n {
                0 => self.items.remove(&item),
                n if n < 0 => {
                    self.items.clear();
                    self.history.clear();
                }
                n => {
                    self.items.update(item.clone(), self.items.get(&item).unwrap_or(0) + n);
                    self.history.append(Item { item, n });
                }
            }
        }
        let items = self.items.entries().iter().map(|(item, n)| format!("{n} {item}")).collect::<Vec<_>>().join(" + ");
        let history = self.history.get().iter().map(|of| of.item.clone()).collect::<Vec<_>>().join(" ");
        call.emit(Basket { k: key.clone(), items, history });
        Ok(())
    }
}

/// What a key said within the last minute, and a reminder after ten seconds.
struct Recent {
    last: ListState<i64>,
    count: ValueState<i64>,
}

impl Processor for Recent {
    const NAME: &'static str = "recent";
    const KEY: &'static str = "k";
    const TIME_MODE: TimeMode = TimeMode::ProcessingTime;
    type Key = String;
    type Input = Number;
    type Output = Total;
    type Initial = NoInitial;

    fn init(state: &mut Handle) -> Self {
        let minute = VariableOptions::default().ttl(Duration::from_secs(60));
        Self { last: state.list_with("last", minute), count: state.value("count") }
    }

    fn handle_input_rows(&mut self, key: &String, rows: Vec<Number>, call: &mut Call<Total>) -> KeyResult {
        self.last.append_all(rows.iter().map(|row| row.v));
        self.count.update(self.count.get().unwrap_or(0) + rows.len() as i64);
        call.register_timer(call.processing_time_ms() + 10_000);
        call.emit(Total { k: key.clone(), total: self.last.get().iter().sum() });
        Ok(())
    }

    fn handle_expired_timer(&mut self, key: &String, _due_ms: i64, call: &mut Call<Total>) -> KeyResult {
        call.emit(Total { k: format!("{key}!"), total: self.count.get().unwrap_or(0) });
        Ok(())
    }
}

/// Counts visits until ten seconds of event time have passed since the last one.
struct Idle;

impl GroupFunction for Idle {
    const NAME: &'static str = "idle";
    const KEY: &'static str = "k";
    const TIMEOUT: Timeout = Timeout::EventTime;
    type Key = String;
    type Input = Visit;
    type Output = Total;
    type State = Number;

    fn call(key: &String, rows: Vec<Visit>, state: &mut GroupState<'_, Number>) -> Result<Vec<Total>, KeyError> {
        let before = state.get().map_or(0, |state| state.v);
        if state.has_timed_out() {
            state.remove();
            return Ok(vec![Total { k: key.clone(), total: before }]);
        }
        state.update(Number { v: before + rows.len() as i64 });
        let last = rows.iter().map(|row| row.at.0 / 1000).max().unwrap_or(0);
        state.set_timeout_timestamp(last + 10_000)?;
        Ok(vec![])
    }
}

plugin!(processors: Totals, Silence, Baskets, Recent, FlatMapGroups<Idle>);
