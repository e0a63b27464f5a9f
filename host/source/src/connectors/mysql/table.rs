//! Tables and queries that are read whole, in one statement.

use super::columns::{of_query, of_table, schema};
use crate::SourceError;
use crate::connectors::database::{From, Raw, RowBuilder, TableDialect, failed};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_client::database::{DatabaseError, Product};
use millstream_client::mysql::{ColumnType, Connection};
use std::sync::Arc;

/// How many rows a batch has at most.
const BATCH_ROWS: usize = 10_000;

/// MySQL's way to read a table.
pub(super) struct Mysql;

impl TableDialect for Mysql {
    type Connection = Connection;
    const PRODUCT: Product = Product::Mysql;

    fn columns(connection: &mut Connection, from: &From) -> Result<SchemaRef, DatabaseError> {
        Ok(schema(&match from {
            From::Table(name) => of_table(connection, name)?.columns,
            From::Query(text) => of_query(connection, text)?,
        }))
    }

    fn read(
        name: &str,
        connection: &mut Connection,
        from: &str,
        projected: &SchemaRef,
        take: &mut dyn FnMut(RecordBatch) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        read_rows(name, connection, from, projected, take)
    }
}

/// Reads rows in one statement, which sees one state of the table. They are never in memory all at once.
pub(super) fn read_rows(
    name: &str,
    connection: &mut Connection,
    from: &str,
    projected: &SchemaRef,
    take: &mut dyn FnMut(RecordBatch) -> Result<(), SourceError>,
) -> Result<(), SourceError> {
    let reading = failed(name, "read the table");
    let names: Vec<String> = projected.fields().iter().map(|field| Product::Mysql.quote(field.name())).collect();
    // Asked of the server: a user may have declared other columns than it has.
    let types = match names.is_empty() {
        true => Vec::new(),
        false => connection.types(&format!("SELECT {} FROM {from} LIMIT 0", names.join(", "))).map_err(&reading)?,
    };
    let mut taken = Ok(());
    let sql = format!("SELECT {} FROM {from}", selected(&names, &types));
    let read = connection.read(&sql, BATCH_ROWS, &mut |rows| {
        taken = batch(name, from, projected, &rows).and_then(&mut *take);
        taken.is_ok()
    });
    taken.and(read.map_err(&reading))
}

/// What is selected to have all of each column. A FLOAT is written with six digits, and the DOUBLE that it is with all.
fn selected(names: &[String], types: &[ColumnType]) -> String {
    let all: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(at, name)| match types.get(at) {
            Some(ColumnType::MYSQL_TYPE_FLOAT) => format!("{name} * 1e0"),
            _ => name.clone(),
        })
        .collect();
    // A row of no columns is a row all the same.
    if all.is_empty() { "NULL".to_owned() } else { all.join(", ") }
}

fn batch(
    name: &str,
    place: &str,
    projected: &SchemaRef,
    rows: &[Vec<Option<Vec<u8>>>],
) -> Result<RecordBatch, SourceError> {
    let misfit = |reason: String| SourceError::Schema { name: name.to_owned(), reason };
    let mut builder = RowBuilder::new(Arc::clone(projected)).map_err(|error| misfit(error.to_string()))?;
    for row in rows {
        for at in 0..projected.fields().len() {
            let raw = row.get(at).and_then(Option::as_deref).map_or(Raw::Null, |bytes| Raw::Text(bytes.into()));
            builder.push(at, &raw).map_err(|reason| SourceError::Malformed {
                name: name.to_owned(),
                place: place.to_owned(),
                reason,
            })?;
        }
    }
    builder.finish(rows.len()).map_err(|error| misfit(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_float_is_selected_as_a_double() {
        let names = ["`a`".to_owned(), "`b`".to_owned()];
        let types = [ColumnType::MYSQL_TYPE_DOUBLE, ColumnType::MYSQL_TYPE_FLOAT];
        assert_eq!(selected(&names, &types), "`a`, `b` * 1e0");
        assert_eq!(selected(&[], &[]), "NULL");
    }
}
