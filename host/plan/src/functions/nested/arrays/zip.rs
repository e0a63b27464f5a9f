//! `arrays_zip`: arrays side by side as an array of structs, the shorter ones filled with nulls.
//!
//! The fields are named `0`, `1`, …; the syntax rewrite turns `arrays_zip(a, b)` into `__arrays_zip('a', a, 'b', b)`,
//! which names them.

use super::super::coercion::{element_of, list_of, mismatch};
use super::super::function::{Call, Definition};
use super::super::lists::{Lists, fit, list, record};
use arrow::array::{ArrayRef, UInt32Builder, new_null_array};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err};

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    let definition = |name, coerce, result, run| Definition {
        name,
        aliases: &[],
        arguments: (0, 510),
        coerce,
        result,
        may_be_null: false,
        never_null: false,
        run,
    };
    vec![
        definition("arrays_zip", coerce_plain, plain_type, zip),
        definition("__arrays_zip", coerce_named, named_type, |call, args| {
            let lists: Vec<_> = args.iter().skip(1).step_by(2).cloned().collect();
            zip(call, &lists)
        }),
    ]
}

fn coerce_plain(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    types.iter().map(|t| Ok(list_of(element_of(name, t)?))).collect()
}

fn coerce_named(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    let coerced = types
        .iter()
        .enumerate()
        .map(|(position, t)| if position % 2 == 0 { Ok(DataType::Utf8) } else { Ok(list_of(element_of(name, t)?)) });
    coerced.collect()
}

fn plain_type(name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let fields = types
        .iter()
        .enumerate()
        .map(|(position, t)| Ok(Field::new(position.to_string(), element_of(name, t)?, true)))
        .collect::<Result<Vec<_>>>()?;
    Ok(list_of(DataType::Struct(fields.into())))
}

fn named_type(name: &str, types: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let mut fields = Vec::with_capacity(types.len() / 2);
    for (constant, pair) in constants.iter().step_by(2).zip(types.chunks(2)) {
        let (Some(Some(field)), [_, list]) = (constant.map(|c| c.try_as_str().flatten()), pair) else {
            return mismatch(name, "a constant name before each array", &pair[0]);
        };
        fields.push(Field::new(field, element_of(name, list)?, true));
    }
    Ok(list_of(DataType::Struct(fields.into())))
}

fn zip(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let DataType::List(output) = call.output else { return exec_err!("`{}` gives an array", call.name) };
    let DataType::Struct(fields) = output.data_type() else { return exec_err!("`{}` gives structs", call.name) };
    let columns = args.iter().map(Lists::of).collect::<Result<Vec<_>>>()?;
    let mut offsets = vec![0_i32];
    let mut valid = Vec::with_capacity(call.rows);
    let mut lengths = Vec::with_capacity(call.rows);
    let mut total = 0_usize;
    for row in 0..call.rows {
        let longest = columns.iter().map(|lists| lists.row(row).map(|range| range.len())).collect::<Option<Vec<_>>>();
        valid.push(longest.is_some());
        let length = longest.and_then(|lengths| lengths.into_iter().max()).unwrap_or(0);
        lengths.push(length);
        total += length;
        offsets.push(i32::try_from(total).map_err(|_| {
            exec_datafusion_err!(
                "[COLLECTION_SIZE_LIMIT_EXCEEDED] one batch cannot hold more than {} array elements",
                i32::MAX
            )
        })?);
    }
    let mut arrays = Vec::with_capacity(columns.len());
    for (lists, field) in columns.iter().zip(fields) {
        if lists.values.is_empty() {
            arrays.push(new_null_array(field.data_type(), total));
            continue;
        }
        let mut places = UInt32Builder::with_capacity(total);
        for (row, &length) in lengths.iter().enumerate() {
            let range = lists.row(row).unwrap_or(0..0);
            (0..length).for_each(|i| places.append_option((i < range.len()).then(|| (range.start + i) as u32)));
        }
        arrays.push(fit(take(&lists.values, &places.finish(), None)?, field.data_type())?);
    }
    let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
    list(record(fields, arrays, None, total)?, OffsetBuffer::new(ScalarBuffer::from(offsets)), nulls, call.output)
}
