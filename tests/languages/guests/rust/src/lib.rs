//! The plugin of `tests/languages` in Rust: what it answers, every other language answers.

mod ledger;

use millstream_sdk::processor::prelude::*;

macro_rules! echo {
    ($($name:ident: $type:ty;)*) => {
        $(
            /// The argument.
            #[scalar_function]
            fn $name(x: Option<$type>) -> Option<$type> {
                x
            }
        )*
    };
}

/// A struct of most types, one of them a list, one a struct.
#[derive(Row)]
struct Everything {
    flag: bool,
    small: Option<i8>,
    text: Option<String>,
    numbers: Vec<i64>,
    inner: Inner,
}

/// A struct in a struct.
#[derive(Row)]
struct Inner {
    at: Timestamp,
    bytes: Vec<u8>,
}

/// A word and where it stands.
#[derive(Row)]
struct Numbered {
    position: i32,
    word: Option<String>,
}

echo! {
    echo_bool: bool;
    echo_i8: i8;
    echo_u8: u8;
    echo_i16: i16;
    echo_u16: u16;
    echo_i32: i32;
    echo_u32: u32;
    echo_i64: i64;
    echo_u64: u64;
    echo_f32: f32;
    echo_f64: f64;
    echo_decimal: Decimal<38, 10>;
    echo_utf8: String;
    echo_binary: Vec<u8>;
    echo_date: Date;
    echo_timestamp: Timestamp;
    echo_local_timestamp: LocalTimestamp;
    echo_list: Vec<Option<String>>;
    echo_lists: Vec<Option<Vec<Option<f64>>>>;
    echo_struct: Everything;
    echo_structs: Vec<Option<Everything>>;
}

/// The sum.
#[scalar_function]
fn add(a: i64, b: i64) -> Result<i64, String> {
    a.checked_add(b).ok_or_else(|| format!("{a} + {b} does not fit"))
}

/// How much a page matters.
#[scalar_function]
fn heat(level: i64, visits: i64) -> f64 {
    0.1 * level as f64 + 0.9 * visits as f64
}

/// Letters as capitals.
#[scalar_function]
fn shout(text: &str) -> String {
    text.to_ascii_uppercase() + "!"
}

fn code_points(text: &str) -> i64 {
    text.chars().count() as i64
}

/// How many code points.
#[scalar_function]
fn length(text: &str) -> i64 {
    code_points(text)
}

/// From the last byte to the first.
#[scalar_function]
fn reversed(x: &[u8]) -> Vec<u8> {
    x.iter().rev().copied().collect()
}

/// The other sign.
#[scalar_function]
fn negate(x: Decimal<38, 10>) -> Decimal<38, 10> {
    Decimal(-x.0)
}

/// The sum of what is there.
#[scalar_function]
fn total(numbers: Vec<Option<i64>>) -> Option<i64> {
    numbers.into_iter().flatten().reduce(i64::wrapping_add)
}

/// 0 for null.
#[scalar_function]
fn or_zero(x: Option<i64>) -> i64 {
    x.unwrap_or(0)
}

/// Null for odd numbers.
#[scalar_function]
fn null_if_odd(x: i64) -> Option<i64> {
    (x % 2 == 0).then_some(x)
}

/// No arguments.
#[scalar_function]
fn seven() -> i32 {
    7
}

/// A long text.
#[scalar_function]
fn repeated(n: i64) -> String {
    "x".repeat(usize::try_from(n).unwrap_or(0))
}

/// Does not like 13.
#[scalar_function]
fn picky(x: i64) -> Result<i64, String> {
    if x == 13 { Err("13 is refused".into()) } else { Ok(x) }
}

/// Panics at 13.
#[scalar_function]
#[allow(clippy::panic, reason = "what is tested")]
fn throws(x: i64) -> i64 {
    if x == 13 { panic!("thrown on purpose: 13") } else { x }
}

/// The world is away at 13.
#[scalar_function]
fn refuses(x: i64) -> CallResult<i64> {
    if x == 13 { Err(CallError::Unavailable("the world is away".into())) } else { Ok(x) }
}

/// Never ends at 13.
#[scalar_function]
#[allow(clippy::empty_loop, reason = "what is tested")]
fn loops(x: i64) -> i64 {
    if x == 13 { loop {} } else { x }
}

/// Eats all memory at 13.
#[scalar_function]
fn eats(x: i64) -> i64 {
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    if x == 13 {
        loop {
            eaten.push(vec![x as u8; 1 << 20]);
        }
    }
    x + eaten.len() as i64
}

/// Calls itself at 13, for ever.
#[scalar_function]
#[allow(unconditional_recursion, reason = "what is tested")]
fn dives(x: i64) -> i64 {
    #[inline(never)]
    fn deeper(x: i64, depth: &mut [i64; 64]) -> i64 {
        depth[(x & 63) as usize] += 1;
        let mut own = *depth;
        deeper(std::hint::black_box(x + 1), &mut own) + own[0]
    }
    if x == 13 { deeper(x, &mut [0; 64]) } else { x }
}

/// Writes a line.
#[scalar_function]
fn logs(text: &str) -> i64 {
    log(LogLevel::Info, text);
    code_points(text)
}

fn split(line: &str) -> impl Iterator<Item = &str> {
    line.split(' ').filter(|word| !word.is_empty())
}

/// The words of a line.
#[table_function(column = "word")]
fn words(line: &str) -> impl Iterator<Item = &str> {
    split(line)
}

/// The words of a line, with numbers.
#[table_function]
fn numbered(line: &str) -> Vec<Numbered> {
    let word = |word: &str| (word != "null").then(|| word.to_owned());
    (0..).zip(split(line)).map(|(position, text)| Numbered { position, word: word(text) }).collect()
}

/// The elements of a list.
#[table_function(column = "element")]
fn elements(numbers: Vec<Option<i64>>) -> impl Iterator<Item = Option<i64>> {
    numbers.into_iter()
}

/// Down to 1.
#[table_function]
fn countdown(n: i64) -> Result<Vec<i64>, String> {
    if n < 0 { Err(format!("{n} is negative")) } else { Ok((1..=n).rev().collect()) }
}

/// The columns of a row type.
#[table_function]
fn echo_rows(x: Everything) -> Vec<Everything> {
    vec![x]
}

/// The mean.
#[derive(Row, Default)]
struct Mean {
    count: i64,
    sum: f64,
}

#[aggregate_function(state_id = "1")]
impl Mean {
    fn accumulate(&mut self, x: f64) {
        self.count += 1;
        self.sum += x;
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
    }

    fn retract(&mut self, x: f64) {
        self.count -= 1;
        self.sum -= x;
    }

    fn evaluate(&self) -> Option<f64> {
        (self.count != 0).then(|| self.sum / self.count as f64)
    }
}

/// The longest text, the first of equals.
#[derive(Row, Default)]
struct Longest {
    text: Option<String>,
}

#[aggregate_function(state_id = "1")]
impl Longest {
    fn accumulate(&mut self, text: &str) {
        if self.text.as_ref().is_none_or(|longest| code_points(text) > code_points(longest)) {
            self.text = Some(text.to_owned());
        }
    }

    fn merge(&mut self, other: Self) {
        if let Some(text) = &other.text {
            self.accumulate(text);
        }
    }

    fn evaluate(&self) -> Option<String> {
        self.text.clone()
    }
}

/// A sum of what is not negative.
#[derive(Row, Default)]
struct StrictSum {
    sum: i64,
}

#[aggregate_function(state_id = "1")]
impl StrictSum {
    fn accumulate(&mut self, x: i64) -> Result<(), String> {
        if x < 0 {
            return Err(format!("{x} is negative"));
        }
        self.sum += x;
        Ok(())
    }

    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
    }

    fn evaluate(&self) -> i64 {
        self.sum
    }
}

/// A number.
#[derive(Clone, Row)]
struct Count {
    n: i64,
}

/// A page.
#[derive(Clone, Eq, Ord, PartialEq, PartialOrd, Row)]
struct Page {
    page: String,
}

/// A row of input.
#[derive(Clone, Row)]
struct Visit {
    page: String,
    at: Timestamp,
}

/// A row of output.
#[derive(Clone, Row)]
struct Event {
    event: String,
    visits: i64,
    pages: i64,
    last: Option<String>,
}

/// An initial row.
#[derive(Clone, Row)]
struct Before {
    visits: i64,
}

/// Who visited what.
struct Visits {
    visits: ValueState<Count>,
    history: ListState<Page>,
    per_page: MapState<Page, Count>,
}

impl Visits {
    fn emit(&self, event: &str, call: &mut Call<Event>) {
        call.emit(Event {
            event: event.to_owned(),
            visits: self.visits.get().map_or(0, |count| count.n),
            pages: self.per_page.len() as i64,
            last: self.history.get().pop().map(|last| last.page),
        });
    }
}

impl Processor for Visits {
    const NAME: &'static str = "visits";
    const KEY: &'static str = "user";
    const TIME_MODE: TimeMode = TimeMode::EventTime;
    type Key = String;
    type Input = Visit;
    type Output = Event;
    type Initial = Before;

    fn init(state: &mut Handle) -> Self {
        Self { visits: state.value("visits"), history: state.list("history"), per_page: state.map("per_page") }
    }

    fn handle_input_rows(&mut self, user: &String, rows: Vec<Visit>, call: &mut Call<Event>) -> KeyResult {
        let latest = rows.iter().map(|row| row.at.0).max().unwrap_or(0);
        for Visit { page, .. } in rows {
            if page == "boom" {
                return Err(KeyError::new(format!("{user} met boom")));
            }
            let page = Page { page };
            self.visits.update(Count { n: self.visits.get().map_or(0, |count| count.n) + 1 });
            self.history.append(page.clone());
            let seen = self.per_page.get(&page).map_or(0, |count| count.n);
            self.per_page.update(page, Count { n: seen + 1 });
        }
        call.timers().into_iter().for_each(|due| call.delete_timer(due));
        call.register_timer(latest.div_euclid(1000) + 10_000);
        self.emit("seen", call);
        Ok(())
    }

    fn handle_expired_timer(&mut self, _user: &String, _due_ms: i64, call: &mut Call<Event>) -> KeyResult {
        self.emit("gone", call);
        self.visits.clear();
        self.history.clear();
        self.per_page.clear();
        Ok(())
    }

    fn handle_initial_state(&mut self, _user: &String, initial: Before, _call: &mut Call<Event>) -> KeyResult {
        self.visits.update(Count { n: initial.visits });
        Ok(())
    }
}

plugin!(
    echo_bool,
    echo_i8,
    echo_u8,
    echo_i16,
    echo_u16,
    echo_i32,
    echo_u32,
    echo_i64,
    echo_u64,
    echo_f32,
    echo_f64,
    echo_decimal,
    echo_utf8,
    echo_binary,
    echo_date,
    echo_timestamp,
    echo_local_timestamp,
    echo_list,
    echo_lists,
    echo_struct,
    echo_structs,
    add,
    heat,
    shout,
    length,
    reversed,
    negate,
    total,
    or_zero,
    null_if_odd,
    seven,
    repeated,
    picky,
    throws,
    refuses,
    loops,
    eats,
    dives,
    logs,
    words,
    numbered,
    elements,
    countdown,
    echo_rows;
    aggregates: Mean, Longest, StrictSum;
    processors: Visits;
    sources: ledger::Ledger
);
