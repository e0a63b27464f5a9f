//! Rows into a table of MySQL or MariaDB, exactly once: by inserts of many rows, in one transaction per batch with the
//! batch's id.
//!
//! What all databases share is in [`database`](super::database); here are MySQL's words ([`dialect`]), and how rows are
//! loaded ([`session`]).

pub(super) mod dialect;
mod session;

use super::database::DatabaseSinkFactory;
use crate::SinkFactory;
use dialect::Mysql;

/// The name of the format.
pub const FORMAT: &str = "mysql";

/// What makes sinks of MySQL and MariaDB.
pub fn factory() -> impl SinkFactory {
    DatabaseSinkFactory::new(Mysql)
}
