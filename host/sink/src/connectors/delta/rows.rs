//! The query's rows in the columns of the table.

use crate::grouping::group;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{cast, concat_batches, take_record_batch};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Schema, SchemaRef, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use delta_kernel::engine::arrow_conversion::TryIntoArrow;
use delta_kernel::expressions::{DecimalData, Scalar};
use delta_kernel::schema::{DataType, PrimitiveType, StructType};
use millstream_client::delta::{all_nullable, kernel_schema, same_type};
use std::collections::HashMap;
use std::sync::Arc;

/// The columns of a table, and how they are found in the query's.
pub(super) struct TableColumns {
    table: StructType,
    partition_by: Vec<String>,
    /// The table's columns as Arrow's, in their order.
    schema: SchemaRef,
    /// Where each column is in the query; `None` for one that the query does not have.
    found: Vec<Option<usize>>,
}

/// The rows of one partition, without the partition columns.
pub(super) struct Part {
    pub(super) values: HashMap<String, Scalar>,
    pub(super) rows: RecordBatch,
}

/// The query's columns as those of a new table: all nullable.
pub(super) fn new_table(schema: &Schema) -> Result<StructType, String> {
    kernel_schema(&all_nullable(schema)).map_err(|error| error.to_string())
}

impl TableColumns {
    /// Fits the query's columns to the table's.
    ///
    /// # Errors
    /// A sentence about the first column that does not fit.
    pub(super) fn new(table: &StructType, partition_by: &[String], query: &Schema) -> Result<Self, String> {
        let ours = new_table(query)?;
        if let Some(stranger) = ours.fields().find(|field| table.field(field.name()).is_none()) {
            return Err(format!(
                "the table has no column `{}`; add it to the table, or do not select it",
                stranger.name()
            ));
        }
        let schema: Schema = table.try_into_arrow().map_err(|error: ArrowError| error.to_string())?;
        let mut found = Vec::new();
        for field in table.fields() {
            let at = query.fields().iter().position(|column| column.name() == field.name());
            let Some(column) = ours.field(field.name()) else {
                if !field.is_nullable() {
                    return Err(format!(
                        "the table's column `{}` cannot be null; select one of that name",
                        field.name()
                    ));
                }
                found.push(None);
                continue;
            };
            if !same_type(column.data_type(), field.data_type()) {
                return Err(format!(
                    "column `{}` is of type {} and in the table of type {}; cast it",
                    field.name(),
                    column.data_type(),
                    field.data_type()
                ));
            }
            found.push(at);
        }
        Ok(Self { table: table.clone(), partition_by: partition_by.to_vec(), schema: Arc::new(schema), found })
    }

    /// The rows by partition, each with at most `most` rows.
    pub(super) fn parts(&self, rows: &[RecordBatch], query: &SchemaRef, most: usize) -> Result<Vec<Part>, ArrowError> {
        let whole = concat_batches(query, rows)?;
        if whole.num_rows() == 0 {
            return Ok(Vec::new());
        }
        let columns: Vec<ArrayRef> = self
            .schema
            .fields()
            .iter()
            .zip(&self.found)
            .map(|(field, at)| match at {
                Some(at) => cast(whole.column(*at), field.data_type()),
                None => Ok(new_null_array(field.data_type(), whole.num_rows())),
            })
            .collect::<Result<_, _>>()?;
        let whole = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        let kept: Vec<usize> = (0..self.schema.fields().len())
            .filter(|column| !self.partition_by.contains(self.schema.field(*column).name()))
            .collect();
        let data = whole.project(&kept)?;
        if self.partition_by.is_empty() {
            return Ok(pieces(&data, most).map(|rows| Part { values: HashMap::new(), rows }).collect());
        }
        let keys: Vec<ArrayRef> = self
            .partition_by
            .iter()
            .map(|name| {
                let column = whole.column_by_name(name).map(Arc::clone);
                column.ok_or_else(|| ArrowError::SchemaError(format!("the table has no partition column `{name}`")))
            })
            .collect::<Result<_, _>>()?;
        let mut parts = Vec::new();
        for indices in group(&keys)? {
            let Some(first) = indices.first().map(|row| *row as usize) else { continue };
            let mut values = HashMap::new();
            for (name, key) in self.partition_by.iter().zip(&keys) {
                let data_type = self.table.field(name).map(|field| field.data_type().clone());
                let data_type = data_type.ok_or_else(|| ArrowError::SchemaError(format!("no column `{name}`")))?;
                values.insert(name.clone(), scalar(key.as_ref(), first, &data_type)?);
            }
            let rows = take_record_batch(&data, &UInt32Array::from(indices))?;
            parts.extend(pieces(&rows, most).map(|rows| Part { values: values.clone(), rows }));
        }
        Ok(parts)
    }
}

fn pieces(rows: &RecordBatch, most: usize) -> impl Iterator<Item = RecordBatch> {
    let (rows, total) = (rows.clone(), rows.num_rows());
    let starts = (0..total).step_by(most.clamp(1, total.max(1)));
    starts.map(move |start| rows.slice(start, most.min(total - start)))
}

/// The value of a partition column.
fn scalar(array: &dyn Array, row: usize, data_type: &DataType) -> Result<Scalar, ArrowError> {
    if array.is_null(row) {
        return Ok(Scalar::Null(data_type.clone()));
    }
    Ok(match (data_type, array.data_type()) {
        (DataType::Primitive(PrimitiveType::String), ArrowType::Utf8) => {
            Scalar::String(array.as_string::<i32>().value(row).to_owned())
        }
        (DataType::Primitive(PrimitiveType::Boolean), _) => Scalar::Boolean(array.as_boolean().value(row)),
        (DataType::Primitive(PrimitiveType::Byte), _) => Scalar::Byte(array.as_primitive::<Int8Type>().value(row)),
        (DataType::Primitive(PrimitiveType::Short), _) => Scalar::Short(array.as_primitive::<Int16Type>().value(row)),
        (DataType::Primitive(PrimitiveType::Integer), _) => {
            Scalar::Integer(array.as_primitive::<Int32Type>().value(row))
        }
        (DataType::Primitive(PrimitiveType::Long), _) => Scalar::Long(array.as_primitive::<Int64Type>().value(row)),
        (DataType::Primitive(PrimitiveType::Float), _) => Scalar::Float(array.as_primitive::<Float32Type>().value(row)),
        (DataType::Primitive(PrimitiveType::Double), _) => {
            Scalar::Double(array.as_primitive::<Float64Type>().value(row))
        }
        (DataType::Primitive(PrimitiveType::Date), _) => Scalar::Date(array.as_primitive::<Date32Type>().value(row)),
        (DataType::Primitive(PrimitiveType::Timestamp), _) => {
            Scalar::Timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        (DataType::Primitive(PrimitiveType::TimestampNtz), _) => {
            Scalar::TimestampNtz(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        (DataType::Primitive(PrimitiveType::Decimal(decimal)), _) => {
            let bits = array.as_primitive::<Decimal128Type>().value(row);
            let data = DecimalData::try_new(bits, *decimal);
            Scalar::Decimal(data.map_err(|error| ArrowError::ExternalError(Box::new(error)))?)
        }
        _ => {
            let reason = format!("a column of type {data_type} cannot be a partition column here");
            return Err(ArrowError::SchemaError(reason));
        }
    })
}
