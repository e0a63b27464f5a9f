//! Spark's names of types in SQL: `STRING`, `TIMESTAMP`, `LONG`, …

use arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit};
use datafusion::common::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{ArrayElemTypeDef, DataType as SqlType, ExactNumberInfo};
use std::sync::Arc;

/// Plans the types of CAST and of literals.
#[derive(Debug, Default)]
pub(crate) struct SparkTypes;

impl TypePlanner for SparkTypes {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        Ok(arrow_type(sql_type).map(|data_type| Arc::new(Field::new("", data_type, true))))
    }
}

fn arrow_type(sql_type: &SqlType) -> Option<DataType> {
    Some(match sql_type {
        SqlType::Boolean | SqlType::Bool => DataType::Boolean,
        SqlType::TinyInt(_) => DataType::Int8,
        SqlType::SmallInt(_) => DataType::Int16,
        SqlType::Int(_) | SqlType::Integer(_) => DataType::Int32,
        SqlType::BigInt(_) => DataType::Int64,
        SqlType::Float(_) | SqlType::Real => DataType::Float32,
        SqlType::Double(_) | SqlType::DoublePrecision => DataType::Float64,
        SqlType::Decimal(info) | SqlType::Dec(info) | SqlType::Numeric(info) => decimal(info)?,
        SqlType::String(_) | SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => DataType::Utf8,
        SqlType::Binary(_) => DataType::Binary,
        SqlType::Date => DataType::Date32,
        SqlType::Timestamp(_, _) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        SqlType::Array(ArrayElemTypeDef::AngleBracket(item)) => {
            DataType::List(Arc::new(Field::new_list_field(arrow_type(item)?, true)))
        }
        SqlType::Map(key, value) => {
            let entry = Fields::from(vec![
                Field::new("key", arrow_type(key)?, false),
                Field::new("value", arrow_type(value)?, true),
            ]);
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entry), false)), false)
        }
        SqlType::Struct(fields, _) => {
            let fields = fields.iter().map(|field| {
                let name = field.field_name.as_ref()?.value.clone();
                Some(Field::new(name, arrow_type(&field.field_type)?, true))
            });
            DataType::Struct(fields.collect::<Option<Vec<_>>>()?.into())
        }
        SqlType::Custom(name, _) => match name.to_string().to_ascii_lowercase().as_str() {
            "byte" => DataType::Int8,
            "short" => DataType::Int16,
            "long" => DataType::Int64,
            "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
            _ => return None,
        },
        _ => return None,
    })
}

fn decimal(info: &ExactNumberInfo) -> Option<DataType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => (10, 0),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    Some(DataType::Decimal128(u8::try_from(precision).ok()?, i8::try_from(scale).ok()?))
}
