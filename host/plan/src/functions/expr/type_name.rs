//! Spark's names of the Arrow types that carry its values.

use arrow::datatypes::{DataType, IntervalUnit};

/// The name as `typeof` gives it: lower case, `decimal(10,2)`, `array<int>`.
pub(crate) fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "void".to_owned(),
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int8 => "tinyint".to_owned(),
        DataType::Int16 => "smallint".to_owned(),
        DataType::Int32 => "int".to_owned(),
        DataType::Int64 => "bigint".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            format!("decimal({precision},{scale})")
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "binary".to_owned()
        }
        DataType::Date32 | DataType::Date64 => "date".to_owned(),
        DataType::Timestamp(_, Some(_)) => "timestamp".to_owned(),
        DataType::Timestamp(_, None) => "timestamp_ntz".to_owned(),
        DataType::Duration(_) => "interval day to second".to_owned(),
        DataType::Interval(IntervalUnit::YearMonth) => "interval year to month".to_owned(),
        DataType::Interval(_) => "interval".to_owned(),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            format!("array<{}>", type_name(item.data_type()))
        }
        DataType::Struct(fields) => {
            let inner: Vec<String> =
                fields.iter().map(|field| format!("{}:{}", field.name(), type_name(field.data_type()))).collect();
            format!("struct<{}>", inner.join(","))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                format!("map<{},{}>", type_name(fields[0].data_type()), type_name(fields[1].data_type()))
            }
            other => format!("map<{}>", type_name(other)),
        },
        DataType::Dictionary(_, value) => type_name(value),
        other => other.to_string().to_lowercase(),
    }
}

/// The name as error messages spell it: upper case.
pub(crate) fn shown_type(data_type: &DataType) -> String {
    type_name(data_type).to_uppercase()
}
