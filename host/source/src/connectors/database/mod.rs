//! What sources of databases have in common.
//!
//! Tables: [`options`] says what is read, [`table`] reads it whole, [`values`] makes columns of what the server writes.
//! Changes: [`stream`] turns positions in a log into offsets and rows, [`change`] says what a change is, [`snapshot`] keeps the
//! rows that are there when a stream begins, and [`link`] holds the connection while a server comes and goes. A product brings
//! a `TableDialect` and a `ChangeLog`.
//!
//! Used by [`postgres`](super::postgres) and [`mysql`](super::mysql); it knows the SQL of neither.

mod change;
mod error;
mod link;
mod options;
mod snapshot;
mod stream;
mod table;
mod values;

pub(crate) use change::{Change, ChangeColumns, Op, Transaction, admitted, updated};
pub(crate) use error::failed;
pub(crate) use link::{Connect, Link};
pub(crate) use options::{ChangeOptions, From, POSITIVE};
pub(crate) use snapshot::SnapshotFiles;
pub(crate) use stream::{Began, ChangeLog, ChangeStream, Fetched, Taken, WAY_OUT, change_columns, check_there, files};
pub(crate) use table::{TableDialect, TableFactory};
pub(crate) use values::{Raw, RowBuilder, is_readable};
