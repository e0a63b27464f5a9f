//! Aggregate functions that do what none should.
#![allow(clippy::no_effect, reason = "each does harm in one place and nothing in the others")]

use millstream_sdk::prelude::*;
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering};

macro_rules! sums {
    ($($(#[$doc:meta])* $name:ident: |$state:ident, $x:ident| $accumulate:expr, |$merged:ident| $merge:expr,
       |$result:ident| $evaluate:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Row, Default)]
        struct $name {
            sum: i64,
        }

        #[aggregate_function]
        impl $name {
            fn accumulate(&mut self, x: i64) {
                let ($state, $x) = (&mut *self, x);
                $accumulate;
                self.sum += x;
            }

            fn merge(&mut self, other: Self) {
                self.sum += other.sum;
                let $merged = &mut *self;
                $merge;
            }

            fn evaluate(&self) -> i64 {
                let $result = self;
                $evaluate
            }
        }
    )*};
}

fn spin(x: i64) {
    let mut n = x;
    while black_box(true) {
        n = black_box(n.wrapping_add(1));
    }
}

fn hoard() {
    let mut all = Vec::new();
    while black_box(true) {
        all.push(vec![1u8; 1 << 20]);
        black_box(&all);
    }
}

sums! {
    /// Panics on 13.
    PanicsOn13: |_state, x| assert!(x != 13, "hit {x}"), |_merged| (), |result| result.sum;
    /// Never returns from 13.
    SpinsOn13: |_state, x| if x == 13 { spin(x) }, |_merged| (), |result| result.sum;
    /// Takes memory until there is none at 13.
    HoardsOn13: |_state, x| if x == 13 { hoard() }, |_merged| (), |result| result.sum;
    /// Panics when states are merged.
    PanicsInMerge: |_state, _x| (), |merged| panic!("no luck with {}", merged.sum), |result| result.sum;
    /// Never returns when states are merged.
    SpinsInMerge: |_state, _x| (), |merged| spin(merged.sum), |result| result.sum;
    /// Panics when a state of 13 is evaluated.
    PanicsAt13: |_state, _x| (), |_merged| (), |result| {
        assert!(result.sum != 13, "hit the state {}", result.sum);
        result.sum
    };
    /// Never returns when a state is evaluated.
    SpinsInEvaluate: |_state, _x| (), |_merged| (), |result| {
        spin(result.sum);
        result.sum
    };
}

/// Remembers, which none may: how many rows this instance has seen.
#[derive(Row, Default)]
struct Remembers {
    seen: i64,
}

#[aggregate_function]
impl Remembers {
    fn accumulate(&mut self, _x: i64) {
        static SEEN: AtomicI64 = AtomicI64::new(0);
        self.seen = SEEN.fetch_add(1, Ordering::Relaxed) + 1;
    }

    fn merge(&mut self, other: Self) {
        self.seen = self.seen.max(other.seen);
    }

    fn evaluate(&self) -> i64 {
        self.seen
    }
}

/// A state that grows by a mebibyte per row.
#[derive(Row, Default)]
struct Swells {
    bytes: Vec<u8>,
}

#[aggregate_function]
impl Swells {
    fn accumulate(&mut self, _x: i64) {
        self.bytes.resize(self.bytes.len() + (1 << 20), 7);
    }

    fn merge(&mut self, other: Self) {
        self.bytes.extend(other.bytes);
    }

    fn evaluate(&self) -> i64 {
        i64::try_from(self.bytes.len()).unwrap_or(i64::MAX)
    }
}

plugin!(aggregates:
    PanicsOn13,
    SpinsOn13,
    HoardsOn13,
    PanicsInMerge,
    SpinsInMerge,
    PanicsAt13,
    SpinsInEvaluate,
    Remembers,
    Swells
);
