//! Sinks: code that takes the rows of a query's result out into the world (Spark's `ForeachWriter`).
//!
//! ```
//! use millstream_sdk::sink::prelude::*;
//!
//! /// One row of the result.
//! #[derive(Clone, Row)]
//! struct Order {
//!     id: i64,
//!     item: String,
//! }
//!
//! /// Sends the orders of each partition of a batch in one request.
//! #[derive(Default)]
//! struct Orders {
//!     url: String,
//!     key: String,
//!     body: String,
//! }
//!
//! impl Sink for Orders {
//!     const NAME: &'static str = "orders";
//!     const OPTIONS: &'static [SinkOption] = &[SinkOption::required("url")];
//!     type Row = Order;
//!
//!     fn open(&mut self, target: &Target, _mode: OutputMode) -> CallResult<bool> {
//!         self.url = target.option("url").unwrap_or_default().to_owned();
//!         // The same partition of the same batch may come again: the key lets the other side see that.
//!         self.key = format!("{}-{}-{}", target.query_id, target.partition, target.batch);
//!         Ok(true)
//!     }
//!
//!     fn process(&mut self, orders: Vec<Order>, failed: &mut FailedRows) -> CallResult<()> {
//!         for (number, order) in orders.into_iter().enumerate() {
//!             match order.item.is_empty() {
//!                 true => failed.add(number, "an order without an item"),
//!                 false => self.body.push_str(&format!("{} {}\n", order.id, order.item)),
//!             }
//!         }
//!         Ok(())
//!     }
//!
//!     fn close(&mut self, failure: Option<&str>) -> CallResult<()> {
//!         if failure.is_some() || self.body.is_empty() {
//!             return Ok(());
//!         }
//!         let request = Request::post(&self.url, self.body.as_bytes()).header("Idempotency-Key", &self.key);
//!         match http::send(vec![request]).pop() {
//!             Some(Ok(response)) if response.status < 300 => Ok(()),
//!             Some(Ok(response)) => Err(CallError::unavailable(format!("status {}", response.status))),
//!             Some(Err(failure)) => Err(CallError::unavailable(failure)),
//!             None => Err(CallError::Internal("no answer to one request".into())),
//!         }
//!     }
//! }
//!
//! plugin!(sinks: Orders);
//!
//! // A sink is tested without any WebAssembly.
//! http::answer_with(|request| {
//!     assert_eq!(request.body, b"1 tea\n");
//!     Ok(Response { status: 201, ..Response::default() })
//! });
//! let tester = SinkTester::<Orders>::new().option("url", "https://orders.example");
//! let order = |id, item: &str| Order { id, item: item.to_owned() };
//! let written = tester.write(0, [order(1, "tea"), order(2, "")]).unwrap();
//! assert_eq!(written.failed, [(1, "an order without an item".to_owned())]);
//! ```
//!
//! In the query file: `[sink]` with `format = "plugin"` and `options = { plugin = "…", url = "…" }`.
//!
//! # The contract
//!
//! For each partition of a batch there is a value of its own: [`Sink::open`], then [`Sink::process`] any number of times,
//! then [`Sink::close`], which is called whenever `open` answered, with what went wrong if something did. Nothing is
//! remembered from one to the next. A batch that failed, or was not known to be done when the process died, comes again
//! with the same number and in each partition the same rows, in any order. So rows are written at least once; whoever
//! remembers (query, partition, batch) writes them once.
//!
//! # Exactly once
//!
//! A [`TransactionalSink`] makes rows durable in `prepare` and lets them be seen in `commit`. The host keeps the token of
//! `prepare` with the batch; `commit` comes when the batch is done, in any instance, and once more if it is not known
//! whether it came. All sinks of a plugin are transactional or none: `plugin!(transactional_sinks: …)`.

mod any;
#[cfg(target_arch = "wasm32")]
mod exports;
mod row;
mod run;
mod tester;

pub use any::{Any, AnyRow};
pub use row::SinkRow;
pub use tester::{SinkTester, Written};

/// What the macros write. Not for people.
#[doc(hidden)]
pub mod private {
    pub use super::run::{RegisteredSink, Session, SinkType, registered, registered_transactional};
}

/// What the source of a sink needs.
pub mod prelude {
    pub use super::{
        Any, AnyRow, FailedRows, OutputMode, Sink, SinkOption, SinkRow, SinkTester, Target, TransactionalSink, Written,
    };
    pub use crate::http::{self, Request, Response};
    pub use crate::prelude::*;
}

use crate::error::{CallError, CallResult};
use std::fmt::Display;
use std::str::FromStr;

/// Which rows of the result a query gives out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    /// Rows that are final.
    Append,
    /// Rows that changed.
    Update,
    /// The whole result, in place of the one before.
    Complete,
}

/// An option that a query may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkOption {
    /// The name.
    pub name: &'static str,
    /// Whether a query must give it.
    pub required: bool,
}

impl SinkOption {
    /// An option that a query must give.
    pub const fn required(name: &'static str) -> Self {
        Self { name, required: true }
    }

    /// An option that a query may leave out.
    pub const fn optional(name: &'static str) -> Self {
        Self { name, required: false }
    }
}

/// What is written: one partition of one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The id of the query: a UUID that stays when it is restarted.
    pub query_id: String,
    /// The partition of the batch, from 0.
    pub partition: u32,
    /// The batch.
    pub batch: u64,
    /// The options of the query.
    pub options: Vec<(String, String)>,
}

impl Target {
    /// The value of an option.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of an option as a number or the like; `default` where the query does not give it.
    ///
    /// # Errors
    /// When it is none.
    pub fn parsed<T: FromStr>(&self, name: &str, default: T) -> CallResult<T>
    where
        T::Err: Display,
    {
        let Some(text) = self.option(name) else { return Ok(default) };
        text.parse().map_err(|error| CallError::invalid_input(format!("option `{name}` cannot be `{text}`: {error}")))
    }
}

/// Rows that a sink could not take: the query's `on_fault` says what becomes of them.
#[derive(Debug, Default)]
pub struct FailedRows {
    /// For each row that the sink gets its number in the call.
    numbers: Vec<u32>,
    failed: Vec<(u32, String)>,
}

impl FailedRows {
    /// Names a row by its place in the rows that `process` got.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn add(&mut self, row: usize, message: impl Display) {
        self.failed.push((self.numbers[row], message.to_string()));
    }
}

/// A sink (Spark's `ForeachWriter`). Each partition of a batch begins with [`Default`].
pub trait Sink: Default + 'static {
    /// The name: lower-case letters, digits and `_`.
    const NAME: &'static str;
    /// The options that a query may give; others are refused before it starts.
    const OPTIONS: &'static [SinkOption] = &[];
    /// The output modes that it takes.
    const MODES: &'static [OutputMode] = &[OutputMode::Append, OutputMode::Update, OutputMode::Complete];

    /// A row: a struct that derives [`Row`](crate::Row), whose fields are columns of the result, or [`AnyRow`] for whatever
    /// columns there are.
    type Row: SinkRow;

    /// Begins. `false`: the rows of this partition of this batch are not wanted, as when they are there already.
    ///
    /// # Errors
    /// What fails the batch; nothing is closed then.
    fn open(&mut self, target: &Target, mode: OutputMode) -> CallResult<bool>;

    /// Takes rows.
    ///
    /// # Errors
    /// What fails the batch; `close` gets it. Single rows are named in `failed` instead.
    fn process(&mut self, rows: Vec<Self::Row>, failed: &mut FailedRows) -> CallResult<()>;

    /// Ends, also when `open` gave `false`; with what went wrong, if something did.
    ///
    /// # Errors
    /// What fails the batch, unless it has failed before.
    fn close(&mut self, failure: Option<&str>) -> CallResult<()>;
}

/// A sink whose rows are seen once or not at all.
pub trait TransactionalSink: Sink {
    /// Makes the rows durable and seen by nobody; before `close`. The answer, of at most 64 KiB, names them.
    ///
    /// # Errors
    /// What fails the batch.
    fn prepare(&mut self) -> CallResult<Vec<u8>>;

    /// Lets prepared rows be seen. Once more is no error.
    ///
    /// # Errors
    /// When that cannot be done now; it comes again then.
    fn commit(target: &Target, token: &[u8]) -> CallResult<()>;

    /// Drops prepared rows. Those that are gone are no error.
    ///
    /// # Errors
    /// As [`Self::commit`].
    fn abort(target: &Target, token: &[u8]) -> CallResult<()>;
}
