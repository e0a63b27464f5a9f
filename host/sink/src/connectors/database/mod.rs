//! What sinks of databases have in common: the options, the transaction of a batch, the book of batches.
//!
//! The flow: [`config`] checks the options; [`columns`] compares the columns of the query with those of the table;
//! [`sink`] writes each batch in one transaction with its id in a table of [`book`]s; [`cell`] and [`json`] say what a
//! value is. What differs between databases is a [`Dialect`].
//!
//! Rule of its life: the row of this query in the book is locked first in every transaction and changed last, so
//! that a batch counts once, and a run that another has replaced writes nothing more.
//!
//! It knows the text of no SQL that only one database understands.

mod book;
mod cell;
mod columns;
mod config;
mod dialect;
mod json;
mod sink;
mod table_name;

pub(crate) use cell::{Cell, cell};
pub(crate) use columns::{Family, TableColumn, has_counterpart};
pub(crate) use dialect::{DELETE, Dialect, Load, LoadError, Session, TRUNCATE};
pub(crate) use sink::DatabaseSinkFactory;
pub(crate) use table_name::TableName;
