//! Values as Redis has them: bytes. Numbers and times as the SQL function `CAST(… AS STRING)` writes them.

use crate::connectors::database::{Cell, cell};
use crate::render;
use arrow::array::Array;
use arrow::error::ArrowError;
use std::borrow::Cow;

/// The bytes of a value; `None` for NULL.
pub(super) fn value(array: &dyn Array, row: usize) -> Result<Option<Cow<'_, [u8]>>, ArrowError> {
    let owned = |text: String| Some(Cow::Owned(text.into_bytes()));
    Ok(match cell(array, row)? {
        Cell::Null => None,
        Cell::Bool(value) => Some(Cow::Borrowed(if value { b"true".as_slice() } else { b"false" })),
        Cell::Int(value) => owned(value.to_string()),
        Cell::Float(value) => owned(render::float(value)),
        Cell::Double(value) => owned(render::double(value)),
        Cell::Decimal(digits) => owned(digits),
        Cell::Text(Cow::Borrowed(text)) => Some(Cow::Borrowed(text.as_bytes())),
        Cell::Text(Cow::Owned(text)) => owned(text),
        Cell::Binary(bytes) => Some(bytes),
        Cell::Date(days) => owned(render::date(days)),
        Cell::Timestamp { micros, .. } => owned(render::timestamp(micros)),
        Cell::Json(text) => owned(text),
    })
}

/// The key of a row. Of several columns a `:` stands between, and one within a value has a `\` in front, so that no two
/// rows meet in one key.
pub(super) fn key(prefix: &str, values: &[Cow<'_, [u8]>]) -> Vec<u8> {
    let mut key = prefix.as_bytes().to_vec();
    match values {
        [one] => key.extend_from_slice(one),
        several => {
            for (at, value) in several.iter().enumerate() {
                if at > 0 {
                    key.push(b':');
                }
                for byte in value.iter() {
                    if matches!(byte, b':' | b'\\') {
                        key.push(b'\\');
                    }
                    key.push(*byte);
                }
            }
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BooleanArray, Float64Array, StringArray, TimestampMicrosecondArray};

    #[test]
    fn values_have_the_form_of_sql() {
        let text =
            |array: &dyn Array| value(array, 0).unwrap().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert_eq!(text(&BooleanArray::from(vec![true])).as_deref(), Some("true"));
        assert_eq!(text(&Float64Array::from(vec![1e10])).as_deref(), Some("1.0E10"));
        assert_eq!(text(&TimestampMicrosecondArray::from(vec![250_000])).as_deref(), Some("1970-01-01 00:00:00.25"));
        assert_eq!(text(&StringArray::from(vec![None::<&str>])), None);
    }

    #[test]
    fn no_two_rows_meet_in_one_key() {
        let of = |values: &[&str]| {
            let values: Vec<Cow<'_, [u8]>> = values.iter().map(|value| value.as_bytes().into()).collect();
            String::from_utf8(key("p:", &values)).unwrap()
        };
        assert_eq!(of(&["a:b"]), "p:a:b");
        assert_eq!(of(&["a", "b"]), "p:a:b");
        assert_eq!(of(&["a:b", "c"]), "p:a\\:b:c");
        assert_eq!(of(&["a", "b:c"]), "p:a:b\\:c");
        assert_eq!(of(&["a\\", "b"]), "p:a\\\\:b");
        assert_ne!(of(&["a\\:b", "c"]), of(&["a\\", "b:c"]));
    }
}
