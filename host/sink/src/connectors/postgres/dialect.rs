//! PostgreSQL's words.

use super::session::PostgresSession;
use crate::connectors::database::{Dialect, Family, Session};
use arrow::datatypes::{DataType, Field};
use millstream_client::database::{Address, DatabaseError, Product};
use millstream_client::postgres::Connection;
use millstream_common::StopSignal;

/// PostgreSQL.
pub(super) struct Postgres;

/// The kind of a column, by the name of its type.
pub(super) fn family(data_type: &str) -> Family {
    match data_type {
        "bool" => Family::Boolean,
        "int2" | "int4" | "int8" => Family::Integer,
        "numeric" => Family::Decimal,
        "float4" => Family::Single,
        "float8" => Family::Double,
        "text" | "varchar" | "bpchar" | "name" | "citext" => Family::Text,
        "json" | "jsonb" => Family::Json,
        "bytea" => Family::Binary,
        "date" => Family::Date,
        "timestamp" | "timestamptz" => Family::Timestamp,
        _ => Family::Other,
    }
}

impl Dialect for Postgres {
    fn format(&self) -> &'static str {
        super::FORMAT
    }

    fn product(&self) -> Product {
        Product::Postgres
    }

    fn meets_by_any_index(&self) -> bool {
        false
    }

    fn column_type(&self, field: &Field, _is_key: bool) -> String {
        column_type(field.data_type())
    }

    fn table_options(&self) -> &'static str {
        ""
    }

    fn count_up(&self, table: &str, columns: [&str; 3], values: [&str; 2]) -> String {
        let [first, second, counter] = columns.map(|name| self.quote(name));
        let [one, other] = values;
        format!(
            "INSERT INTO {table} AS book ({first}, {second}, {counter}) VALUES ({one}, {other}, 1) \
             ON CONFLICT ({first}, {second}) DO UPDATE SET {counter} = book.{counter} + 1"
        )
    }

    fn connect(&self, address: &Address, stop: &StopSignal) -> Result<Box<dyn Session>, DatabaseError> {
        Ok(Box::new(PostgresSession::new(Connection::open(address, "millstream sink", stop)?)))
    }
}

fn column_type(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean",
        DataType::Int8 | DataType::Int16 => "smallint",
        DataType::Int32 => "integer",
        DataType::Int64 => "bigint",
        DataType::Float32 => "real",
        DataType::Float64 => "double precision",
        DataType::Decimal128(precision, scale) => return format!("numeric({precision},{scale})"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytea",
        DataType::Date32 => "date",
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone",
        DataType::Timestamp(_, None) => "timestamp without time zone",
        DataType::Dictionary(_, values) => return column_type(values),
        _ => "jsonb",
    }
    .to_owned()
}
