//! The options of tables and of streams of changes, as far as they are the same for both products.

use super::is_readable;
use crate::{Refresh, SourceError, SourceSpec};
use arrow::datatypes::Schema;
use millstream_client::database::{ADDRESS_OPTIONS, Address, Product, TableName};
use millstream_common::{OptionError, Options};

/// How many changes a batch has at most where nobody says it, but for the last transaction, which is not cut.
const MAX_ROWS: u64 = 100_000;

/// What is wrong with a number that is not greater than 0.
pub(crate) const POSITIVE: &str = "write a whole number greater than 0";

/// The options of a stream of changes.
#[derive(Debug, Clone)]
pub(crate) struct ChangeOptions {
    /// The server.
    pub(crate) address: Address,
    /// The table.
    pub(crate) table: TableName,
    /// Whether the rows that are there come first.
    pub(crate) snapshot: bool,
    /// About how many changes a batch has.
    pub(crate) max_rows: u64,
}

fn address(product: Product, owner: &str, options: &Options) -> Result<Address, OptionError> {
    Address::new(product, owner, options, &|name| std::env::var(name).ok())
}

impl ChangeOptions {
    /// The options, checked; `own` are those of the product alone. Answers who they belong to, for errors, too.
    pub(crate) fn new(product: Product, spec: &SourceSpec, own: &[&str]) -> Result<(Self, String), SourceError> {
        let owner = format!("source `{}`", spec.name);
        let shared = ["dbtable", "snapshot", "maxRowsPerTrigger"];
        spec.options.only(&owner, &[&ADDRESS_OPTIONS[..], &shared, own].concat())?;
        let address = address(product, &owner, &spec.options)?;
        let name = spec.options.require(&owner, "dbtable")?;
        let table =
            TableName::parse(product, name).map_err(|reason| Options::invalid(&owner, "dbtable", name, &reason))?;
        let max_rows = spec.options.parse(&owner, "maxRowsPerTrigger", POSITIVE)?.unwrap_or(MAX_ROWS);
        if max_rows == 0 {
            return Err(Options::invalid(&owner, "maxRowsPerTrigger", "0", POSITIVE).into());
        }
        check_declared(spec)?;
        let snapshot = spec.options.flag(&owner, "snapshot", true)?;
        Ok((Self { address, table, snapshot, max_rows }, owner))
    }

    /// The table, for people.
    pub(crate) fn shown(&self) -> String {
        self.table.shown()
    }
}

/// What a table's rows are of.
#[derive(Debug, Clone)]
pub(crate) enum From {
    /// A table.
    Table(TableName),
    /// A query in parentheses, with a name.
    Query(String),
}

impl From {
    /// By Spark's options `dbtable` and `query`.
    fn new(product: Product, owner: &str, options: &Options) -> Result<Self, SourceError> {
        match (options.get("dbtable"), options.get("query")) {
            (Some(_), Some(query)) => {
                let reason = "`dbtable` is set too; keep one of the two";
                Err(Options::invalid(owner, "query", query, reason).into())
            }
            (None, Some(query)) => {
                let query = query.trim().trim_end_matches(';');
                Ok(Self::Query(format!("({query}) AS {}", product.quote("rows"))))
            }
            (table, None) => {
                let table = match table {
                    Some(table) => table,
                    None => options.require(owner, "dbtable")?,
                };
                if table.trim_start().starts_with('(') {
                    return Ok(Self::Query(table.to_owned()));
                }
                let name = TableName::parse(product, table).map_err(|reason| {
                    Options::invalid(owner, "dbtable", table, &format!("{reason}, or `(SELECT …) AS name`"))
                })?;
                Ok(Self::Table(name))
            }
        }
    }

    /// What stands behind FROM.
    pub(crate) fn text(&self, product: Product) -> String {
        match self {
            Self::Table(name) => name.quoted(product),
            Self::Query(text) => text.clone(),
        }
    }

    /// For people.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Table(name) => name.shown(),
            Self::Query(_) => "a query".to_owned(),
        }
    }
}

/// The options of a table that is read whole.
#[derive(Debug, Clone)]
pub(crate) struct TableOptions {
    /// The server.
    pub(crate) address: Address,
    /// What is read.
    pub(crate) from: From,
}

impl TableOptions {
    /// The options, checked.
    pub(crate) fn new(product: Product, spec: &SourceSpec) -> Result<Self, SourceError> {
        let owner = format!("table `{}`", spec.name);
        spec.options.only(&owner, &[&ADDRESS_OPTIONS[..], &["dbtable", "query", "refresh"]].concat())?;
        let address = address(product, &owner, &spec.options)?;
        let from = From::new(product, &owner, &spec.options)?;
        Refresh::of(spec)?;
        check_declared(spec)?;
        Ok(Self { address, from })
    }
}

/// Whether the columns that a user declares can be read.
fn check_declared(spec: &SourceSpec) -> Result<(), SourceError> {
    let unreadable = |declared: &Schema| {
        let field = declared.fields().iter().find(|field| !is_readable(field.data_type()))?;
        Some(SourceError::Schema {
            name: spec.name.clone(),
            reason: format!(
                "column `{}` of type {} cannot be read from a database; declare it as STRING",
                field.name(),
                field.data_type()
            ),
        })
    };
    spec.schema.as_ref().and_then(|declared| unreadable(declared)).map_or(Ok(()), Err)
}
