//! The changes of a table of MySQL or MariaDB as a stream, in whole transactions.
//!
//! The flow: [`config`] checks the options; [`beginning`] takes the snapshot with its position in the log; [`values`]
//! turns what the log has into text; [`log`] cuts the log into transactions; [`source`] turns them into offsets and rows.
//!
//! Rule of its life: an offset is a file of the binary log and a position in it, at the end of a transaction. The server
//! keeps its log by a rule of its own; as long as it does, every range can be read again.

mod beginning;
mod config;
mod log;
mod source;
mod values;

pub use source::MysqlCdcFactory;
