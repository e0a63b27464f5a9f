//! Values as servers write them, into columns.

use crate::decode::scalar;
use crate::decode::{Column, DecodeError, Values};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use std::borrow::Cow;
use std::sync::Arc;

/// A value as a server writes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Raw<'a> {
    /// None.
    Null,
    /// In its text form; bytes are bytes.
    Text(Cow<'a, [u8]>),
}

impl Raw<'_> {
    /// A value of its own.
    pub(crate) fn into_owned(self) -> Raw<'static> {
        match self {
            Self::Null => Raw::Null,
            Self::Text(text) => Raw::Text(Cow::Owned(text.into_owned())),
        }
    }
}

/// Whether values of a type can be read from their text form.
pub(crate) fn is_readable(data_type: &DataType) -> bool {
    !data_type.is_nested() && data_type != &DataType::Null && Column::new("", data_type).is_ok()
}

/// Columns that grow row by row.
pub(crate) struct RowBuilder {
    schema: SchemaRef,
    columns: Vec<Column>,
}

impl RowBuilder {
    /// No rows of these columns.
    pub(crate) fn new(schema: SchemaRef) -> Result<Self, DecodeError> {
        let fields = schema.fields().iter();
        let columns = fields.map(|field| Column::new(field.name(), field.data_type())).collect::<Result<_, _>>()?;
        Ok(Self { schema, columns })
    }

    /// Appends a value to a column; answers what does not fit.
    pub(crate) fn push(&mut self, at: usize, raw: &Raw<'_>) -> Result<(), String> {
        let column = &mut self.columns[at];
        match raw {
            Raw::Null => column.push_null(),
            Raw::Text(bytes) => match push(&mut column.values, bytes) {
                Some(()) => column.seal(),
                None => {
                    let field = self.schema.field(at);
                    let shown: String = String::from_utf8_lossy(bytes).chars().take(100).collect();
                    return Err(format!(
                        "column `{}` has the value `{shown}`, which is no {}",
                        field.name(),
                        field.data_type()
                    ));
                }
            },
        }
        Ok(())
    }

    /// The rows; how many there are is said for a batch without columns.
    pub(crate) fn finish(self, rows: usize) -> Result<RecordBatch, ArrowError> {
        let arrays: Vec<ArrayRef> = self.columns.into_iter().map(Column::finish).collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}

fn push(values: &mut Values, bytes: &[u8]) -> Option<()> {
    if let Values::Binary(values) = values {
        values.push(bytes);
        return Some(());
    }
    let text = std::str::from_utf8(bytes).ok()?;
    match values {
        Values::Text(values) => {
            values.push(bytes);
            Some(())
        }
        Values::Bool(values) => boolean(text).map(|value| values.push(value)),
        Values::I8(values) => text.parse().ok().map(|value| values.push(value)),
        Values::I16(values) => text.parse().ok().map(|value| values.push(value)),
        Values::I32(values) => text.parse().ok().map(|value| values.push(value)),
        Values::I64(values) => text.parse().ok().map(|value| values.push(value)),
        Values::F32(values) => text.parse().ok().map(|value| values.push(value)),
        Values::F64(values) => text.parse().ok().map(|value| values.push(value)),
        Values::Decimal { values, precision, scale } => {
            decimal(text, *precision, *scale).map(|value| values.push(value))
        }
        Values::Date(values) => scalar::parse_date(text).map(|value| values.push(value)),
        Values::Timestamp { values, zone } => {
            // Sessions have UTC, which PostgreSQL writes as hours.
            let text = text.strip_suffix("+00").unwrap_or(text);
            let parse = if zone.is_some() { scalar::parse_timestamp } else { scalar::parse_timestamp_ntz };
            parse(text).map(|value| values.push(value))
        }
        _ => None,
    }
}

/// Also numbers, of which MySQL's booleans are any; they are true as for its driver in Java, and so for Spark.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "t" | "true" | "\u{1}" => Some(true),
        "f" | "false" | "\0" => Some(false),
        _ => text.parse().ok().map(|number: i64| number == -1 || number > 0),
    }
}

/// A decimal, if no digit of it is lost.
fn decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction).trim_end_matches('0');
    let exact = fraction.len() <= usize::try_from(scale).unwrap_or(0);
    if exact { scalar::parse_decimal(text, precision, scale) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;
    use arrow::datatypes::{Field, Schema, TimeUnit};

    #[test]
    fn values_in_their_text_form_become_columns() {
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let types =
            [DataType::Boolean, DataType::Int32, DataType::Decimal128(5, 2), utc, DataType::Utf8, DataType::Binary];
        let fields: Vec<Field> =
            types.iter().map(|data_type| Field::new(data_type.to_string(), data_type.clone(), true)).collect();
        let mut rows = RowBuilder::new(Arc::new(Schema::new(fields))).unwrap();
        for (at, text) in ["t", "-5", "1.50", "1970-01-01 00:00:01.5+00", "ü", "\0x"].iter().enumerate() {
            rows.push(at, &Raw::Text(text.as_bytes().into())).unwrap();
        }
        for at in 0..6 {
            rows.push(at, &Raw::Null).unwrap();
        }
        let batch = rows.finish(2).unwrap();
        assert_eq!(batch.num_rows(), 2);
        assert_eq!(batch.column(4).as_string::<i32>().value(0), "ü");
        assert!(batch.columns().iter().all(|column| column.is_null(1) && !column.is_null(0)));
    }

    #[test]
    fn a_number_is_true_as_it_is_for_spark() {
        for (text, expected) in [("1", true), ("2", true), ("-1", true), ("0", false), ("-2", false), ("-128", false)] {
            assert_eq!(boolean(text), Some(expected), "{text}");
        }
        assert_eq!((boolean("\u{1}"), boolean("\0")), (Some(true), Some(false)), "bits");
        assert_eq!(boolean("yes"), None);
    }

    #[test]
    fn a_digit_that_would_be_lost_is_refused() {
        assert_eq!(decimal("1.250", 5, 2), Some(125));
        assert_eq!(decimal("1.251", 5, 2), None);
        assert_eq!(decimal("NaN", 5, 2), None);
    }
}
