//! The types of MySQL as columns.

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use millstream_client::database::{DatabaseError, Product, TableName};
use millstream_client::mysql::Connection;
use std::sync::Arc;

/// A table as the server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MysqlTable {
    /// Its database, as the server writes it.
    pub(super) database: String,
    /// Its name, as the server writes it.
    pub(super) name: String,
    /// Its columns, in its order.
    pub(super) columns: Vec<MysqlColumn>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MysqlColumn {
    pub(super) name: String,
    /// The whole type, in small letters but for words in quotes: `int(11) unsigned`.
    pub(super) column_type: String,
    /// Whether it is of the primary key.
    pub(super) is_key: bool,
    /// The character set of its text, if it has text.
    pub(super) charset: Option<String>,
}

/// A table and its columns. A server may write the table's name otherwise than the user does.
pub(super) fn of_table(connection: &mut Connection, name: &TableName) -> Result<MysqlTable, DatabaseError> {
    let literal = |text: &str| Product::Mysql.literal(text);
    let place = name.schema.as_deref().map_or("DATABASE()".to_owned(), literal);
    let rows = connection.texts(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, COLUMN_KEY, CHARACTER_SET_NAME \
         FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {place} AND TABLE_NAME = {} ORDER BY ORDINAL_POSITION",
        literal(&name.table)
    ))?;
    let mut table: Option<MysqlTable> = None;
    for row in rows {
        let mut row = row.into_iter();
        let mut next = || row.next().flatten();
        let (database, name) = (next().unwrap_or_default(), next().unwrap_or_default());
        let (column, column_type, key) = (next(), next(), next());
        let column = MysqlColumn {
            name: column.unwrap_or_default(),
            column_type: in_small_letters(&column_type.unwrap_or_default()),
            is_key: key.as_deref() == Some("PRI"),
            charset: next(),
        };
        table.get_or_insert(MysqlTable { database, name, columns: Vec::new() }).columns.push(column);
    }
    table.ok_or_else(|| DatabaseError::Missing {
        place: connection.address().place(),
        message: format!("there is no table `{}`", name.shown()),
    })
}

/// The columns of a query, by a table of it that lives for a moment.
pub(super) fn of_query(connection: &mut Connection, text: &str) -> Result<Vec<MysqlColumn>, DatabaseError> {
    connection.run(&format!("CREATE TEMPORARY TABLE millstream_columns AS SELECT * FROM {text} LIMIT 0"))?;
    let column = |row: Vec<Option<String>>| {
        let mut row = row.into_iter().map(Option::unwrap_or_default);
        let (name, column_type) = (row.next().unwrap_or_default(), row.next().unwrap_or_default());
        MysqlColumn { name, column_type: in_small_letters(&column_type), is_key: false, charset: None }
    };
    Ok(connection.texts("SHOW COLUMNS FROM millstream_columns")?.into_iter().map(column).collect())
}

/// A type in small letters; the words of an enumeration keep theirs.
fn in_small_letters(column_type: &str) -> String {
    match column_type.find('\'') {
        Some(words) => format!("{}{}", column_type[..words].to_lowercase(), &column_type[words..]),
        None => column_type.to_lowercase(),
    }
}

/// The name of a type: what stands before its sizes.
pub(super) fn type_name(column_type: &str) -> &str {
    column_type.split(['(', ' ']).next().unwrap_or_default()
}

/// Whether a type is of points and shapes. Their values are bytes: four for the system of coordinates, then WKB.
pub(super) fn is_geometry(name: &str) -> bool {
    let name = name.strip_prefix("multi").unwrap_or(name);
    matches!(name, "geometry" | "point" | "linestring" | "polygon" | "geometrycollection" | "geomcollection")
}

/// The column that holds a type; what has no counterpart comes as text.
pub(super) fn data_type(column_type: &str) -> DataType {
    let name = type_name(column_type);
    let unsigned = column_type.contains("unsigned");
    match (name, unsigned) {
        ("tinyint", _) if column_type.starts_with("tinyint(1)") => DataType::Boolean,
        ("bit", _) if column_type == "bit(1)" => DataType::Boolean,
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
        ("binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "bit", _) => DataType::Binary,
        (name, _) if is_geometry(name) => DataType::Binary,
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
            ("bit(1)", DataType::Boolean),
            ("bit(10)", DataType::Binary),
            ("point", DataType::Binary),
            ("multipolygon", DataType::Binary),
            ("inet6", DataType::Utf8),
        ] {
            assert_eq!(data_type(text), expected, "{text}");
        }
    }

    #[test]
    fn the_words_of_an_enumeration_keep_their_letters() {
        assert_eq!(in_small_letters("ENUM('Big','small')"), "enum('Big','small')");
        assert_eq!(in_small_letters("INT(11) UNSIGNED"), "int(11) unsigned");
    }
}
