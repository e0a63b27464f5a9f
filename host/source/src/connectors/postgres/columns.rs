//! The types of PostgreSQL as columns.

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use millstream_client::postgres::ColumnType;
use std::sync::Arc;

/// The column that holds a type; what has no counterpart comes as text.
pub(super) fn data_type(column: &ColumnType) -> DataType {
    match column.type_name.as_str() {
        "bool" => DataType::Boolean,
        "int2" => DataType::Int16,
        "int4" => DataType::Int32,
        "int8" => DataType::Int64,
        "oid" => DataType::Int64,
        "float4" => DataType::Float32,
        "float8" => DataType::Float64,
        "numeric" => decimal(column.modifier),
        "bytea" => DataType::Binary,
        "date" => DataType::Date32,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamptz" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        _ => DataType::Utf8,
    }
}

/// A decimal of the given precision and scale; of Spark's default without them, and text beyond 38 digits.
fn decimal(modifier: i32) -> DataType {
    if modifier < 4 {
        return DataType::Decimal128(38, 18);
    }
    let (precision, scale) = ((modifier - 4) >> 16 & 0xffff, (modifier - 4) & 0x7ff);
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(precision @ 1..=38), Ok(scale)) if scale as u8 <= precision => DataType::Decimal128(precision, scale),
        _ => DataType::Utf8,
    }
}

/// The columns of an answer as a schema.
pub(super) fn schema(columns: &[ColumnType]) -> SchemaRef {
    let fields: Vec<Field> = columns.iter().map(|column| Field::new(&column.name, data_type(column), true)).collect();
    Arc::new(Schema::new(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(type_name: &str, modifier: i32) -> ColumnType {
        ColumnType { name: "a".into(), type_name: type_name.into(), type_id: 0, modifier }
    }

    #[test]
    fn decimals_keep_their_precision_where_it_fits() {
        assert_eq!(data_type(&column("numeric", (10 << 16 | 2) + 4)), DataType::Decimal128(10, 2));
        assert_eq!(data_type(&column("numeric", -1)), DataType::Decimal128(38, 18));
        assert_eq!(data_type(&column("numeric", (60 << 16 | 2) + 4)), DataType::Utf8);
        assert_eq!(data_type(&column("uuid", -1)), DataType::Utf8);
    }
}
