//! Stateful processors: code that sees all rows of a key together with what it stored under that key before.
//!
//! ```
//! use millstream_sdk::processor::prelude::*;
//!
//! /// Counts, and tells when a user has been silent for a minute.
//! struct Silence {
//!     visits: ValueState<i64>,
//! }
//!
//! #[derive(Clone, Row)]
//! struct Visit {
//!     at: Timestamp,
//! }
//!
//! #[derive(Clone, Debug, PartialEq, Row)]
//! struct Silent {
//!     user: String,
//!     visits: i64,
//! }
//!
//! impl Processor for Silence {
//!     const NAME: &'static str = "silence";
//!     const KEY: &'static str = "user";
//!     const TIME_MODE: TimeMode = TimeMode::EventTime;
//!     type Key = String;
//!     type Input = Visit;
//!     type Output = Silent;
//!     type Initial = NoInitial;
//!
//!     fn init(state: &mut Handle) -> Self {
//!         Self { visits: state.value("visits") }
//!     }
//!
//!     fn handle_input_rows(&mut self, _user: &String, rows: Vec<Visit>, call: &mut Call<Silent>) -> KeyResult {
//!         self.visits.update(self.visits.get().unwrap_or(0) + rows.len() as i64);
//!         call.timers().into_iter().for_each(|due| call.delete_timer(due));
//!         if let Some(last) = rows.iter().map(|row| row.at.0).max() {
//!             call.register_timer(last / 1000 + 60_000);
//!         }
//!         Ok(())
//!     }
//!
//!     fn handle_expired_timer(&mut self, user: &String, _due_ms: i64, call: &mut Call<Silent>) -> KeyResult {
//!         let visits = self.visits.get().unwrap_or(0);
//!         call.emit(Silent { user: user.clone(), visits });
//!         self.visits.clear();
//!         Ok(())
//!     }
//! }
//!
//! plugin!(processors: Silence);
//!
//! // A processor is tested without any WebAssembly.
//! let mut tester = ProcessorTester::<Silence>::new();
//! let at = |second: i64| Visit { at: Timestamp(second * 1_000_000) };
//! assert_eq!(tester.process([("ada".to_owned(), at(1)), ("ada".to_owned(), at(5))]), Ok(vec![]));
//! assert_eq!(tester.set_watermark_ms(65_000), Ok(vec![Silent { user: "ada".into(), visits: 2 }]));
//! ```
//!
//! ```sql
//! SELECT * FROM silence(TABLE(visits) PARTITION BY user)
//! ```
//!
//! State belongs to the host: the SDK reads it from the call before a handler runs for a key, and hands back what the handler
//! changed. A handler that returns an error changes nothing and emits nothing; what happens then is the query's `on_fault`.
//! A new value of the processor is made for every call, so its own fields remember nothing.
//!
//! Code that was written for Spark's `flatMapGroupsWithState` is a [`GroupFunction`].

mod call;
pub(crate) mod columns;
#[cfg(target_arch = "wasm32")]
mod exports;
mod group;
mod list;
mod map;
mod run;
mod tester;
mod value;
mod variable;
mod wire;

pub use call::Call;
pub use columns::{Columns, NoInitial};
pub use group::{FlatMapGroups, GroupFunction, GroupState, Timeout};
pub use list::ListState;
pub use map::MapState;
pub use tester::ProcessorTester;
pub use value::ValueState;
pub use variable::{Handle, VariableOptions};

/// What the macros write. Not for people.
#[doc(hidden)]
pub mod private {
    pub use super::run::{ProcessorType, RegisteredProcessor, registered};
    pub use super::variable::{VariableKind, VariableType};
    pub use super::wire::{Entries, Invocation, Outcome, Step, Timers, VariableChanges};
}

/// What the source of a processor needs.
pub mod prelude {
    pub use super::{
        Call, FlatMapGroups, GroupFunction, GroupState, Handle, KeyError, KeyResult, ListState, MapState, NoInitial,
        OutputMode, Processor, ProcessorTester, TimeMode, Timeout, ValueState, VariableOptions,
    };
    pub use crate::prelude::*;
}

use std::fmt::Display;

/// Which time a processor's timers go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeMode {
    /// It has no timers.
    None,
    /// The time of the batch.
    ProcessingTime,
    /// The watermark.
    EventTime,
}

/// Which rows of the result a query gives out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    /// Rows that are final.
    Append,
    /// Rows that changed.
    Update,
}

/// Why a key could not be processed. Every error turns into one, so handlers use `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyError(pub String);

impl KeyError {
    /// An error with this text.
    pub fn new(message: impl Display) -> Self {
        Self(message.to_string())
    }
}

impl<E: std::error::Error> From<E> for KeyError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// What a handler answers: on an error, nothing that it did for the key counts.
pub type KeyResult = Result<(), KeyError>;

/// A stateful processor (Spark's `StatefulProcessor`).
pub trait Processor: Sized + 'static {
    /// The name in SQL: lower-case letters, digits and `_`.
    const NAME: &'static str;
    /// The name of the key's column; of a [`Row`](crate::Row) its fields count.
    const KEY: &'static str = "key";
    /// Which time its timers go by.
    const TIME_MODE: TimeMode = TimeMode::None;
    /// Which output modes a query with it may have.
    const OUTPUT_MODES: &'static [OutputMode] = &[OutputMode::Append, OutputMode::Update];

    /// The key: a value, or a [`Row`](crate::Row) of several.
    type Key: Columns;
    /// A row of the input.
    type Input: Columns;
    /// A row of the output.
    type Output: Columns;
    /// A row of the initial state; [`NoInitial`] when there is none.
    type Initial: Columns;

    /// Declares the state.
    fn init(state: &mut Handle) -> Self;

    /// Takes the rows that a key has in a batch.
    ///
    /// # Errors
    /// When the key cannot be processed.
    fn handle_input_rows(
        &mut self,
        key: &Self::Key,
        rows: Vec<Self::Input>,
        call: &mut Call<Self::Output>,
    ) -> KeyResult;

    /// Takes one timer of a key that is due, in milliseconds since 1970; it is deleted afterwards.
    ///
    /// # Errors
    /// When the key cannot be processed; its timers stay then.
    fn handle_expired_timer(&mut self, key: &Self::Key, due_ms: i64, call: &mut Call<Self::Output>) -> KeyResult {
        let _ = (key, due_ms, call);
        Ok(())
    }

    /// Takes an initial row of a key, before the first batch.
    ///
    /// # Errors
    /// When the key cannot be processed.
    fn handle_initial_state(
        &mut self,
        key: &Self::Key,
        initial: Self::Initial,
        call: &mut Call<Self::Output>,
    ) -> KeyResult {
        let _ = (key, initial, call);
        Ok(())
    }
}
