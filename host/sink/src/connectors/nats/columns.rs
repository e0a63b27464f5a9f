//! The columns that become parts of a message.

use super::FORMAT;
use crate::SinkError;
use crate::message_columns::{ByteColumn, HEADERS, HeaderColumn, is_bytes, is_headers, is_text, taken};
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;

/// Where they are in the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    data: usize,
    /// None when all rows have one subject.
    subject: Option<usize>,
    headers: Option<usize>,
}

impl Columns {
    /// Finds them, for rows of `subject` or of that which their column says. Other columns are not looked at.
    pub(super) fn of(schema: &Schema, subject: Option<&str>) -> Result<Self, SinkError> {
        let unfit = |reason: String| SinkError::Schema { sink: FORMAT.to_owned(), reason };
        let bytes = |name: &str| taken(schema, name, "string or binary", is_bytes).map_err(unfit);
        let data = match (bytes("value")?, bytes("data")?) {
            (Some(at), None) | (None, Some(at)) => at,
            (Some(_), Some(_)) => {
                return Err(unfit("there are a column `value` and a column `data`; select one of them".to_owned()));
            }
            (None, None) => {
                let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                let known = known.join(", ");
                return Err(unfit(format!("there is no column `value` or `data` among {known}; write `… AS value`")));
            }
        };
        let in_rows = match subject {
            Some(_) => None,
            None => taken(schema, "subject", "string", is_text).map_err(unfit)?,
        };
        if subject.is_none() && in_rows.is_none() {
            let reason = "it is not said which subject rows have; set option `subject`, or select a column `subject`";
            return Err(unfit(reason.to_owned()));
        }
        Ok(Self { data, subject: in_rows, headers: taken(schema, "headers", HEADERS, is_headers).map_err(unfit)? })
    }

    /// The parts of all rows of a batch of columns.
    pub(super) fn read<'a>(&self, rows: &'a RecordBatch) -> Result<Parts<'a>, String> {
        Ok(Parts {
            data: ByteColumn::of(rows.column(self.data))?,
            subjects: self.subject.map(|index| ByteColumn::of(rows.column(index))).transpose()?,
            headers: self.headers.map(|index| HeaderColumn::of(rows.column(index))).transpose()?,
        })
    }
}

/// The parts of the messages of some rows.
pub(super) struct Parts<'a> {
    pub(super) data: ByteColumn<'a>,
    subjects: Option<ByteColumn<'a>>,
    headers: Option<HeaderColumn<'a>>,
}

impl<'a> Parts<'a> {
    /// The subject that a row has by itself; `None` when all have one.
    pub(super) fn subject(&self, row: usize) -> Result<Option<&'a str>, String> {
        let Some(subjects) = &self.subjects else { return Ok(None) };
        let text = subjects.get(row).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let way_out = "filter such rows, or set option `subject` so that all rows have it";
        text.map(Some).ok_or_else(|| format!("a row has NULL as its `subject`; {way_out}"))
    }

    /// The headers of a row.
    pub(super) fn headers(&self, row: usize) -> Result<Vec<(&'a str, &'a str)>, String> {
        let Some(headers) = &self.headers else { return Ok(Vec::new()) };
        let header = |entry| {
            let (name, value) = headers.header(entry)?;
            let value = std::str::from_utf8(value.unwrap_or_default());
            Ok((name, value.map_err(|_| format!("the value of header `{name}` is not UTF-8"))?))
        };
        headers.span(row).into_iter().flatten().map(header).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field};

    fn of(columns: &[(&str, DataType)], subject: Option<&str>) -> Result<Columns, String> {
        let fields: Vec<Field> = columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect();
        Columns::of(&Schema::new(fields), subject).map_err(|error| error.to_string())
    }

    #[test]
    fn content_is_called_value_or_data() {
        let (text, bytes) = (DataType::Utf8, DataType::Binary);
        let columns = Columns { data: 1, subject: Some(0), headers: None };
        assert_eq!(of(&[("subject", text.clone()), ("value", text.clone())], None), Ok(columns.clone()));
        assert_eq!(of(&[("subject", text.clone()), ("data", bytes.clone())], None), Ok(columns));
        let one = of(&[("subject", DataType::Int32), ("data", bytes)], Some("a"));
        assert_eq!(one, Ok(Columns { data: 1, subject: None, headers: None }), "the option goes before the column");
    }

    #[test]
    fn columns_that_do_not_fit_are_named() {
        let text = DataType::Utf8;
        for (columns, part) in [
            (vec![("v", text.clone())], "no column `value` or `data` among v"),
            (vec![("value", text.clone()), ("data", text.clone())], "select one of them"),
            (vec![("value", DataType::Int32)], "column `value` is Int32"),
            (vec![("value", text.clone())], "set option `subject`"),
            (vec![("value", text.clone()), ("subject", DataType::Int32)], "column `subject` is Int32"),
            (vec![("value", text.clone()), ("subject", text.clone()), ("headers", text)], "column `headers`"),
        ] {
            let error = of(&columns, None).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
