//! A table or a query that is read whole.

use super::columns::{MysqlColumn, check_declared, of_table, quote, quoted_table, schema, table_name, texts};
use crate::connectors::database::{Raw, ReadTable, RowBuilder, TableSource, failed};
use crate::{Refresh, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use millstream_client::database::{ADDRESS_OPTIONS, Address, DatabaseError, Product};
use millstream_client::mysql::Connection;
use millstream_common::Options;
use std::sync::Arc;

/// How many rows a batch has at most.
const BATCH_ROWS: usize = 10_000;

/// Makes tables of MySQL and MariaDB.
#[derive(Debug, Clone, Copy)]
pub struct MysqlTableFactory;

/// What is read.
enum From {
    Table((Option<String>, String)),
    Query(String),
}

impl From {
    fn new(owner: &str, options: &Options) -> Result<Self, SourceError> {
        match (options.get("dbtable"), options.get("query")) {
            (Some(_), Some(query)) => {
                let reason = "`dbtable` is set too; keep one of the two";
                Err(Options::invalid(owner, "query", query, reason).into())
            }
            (None, Some(query)) => Ok(Self::Query(format!("({}) AS `rows`", query.trim().trim_end_matches(';')))),
            (table, None) => {
                let table = match table {
                    Some(table) => table,
                    None => options.require(owner, "dbtable")?,
                };
                if table.trim_start().starts_with('(') {
                    return Ok(Self::Query(table.to_owned()));
                }
                let name = table_name(table).ok_or_else(|| {
                    Options::invalid(owner, "dbtable", table, "write `table`, `database.table` or `(SELECT …) AS name`")
                })?;
                Ok(Self::Table(name))
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Table(name) => quoted_table(name),
            Self::Query(text) => text.clone(),
        }
    }

    /// The columns; those of a query by a view of it that lives for a moment.
    fn columns(&self, connection: &mut Connection) -> Result<Vec<MysqlColumn>, DatabaseError> {
        match self {
            Self::Table(name) => of_table(connection, name),
            Self::Query(text) => {
                connection
                    .run(&format!("CREATE TEMPORARY TABLE millstream_columns AS SELECT * FROM {text} LIMIT 0"))?;
                let rows = connection.rows("SHOW COLUMNS FROM millstream_columns")?;
                let column = |row| {
                    let mut row = texts(row).into_iter().map(Option::unwrap_or_default);
                    let mut next = || String::from_utf8_lossy(&row.next().unwrap_or_default()).into_owned();
                    MysqlColumn { name: next(), column_type: next().to_lowercase() }
                };
                Ok(rows.into_iter().map(column).collect())
            }
        }
    }
}

/// The options, checked.
struct TableConfig {
    address: Address,
    from: From,
}

impl TableConfig {
    fn new(spec: &SourceSpec) -> Result<Self, SourceError> {
        let owner = format!("table `{}`", spec.name);
        let owner = owner.as_str();
        spec.options.only(owner, &[&ADDRESS_OPTIONS[..], &["dbtable", "query", "refresh"]].concat())?;
        let environment = |name: &str| std::env::var(name).ok();
        let address = Address::new(Product::Mysql, owner, &spec.options, &environment)?;
        let from = From::new(owner, &spec.options)?;
        Refresh::of(spec)?;
        if let Some(declared) = &spec.schema {
            check_declared(&spec.name, declared)?;
        }
        Ok(Self { address, from })
    }

    fn connect(&self) -> Result<Connection, DatabaseError> {
        Connection::open(&self.address, "millstream table", &millstream_common::StopSignal::new())
    }

    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        if let Some(declared) = &spec.schema {
            let fields = declared.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
            return Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())));
        }
        let ask = || self.from.columns(&mut self.connect()?).map(|columns| schema(&columns));
        ask().map_err(failed(&spec.name, "ask for the columns of the table"))
    }
}

impl SourceFactory for MysqlTableFactory {
    /// Asks the server, where no columns are declared.
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        TableConfig::new(spec)?.schema(spec)
    }

    fn open(&self, spec: &SourceSpec, _: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let config = TableConfig::new(spec)?;
        let schema = config.schema(spec)?;
        let shown = match &config.from {
            From::Table((_, table)) => table.clone(),
            From::Query(_) => "a query".to_owned(),
        };
        let description = format!("MysqlTable[{}/{shown}]", config.address.place());
        let (name, columns) = (spec.name.clone(), Arc::clone(&schema));
        let read: ReadTable = Box::new(move |projection| {
            let mut connection = config.connect().map_err(failed(&name, "connect"))?;
            read_rows(&name, &mut connection, &config.from.text(), &columns, projection)
        });
        Ok(Box::new(TableSource { description, schema, read }))
    }
}

/// Reads rows in one statement, which sees one state of the table.
pub(super) fn read_rows(
    name: &str,
    connection: &mut Connection,
    from: &str,
    schema: &SchemaRef,
    projection: &[usize],
) -> Result<Vec<RecordBatch>, SourceError> {
    let misfit = |reason: String| SourceError::Schema { name: name.to_owned(), reason };
    let projected = Arc::new(schema.project(projection).map_err(|error| misfit(error.to_string()))?);
    let names: Vec<String> = projected.fields().iter().map(|field| quote(field.name())).collect();
    // A row of no columns is a row all the same.
    let names = if names.is_empty() { "NULL".to_owned() } else { names.join(", ") };
    let rows = connection.rows(&format!("SELECT {names} FROM {from}")).map_err(failed(name, "read the table"))?;
    let builder = || RowBuilder::new(Arc::clone(&projected)).map_err(|error| misfit(error.to_string()));
    let mut batches = Vec::new();
    let (mut open, mut count) = (builder()?, 0);
    for row in rows {
        let values = texts(row);
        for at in 0..projected.fields().len() {
            let raw = values.get(at).and_then(Option::as_deref).map_or(Raw::Null, |bytes| Raw::Text(bytes.into()));
            open.push(at, &raw).map_err(|reason| SourceError::Malformed {
                name: name.to_owned(),
                place: from.to_owned(),
                reason,
            })?;
        }
        count += 1;
        if count == BATCH_ROWS {
            let full = std::mem::replace(&mut open, builder()?);
            batches.push(full.finish(std::mem::take(&mut count)).map_err(|error| misfit(error.to_string()))?);
        }
    }
    if count > 0 {
        batches.push(open.finish(count).map_err(|error| misfit(error.to_string()))?);
    }
    Ok(batches)
}
