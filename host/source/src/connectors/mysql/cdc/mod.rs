//! The changes of a table of MySQL or MariaDB as a stream, in whole transactions.
//!
//! The flow: [`config`] checks the options; [`beginning`] finds the position and takes the snapshot; [`reading`] cuts the
//! binary log into transactions, with the help of [`name`], [`statement`], [`columns`] and [`values`]; [`log`] is the log of
//! the stream that all products share.
//!
//! Rule of its life: an offset is a [`position`] in the binary log at the end of a transaction, so every range can be read
//! again as long as the server keeps its log.

mod beginning;
mod columns;
mod config;
mod log;
mod mariadb;
mod name;
mod position;
mod reading;
mod statement;
mod values;

pub use log::MysqlCdcFactory;
