//! MySQL and MariaDB as input: tables and queries that are read whole, and the changes of a table as a stream.
//!
//! [`table`] is the format `mysql`, for static tables; [`cdc`] is the format `mysql-cdc`. Both ask the server for
//! columns ([`columns`]) where the user declares none.

mod cdc;
mod columns;
mod table;

pub use cdc::MysqlCdcFactory;

use super::database::TableFactory;
use crate::SourceFactory;

/// The name of the format of tables.
pub const FORMAT: &str = "mysql";
/// The name of the format of changes.
pub const CDC_FORMAT: &str = "mysql-cdc";

/// What makes tables of MySQL and MariaDB.
pub fn tables() -> impl SourceFactory {
    TableFactory::<table::Mysql>::new()
}
