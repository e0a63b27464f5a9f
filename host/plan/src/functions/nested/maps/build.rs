//! Making maps: `map`, `map_from_arrays`, `map_from_entries`, `map_concat`, `str_to_map`.

use super::super::coercion::{common, element_of, list_of, map_of, mismatch, pair_of};
use super::super::function::{Call, Definition};
use super::super::lists::{Lists, Picks, stack};
use super::super::order::{comparable, require_order};
use crate::functions::text::{Separator, memo::Memo};
use arrow::array::{Array, ArrayRef, AsArray, StringArray, new_empty_array};
use arrow::datatypes::DataType;
use arrow::row::Rows;
use arrow::util::display::array_value_to_string;
use datafusion::common::{Result, ScalarValue, exec_err};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    let definition = |name, arguments, coerce, result, may_be_null, run| Definition {
        name,
        aliases: &[],
        arguments,
        coerce,
        result,
        may_be_null,
        never_null: false,
        run,
    };
    vec![
        Definition {
            aliases: &["__map"],
            never_null: true,
            ..definition("map", (0, usize::MAX), coerce_map, map_type, false, from_pairs)
        },
        definition("map_from_arrays", (2, 2), coerce_arrays, arrays_type, false, from_arrays),
        definition("map_from_entries", (1, 1), coerce_entries, entries_type, true, from_entries),
        definition("map_concat", (0, usize::MAX), coerce_concat, concat_type, false, concat),
        definition("str_to_map", (1, 3), coerce_text, text_type, false, from_text),
    ]
}

/// Refuses null keys and keys that occur twice among these places.
pub(in super::super) fn unique_keys(
    keys: &ArrayRef,
    comparable: &Rows,
    places: impl Iterator<Item = usize>,
) -> Result<()> {
    let mut seen = HashSet::new();
    for place in places {
        if keys.data_type().is_null() || keys.is_null(place) {
            return exec_err!("[NULL_MAP_KEY] a map cannot have a null key");
        }
        if !seen.insert(comparable.row(place)) {
            let key = array_value_to_string(keys, place)?;
            return exec_err!("[DUPLICATED_MAP_KEY] the key {key} occurs twice; a map has each key once");
        }
    }
    Ok(())
}

fn coerce_map(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    if !types.len().is_multiple_of(2) {
        return mismatch(name, "a value behind each key", types.last().unwrap_or(&DataType::Null));
    }
    let key = common(name, types.iter().step_by(2), ansi)?;
    let value = common(name, types.iter().skip(1).step_by(2), ansi)?;
    require_order(name, &key)?;
    Ok((0..types.len()).map(|position| if position % 2 == 0 { key.clone() } else { value.clone() }).collect())
}

fn map_type(_name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(match types {
        [key, value, ..] => map_of(key.clone(), value.clone()),
        _ => map_of(DataType::Null, DataType::Null),
    })
}

fn from_pairs(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut picks = Picks::with_capacity(call.rows);
    if args.is_empty() {
        for _ in 0..call.rows {
            picks.end()?;
        }
        let none = new_empty_array(&DataType::Null);
        return picks.finish_map(&none, &none, call.output);
    }
    let (keys, starts) = stack(&args.iter().step_by(2).collect::<Vec<_>>())?;
    let (values, _) = stack(&args.iter().skip(1).step_by(2).collect::<Vec<_>>())?;
    let held = comparable(&keys)?;
    for row in 0..call.rows {
        unique_keys(&keys, &held, starts.iter().map(|start| start + row))?;
        starts.iter().for_each(|start| picks.push(start + row));
        picks.end()?;
    }
    picks.finish_map(&keys, &values, call.output)
}

fn coerce_arrays(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    let key = element_of(name, &types[0])?;
    require_order(name, &key)?;
    Ok(vec![list_of(key), list_of(element_of(name, &types[1])?)])
}

fn arrays_type(name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(map_of(element_of(name, &types[0])?, element_of(name, &types[1])?))
}

fn from_arrays(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let (keys, values) = (Lists::of(&args[0])?, Lists::of(&args[1])?);
    let held = comparable(&keys.values)?;
    let (mut key_picks, mut value_picks) = (Picks::with_capacity(call.rows), Picks::with_capacity(call.rows));
    for row in 0..call.rows {
        let (Some(k), Some(v)) = (keys.row(row), values.row(row)) else {
            key_picks.end_null()?;
            value_picks.end_null()?;
            continue;
        };
        if k.len() != v.len() {
            return exec_err!(
                "[MAP_FROM_ARRAYS_LENGTH_MISMATCH] `{}` needs as many values as keys, not {} and {}",
                call.name,
                v.len(),
                k.len()
            );
        }
        unique_keys(&keys.values, &held, k.clone())?;
        key_picks.extend(k);
        value_picks.extend(v);
        key_picks.end()?;
        value_picks.end()?;
    }
    let keys = key_picks.finish(&keys.values, &list_of(keys.values.data_type().clone()))?;
    let values = value_picks.finish(&values.values, &list_of(values.values.data_type().clone()))?;
    let (keys, values) = (keys.as_list::<i32>(), values.as_list::<i32>());
    super::super::lists::map(
        Arc::clone(keys.values()),
        Arc::clone(values.values()),
        keys.offsets().clone(),
        keys.nulls().cloned(),
        call.output,
    )
}

fn entry_types(name: &str, entries: &DataType) -> Result<(DataType, DataType)> {
    match element_of(name, entries)? {
        DataType::Struct(fields) if fields.len() == 2 => {
            Ok((fields[0].data_type().clone(), fields[1].data_type().clone()))
        }
        other => mismatch(name, "an array of structs with two fields", &other),
    }
}

fn coerce_entries(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    require_order(name, &entry_types(name, &types[0])?.0)?;
    Ok(vec![list_of(element_of(name, &types[0])?)])
}

fn entries_type(name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let (key, value) = entry_types(name, &types[0])?;
    Ok(map_of(key, value))
}

fn from_entries(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0])?;
    let entries = lists.values.as_struct();
    let (keys, values) = (entries.column(0), entries.column(1));
    let held = comparable(keys)?;
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        match lists.row(row) {
            // A null among the entries makes the whole map null.
            Some(range) if !range.clone().any(|place| entries.is_null(place)) => {
                unique_keys(keys, &held, range.clone())?;
                picks.extend(range);
                picks.end()?;
            }
            _ => picks.end_null()?,
        }
    }
    picks.finish_map(keys, values, call.output)
}

fn coerce_concat(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    for t in types {
        pair_of(name, t)?;
    }
    Ok(vec![common(name, types, ansi)?; types.len()])
}

fn concat_type(_name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(types.first().cloned().unwrap_or_else(|| map_of(DataType::Null, DataType::Null)))
}

fn concat(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    if args.is_empty() {
        return from_pairs(call, args);
    }
    let maps = args.iter().map(Lists::of).collect::<Result<Vec<_>>>()?;
    let (all_keys, all_values): (Vec<_>, Vec<_>) = maps.iter().map(|map| (map.keys(), map.map_values())).unzip();
    let (keys, starts) = stack(&all_keys.iter().collect::<Vec<_>>())?;
    let (values, _) = stack(&all_values.iter().collect::<Vec<_>>())?;
    let held = comparable(&keys)?;
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        let ranges = maps.iter().zip(&starts).map(|(map, start)| {
            let range = map.row(row)?;
            Some(range.start + start..range.end + start)
        });
        let Some(ranges) = ranges.collect::<Option<Vec<Range<usize>>>>() else {
            picks.end_null()?;
            continue;
        };
        unique_keys(&keys, &held, ranges.iter().cloned().flatten())?;
        ranges.into_iter().for_each(|range| picks.extend(range));
        picks.end()?;
    }
    picks.finish_map(&keys, &values, call.output)
}

fn coerce_text(_name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    Ok(vec![DataType::Utf8; types.len()])
}

fn text_type(_name: &str, _types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(map_of(DataType::Utf8, DataType::Utf8))
}

/// Cuts `x=1,y=2` into pairs; the delimiters are Java's regular expressions. An entry without one has a null value.
fn from_text(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    let texts = args[0].as_string::<i32>();
    let (mut between_pairs, mut within_pairs) = (Memo::new(), Memo::new());
    let (mut keys, mut values) = (Vec::<&str>::new(), Vec::<Option<&str>>::new());
    let mut picks = Picks::with_capacity(call.rows);
    for row in 0..call.rows {
        let delimiters = [(1, ","), (2, ":")].map(|(position, default)| match args.get(position) {
            None => Some(default),
            Some(array) => array.is_valid(row).then(|| array.as_string::<i32>().value(row)),
        });
        let ([Some(pair_end), Some(key_end)], true) = (delimiters, texts.is_valid(row)) else {
            picks.end_null()?;
            continue;
        };
        let (pair_end, key_end) =
            (between_pairs.get(pair_end, Separator::compile)?, within_pairs.get(key_end, Separator::compile)?);
        let first = keys.len();
        pair_end.split(texts.value(row), -1, |entry| {
            let (mut key, mut value) = (None, None);
            key_end.split(entry, 2, |half| if key.is_none() { key = Some(half) } else { value = Some(half) });
            keys.push(key.unwrap_or_default());
            values.push(value);
        });
        picks.extend(first..keys.len());
        picks.end()?;
    }
    let keys: ArrayRef = Arc::new(StringArray::from(keys));
    let values: ArrayRef = Arc::new(StringArray::from(values));
    let held = comparable(&keys)?;
    let map = picks.finish_map(&keys, &values, call.output)?;
    let maps = Lists::of(&map)?;
    // The picks are in order and without gaps, so the places in the map are those of the keys.
    (0..call.rows).filter_map(|row| maps.row(row)).try_for_each(|range| unique_keys(&keys, &held, range))?;
    Ok(map)
}
