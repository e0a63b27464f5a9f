//! Separated values in texts: `from_csv`, `to_csv`, `schema_of_csv`.
//!
//! A text is one record: an end of line in it is part of a value. Options are read once, when a query is planned. Source: Spark's
//! functions of these names, and what the parser below them answers. Files of separated values are read by their source, which
//! knows nothing of this.

mod from_csv;
mod infer;
mod options;
mod record;
mod to_csv;

pub(super) use infer::constant_schema;

use super::prepared::PreparedDefinition;

/// The functions of this folder, which are prepared when a query is planned.
pub(super) fn definitions() -> Vec<PreparedDefinition> {
    [from_csv::definitions(), infer::definitions(), to_csv::definitions()].concat()
}
