//! The options of a stream of changes.

use super::super::columns::{check_declared, table_name};
use crate::{SourceError, SourceSpec};
use millstream_client::database::{ADDRESS_OPTIONS, Address, Product};
use millstream_common::Options;

/// How many changes a batch has at most where nobody says it, but for the last transaction, which is not cut.
const MAX_ROWS: u64 = 100_000;

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct CdcConfig {
    pub(super) address: Address,
    /// Database, when it is named, and table.
    pub(super) table: (Option<String>, String),
    /// By which number the server knows this reader, when the user says it.
    pub(super) server_id: Option<u32>,
    pub(super) snapshot: bool,
    pub(super) max_rows: u64,
}

impl CdcConfig {
    pub(super) fn new(spec: &SourceSpec) -> Result<Self, SourceError> {
        let owner = format!("source `{}`", spec.name);
        let owner = owner.as_str();
        let own = ["dbtable", "serverId", "snapshot", "maxRowsPerTrigger"];
        spec.options.only(owner, &[&ADDRESS_OPTIONS[..], &own[..]].concat())?;
        let environment = |name: &str| std::env::var(name).ok();
        let address = Address::new(Product::Mysql, owner, &spec.options, &environment)?;
        let shown = spec.options.require(owner, "dbtable")?;
        let table = table_name(shown)
            .ok_or_else(|| Options::invalid(owner, "dbtable", shown, "write `table` or `database.table`"))?;
        let expected = "write a whole number greater than 0";
        let server_id = spec.options.parse(owner, "serverId", expected)?;
        let max_rows = spec.options.parse(owner, "maxRowsPerTrigger", expected)?.unwrap_or(MAX_ROWS);
        for (option, value) in [("serverId", server_id.map(u64::from)), ("maxRowsPerTrigger", Some(max_rows))] {
            if value == Some(0) {
                return Err(Options::invalid(owner, option, "0", expected).into());
            }
        }
        if let Some(declared) = &spec.schema {
            check_declared(&spec.name, declared)?;
        }
        Ok(Self { address, table, server_id, snapshot: spec.options.flag(owner, "snapshot", true)?, max_rows })
    }

    /// The table's database and its name.
    pub(super) fn names(&self) -> (&str, &str) {
        (self.table.0.as_deref().unwrap_or(&self.address.database), &self.table.1)
    }

    /// As a person writes it.
    pub(super) fn shown(&self) -> String {
        let (database, table) = self.names();
        format!("{database}.{table}")
    }
}
