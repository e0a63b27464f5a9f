//! The options of sinks of databases: Spark's names for its JDBC writer, and what exactly once and upserts need.

use super::Dialect;
use crate::{SinkError, SinkSpec};
use arrow::datatypes::{DataType, Schema};
use millstream_client::database::{ADDRESS_OPTIONS, Address, TableName};
use millstream_client::server_options::retry_timeout;
use millstream_common::Options;
use std::time::Duration;

/// The options beside those of the address.
const OWN: [&str; 6] = ["dbtable", "key", "changeColumn", "createTable", "batchsize", "retryTimeout"];
/// How many rows a statement has where nobody says it, as in Spark.
const BATCH_SIZE: usize = 1000;

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct DatabaseConfig {
    pub(super) address: Address,
    pub(super) table: TableName,
    /// The columns by which rows are written over; none when rows are added.
    pub(super) key: Vec<String>,
    /// The column that says what a row changes.
    pub(super) change: Option<String>,
    /// Whether a table that is missing is created.
    pub(super) create: bool,
    pub(super) batch_size: usize,
    /// For how long a batch is tried again when the server is away.
    pub(super) retry: Duration,
}

impl DatabaseConfig {
    pub(super) fn new(dialect: &dyn Dialect, spec: &SinkSpec) -> Result<Self, SinkError> {
        let options = &spec.options;
        let owner = format!("sink `{}`", dialect.format());
        let owner = owner.as_str();
        options.only(owner, &[&ADDRESS_OPTIONS[..], &OWN[..]].concat())?;
        let environment = |name: &str| std::env::var(name).ok();
        let address = Address::new(dialect.product(), owner, options, &environment)?;
        let name = options.require(owner, "dbtable")?;
        let table = TableName::parse(dialect.product(), name)
            .map_err(|reason| Options::invalid(owner, "dbtable", name, &reason))?;
        let key = match options.get("key") {
            None => Vec::new(),
            Some(text) => {
                let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
                let is_twice = |(at, name): (usize, &String)| names[..at].contains(name);
                if names.iter().any(String::is_empty) || names.iter().enumerate().any(is_twice) {
                    return Err(Options::invalid(owner, "key", text, "write names of columns, as in `a, b`").into());
                }
                names
            }
        };
        let change = options.get("changeColumn").map(str::to_owned);
        if let Some(change) = &change
            && key.is_empty()
        {
            let reason = "changes need a `key` by which rows are found";
            return Err(Options::invalid(owner, "changeColumn", change, reason).into());
        }
        let batch_size = options.parse(owner, "batchsize", "write a number of rows greater than 0")?;
        let batch_size = batch_size.unwrap_or(BATCH_SIZE);
        if batch_size == 0 {
            return Err(Options::invalid(owner, "batchsize", "0", "write a number of rows greater than 0").into());
        }
        let retry = retry_timeout(owner, options)?;
        let create = options.flag(owner, "createTable", true)?;
        Ok(Self { address, table, key, change, create, batch_size, retry })
    }

    /// Where in the rows stands what they change; what is wrong with that goes to `wrong`.
    pub(super) fn change_index(&self, schema: &Schema, wrong: &mut Vec<String>) -> Option<usize> {
        let name = self.change.as_ref()?;
        let Ok(index) = schema.index_of(name) else {
            wrong.push(missing("changeColumn", name, schema));
            return None;
        };
        let data_type = schema.field(index).data_type();
        if data_type != &DataType::Utf8 {
            wrong.push(format!("option `changeColumn` names column `{name}` of type {data_type}; it must be a string"));
        }
        if self.key.contains(name) {
            wrong.push(format!("column `{name}` is both the `changeColumn` and in the `key`; it is not written"));
        }
        Some(index)
    }

    /// Whether the key is among the columns and can be one; what is wrong goes to `wrong`.
    pub(super) fn check_key(&self, schema: &Schema, wrong: &mut Vec<String>) {
        for name in &self.key {
            match schema.field_with_name(name) {
                Err(_) => wrong.push(missing("key", name, schema)),
                Ok(field) if field.data_type().is_nested() => wrong
                    .push(format!("option `key` names column `{name}` of type {}, which is no key", field.data_type())),
                Ok(_) => {}
            }
        }
    }
}

fn missing(option: &str, name: &str, schema: &Schema) -> String {
    let there: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    format!("option `{option}` names column `{name}`, and there are {}", there.join(", "))
}
