//! What asks about the types or the session, and what fails on purpose: `typeof`, `assert_true`, `raise_error`,
//! `version`-like constants. The clock is in [`super::clock`].

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;

use super::function::{Call, Nulls, Row, shape};
use super::type_name::type_name;

/// The family's functions.
pub(super) const ROWS: &[Row] = &[
    Row::new("typeof", shape::any_one, shape::string, |call| {
        let name = type_name(call.arrays[0].data_type());
        Ok(Arc::new(StringArray::from_iter_values(std::iter::repeat_n(name, call.arrays[0].len()))))
    })
    .nulls(Nulls::Never),
    Row::new("assert_true", assert_types, nothing, assert_true).nulls(Nulls::Possible).volatile(),
    Row::new("raise_error", message_types, nothing, raise_error).nulls(Nulls::Possible).volatile(),
    Row::new("current_timezone", none, shape::string, |_| text("UTC")).nulls(Nulls::Never),
    Row::new("current_database", none, shape::string, |_| text("default"))
        .also(&["current_schema"])
        .nulls(Nulls::Never),
    Row::new("current_catalog", none, shape::string, |_| text("spark_catalog")).nulls(Nulls::Never),
];

fn none(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
    types.is_empty().then(Vec::new)
}

fn text(value: &str) -> Result<ArrayRef> {
    Ok(Arc::new(StringArray::from(vec![value])))
}

fn nothing(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(DataType::Null)
}

fn assert_types(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
    match types {
        [DataType::Boolean | DataType::Null] => Some(vec![DataType::Boolean]),
        [DataType::Boolean | DataType::Null, _] => Some(vec![DataType::Boolean, DataType::Utf8]),
        _ => None,
    }
}

fn message_types(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
    (types.len() == 1).then(|| vec![DataType::Utf8])
}

/// NULL for true, an error for anything else.
fn assert_true(call: &Call<'_>) -> Result<ArrayRef> {
    let conditions = call.arrays[0].as_boolean();
    if let Some(row) = conditions.iter().position(|condition| condition != Some(true)) {
        let message = call.arrays.get(1).map(|messages| messages.as_string::<i32>());
        return match message {
            Some(messages) if messages.is_valid(row) => exec_err!("[USER_RAISED_EXCEPTION] {}", messages.value(row)),
            Some(_) => exec_err!("[USER_RAISED_EXCEPTION] null"),
            None => exec_err!("[USER_RAISED_EXCEPTION] the asserted condition is not true"),
        };
    }
    Ok(arrow::array::new_null_array(&DataType::Null, conditions.len()))
}

fn raise_error(call: &Call<'_>) -> Result<ArrayRef> {
    let messages = call.arrays[0].as_string::<i32>();
    match messages.iter().next() {
        Some(Some(message)) => exec_err!("[USER_RAISED_EXCEPTION] {message}"),
        Some(None) => exec_err!("[USER_RAISED_EXCEPTION] null"),
        None => Ok(arrow::array::new_null_array(&DataType::Null, 0)),
    }
}
