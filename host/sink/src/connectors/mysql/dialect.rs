//! MySQL's words.

use super::session::MysqlSession;
use crate::connectors::database::{Dialect, Family, Session};
use arrow::datatypes::{DataType, Field};
use millstream_client::database::{Address, DatabaseError, Product};
use millstream_client::mysql::Connection;
use millstream_common::StopSignal;

/// MySQL and MariaDB.
pub(crate) struct Mysql;

/// The kind of a column, by the name of its type and the whole of it.
pub(super) fn family(data_type: &str, column_type: &str) -> Family {
    match data_type {
        "tinyint" if column_type.starts_with("tinyint(1)") => Family::Boolean,
        "bit" if column_type == "bit(1)" => Family::Boolean,
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" => Family::Integer,
        "decimal" => Family::Decimal,
        "float" => Family::Single,
        "double" => Family::Double,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => Family::Text,
        "json" => Family::Json,
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Family::Binary,
        "date" => Family::Date,
        "datetime" | "timestamp" => Family::Timestamp,
        _ => Family::Other,
    }
}

impl Dialect for Mysql {
    fn format(&self) -> &'static str {
        super::FORMAT
    }

    fn product(&self) -> Product {
        Product::Mysql
    }

    fn meets_by_any_index(&self) -> bool {
        true
    }

    fn column_type(&self, field: &Field, is_key: bool) -> String {
        column_type(field.data_type(), is_key)
    }

    fn table_options(&self) -> &'static str {
        " ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    }

    fn count_up(&self, table: &str, columns: [&str; 3], values: [&str; 2]) -> String {
        let [first, second, counter] = columns.map(|name| self.quote(name));
        let [one, other] = values;
        format!(
            "INSERT INTO {table} ({first}, {second}, {counter}) VALUES ({one}, {other}, 1) \
             ON DUPLICATE KEY UPDATE {counter} = {counter} + 1"
        )
    }

    fn connect(&self, address: &Address, stop: &StopSignal) -> Result<Box<dyn Session>, DatabaseError> {
        Ok(Box::new(MysqlSession::new(Connection::open(address, "millstream sink", stop)?)))
    }
}

fn column_type(data_type: &DataType, is_key: bool) -> String {
    match data_type {
        DataType::Boolean => "boolean",
        DataType::Int8 => "tinyint",
        DataType::Int16 => "smallint",
        DataType::Int32 => "int",
        DataType::Int64 => "bigint",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Decimal128(precision, scale) => return format!("decimal({precision},{scale})"),
        // A key of text has a greatest length. As bytes, so that blanks at its end and case count, as in the query.
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if is_key => "varchar(255)",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "longtext",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView if is_key => "varbinary(255)",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "longblob",
        DataType::Date32 => "date",
        DataType::Timestamp(..) => "datetime(6)",
        DataType::Dictionary(_, values) => return column_type(values, is_key),
        _ => "json",
    }
    .to_owned()
}
