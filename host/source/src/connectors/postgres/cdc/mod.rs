//! The changes of a table of PostgreSQL as a stream, in whole transactions.
//!
//! The flow: [`config`] checks the options; [`catalog`] asks what the table is; [`beginning`] makes publication and slot and
//! takes the snapshot; [`pgoutput`] reads the messages of the log; [`relation`] makes changes of them and watches the columns;
//! [`log`] is the log of the stream that all products share. A batch query has the snapshot alone: [`bounded`].
//!
//! Rule of its life: an offset is a position in the write-ahead log at the end of a transaction. The slot holds the log
//! from what was released last, so every range after it can be read again, by functions of SQL over a plain connection.

mod beginning;
mod bounded;
mod catalog;
mod config;
mod log;
mod pgoutput;
mod relation;

pub use log::PostgresCdcFactory;
