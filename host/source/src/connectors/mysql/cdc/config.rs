//! The options of a stream of changes.

use crate::connectors::database::{ChangeOptions, POSITIVE};
use crate::{SourceError, SourceSpec};
use millstream_client::database::Product;
use millstream_common::Options;

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct CdcConfig {
    pub(super) shared: ChangeOptions,
    /// By which number the server knows this reader, when the user says it.
    pub(super) server_id: Option<u32>,
}

impl CdcConfig {
    pub(super) fn new(spec: &SourceSpec) -> Result<Self, SourceError> {
        let (shared, owner) = ChangeOptions::new(Product::Mysql, spec, &["serverId"])?;
        let server_id = spec.options.parse(&owner, "serverId", POSITIVE)?;
        if server_id == Some(0) {
            return Err(Options::invalid(&owner, "serverId", "0", POSITIVE).into());
        }
        Ok(Self { shared, server_id })
    }

    /// The table's database and its name, as the user writes them.
    fn names(&self) -> (&str, &str) {
        let table = &self.shared.table;
        (table.schema.as_deref().unwrap_or(&self.shared.address.database), &table.table)
    }

    /// As a person writes it.
    pub(super) fn shown(&self) -> String {
        let (database, table) = self.names();
        format!("{database}.{table}")
    }
}
