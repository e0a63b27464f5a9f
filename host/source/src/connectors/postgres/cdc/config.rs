//! The options of a stream of changes.

use crate::connectors::database::ChangeOptions;
use crate::{SourceError, SourceSpec};
use millstream_client::database::Product;
use millstream_common::Options;

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct CdcConfig {
    pub(super) shared: ChangeOptions,
    /// The table, as statements write it.
    pub(super) table: String,
    /// The slot, when the user names it.
    pub(super) slot: Option<String>,
    /// The publication, when the user names it.
    pub(super) publication: Option<String>,
}

impl CdcConfig {
    pub(super) fn new(spec: &SourceSpec) -> Result<Self, SourceError> {
        let (shared, owner) = ChangeOptions::new(Product::Postgres, spec, &["slot", "publication"])?;
        let named = |option: &str| -> Result<Option<String>, SourceError> {
            let Some(name) = spec.options.get(option) else { return Ok(None) };
            let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
            if name.is_empty() || name.len() > 63 || !name.chars().all(fits) {
                let reason = "write 1 to 63 small letters, digits and `_`";
                return Err(Options::invalid(&owner, option, name, reason).into());
            }
            Ok(Some(name.to_owned()))
        };
        let table = shared.table.quoted(Product::Postgres);
        Ok(Self { table, slot: named("slot")?, publication: named("publication")?, shared })
    }

    /// The table as a text that PostgreSQL looks up.
    pub(super) fn looked_up(&self) -> String {
        format!("to_regclass({})", literal(&self.table))
    }
}

/// A text in quotes.
pub(super) fn literal(text: &str) -> String {
    Product::Postgres.literal(text)
}
