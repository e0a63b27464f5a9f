//! Columns between Arrow and Delta.

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use delta_kernel::engine::arrow_conversion::{TryIntoArrow, TryIntoKernel};
use delta_kernel::schema::{DataType as KernelType, StructType};
use std::sync::Arc;

/// The columns of a table as Arrow's, all nullable.
///
/// # Errors
/// When a type has no form in Arrow.
pub fn arrow_schema(schema: &StructType) -> Result<SchemaRef, ArrowError> {
    let schema: Schema = schema.try_into_arrow()?;
    Ok(Arc::new(all_nullable(&schema)))
}

/// Arrow's columns as those of a table.
///
/// # Errors
/// When a type has no form in Delta; numbers without a sign and times of day are such.
pub fn kernel_schema(schema: &Schema) -> Result<StructType, ArrowError> {
    if let Some(field) = schema.fields().iter().find(|field| has_no_form(field.data_type())) {
        let reason = format!("column `{}` of type {} has no form in Delta", field.name(), field.data_type());
        return Err(ArrowError::SchemaError(reason));
    }
    schema.try_into_kernel()
}

/// Types that the kernel would take for others.
fn has_no_form(data_type: &DataType) -> bool {
    match data_type {
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 | DataType::Null => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_no_form(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_no_form(field.data_type())),
        _ => false,
    }
}

/// Whether two types of Delta hold the same values, whatever they say of nulls and metadata.
pub fn same_type(one: &KernelType, other: &KernelType) -> bool {
    match (one, other) {
        (KernelType::Array(one), KernelType::Array(other)) => same_type(&one.element_type, &other.element_type),
        (KernelType::Map(one), KernelType::Map(other)) => {
            same_type(&one.key_type, &other.key_type) && same_type(&one.value_type, &other.value_type)
        }
        (KernelType::Struct(one), KernelType::Struct(other)) => {
            one.num_fields() == other.num_fields()
                && one
                    .fields()
                    .zip(other.fields())
                    .all(|(one, other)| one.name() == other.name() && same_type(one.data_type(), other.data_type()))
        }
        (one, other) => one == other,
    }
}

/// The same columns, all nullable and without metadata, at every depth.
pub fn all_nullable(schema: &Schema) -> Schema {
    Schema::new(schema.fields().iter().map(nullable).collect::<Fields>())
}

fn nullable(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), nullable_type(field.data_type()), true))
}

fn nullable_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::List(item) => DataType::List(nullable(item)),
        DataType::LargeList(item) => DataType::LargeList(nullable(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(nullable(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(nullable).collect()),
        DataType::Map(entries, sorted) => {
            // Entries and keys are never null.
            let DataType::Struct(pair) = entries.data_type() else { return data_type.clone() };
            let [key, value] = pair.as_ref() else { return data_type.clone() };
            let key = Arc::new(Field::new(key.name(), nullable_type(key.data_type()), false));
            let pair = DataType::Struct(Fields::from(vec![key, nullable(value)]));
            DataType::Map(Arc::new(Field::new(entries.name(), pair, false)), *sorted)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_back_as_they_were_but_nullable() {
        let item = Arc::new(Field::new("element", DataType::Int32, false));
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("l", DataType::List(item), true),
            Field::new("at", DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, Some("UTC".into())), true),
        ]);
        let kernel = kernel_schema(&schema).unwrap();
        let back = arrow_schema(&kernel).unwrap();
        assert!(back.fields().iter().all(|field| field.is_nullable()));
        assert_eq!(back.field(2).data_type(), schema.field(2).data_type());
        let nullable = kernel_schema(&all_nullable(&schema)).unwrap();
        assert!(kernel.fields().zip(nullable.fields()).all(|(a, b)| same_type(a.data_type(), b.data_type())));
        let unsigned = Schema::new(vec![Field::new("n", DataType::UInt32, true)]);
        assert!(kernel_schema(&unsigned).unwrap_err().to_string().contains("column `n`"));
    }
}
