//! What sinks of databases have in common: the options, the transaction of a batch, the book of batches.
//!
//! The flow: [`config`] checks the options; [`fit`] compares the query with the table, [`columns`] their columns; [`server`]
//! holds the connection and waits while there is none; [`sink`] writes each batch in one transaction with its id in a table
//! of [`book`]s; [`cell`] says what a
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
mod fit;
mod server;
mod sink;

pub(crate) use cell::{Cell, cell};
pub(crate) use columns::{Family, TableColumn, has_counterpart};
pub(crate) use dialect::{DELETE, Dialect, Load, LoadError, Session, TRUNCATE};
use fit::create;
pub(crate) use sink::DatabaseSinkFactory;
