//! Columns that become parts of messages: bytes, texts and headers, in any of the types that Arrow has for them.
//!
//! Sinks that write messages find their columns by name with [`taken`], as Spark's Kafka sink does, and read them row by row
//! without a copy. What does not fit is told as a reason, which the sink makes its error of.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray, StringArray,
    StringViewArray, StructArray,
};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Schema};
use bytes::Bytes;

/// What a column of headers must be.
pub(crate) const HEADERS: &str = "array<struct<key: string, value: binary>>";

/// Where the column of a name is, when there is one and it `fits`.
pub(crate) fn taken(
    schema: &Schema,
    name: &str,
    wanted: &str,
    fits: fn(&DataType) -> bool,
) -> Result<Option<usize>, String> {
    match schema.column_with_name(name) {
        None => Ok(None),
        Some((index, field)) if fits(field.data_type()) => Ok(Some(index)),
        Some((_, field)) => {
            let found = field.data_type();
            Err(format!("column `{name}` is {found}, and it must be {wanted}: write `CAST({name} AS …)`"))
        }
    }
}

pub(crate) fn is_text(found: &DataType) -> bool {
    matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

pub(crate) fn is_bytes(found: &DataType) -> bool {
    is_text(found) || matches!(found, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

pub(crate) fn is_headers(found: &DataType) -> bool {
    let (DataType::List(entry) | DataType::LargeList(entry)) = found else { return false };
    let DataType::Struct(fields) = entry.data_type() else { return false };
    matches!(&fields[..], [key, value] if is_text(key.data_type()) && is_bytes(value.data_type()))
}

/// A column of strings or bytes.
pub(crate) enum ByteColumn<'a> {
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    TextView(&'a StringViewArray),
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
}

impl<'a> ByteColumn<'a> {
    pub(crate) fn of(column: &'a ArrayRef) -> Result<Self, String> {
        Ok(match column.data_type() {
            DataType::Utf8 => Self::Text(column.as_string()),
            DataType::LargeUtf8 => Self::LargeText(column.as_string()),
            DataType::Utf8View => Self::TextView(column.as_string_view()),
            DataType::Binary => Self::Binary(column.as_binary()),
            DataType::LargeBinary => Self::LargeBinary(column.as_binary()),
            DataType::BinaryView => Self::BinaryView(column.as_binary_view()),
            other => return Err(format!("a column is {other}, and it must be string or binary")),
        })
    }

    /// The value of a row; `None` for NULL.
    pub(crate) fn get(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            Self::Text(column) => column.is_valid(row).then(|| column.value(row).as_bytes()),
            Self::LargeText(column) => column.is_valid(row).then(|| column.value(row).as_bytes()),
            Self::TextView(column) => column.is_valid(row).then(|| column.value(row).as_bytes()),
            Self::Binary(column) => column.is_valid(row).then(|| column.value(row)),
            Self::LargeBinary(column) => column.is_valid(row).then(|| column.value(row)),
            Self::BinaryView(column) => column.is_valid(row).then(|| column.value(row)),
        }
    }

    /// The values of all rows, to be shared with whoever sends them. Where the column has them in one piece nothing is
    /// copied.
    pub(crate) fn shared(&self) -> SharedBytes {
        let whole = |buffer: &Buffer| Some(Bytes::from_owner(ScalarBuffer::<u8>::from(buffer.clone())));
        SharedBytes(match self {
            Self::Text(column) => whole(column.values()),
            Self::LargeText(column) => whole(column.values()),
            Self::Binary(column) => whole(column.values()),
            Self::LargeBinary(column) => whole(column.values()),
            Self::TextView(_) | Self::BinaryView(_) => None,
        })
    }
}

/// The values of a column, to be shared.
pub(crate) struct SharedBytes(Option<Bytes>);

impl SharedBytes {
    /// A value of the same column.
    pub(crate) fn part(&self, value: &[u8]) -> Bytes {
        match &self.0 {
            Some(whole) if !value.is_empty() => whole.slice_ref(value),
            _ => Bytes::copy_from_slice(value),
        }
    }
}

/// A column of lists of headers.
pub(crate) struct HeaderColumn<'a> {
    list: &'a ArrayRef,
    keys: ByteColumn<'a>,
    values: ByteColumn<'a>,
    entries: &'a StructArray,
}

impl<'a> HeaderColumn<'a> {
    pub(crate) fn of(list: &'a ArrayRef) -> Result<Self, String> {
        let entries = match list.data_type() {
            DataType::List(_) => list.as_list::<i32>().values(),
            DataType::LargeList(_) => list.as_list::<i64>().values(),
            other => return Err(format!("column `headers` is {other}")),
        };
        let entries = entries.as_struct_opt().ok_or("column `headers` has entries that are no struct")?;
        let [keys, values] = entries.columns() else {
            return Err("column `headers` has entries that are not of key and value".to_owned());
        };
        Ok(Self { list, keys: ByteColumn::of(keys)?, values: ByteColumn::of(values)?, entries })
    }

    /// Where the headers of a row are among those of all; `None` for NULL.
    pub(crate) fn span(&self, row: usize) -> Option<std::ops::Range<usize>> {
        fn span<O: arrow::array::OffsetSizeTrait>(offsets: &OffsetBuffer<O>, row: usize) -> std::ops::Range<usize> {
            offsets[row].as_usize()..offsets[row + 1].as_usize()
        }
        self.list.is_valid(row).then(|| match self.list.data_type() {
            DataType::List(_) => span(self.list.as_list::<i32>().offsets(), row),
            _ => span(self.list.as_list::<i64>().offsets(), row),
        })
    }

    /// A header: its key, and its value if it is not NULL.
    pub(crate) fn header(&self, entry: usize) -> Result<(&'a str, Option<&'a [u8]>), String> {
        let key = if self.entries.is_valid(entry) { self.keys.get(entry) } else { None };
        let key = key.and_then(|key| std::str::from_utf8(key).ok());
        Ok((key.ok_or("a row has a header whose key is null")?, self.values.get(entry)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn values_are_shared_without_a_copy_where_they_are_in_one_piece() {
        let text: ArrayRef = Arc::new(StringArray::from(vec![Some("one"), None, Some("three"), Some("")]));
        let view: ArrayRef = Arc::new(StringViewArray::from(vec![Some("one"), None, Some("three"), Some("")]));
        for (column, is_shared) in [(text.slice(0, 4), true), (text.slice(2, 2), true), (view, false)] {
            let bytes = ByteColumn::of(&column).unwrap();
            let shared = bytes.shared();
            for row in 0..column.len() {
                let Some(value) = bytes.get(row) else { continue };
                let part = shared.part(value);
                assert_eq!(&part[..], value);
                assert_eq!(part.as_ptr() == value.as_ptr() && !value.is_empty(), is_shared && !value.is_empty());
            }
        }
    }
}
