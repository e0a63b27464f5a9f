//! `array_join`: the elements as one text, nulls left out or replaced.

use super::super::coercion::{element_of, list_of, string};
use super::super::function::{Call, Definition};
use super::super::lists::Lists;
use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    vec![Definition {
        name: "array_join",
        aliases: &[],
        arguments: (2, 3),
        coerce,
        result: string,
        may_be_null: false,
        never_null: false,
        run,
    }]
}

fn coerce(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    element_of(name, &types[0])?;
    let mut result = vec![DataType::Utf8; types.len()];
    result[0] = list_of(DataType::Utf8);
    Ok(result)
}

fn run(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let elements = lists.values.as_string::<i32>();
    let separators = args[1].as_string::<i32>();
    let replacements = args.get(2).map(|array| array.as_string::<i32>());
    let mut result = StringBuilder::new();
    let mut text = String::new();
    for row in 0..call.rows {
        let known = separators.is_valid(row) && replacements.is_none_or(|array| array.is_valid(row));
        let Some(range) = lists.row(row).filter(|_| known) else {
            result.append_null();
            continue;
        };
        text.clear();
        let mut first = true;
        for place in range {
            let element = match (elements.is_valid(place), replacements) {
                (true, _) => elements.value(place),
                (false, Some(replacements)) => replacements.value(row),
                (false, None) => continue,
            };
            if !first {
                text.push_str(separators.value(row));
            }
            first = false;
            text.push_str(element);
        }
        result.append_value(&text);
    }
    Ok(Arc::new(result.finish()))
}
