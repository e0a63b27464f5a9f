//! Write Millstream plugins in Rust.
//!
//! A plugin is a crate with ordinary functions. An attribute makes a function callable from SQL, [`plugin!`] lists
//! them, `millstream plugin build` makes the component:
//!
//! ```
//! use millstream_sdk::prelude::*;
//!
//! /// The words of a line.
//! #[table_function(column = "word")]
//! fn words(line: &str) -> impl Iterator<Item = String> {
//!     line.split(' ').map(str::to_owned)
//! }
//!
//! /// How much a page matters.
//! #[scalar_function]
//! fn heat(level: i64, visits: i64) -> f64 {
//!     0.1 * level as f64 + 0.9 * visits as f64
//! }
//!
//! plugin!(words, heat);
//! # assert_eq!(heat(10, 10), 10.0); // They stay ordinary functions: test them without any WebAssembly.
//! ```
//!
//! # Aggregate functions
//!
//! The state of a group is a struct; its methods take rows in, merge states, and give the value. The host keeps the
//! state, in the checkpoint and by columns, so it outlives the instance, the process, and a swap:
//!
//! ```
//! use millstream_sdk::prelude::*;
//!
//! /// The geometric mean of positive numbers.
//! #[derive(Row, Default)]
//! struct GeometricMean {
//!     count: i64,
//!     logarithms: f64,
//! }
//!
//! #[aggregate_function]
//! impl GeometricMean {
//!     fn accumulate(&mut self, value: f64) -> Result<(), String> {
//!         if value <= 0.0 {
//!             return Err(format!("{value} is not positive"));
//!         }
//!         self.count += 1;
//!         self.logarithms += value.ln();
//!         Ok(())
//!     }
//!
//!     fn merge(&mut self, other: Self) {
//!         self.count += other.count;
//!         self.logarithms += other.logarithms;
//!     }
//!
//!     fn evaluate(&self) -> Option<f64> {
//!         (self.count > 0).then(|| (self.logarithms / self.count as f64).exp())
//!     }
//! }
//!
//! plugin!(aggregates: GeometricMean); // in SQL: geometric_mean(value)
//! # let mut mean = GeometricMean::default();
//! # mean.accumulate(2.0).unwrap();
//! # mean.merge(GeometricMean { count: 1, logarithms: 8f64.ln() });
//! # assert!((mean.evaluate().unwrap() - 4.0).abs() < 1e-12);
//! ```
//!
//! An optional method `retract(&mut self, …)` with the arguments of `accumulate` takes a row back. The columns of the
//! state are what old code and new code must agree on: when they come to mean something else under the same types, say so
//! by another `#[aggregate_function(state_id = "…")]`.
//!
//! # Stateful processors
//!
//! Code that sees all rows of a key together with what it stored under that key before, and that may set timers: see
//! [`processor`].
//!
//! # Sources
//!
//! Code that rows come from, by ranges of offsets that it makes up itself: see [`source`].
//!
//! # Migrations
//!
//! Code that means something else by its state can take over when it says how to get there. A migration is a function from
//! the old state to the new one; the host joins several where no single one leads there, and applies them to all keys
//! before the first batch of the new code:
//!
//! ```
//! # use millstream_sdk::prelude::*;
//! # #[derive(Row, Default)] struct Mean { count: i64, sum: f64 }
//! # #[aggregate_function(state_id = "count and sum")]
//! # impl Mean {
//! #     fn accumulate(&mut self, value: f64) { self.count += 1; self.sum += value; }
//! #     fn merge(&mut self, other: Self) { self.count += other.count; self.sum += other.sum; }
//! #     fn evaluate(&self) -> f64 { self.sum / self.count as f64 }
//! # }
//! /// As it was stored by the first edition.
//! #[derive(Row, Default)]
//! struct FirstMean {
//!     count: i64,
//!     mean: f64,
//! }
//!
//! #[migration(state = "mean", from_id = "count and mean", to_id = "count and sum")]
//! fn sum_of_mean(old: FirstMean) -> Result<Mean, String> {
//!     Ok(Mean { count: old.count, sum: old.mean * old.count as f64 })
//! }
//!
//! plugin!(aggregates: Mean; migrations: sum_of_mean);
//! ```
//!
//! # Nulls
//!
//! An argument of type `Option<T>` gets nulls as `None`. Where another argument is null, the function is not called:
//! a scalar's result is null, a table function has no rows. An `Option<T>` result is null where it is `None`.
//!
//! # Errors
//!
//! | result | what fails |
//! |---|---|
//! | `Result<T, E>` with `E: Display` | that row; the query's `on_fault` decides: fail, skip, dead-letter |
//! | [`CallResult<T>`] | the whole call: bad input, or something not available now |
//! | panic | the call; the instance is thrown away, the panic's text reaches the operator |
//!
//! # Types
//!
//! `bool`, `i8` to `u64`, `f32`, `f64`, `&str`, `String`, `&[u8]`, `Vec<u8>` (binary), [`Timestamp`],
//! [`LocalTimestamp`], [`Date`], [`Decimal`], `Vec<T>` (list), `Option<T>`, and structs that derive [`Row`]. A table
//! function that returns a [`Row`] has its fields as columns, and so has the state of an aggregate function.
//!
//! # The world outside
//!
//! What the operator grants to a plugin by name: [`http`], [`config`], [`clock`], [`random`]. A component asks for those that
//! its code calls.
//!
//! # Memory
//!
//! Between calls an instance may be thrown away at any time, so memory of a plugin is a cache: output must not depend
//! on what earlier calls left there.

mod aggregate;
mod argument;
#[cfg(target_arch = "wasm32")]
mod bindings;
mod buffers;
mod call;
pub mod clock;
pub mod config;
mod error;
mod granted;
pub mod http;
mod log;
mod migration;
mod outcome;
mod plugin;
pub mod processor;
pub mod random;
mod schema;
pub mod source;
mod temporal;
mod value;

pub use error::{CallError, CallResult};
pub use log::{LogLevel, log};
pub use millstream_sdk_macros::{Row, aggregate_function, migration, plugin, scalar_function, table_function};
pub use temporal::{Date, Decimal, LocalTimestamp, Timestamp};

pub use argument::Argument;
pub use value::{Element, Value};

/// What a plugin's source needs.
pub mod prelude {
    pub use crate::{
        CallError, CallResult, Date, Decimal, LocalTimestamp, LogLevel, Row, Timestamp, aggregate_function, log,
        migration, plugin, scalar_function, table_function,
    };
}

/// What the macros write. Not for people.
#[doc(hidden)]
pub mod private {
    pub use crate::aggregate::{
        Aggregate, Aggregation, Retract, States, StatesOutput, accumulate, evaluate, merge, retract,
    };
    pub use crate::argument::{Argument, Column};
    /// What the exports of a component are made of.
    #[cfg(target_arch = "wasm32")]
    pub mod bindings {
        pub use crate::bindings::{aggregates, describing, functions, migrations, processors, sources};
    }
    #[cfg(target_arch = "wasm32")]
    pub use crate::bindings::{
        aggregates::export_aggregates, describing::export_describe, functions::export_functions,
        migrations::export_migrations, processors::export_processors, sources::export_sources,
    };
    pub use crate::buffers::{Nulls, Reader, Validity};
    pub use crate::call::{Batch, Call, Function, ScalarOutput, TableOutput, scalar, table, table_of_result};
    pub use crate::migration::{Migration, migrate};
    pub use crate::outcome::{Done, Outcome};
    pub use crate::plugin::Plugin;
    pub use crate::processor::private::{RegisteredProcessor, registered as processor};
    pub use crate::schema::{Field, Schema};
    pub use crate::source::private::{RegisteredSource, registered as source};
    pub use crate::value::{Element, Value};
}
