//! The types of MySQL as columns.

use crate::SourceError;
use crate::connectors::database::is_readable;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use millstream_client::database::DatabaseError;
use millstream_client::mysql::{Connection, Value};
use std::sync::Arc;

/// A name in quotes.
pub(super) fn quote(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text in quotes.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A table's name in its parts: `table` or `database.table`, each quoted or not.
pub(super) fn table_name(text: &str) -> Option<(Option<String>, String)> {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = text.trim();
    loop {
        let (part, behind) = match rest.strip_prefix('`') {
            Some(quoted) => {
                let end = quoted.find('`')?;
                (&quoted[..end], &quoted[end + 1..])
            }
            None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
        };
        if part.is_empty() || part.contains([';', '(', ')']) {
            return None;
        }
        parts.push(part.to_owned());
        match behind.strip_prefix('.') {
            Some(next) => rest = next,
            None if behind.is_empty() && parts.len() <= 2 => break,
            None => return None,
        }
    }
    let table = parts.pop()?;
    Some((parts.pop(), table))
}

/// A table's name as statements write it.
pub(super) fn quoted_table((schema, table): &(Option<String>, String)) -> String {
    match schema {
        Some(schema) => format!("{}.{}", quote(schema), quote(table)),
        None => quote(table),
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MysqlColumn {
    pub(super) name: String,
    /// The whole type, in small letters: `int(11) unsigned`.
    pub(super) column_type: String,
}

/// The values of a row as text.
pub(super) fn texts(row: millstream_client::mysql::Row) -> Vec<Option<Vec<u8>>> {
    row.unwrap_raw()
        .into_iter()
        .map(|value| match value? {
            Value::NULL => None,
            Value::Bytes(bytes) => Some(bytes),
            other => Some(other.as_sql(true).trim_matches('\'').as_bytes().to_vec()),
        })
        .collect()
}

/// The columns of a table, in its order.
pub(super) fn of_table(
    connection: &mut Connection,
    (schema, table): &(Option<String>, String),
) -> Result<Vec<MysqlColumn>, DatabaseError> {
    let place = schema.as_deref().map_or("DATABASE()".to_owned(), literal);
    let rows = connection.rows(&format!(
        "SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {place} \
         AND TABLE_NAME = {} ORDER BY ORDINAL_POSITION",
        literal(table)
    ))?;
    if rows.is_empty() {
        return Err(DatabaseError::Missing {
            place: connection.address().place(),
            message: format!("there is no table `{table}`"),
        });
    }
    let column = |row| {
        let mut row =
            texts(row).into_iter().map(|text| String::from_utf8_lossy(&text.unwrap_or_default()).into_owned());
        MysqlColumn { name: row.next().unwrap_or_default(), column_type: row.next().unwrap_or_default().to_lowercase() }
    };
    Ok(rows.into_iter().map(column).collect())
}

/// The column that holds a type; what has no counterpart comes as text.
pub(super) fn data_type(column_type: &str) -> DataType {
    let name: &str = column_type.split(['(', ' ']).next().unwrap_or_default();
    let unsigned = column_type.contains("unsigned");
    match (name, unsigned) {
        ("tinyint", _) if column_type.starts_with("tinyint(1)") => DataType::Boolean,
        ("tinyint", false) => DataType::Int8,
        ("tinyint", true) | ("smallint", false) | ("year", _) => DataType::Int16,
        ("smallint", true) | ("mediumint" | "int", false) => DataType::Int32,
        ("mediumint" | "int", true) | ("bigint", false) => DataType::Int64,
        ("bigint", true) => DataType::Decimal128(20, 0),
        ("float", _) => DataType::Float32,
        ("double", _) => DataType::Float64,
        ("decimal", _) => decimal(column_type),
        ("date", _) => DataType::Date32,
        ("datetime" | "timestamp", _) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        ("binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "bit" | "geometry", _) => {
            DataType::Binary
        }
        _ => DataType::Utf8,
    }
}

fn decimal(column_type: &str) -> DataType {
    let inner =
        column_type.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("10,0", |(inner, _)| inner);
    let (precision, scale) = inner.split_once(',').unwrap_or((inner, "0"));
    match (precision.trim().parse(), scale.trim().parse()) {
        (Ok(precision @ 1..=38), Ok(scale @ 0..=38)) => DataType::Decimal128(precision, scale),
        _ => DataType::Utf8,
    }
}

/// Columns as a schema.
pub(super) fn schema(columns: &[MysqlColumn]) -> SchemaRef {
    let field = |column: &MysqlColumn| Field::new(&column.name, data_type(&column.column_type), true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// Whether the columns that a user declares can be read.
pub(super) fn check_declared(name: &str, declared: &Schema) -> Result<(), SourceError> {
    match declared.fields().iter().find(|field| !is_readable(field.data_type())) {
        Some(field) => Err(SourceError::Schema {
            name: name.to_owned(),
            reason: format!(
                "column `{}` of type {} cannot be read from a database; declare it as STRING",
                field.name(),
                field.data_type()
            ),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_without_a_sign_have_room() {
        for (text, expected) in [
            ("tinyint(1)", DataType::Boolean),
            ("tinyint(3) unsigned", DataType::Int16),
            ("int(10) unsigned", DataType::Int64),
            ("bigint(20) unsigned", DataType::Decimal128(20, 0)),
            ("decimal(10,2)", DataType::Decimal128(10, 2)),
            ("decimal(60,2)", DataType::Utf8),
            ("enum('a','b')", DataType::Utf8),
            ("longblob", DataType::Binary),
        ] {
            assert_eq!(data_type(text), expected, "{text}");
        }
    }

    #[test]
    fn names_have_one_or_two_parts() {
        assert_eq!(table_name("shop.`my.items`"), Some((Some("shop".into()), "my.items".into())));
        assert_eq!(table_name("items"), Some((None, "items".into())));
        for text in ["", "a.b.c", "`a", "a;b"] {
            assert_eq!(table_name(text), None, "{text}");
        }
    }
}
