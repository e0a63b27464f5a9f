//! The options of a stream of changes.

use super::super::columns::{check_declared, quoted_table};
use crate::{SourceError, SourceSpec};
use millstream_client::database::{ADDRESS_OPTIONS, Address, Product};
use millstream_common::Options;

/// How many changes a batch has at most where nobody says it, but for the last transaction, which is not cut.
const MAX_ROWS: u64 = 100_000;

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct CdcConfig {
    pub(super) address: Address,
    /// The table, as the user wrote it.
    pub(super) shown: String,
    /// The table, as statements write it.
    pub(super) table: String,
    /// The slot, when the user names it.
    pub(super) slot: Option<String>,
    /// The publication, when the user names it.
    pub(super) publication: Option<String>,
    pub(super) snapshot: bool,
    pub(super) max_rows: u64,
}

impl CdcConfig {
    pub(super) fn new(spec: &SourceSpec) -> Result<Self, SourceError> {
        let owner = format!("source `{}`", spec.name);
        let owner = owner.as_str();
        let own = ["dbtable", "slot", "publication", "snapshot", "maxRowsPerTrigger"];
        spec.options.only(owner, &[&ADDRESS_OPTIONS[..], &own[..]].concat())?;
        let environment = |name: &str| std::env::var(name).ok();
        let address = Address::new(Product::Postgres, owner, &spec.options, &environment)?;
        let shown = spec.options.require(owner, "dbtable")?.to_owned();
        let table = quoted_table(&shown)
            .ok_or_else(|| Options::invalid(owner, "dbtable", &shown, "write `table` or `schema.table`"))?;
        let named = |option: &str| -> Result<Option<String>, SourceError> {
            let Some(name) = spec.options.get(option) else { return Ok(None) };
            let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
            if name.is_empty() || name.len() > 63 || !name.chars().all(fits) {
                let reason = "write 1 to 63 small letters, digits and `_`";
                return Err(Options::invalid(owner, option, name, reason).into());
            }
            Ok(Some(name.to_owned()))
        };
        let expected = "write a whole number greater than 0";
        let max_rows = spec.options.parse(owner, "maxRowsPerTrigger", expected)?.unwrap_or(MAX_ROWS);
        if max_rows == 0 {
            return Err(Options::invalid(owner, "maxRowsPerTrigger", "0", expected).into());
        }
        if let Some(declared) = &spec.schema {
            check_declared(&spec.name, declared)?;
        }
        Ok(Self {
            address,
            table,
            slot: named("slot")?,
            publication: named("publication")?,
            snapshot: spec.options.flag(owner, "snapshot", true)?,
            max_rows,
            shown,
        })
    }
}
