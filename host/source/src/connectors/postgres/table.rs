//! Tables and queries that are read whole, through a cursor.

use super::columns::schema;
use crate::SourceError;
use crate::connectors::database::{From, Raw, RowBuilder, TableDialect, failed};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use millstream_client::database::{DatabaseError, Product};
use millstream_client::postgres::{Connection, TextRow};
use std::sync::Arc;

/// How many rows are fetched at once.
const FETCH: usize = 10_000;

/// Begins a transaction that sees one state of the database.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// PostgreSQL's way to read a table.
pub(super) struct Postgres;

impl TableDialect for Postgres {
    type Connection = Connection;
    const PRODUCT: Product = Product::Postgres;

    fn columns(connection: &mut Connection, from: &From) -> Result<SchemaRef, DatabaseError> {
        Ok(schema(&connection.describe(&format!("SELECT * FROM {}", from.text(Self::PRODUCT)))?))
    }

    fn read(
        name: &str,
        connection: &mut Connection,
        from: &str,
        projected: &SchemaRef,
        take: &mut dyn FnMut(RecordBatch) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        connection.run(BEGIN).map_err(failed(name, "read the table"))?;
        read_rows(name, connection, from, projected, take)
    }
}

/// Reads rows through a cursor in the transaction that has begun, and ends it.
pub(super) fn read_rows(
    name: &str,
    connection: &mut Connection,
    from: &str,
    projected: &SchemaRef,
    take: &mut dyn FnMut(RecordBatch) -> Result<(), SourceError>,
) -> Result<(), SourceError> {
    let reading = failed(name, "read the table");
    let names: Vec<String> = projected.fields().iter().map(|field| Product::Postgres.quote(field.name())).collect();
    // A row of no columns is a row all the same.
    let names = if names.is_empty() { "NULL".to_owned() } else { names.join(", ") };
    connection.run(&format!("DECLARE all_rows NO SCROLL CURSOR FOR SELECT {names} FROM {from}")).map_err(&reading)?;
    loop {
        let rows = connection.rows(&format!("FETCH {FETCH} FROM all_rows")).map_err(&reading)?;
        let count = rows.len();
        if count > 0 {
            take(batch(name, from, projected, &rows)?)?;
        }
        if count < FETCH {
            break;
        }
    }
    connection.run("COMMIT").map_err(&reading)
}

fn batch(name: &str, place: &str, projected: &SchemaRef, rows: &[TextRow]) -> Result<RecordBatch, SourceError> {
    let misfit = |reason: String| SourceError::Schema { name: name.to_owned(), reason };
    let mut builder = RowBuilder::new(Arc::clone(projected)).map_err(|error| misfit(error.to_string()))?;
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
pub(super) fn raw<'a>(text: Option<&'a [u8]>, data_type: &DataType) -> Raw<'a> {
    let Some(text) = text else { return Raw::Null };
    if data_type == &DataType::Binary
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
