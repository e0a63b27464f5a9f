//! Interface `migration`: stored state of older code becomes state of this code.

use wasmtime::component::{ComponentType, Lift};

use super::{Batch, BatchRef, Field, MIGRATION, RowError};
use crate::export::{answers, export};

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Step {
    pub(crate) state: String,
    #[component(name = "from-id")]
    pub(crate) from_id: String,
    #[component(name = "from-columns")]
    pub(crate) from_columns: Vec<Field>,
    #[component(name = "to-id")]
    pub(crate) to_id: String,
    #[component(name = "to-columns")]
    pub(crate) to_columns: Vec<Field>,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Migrated {
    pub(crate) rows: Batch,
    #[component(name = "row-errors")]
    pub(crate) row_errors: Vec<RowError>,
}

export! {
    /// `migration.describe`: what steps there are.
    DescribeSteps = MIGRATION, "describe", () -> Vec<Step>;
}

answers! {
    /// `migration.migrate`: step number, keys, rows of state.
    Migrate = MIGRATION, "migrate", (u32, BatchRef<'a>, BatchRef<'a>) -> Migrated;
}
