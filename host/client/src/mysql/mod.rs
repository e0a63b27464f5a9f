//! MySQL and MariaDB: a URL and options become a connection.
//!
//! [`Connection`] is what sources and sinks hold: it hands statements over and waits for the answer. Its errors are
//! [`DatabaseError`](crate::database::DatabaseError)s, sorted by the server's code.

mod binlog;
mod connection;
mod error;

pub use binlog::Binlog;
pub use connection::Connection;
pub use error::of_statement;
pub use mysql_async::binlog::events::{EventData, RowsEventData, TableMapEvent};
pub use mysql_async::binlog::row::BinlogRow;
pub use mysql_async::binlog::value::BinlogValue;
pub use mysql_async::consts::ColumnType;
pub use mysql_async::{Row, Value};
