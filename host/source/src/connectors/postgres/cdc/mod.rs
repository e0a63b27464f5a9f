//! The changes of a table of PostgreSQL as a stream, in whole transactions.
//!
//! The flow: [`config`] checks the options; [`beginning`] makes publication and slot and takes the snapshot; [`pgoutput`]
//! reads the messages of the log; [`relation`] watches the columns; [`source`] turns them into offsets and rows.
//!
//! Rule of its life: an offset is a position in the write-ahead log at the end of a transaction. The slot holds the log
//! from what was released last, so every range after it can be read again, by functions of SQL over a plain connection.

mod beginning;
mod config;
mod pgoutput;
mod relation;
mod source;

pub use source::PostgresCdcFactory;
