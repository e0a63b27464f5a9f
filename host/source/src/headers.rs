//! A column of the headers of messages: `array<struct<key: string, value: binary>>`, as Spark has it.
//!
//! Sources of messages that have headers build it row by row, without an allocation per row.

use arrow::array::{ArrayRef, BinaryBuilder, ListBuilder, StringBuilder, StructBuilder};
use arrow::datatypes::{DataType, Field, Fields};
use std::sync::Arc;

/// The column `headers`.
pub(crate) fn headers_field() -> Field {
    let header = DataType::Struct(header_fields());
    Field::new("headers", DataType::List(Arc::new(Field::new_list_field(header, true))), true)
}

/// The fields of a header.
fn header_fields() -> Fields {
    Fields::from(vec![Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Binary, true)])
}

/// Builds the column.
pub(crate) struct HeaderBuilder(ListBuilder<StructBuilder>);

impl HeaderBuilder {
    /// One without rows.
    pub(crate) fn new() -> Self {
        Self(ListBuilder::new(StructBuilder::from_fields(header_fields(), 0)))
    }

    /// Adds the headers of a message; NULL when it has none. Answers how many bytes they have.
    pub(crate) fn append<'a>(&mut self, headers: impl IntoIterator<Item = (&'a str, Option<&'a [u8]>)>) -> usize {
        let (mut bytes, mut is_empty) = (0, true);
        let row = self.0.values();
        for (key, value) in headers {
            is_empty = false;
            bytes += key.len() + value.map_or(0, <[u8]>::len);
            if let Some(keys) = row.field_builder::<StringBuilder>(0) {
                keys.append_value(key);
            }
            if let Some(values) = row.field_builder::<BinaryBuilder>(1) {
                values.append_option(value);
            }
            row.append(true);
        }
        self.0.append(!is_empty);
        bytes
    }

    /// The column of all rows since the last one.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};

    #[test]
    fn a_message_without_headers_has_null() {
        let mut headers = HeaderBuilder::new();
        assert_eq!(headers.append([("a", Some(&b"12"[..])), ("b", None)]), 4);
        assert_eq!(headers.append([]), 0);
        let column = headers.finish();
        assert_eq!(column.data_type(), headers_field().data_type());
        let lists = column.as_list::<i32>();
        assert_eq!((lists.len(), lists.value_length(0), lists.is_null(1)), (2, 2, true));
    }
}
