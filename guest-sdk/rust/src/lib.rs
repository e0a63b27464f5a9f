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
//! function that returns a [`Row`] has its fields as columns.
//!
//! # Memory
//!
//! Between calls an instance may be thrown away at any time, so memory of a plugin is a cache: output must not depend
//! on what earlier calls left there.

mod argument;
mod buffers;
mod call;
mod error;
mod log;
mod outcome;
mod schema;
mod temporal;
mod value;

pub use error::{CallError, CallResult};
pub use log::{LogLevel, log};
pub use millstream_sdk_macros::{Row, plugin, scalar_function, table_function};
pub use temporal::{Date, Decimal, LocalTimestamp, Timestamp};

pub use argument::Argument;
pub use value::{Element, Value};

/// What a plugin's source needs.
pub mod prelude {
    pub use crate::{
        CallError, CallResult, Date, Decimal, LocalTimestamp, LogLevel, Row, Timestamp, log, plugin, scalar_function,
        table_function,
    };
}

/// What the macros write. Not for people.
#[doc(hidden)]
pub mod private {
    pub use crate::argument::{Argument, Column};
    pub use crate::buffers::{Nulls, Reader, Validity};
    #[cfg(target_arch = "wasm32")]
    pub use crate::call::bindings;
    #[cfg(target_arch = "wasm32")]
    pub use crate::call::bindings::export;
    pub use crate::call::{Batch, Call, Function, Plugin, ScalarOutput, TableOutput, scalar, table, table_of_result};
    pub use crate::outcome::Outcome;
    pub use crate::schema::{Field, Schema};
    pub use crate::value::{Element, Value};
}
