//! A table or a query that is read whole.

use super::columns::{check_declared, quote, quoted_table, schema};
use crate::connectors::database::{Raw, ReadTable, RowBuilder, TableSource, failed};
use crate::{Refresh, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use millstream_client::database::{ADDRESS_OPTIONS, Address, DatabaseError, Product};
use millstream_client::postgres::{Connection, TextRow};
use millstream_common::Options;
use std::sync::Arc;

/// How many rows are fetched at once.
const FETCH: usize = 10_000;

/// Makes tables of PostgreSQL.
#[derive(Debug, Clone, Copy)]
pub struct PostgresTableFactory;

/// The options, checked.
struct TableConfig {
    address: Address,
    /// What stands behind FROM.
    from: String,
    shown: String,
}

impl TableConfig {
    fn new(spec: &SourceSpec) -> Result<Self, SourceError> {
        let owner = format!("table `{}`", spec.name);
        let owner = owner.as_str();
        spec.options.only(owner, &[&ADDRESS_OPTIONS[..], &["dbtable", "query", "refresh"]].concat())?;
        let environment = |name: &str| std::env::var(name).ok();
        let address = Address::new(Product::Postgres, owner, &spec.options, &environment)?;
        let (from, shown) = from(owner, &spec.options)?;
        Refresh::of(spec)?;
        if let Some(declared) = &spec.schema {
            check_declared(&spec.name, declared)?;
        }
        Ok(Self { address, from, shown })
    }

    fn connect(&self) -> Result<Connection, DatabaseError> {
        Connection::open(&self.address, "millstream table", &millstream_common::StopSignal::new())
    }

    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        if let Some(declared) = &spec.schema {
            let fields = declared.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
            return Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())));
        }
        let ask = || schema_of(&mut self.connect()?, &self.from);
        ask().map_err(failed(&spec.name, "ask for the columns of the table"))
    }
}

fn schema_of(connection: &mut Connection, from: &str) -> Result<SchemaRef, DatabaseError> {
    Ok(schema(&connection.describe(&format!("SELECT * FROM {from}"))?))
}

/// What stands behind FROM, by Spark's options `dbtable` and `query`, and what is shown of it.
fn from(owner: &str, options: &Options) -> Result<(String, String), SourceError> {
    match (options.get("dbtable"), options.get("query")) {
        (Some(_), Some(query)) => {
            let reason = "`dbtable` is set too; keep one of the two";
            Err(Options::invalid(owner, "query", query, reason).into())
        }
        (None, Some(query)) => Ok((format!("({}) AS rows", query.trim().trim_end_matches(';')), "a query".to_owned())),
        (table, None) => {
            let table = match table {
                Some(table) => table,
                None => options.require(owner, "dbtable")?,
            };
            if table.trim_start().starts_with('(') {
                return Ok((table.to_owned(), "a query".to_owned()));
            }
            let quoted = quoted_table(table).ok_or_else(|| {
                Options::invalid(owner, "dbtable", table, "write `table`, `schema.table` or `(SELECT …) AS name`")
            })?;
            Ok((quoted, table.to_owned()))
        }
    }
}

impl SourceFactory for PostgresTableFactory {
    /// Asks the server, where no columns are declared.
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        TableConfig::new(spec)?.schema(spec)
    }

    fn open(&self, spec: &SourceSpec, _: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let config = TableConfig::new(spec)?;
        let schema = config.schema(spec)?;
        let description = format!("PostgresTable[{}/{}]", config.address.place(), config.shown);
        let (name, columns) = (spec.name.clone(), Arc::clone(&schema));
        let read: ReadTable = Box::new(move |projection| {
            let mut connection = config.connect().map_err(failed(&name, "connect"))?;
            connection.run(BEGIN).map_err(failed(&name, "read the table"))?;
            read_rows(&name, &mut connection, &config.from, &columns, projection, &mut |rows| all(rows))
        });
        Ok(Box::new(TableSource { description, schema, read }))
    }
}

fn all(rows: RecordBatch) -> Result<Option<RecordBatch>, SourceError> {
    Ok(Some(rows))
}

/// Begins a transaction that sees one state of the database.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Reads rows through a cursor in the transaction that has begun, and ends it. `take` may keep what it is given, or
/// hand it back to be collected.
pub(super) fn read_rows(
    name: &str,
    connection: &mut Connection,
    from: &str,
    schema: &SchemaRef,
    projection: &[usize],
    take: &mut dyn FnMut(RecordBatch) -> Result<Option<RecordBatch>, SourceError>,
) -> Result<Vec<RecordBatch>, SourceError> {
    let reading = failed(name, "read the table");
    let names: Vec<String> = projection.iter().map(|column| quote(schema.field(*column).name())).collect();
    // A row of no columns is a row all the same.
    let names = if names.is_empty() { "NULL".to_owned() } else { names.join(", ") };
    connection.run(&format!("DECLARE all_rows NO SCROLL CURSOR FOR SELECT {names} FROM {from}")).map_err(&reading)?;
    let mut collected = Vec::new();
    loop {
        let rows = connection.rows(&format!("FETCH {FETCH} FROM all_rows")).map_err(&reading)?;
        if rows.is_empty() {
            break;
        }
        let count = rows.len();
        let batch = batch(name, from, schema, projection, &rows)?;
        collected.extend(take(batch)?);
        if count < FETCH {
            break;
        }
    }
    connection.run("COMMIT").map_err(&reading)?;
    Ok(collected)
}

fn batch(
    name: &str,
    place: &str,
    schema: &SchemaRef,
    projection: &[usize],
    rows: &[TextRow],
) -> Result<RecordBatch, SourceError> {
    let misfit = |reason: String| SourceError::Schema { name: name.to_owned(), reason };
    let projected = Arc::new(schema.project(projection).map_err(|error| misfit(error.to_string()))?);
    let mut builder = RowBuilder::new(Arc::clone(&projected)).map_err(|error| misfit(error.to_string()))?;
    for row in rows {
        for (at, field) in projected.fields().iter().enumerate() {
            let raw = raw(row.get(at).map(str::as_bytes), field.data_type());
            builder.push(at, &raw).map_err(|reason| SourceError::Malformed {
                name: name.to_owned(),
                place: place.to_owned(),
                reason,
            })?;
        }
    }
    builder.finish(rows.len()).map_err(|error| misfit(error.to_string()))
}

/// A value in PostgreSQL's text form; bytes are written in hexadecimal digits.
pub(super) fn raw<'a>(text: Option<&'a [u8]>, data_type: &arrow::datatypes::DataType) -> Raw<'a> {
    let Some(text) = text else { return Raw::Null };
    if data_type == &arrow::datatypes::DataType::Binary
        && let Some(digits) = text.strip_prefix(b"\\x")
    {
        let byte = |pair: &[u8]| {
            let digit = |letter: u8| char::from(letter).to_digit(16).unwrap_or(0) as u8;
            digit(pair[0]) << 4 | pair.get(1).copied().map_or(0, digit)
        };
        return Raw::Text(digits.chunks(2).map(byte).collect::<Vec<u8>>().into());
    }
    Raw::Text(text.into())
}
