//! One call: from texts and buffers to what the author's code takes and gives.

use super::options::{Options, SourceOption};
use super::{Limits, OffsetRange, Source};
use crate::call::Batch;
use crate::error::{CallError, CallResult};
use crate::processor::columns::{RowsBuilder, described};
use crate::schema::Field;

/// A source as it is described to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceType {
    /// The name.
    pub name: &'static str,
    /// The columns of its rows.
    pub columns: Vec<Field>,
    /// The options that it knows.
    pub options: &'static [SourceOption],
}

/// Some rows of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WirePage {
    /// The rows.
    pub rows: Batch,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// Answers the end of a batch to options, start and limits.
pub type LatestOffset = fn(&Options, &str, Option<&str>, Option<u64>) -> CallResult<String>;
/// Answers a page to options, start, end and cursor.
pub type ReadPage = fn(&Options, &str, &str, Option<&str>) -> CallResult<WirePage>;

/// A source of a component.
#[derive(Debug, Clone, Copy)]
pub struct RegisteredSource {
    /// Describes it.
    pub describe: fn() -> SourceType,
    /// Where to begin.
    pub initial_offset: fn(&Options) -> CallResult<String>,
    /// What is new.
    pub latest_offset: LatestOffset,
    /// Rows.
    pub read: ReadPage,
    /// What is done.
    pub commit: fn(&Options, &str) -> CallResult<()>,
}

/// A source as a component lists it.
pub fn registered<S: Source>() -> RegisteredSource {
    RegisteredSource {
        describe: || SourceType { name: S::NAME, columns: described::<S::Row>(S::COLUMN), options: S::OPTIONS },
        initial_offset: |options| Ok(S::open(options)?.initial_offset()?.to_string()),
        latest_offset: |options, start, until, max_rows| {
            let until = until.map(offset::<S>).transpose()?;
            Ok(S::open(options)?.latest_offset(offset::<S>(start)?, Limits { until, max_rows })?.to_string())
        },
        read: read::<S>,
        commit: |options, end| S::open(options)?.commit(offset::<S>(end)?),
    }
}

fn read<S: Source>(options: &Options, start: &str, end: &str, cursor: Option<&str>) -> CallResult<WirePage> {
    let range = OffsetRange { start: offset::<S>(start)?, end: offset::<S>(end)? };
    let page = S::open(options)?.read(range, cursor)?;
    Ok(WirePage { rows: page.rows.into_iter().collect::<RowsBuilder<_>>().finish(), next: page.next })
}

fn offset<S: Source>(text: &str) -> CallResult<S::Offset> {
    let name = S::NAME;
    text.parse().map_err(|error| CallError::internal(format!("`{text}` is no offset of `{name}`: {error}")))
}
