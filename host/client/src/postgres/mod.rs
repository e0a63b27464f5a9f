//! PostgreSQL: a URL and options become a connection.
//!
//! [`Connection`] is what sources and sinks hold: it hands statements over and waits for the answer, in the server's
//! text form. Its errors are [`DatabaseError`](crate::database::DatabaseError)s, sorted by the server's code.

mod connection;
mod error;

pub use connection::{ColumnType, Connection, parse_lsn};
pub use tokio_postgres::SimpleQueryRow as TextRow;
