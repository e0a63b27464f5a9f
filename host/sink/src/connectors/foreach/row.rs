//! One row of a batch.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};

/// A row, as a place in a batch of rows.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    batch: &'a RecordBatch,
    index: usize,
}

/// A value of a row could not be had in that form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// No column of that name.
    #[error("there is no column `{column}`; there are {known}")]
    Unknown {
        /// What was asked for.
        column: String,
        /// What exists.
        known: String,
    },
    /// The column has another type.
    #[error("the column `{column}` is {data_type}, and cannot be read as {wanted}")]
    Type {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
        /// What was asked for.
        wanted: &'static str,
    },
}

impl<'a> Row<'a> {
    /// Row `index` of `batch`.
    ///
    /// # Panics
    /// When a value is asked for and there is no such row.
    pub fn new(batch: &'a RecordBatch, index: usize) -> Self {
        Self { batch, index }
    }

    /// The batch of rows that it is in, for types that have no method here.
    pub fn batch(&self) -> &'a RecordBatch {
        self.batch
    }

    /// Its place in [`batch`](Self::batch).
    pub fn index(&self) -> usize {
        self.index
    }

    /// Whether the value is null.
    ///
    /// # Errors
    /// When there is no such column.
    pub fn is_null_at(&self, column: &str) -> Result<bool, RowError> {
        Ok(self.column(column)?.is_null(self.index))
    }

    /// A STRING; `None` for null.
    ///
    /// # Errors
    /// When there is no such column, or it has another type.
    pub fn get_string(&self, column: &str) -> Result<Option<&'a str>, RowError> {
        let array = self.column(column)?;
        match array.as_string_opt::<i32>() {
            Some(values) => Ok(values.is_valid(self.index).then(|| values.value(self.index))),
            None => Err(mismatch(column, array, "a STRING")),
        }
    }

    /// A BINARY; `None` for null.
    ///
    /// # Errors
    /// As [`get_string`](Self::get_string).
    pub fn get_binary(&self, column: &str) -> Result<Option<&'a [u8]>, RowError> {
        let array = self.column(column)?;
        match array.as_binary_opt::<i32>() {
            Some(values) => Ok(values.is_valid(self.index).then(|| values.value(self.index))),
            None => Err(mismatch(column, array, "a BINARY")),
        }
    }

    /// A whole number of any size; `None` for null.
    ///
    /// # Errors
    /// As [`get_string`](Self::get_string).
    pub fn get_long(&self, column: &str) -> Result<Option<i64>, RowError> {
        let array = self.column(column)?;
        let at = self.index;
        if array.is_null(at) && array.data_type().is_signed_integer() {
            return Ok(None);
        }
        Ok(Some(match array.data_type() {
            DataType::Int8 => i64::from(array.as_primitive::<Int8Type>().value(at)),
            DataType::Int16 => i64::from(array.as_primitive::<Int16Type>().value(at)),
            DataType::Int32 => i64::from(array.as_primitive::<Int32Type>().value(at)),
            DataType::Int64 => array.as_primitive::<Int64Type>().value(at),
            _ => return Err(mismatch(column, array, "a whole number")),
        }))
    }

    /// A FLOAT or DOUBLE; `None` for null.
    ///
    /// # Errors
    /// As [`get_string`](Self::get_string).
    pub fn get_double(&self, column: &str) -> Result<Option<f64>, RowError> {
        let array = self.column(column)?;
        let at = self.index;
        let value = match array.data_type() {
            DataType::Float32 => f64::from(array.as_primitive::<Float32Type>().value(at)),
            DataType::Float64 => array.as_primitive::<Float64Type>().value(at),
            _ => return Err(mismatch(column, array, "a DOUBLE")),
        };
        Ok(array.is_valid(at).then_some(value))
    }

    /// A BOOLEAN; `None` for null.
    ///
    /// # Errors
    /// As [`get_string`](Self::get_string).
    pub fn get_boolean(&self, column: &str) -> Result<Option<bool>, RowError> {
        let array = self.column(column)?;
        match array.as_boolean_opt() {
            Some(values) => Ok(values.is_valid(self.index).then(|| values.value(self.index))),
            None => Err(mismatch(column, array, "a BOOLEAN")),
        }
    }

    fn column(&self, name: &str) -> Result<&'a ArrayRef, RowError> {
        self.batch.column_by_name(name).ok_or_else(|| {
            let schema = self.batch.schema_ref();
            let known = schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
            RowError::Unknown { column: name.to_owned(), known }
        })
    }
}

fn mismatch(column: &str, array: &ArrayRef, wanted: &'static str) -> RowError {
    RowError::Type { column: column.to_owned(), data_type: array.data_type().clone(), wanted }
}
