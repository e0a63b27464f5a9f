//! Arrays from values and from other arrays: `array`, `slice`, `flatten`, `array_append`, `array_insert`, …

use super::super::coercion::{
    common, element_of, first, list_and_element, list_of, mismatch, one_list, same_lists, same_values,
};
use super::super::function::{Call, Definition};
use super::super::lists::{Lists, Picks, stack};
use super::super::order::{comparable, require_order};
use arrow::array::{Array, ArrayRef, AsArray, new_empty_array};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err};

/// The most elements that one batch may have made by repetition.
const MOST_REPEATED: usize = 1 << 27;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    let base = Definition {
        name: "array",
        aliases: &["make_array"],
        arguments: (0, usize::MAX),
        coerce: same_values,
        result: array_type,
        may_be_null: false,
        never_null: true,
        run: array,
    };
    let definition = |name, arguments, coerce, result, run| Definition {
        name,
        aliases: &[],
        arguments,
        coerce,
        result,
        may_be_null: false,
        never_null: false,
        run,
    };
    vec![
        base,
        definition("slice", (3, 3), coerce_slice, first, slice),
        Definition { may_be_null: true, ..definition("flatten", (1, 1), coerce_flatten, flat_type, flatten) },
        definition("array_compact", (1, 1), one_list, first, compact),
        definition("array_remove", (2, 2), coerce_remove, first, remove),
        definition("array_append", (2, 2), list_and_element, first, |call, args| attach(call, args, true)),
        definition("array_prepend", (2, 2), list_and_element, first, |call, args| attach(call, args, false)),
        definition("array_insert", (3, 3), coerce_insert, first, insert),
        definition("array_repeat", (2, 2), coerce_repeat, array_type, repeat),
        definition("__concat_arrays", (0, usize::MAX), same_lists, concat_type, concat_arrays),
    ]
}

fn array_type(_name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(list_of(types.first().cloned().unwrap_or(DataType::Null)))
}

fn concat_type(_name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(types.first().cloned().unwrap_or_else(|| list_of(DataType::Null)))
}

fn coerce_slice(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    Ok(vec![list_of(element_of(name, &types[0])?), DataType::Int64, DataType::Int64])
}

fn coerce_flatten(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    let inner = element_of(name, &types[0])?;
    Ok(vec![list_of(list_of(element_of(name, &inner)?))])
}

fn flat_type(name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(list_of(element_of(name, &element_of(name, &types[0])?)?))
}

fn coerce_remove(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    let types = list_and_element(name, types, ansi)?;
    require_order(name, &types[1])?;
    Ok(types)
}

fn coerce_insert(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    if !types[1].is_integer() && !types[1].is_null() {
        return mismatch(name, "an integer position", &types[1]);
    }
    let element = common(name, [&element_of(name, &types[0])?, &types[2]], ansi)?;
    Ok(vec![list_of(element.clone()), DataType::Int64, element])
}

fn coerce_repeat(_name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    Ok(vec![types[0].clone(), DataType::Int32])
}

fn array(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut picks = Picks::with_capacity(call.rows);
    let (values, starts) = if args.is_empty() {
        (new_empty_array(&DataType::Null), Vec::new())
    } else {
        stack(&args.iter().collect::<Vec<_>>())?
    };
    for row in 0..call.rows {
        starts.iter().for_each(|start| picks.push(start + row));
        picks.end()?;
    }
    picks.finish(&values, call.output)
}

fn slice(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let (starts, lengths) = (args[1].as_primitive::<Int64Type>(), args[2].as_primitive::<Int64Type>());
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        let Some(range) = lists.row(row).filter(|_| starts.is_valid(row) && lengths.is_valid(row)) else {
            picks.end_null()?;
            continue;
        };
        let (start, length, held) = (starts.value(row), lengths.value(row), range.len() as i64);
        if start == 0 {
            return exec_err!("[INVALID_PARAMETER_VALUE.START] `slice` counts from 1 or from -1, not from 0");
        }
        if length < 0 {
            return exec_err!("[INVALID_PARAMETER_VALUE.LENGTH] `slice` needs a length of 0 or more, not {length}");
        }
        let from = if start > 0 { start - 1 } else { start.saturating_add(held) };
        if (0..held).contains(&from) {
            let until = from.saturating_add(length).min(held);
            picks.extend(range.start + from as usize..range.start + until as usize);
        }
        picks.end()?;
    }
    picks.finish(&lists.values, call.output)
}

fn flatten(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let outer = Lists::of(&args[0])?;
    let inner = Lists::of(&outer.values)?;
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        match outer.row(row) {
            Some(mut range) if !range.clone().any(|place| inner.is_null(place)) => {
                range.by_ref().filter_map(|place| inner.row(place)).for_each(|places| picks.extend(places));
                picks.end()?;
            }
            _ => picks.end_null()?,
        }
    }
    picks.finish(&inner.values, call.output)
}

fn compact(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let nulls = lists.values.logical_nulls();
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        match lists.row(row) {
            None => picks.end_null()?,
            Some(range) => {
                range
                    .filter(|&place| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(place)))
                    .for_each(|place| picks.push(place));
                picks.end()?;
            }
        }
    }
    picks.finish(&lists.values, call.output)
}

fn remove(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let (held, unwanted) = (comparable(&lists.values)?, comparable(&args[1])?);
    let nulls = args[1].logical_nulls();
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        let known = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let Some(range) = lists.row(row).filter(|_| known) else {
            picks.end_null()?;
            continue;
        };
        range.filter(|&place| held.row(place) != unwanted.row(row)).for_each(|place| picks.push(place));
        picks.end()?;
    }
    picks.finish(&lists.values, call.output)
}

fn attach(call: &Call<'_>, args: &[ArrayRef], behind: bool) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let (values, starts) = stack(&[&lists.values, &args[1]])?;
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        let Some(range) = lists.row(row) else {
            picks.end_null()?;
            continue;
        };
        if behind {
            picks.extend(range);
            picks.push(starts[1] + row);
        } else {
            picks.push(starts[1] + row);
            picks.extend(range);
        }
        picks.end()?;
    }
    picks.finish(&values, call.output)
}

/// Puts a value at a place that counts from 1, or from the end of the result with negative numbers; what lies
/// between the array and a place outside of it is filled with nulls.
fn insert(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let positions = args[1].as_primitive::<Int64Type>();
    let (values, starts) = stack(&[&lists.values, &args[2]])?;
    let mut picks = Picks::with_capacity(call.rows);
    let mut filled = 0_usize;
    for row in 0..call.rows {
        let Some(range) = lists.row(row).filter(|_| positions.is_valid(row)) else {
            picks.end_null()?;
            continue;
        };
        let (position, held, value) = (positions.value(row), range.len(), starts[1] + row);
        let distance = usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX);
        if distance == 0 {
            return exec_err!("[INVALID_INDEX_OF_ZERO] the index 0 is invalid: elements are counted from 1 or -1");
        }
        let missing = (distance - 1).saturating_sub(held);
        filled = filled.saturating_add(missing);
        if filled > MOST_REPEATED {
            return too_many(call.name);
        }
        if missing > 0 && position > 0 {
            picks.extend(range);
            (0..missing).for_each(|_| picks.push_null());
            picks.push(value);
        } else if missing > 0 {
            picks.push(value);
            (0..missing).for_each(|_| picks.push_null());
            picks.extend(range);
        } else {
            let before = if position > 0 { distance - 1 } else { held + 1 - distance };
            picks.extend(range.start..range.start + before);
            picks.push(value);
            picks.extend(range.start + before..range.end);
        }
        picks.end()?;
    }
    picks.finish(&values, call.output)
}

fn repeat(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let counts = args[1].as_primitive::<Int32Type>();
    let mut picks = Picks::with_capacity(call.rows);
    let mut made = 0_usize;
    for row in 0..call.rows {
        if counts.is_null(row) {
            picks.end_null()?;
            continue;
        }
        let count = usize::try_from(counts.value(row)).unwrap_or(0);
        made = made.saturating_add(count);
        if made > MOST_REPEATED {
            return too_many(call.name);
        }
        (0..count).for_each(|_| picks.push(row));
        picks.end()?;
    }
    picks.finish(&args[0], call.output)
}

fn too_many<T>(name: &str) -> Result<T> {
    exec_err!(
        "[COLLECTION_SIZE_LIMIT_EXCEEDED.FUNCTION] `{name}` may make at most {MOST_REPEATED} elements in one batch"
    )
}

fn concat_arrays(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    if args.is_empty() {
        return array(call, args);
    }
    let lists = args.iter().map(Lists::of).collect::<Result<Vec<_>>>()?;
    let (values, starts) = stack(&lists.iter().map(|list| &list.values).collect::<Vec<_>>())?;
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        if lists.iter().any(|list| list.is_null(row)) {
            picks.end_null()?;
            continue;
        }
        for (list, start) in lists.iter().zip(&starts) {
            if let Some(range) = list.row(row) {
                picks.extend(range.start + start..range.end + start);
            }
        }
        picks.end()?;
    }
    picks.finish(&values, call.output)
}
