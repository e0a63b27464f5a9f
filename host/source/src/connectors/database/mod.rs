//! What sources of databases have in common: values as the server writes them become columns, changes become rows,
//! and a snapshot is kept in the checkpoint.
//!
//! Used by [`postgres`](super::postgres) and [`mysql`](super::mysql); it knows no server.

mod change;
mod error;
mod patience;
mod snapshot;
mod table;
mod values;

pub(crate) use change::{Change, ChangeColumns, Op, Transaction};
pub(crate) use error::failed;
pub(crate) use patience::patiently;
pub(crate) use snapshot::SnapshotFiles;
pub(crate) use table::{ReadTable, TableSource};
pub(crate) use values::{Raw, RowBuilder, is_readable};
