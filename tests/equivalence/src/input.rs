//! Random rows, cut into the units in which they arrive.

use crate::Shape;
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::fmt;

/// One row of a stream: event time in milliseconds, key, value.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// The event time in milliseconds since 1970.
    pub(crate) at_ms: Option<i64>,
    /// The key.
    pub(crate) k: Option<&'static str>,
    /// The value.
    pub(crate) v: Option<i64>,
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_null = |number: Option<i64>| number.map_or("null".to_owned(), |number| number.to_string());
        write!(f, "({} ms, {}, {})", or_null(self.at_ms), self.k.unwrap_or("null"), or_null(self.v))
    }
}

/// What arrives between two batches: rows of `a`, rows of `b`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Rows of the stream `a`.
    pub(crate) a: Vec<Row>,
    /// Rows of the stream `b`; none when the query does not read it.
    pub(crate) b: Vec<Row>,
}

/// The keys of the rows that only close what is open: no other row has them, and they match nothing.
pub(crate) const MARKS: [&str; 2] = ["~a", "~b"];

/// How far in the future those rows are.
const FAR_MS: i64 = 100_000_000;

/// Some units.
pub(crate) fn random_units(shape: &Shape, random: &mut StdRng) -> Vec<Unit> {
    let units = random.random_range(1..7);
    let (mut a, mut b) = (Times::default(), Times::default());
    (0..units)
        .map(|_| Unit {
            a: a.random_rows(shape, random),
            b: if shape.two_streams { b.random_rows(shape, random) } else { Vec::new() },
        })
        .collect()
}

/// The unit that closes what is open, when the watermark decides when rows go out.
pub(crate) fn closing_unit(shape: &Shape) -> Option<Unit> {
    let needed = shape.delay_s.is_some() && shape.mode == millstream_common::OutputMode::Append;
    // A condition on the value may stop rows without one before they move the watermark.
    let row = |k| vec![Row { at_ms: Some(FAR_MS), k: Some(k), v: Some(9) }];
    needed.then(|| Unit { a: row(MARKS[0]), b: if shape.two_streams { row(MARKS[1]) } else { Vec::new() } })
}

/// Where a stream is in event time.
#[derive(Default)]
struct Times {
    now_ms: i64,
    /// The greatest event time of the units before.
    greatest_ms: i64,
}

impl Times {
    fn random_rows(&mut self, shape: &Shape, random: &mut StdRng) -> Vec<Row> {
        let count = if random.random_bool(0.15) { 0 } else { random.random_range(1..12) };
        self.now_ms += random.random_range(0..30_000);
        let rows: Vec<Row> = (0..count).map(|_| self.random_row(shape, random)).collect();
        self.greatest_ms = rows.iter().filter_map(|row| row.at_ms).fold(self.greatest_ms, i64::max);
        rows
    }

    fn random_row(&self, shape: &Shape, random: &mut StdRng) -> Row {
        let ms = if random.random_bool(0.3) { random.random_range(0..1000) } else { 0 };
        let wanted = self.now_ms - random.random_range(0..40) * 1000 + ms;
        // A row is in time when the watermark, which the units before have made, has not reached it.
        let at_ms = match shape.delay_s {
            Some(delay_s) if !shape.may_be_late => wanted.max(self.greatest_ms - delay_s * 1000).max(0) + 1,
            _ => wanted,
        };
        let keys: &[Option<&str>] = &[Some("x"), Some("y"), Some("z"), Some("longer key"), None];
        let keys = if shape.null_keys { keys } else { &keys[..4] };
        Row {
            at_ms: (!shape.null_times || random.random_bool(0.97)).then_some(at_ms),
            k: keys.choose(random).copied().flatten(),
            v: random.random_bool(0.9).then(|| random.random_range(-5..15)),
        }
    }
}
