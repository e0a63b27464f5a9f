//! Sources: code that rows come from.
//!
//! ```
//! use millstream_sdk::source::prelude::*;
//!
//! /// Whole numbers from 0, as many as the option `count` says.
//! struct Numbers {
//!     count: u64,
//! }
//!
//! #[derive(Clone, Debug, PartialEq, Row)]
//! struct Number {
//!     n: u64,
//!     is_even: bool,
//! }
//!
//! impl Source for Numbers {
//!     const NAME: &'static str = "numbers";
//!     const OPTIONS: &'static [SourceOption] = &[SourceOption::required("count")];
//!     /// How many rows there were before.
//!     type Offset = u64;
//!     type Row = Number;
//!
//!     fn open(options: &Options) -> CallResult<Self> {
//!         Ok(Self { count: options.parse("count")? })
//!     }
//!
//!     fn initial_offset(&self) -> CallResult<u64> {
//!         Ok(0)
//!     }
//!
//!     fn latest_offset(&self, start: u64, limits: Limits<u64>) -> CallResult<u64> {
//!         let most = limits.max_rows.map_or(u64::MAX, |rows| start.saturating_add(rows));
//!         Ok(limits.until.unwrap_or(self.count).min(most))
//!     }
//!
//!     fn read(&self, range: OffsetRange<u64>, _cursor: Option<&str>) -> CallResult<Page<Number>> {
//!         Ok(Page::last((range.start..range.end).map(|n| Number { n, is_even: n % 2 == 0 })))
//!     }
//! }
//!
//! plugin!(sources: Numbers);
//!
//! // A source is tested without any WebAssembly.
//! let mut tester = SourceTester::<Numbers>::new().option("count", "3").max_rows(2);
//! assert_eq!(tester.next_batch().unwrap(), [Number { n: 0, is_even: true }, Number { n: 1, is_even: false }]);
//! assert_eq!(tester.next_batch().unwrap(), [Number { n: 2, is_even: true }]);
//! assert_eq!(tester.next_batch().unwrap(), []);
//! ```
//!
//! ```toml
//! [[source]]
//! name = "first_numbers"
//! format = "plugin"
//! options = { plugin = "numbers", count = 1000, maxRowsPerTrigger = 100 }
//! ```
//!
//! An offset is a place between rows, written as text: whatever has `Display` and `FromStr`. The host keeps offsets in its
//! log, and rows are read when a range is in it; so a batch that is run again asks for the same range, which must have the
//! same rows. A large range is read page by page. A new value of the source is made for every call, so its own fields
//! remember nothing.

#[cfg(target_arch = "wasm32")]
mod exports;
mod options;
mod run;
mod tester;

pub use options::{Options, SourceOption};
pub use tester::SourceTester;

/// What the macros write. Not for people.
#[doc(hidden)]
pub mod private {
    pub use super::run::{LatestOffset, ReadPage, RegisteredSource, SourceType, WirePage, registered};
}

/// What the source of a source needs.
pub mod prelude {
    pub use super::{Limits, OffsetRange, Options, Page, Source, SourceOption, SourceTester};
    pub use crate::http::{self, Request, Response};
    pub use crate::prelude::*;
}

use crate::error::CallResult;
use crate::processor::Columns;
use std::fmt::Display;
use std::str::FromStr;

/// How far a batch may go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits<O> {
    /// Not beyond this offset, which an earlier call answered.
    pub until: Option<O>,
    /// At most about so many rows; one step of the source is always allowed.
    pub max_rows: Option<u64>,
}

/// The rows after `start` up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetRange<O> {
    /// What comes after this.
    pub start: O,
    /// What comes up to this.
    pub end: O,
}

/// Some rows of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// The cursor that the next page is asked for with; `None` when this is the last.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// The last rows of a range.
    pub fn last(rows: impl IntoIterator<Item = T>) -> Self {
        Self { rows: rows.into_iter().collect(), next: None }
    }

    /// Rows after which others come, beginning at the cursor.
    pub fn before(next: impl Display, rows: impl IntoIterator<Item = T>) -> Self {
        Self { rows: rows.into_iter().collect(), next: Some(next.to_string()) }
    }
}

/// A source of rows.
pub trait Source: Sized + 'static {
    /// The name: lower-case letters, digits and `_`.
    const NAME: &'static str;
    /// The name of the only column where [`Self::Row`] is no [`Row`](crate::Row).
    const COLUMN: &'static str = "value";
    /// The options that a query may give; others are refused before it starts.
    const OPTIONS: &'static [SourceOption] = &[];
    /// A place between rows.
    type Offset: Display + FromStr<Err: Display>;
    /// A row: a struct that derives [`Row`](crate::Row), or one value.
    type Row: Columns;

    /// The source with the options of a stream, for one call.
    ///
    /// # Errors
    /// When an option does not fit.
    fn open(options: &Options) -> CallResult<Self>;

    /// Where a query begins that has read nothing yet. Asked once in its life.
    ///
    /// # Errors
    /// When that cannot be told now.
    fn initial_offset(&self) -> CallResult<Self::Offset>;

    /// The end of a batch that begins at `start`: `start` itself when nothing is new. An offset that was left behind never
    /// comes again.
    ///
    /// # Errors
    /// When that cannot be told now.
    fn latest_offset(&self, start: Self::Offset, limits: Limits<Self::Offset>) -> CallResult<Self::Offset>;

    /// Some rows of a range: the first without a cursor, the next ones with the cursor of the page before.
    ///
    /// # Errors
    /// When they cannot be read.
    fn read(&self, range: OffsetRange<Self::Offset>, cursor: Option<&str>) -> CallResult<Page<Self::Row>>;

    /// The query has what comes before this offset, for good. It may be left out, and come twice.
    ///
    /// # Errors
    /// When that cannot be taken note of; the query goes on.
    fn commit(&self, offset: Self::Offset) -> CallResult<()> {
        let _ = offset;
        Ok(())
    }
}
