//! PostgreSQL as input: tables and queries that are read whole, and the changes of a table as a stream.
//!
//! [`table`] is the format `postgresql`, for static tables; [`cdc`] is the format `postgresql-cdc`. Both ask the server
//! for columns ([`columns`]) where the user declares none.

mod cdc;
mod columns;
mod table;

pub use cdc::PostgresCdcFactory;

use super::database::TableFactory;
use crate::SourceFactory;

/// The name of the format of tables.
pub const FORMAT: &str = "postgresql";
/// The name of the format of changes.
pub const CDC_FORMAT: &str = "postgresql-cdc";

/// What makes tables of PostgreSQL.
pub fn tables() -> impl SourceFactory {
    TableFactory::<table::Postgres>::new()
}
