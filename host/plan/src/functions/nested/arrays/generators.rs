//! The lists behind `explode` and its kin, for the front end, which unnests them.
//!
//! `__list_or_null(list)`: a null or empty list becomes a list of one null (the OUTER forms).
//! `__with_position(list)`: a list of `struct<pos: INT, col: element>` (posexplode); a map becomes
//! `struct<pos: INT, key, value>`. `__map_entries(map)`: a list of `struct<key, value>` (explode of a map).

use super::super::coercion::{element_of, entry_fields, first, list_of, one_list, one_map, pair_of};
use super::super::function::{Call, Definition};
use super::super::lists::{Lists, Picks, list, record};
use arrow::array::{Array, ArrayRef, AsArray, Int32Builder};
use arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue, exec_err};
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    let definition = |name, aliases, coerce, result, never_null, run| Definition {
        name,
        aliases,
        arguments: (1, 1),
        coerce,
        result,
        may_be_null: false,
        never_null,
        run,
    };
    vec![
        definition("__list_or_null", &[], one_list, first, true, list_or_null),
        definition("__with_position", &[], coerce_any, positions_type, false, with_position),
        definition("__map_entries", &["map_entries"], one_map, entries_type, false, entries),
    ]
}

fn coerce_any(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    if matches!(types[0], DataType::Map(..)) { one_map(name, types, ansi) } else { one_list(name, types, ansi) }
}

fn positions_type(name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let mut fields = vec![Field::new("pos", DataType::Int32, false)];
    if matches!(types[0], DataType::Map(..)) {
        let (key, value) = pair_of(name, &types[0])?;
        fields.extend([Field::new("key", key, true), Field::new("value", value, true)]);
    } else {
        fields.push(Field::new("col", element_of(name, &types[0])?, true));
    }
    Ok(list_of(DataType::Struct(fields.into())))
}

fn entries_type(name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let (key, value) = pair_of(name, &types[0])?;
    Ok(list_of(DataType::Struct(entry_fields(key, value))))
}

fn list_or_null(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        match lists.row(row).filter(|range| !range.is_empty()) {
            Some(range) => picks.extend(range),
            None => picks.push_null(),
        }
        picks.end()?;
    }
    picks.finish(&lists.values, call.output)
}

fn with_position(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let DataType::List(output) = call.output else { return exec_err!("`{}` gives an array", call.name) };
    let DataType::Struct(fields) = output.data_type() else { return exec_err!("`{}` gives structs", call.name) };
    let dense = dense(call, &args[0])?;
    let lists = Lists::of(&dense)?;
    let mut positions = Int32Builder::with_capacity(lists.values.len());
    for row in 0..call.rows {
        // Positions in a list with 32-bit offsets are below 2^31.
        lists.row(row).into_iter().for_each(|range| (0..range.len()).for_each(|i| positions.append_value(i as i32)));
    }
    let mut columns: Vec<ArrayRef> = vec![Arc::new(positions.finish())];
    if matches!(args[0].data_type(), DataType::Map(..)) {
        columns.extend([lists.keys(), lists.map_values()]);
    } else {
        columns.push(Arc::clone(&lists.values));
    }
    let total = lists.values.len();
    let offsets = dense.as_list::<i32>().offsets().clone();
    list(record(fields, columns, None, total)?, offsets, lists.nulls().cloned(), call.output)
}

fn entries(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let maps = Lists::of(&args[0])?;
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        match maps.row(row) {
            None => picks.end_null()?,
            Some(range) => {
                picks.extend(range);
                picks.end()?;
            }
        }
    }
    picks.finish(&maps.values, call.output)
}

/// The same rows as a list column whose values are exactly those of its rows, in order.
fn dense(call: &Call<'_>, array: &ArrayRef) -> Result<ArrayRef> {
    let lists = Lists::of(array)?;
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        match lists.row(row) {
            None => picks.end_null()?,
            Some(range) => {
                picks.extend(range);
                picks.end()?;
            }
        }
    }
    let output = list_of(lists.values.data_type().clone());
    picks.finish(&lists.values, &output)
}
