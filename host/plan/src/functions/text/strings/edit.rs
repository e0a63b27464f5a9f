//! Making strings out of strings: case, repetition, joining, replacing, masking.
//!
//! Where it stands: a group of [`Function`]s. `concat` and `reverse` are those of STRING and BINARY; arrays have their
//! own, and whoever registers both dispatches by type.
//!
//! Rule of its life: the size of a computed value is checked before it is made.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};

use super::super::column::{binaries, check_size, slices, texts};
use super::super::function::{Call, Column, Function, Nulls, some};
use super::super::kind::{Kind, to_text};
use super::super::memo::Memo;
use super::slice::like_first;

fn each(call: &Call<'_>, write: fn(&str, &mut String)) -> Result<ArrayRef> {
    let source = call.text(0)?;
    texts(call.rows, |row, out| {
        write(some!(source.get(row)), out);
        Ok(Some(()))
    })
}

fn write_upper(text: &str, out: &mut String) {
    if text.is_ascii() {
        out.push_str(text);
        out.make_ascii_uppercase();
    } else {
        out.push_str(&text.to_uppercase());
    }
}

/// Lower case; also what ILIKE compares.
pub(crate) fn write_lower(text: &str, out: &mut String) {
    if text.is_ascii() {
        out.push_str(text);
        out.make_ascii_lowercase();
    } else {
        out.push_str(&text.to_lowercase());
    }
}

/// The first letter of each word between blanks in upper case, all else in lower case.
fn write_title(text: &str, out: &mut String) {
    let mut starts = true;
    for c in text.chars() {
        if starts {
            let mut upper = c.to_uppercase();
            out.extend(upper.next());
            out.extend(upper.flat_map(char::to_lowercase));
        } else {
            out.extend(c.to_lowercase());
        }
        starts = c == ' ';
    }
}

fn reverse(call: &Call<'_>) -> Result<ArrayRef> {
    if call.is_bytes(0) {
        let source = call.bytes(0)?;
        return binaries(call.rows, |row, out| {
            out.extend(some!(source.get(row)).iter().rev());
            Ok(Some(()))
        });
    }
    each(call, |text, out| out.extend(text.chars().rev()))
}

fn repeat(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, counts) = (call.text(0)?, call.int(1)?);
    texts(call.rows, |row, out| {
        let (text, count) = (some!(source.get(row)), usize::try_from(some!(counts.get(row))).unwrap_or(0));
        check_size("repeat", text.len().saturating_mul(count))?;
        out.reserve(text.len() * count);
        for _ in 0..if text.is_empty() { 0 } else { count } {
            out.push_str(text);
        }
        Ok(Some(()))
    })
}

fn space(call: &Call<'_>) -> Result<ArrayRef> {
    let counts = call.int(0)?;
    texts(call.rows, |row, out| {
        let count = usize::try_from(some!(counts.get(row))).unwrap_or(0);
        check_size("space", count)?;
        out.extend(std::iter::repeat_n(' ', count));
        Ok(Some(()))
    })
}

fn concat_type(types: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    let bytes = |t: &DataType| matches!(t, DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
    Ok(if !types.is_empty() && types.iter().all(bytes) { DataType::Binary } else { DataType::Utf8 })
}

fn concat(call: &Call<'_>) -> Result<ArrayRef> {
    if call.returns == &DataType::Binary {
        let sources = (0..call.len()).map(|index| call.bytes(index)).collect::<Result<Vec<_>>>()?;
        return binaries(call.rows, |row, out| {
            for source in &sources {
                out.extend_from_slice(some!(source.get(row)));
            }
            Ok(Some(()))
        });
    }
    let arrays = (0..call.len()).map(|index| to_text(call.raw(index).0)).collect::<Result<Vec<_>>>()?;
    let sources: Vec<(&StringArray, usize)> =
        arrays.iter().enumerate().map(|(index, array)| (array.as_string::<i32>(), call.raw(index).1)).collect();
    texts(call.rows, |row, out| {
        for (array, stride) in &sources {
            let index = row * stride;
            if array.is_null(index) {
                return Ok(None);
            }
            out.push_str(array.value(index));
        }
        Ok(Some(()))
    })
}

/// One joined argument: a text per row, or a list of texts per row.
enum Joined {
    Texts(ArrayRef, usize),
    Lists(ArrayRef, ArrayRef, usize),
}

fn concat_ws(call: &Call<'_>) -> Result<ArrayRef> {
    let separators = call.text(0)?;
    let mut sources = Vec::new();
    for index in 1..call.len() {
        let (array, stride) = call.raw(index);
        sources.push(match array.data_type() {
            DataType::List(_) => {
                Joined::Lists(Arc::clone(array), to_text(array.as_list::<i32>().values())?, stride)
            }
            DataType::LargeList(_) | DataType::FixedSizeList(_, _) => {
                let list = arrow::compute::cast(array, &DataType::new_list(DataType::Utf8, true))?;
                let values = to_text(list.as_list::<i32>().values())?;
                Joined::Lists(list, values, stride)
            }
            DataType::Null => continue,
            data_type if data_type.is_nested() => {
                return exec_err!("[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] `concat_ws` joins STRING and ARRAY<STRING>, not {data_type}");
            }
            _ => Joined::Texts(to_text(array)?, stride),
        });
    }
    texts(call.rows, |row, out| {
        let separator = some!(separators.get(row));
        let mut first = true;
        let mut append = |text: &str| {
            if !first {
                out.push_str(separator);
            }
            first = false;
            out.push_str(text);
        };
        for source in &sources {
            match source {
                Joined::Texts(array, stride) => {
                    let (texts, index) = (array.as_string::<i32>(), row * stride);
                    if !texts.is_null(index) {
                        append(texts.value(index));
                    }
                }
                Joined::Lists(array, values, stride) => {
                    let (lists, values, index) = (array.as_list::<i32>(), values.as_string::<i32>(), row * stride);
                    if lists.is_null(index) {
                        continue;
                    }
                    let offsets = lists.value_offsets();
                    for at in
                        usize::try_from(offsets[index]).unwrap_or(0)..usize::try_from(offsets[index + 1]).unwrap_or(0)
                    {
                        if !values.is_null(at) {
                            append(values.value(at));
                        }
                    }
                }
            }
        }
        Ok(Some(()))
    })
}

fn replace(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, searches) = (call.text(0)?, call.text(1)?);
    let replacements = if call.has(2) { Some(call.text(2)?) } else { None };
    texts(call.rows, |row, out| {
        let (text, search) = (some!(source.get(row)), some!(searches.get(row)));
        let replacement = match &replacements {
            Some(replacements) => some!(replacements.get(row)),
            None => "",
        };
        if search.is_empty() {
            out.push_str(text);
            return Ok(Some(()));
        }
        for (index, piece) in text.split(search).enumerate() {
            if index > 0 {
                out.push_str(replacement);
            }
            out.push_str(piece);
            check_size("replace", out.len())?;
        }
        Ok(Some(()))
    })
}

/// What each character becomes; later mentions of a character do not count.
type Translation = std::collections::HashMap<char, Option<char>>;

fn translate(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, from, to) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let mut memo: Memo<(String, Translation)> = Memo::new();
    let make = |from: &str, to: &str| {
        let mut table = Translation::new();
        let mut targets = to.chars();
        for c in from.chars() {
            let target = targets.next();
            table.entry(c).or_insert(target);
        }
        (to.to_string(), table)
    };
    texts(call.rows, |row, out| {
        let (text, from, to) = (some!(source.get(row)), some!(from.get(row)), some!(to.get(row)));
        let mut known = memo.get(from, |from| Ok(make(from, to)))?;
        if known.0 != to {
            memo = Memo::new();
            known = memo.get(from, |from| Ok(make(from, to)))?;
        }
        for c in text.chars() {
            match known.1.get(&c) {
                Some(Some(target)) => out.push(*target),
                Some(None) => {}
                None => out.push(c),
            }
        }
        Ok(Some(()))
    })
}

/// The one character that masks a class; NULL leaves the class as it is.
fn mask_of(column: Option<&Column<'_, StringArray>>, default: Option<char>, row: usize) -> Result<Option<char>> {
    let Some(column) = column else { return Ok(default) };
    let Some(text) = column.get(row) else { return Ok(None) };
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(Some(c)),
        _ => exec_err!(
            "[DATATYPE_MISMATCH.INPUT_SIZE_NOT_ONE] a masking argument of `mask` must be one character, not '{text}'"
        ),
    }
}

fn mask(call: &Call<'_>) -> Result<ArrayRef> {
    let source = call.text(0)?;
    let masks = (1..call.len()).map(|index| call.text(index)).collect::<Result<Vec<_>>>()?;
    texts(call.rows, |row, out| {
        let text = some!(source.get(row));
        let upper = mask_of(masks.first(), Some('X'), row)?;
        let lower = mask_of(masks.get(1), Some('x'), row)?;
        let digit = mask_of(masks.get(2), Some('n'), row)?;
        let other = mask_of(masks.get(3), None, row)?;
        out.extend(text.chars().map(|c| {
            let class = if c.is_uppercase() {
                upper
            } else if c.is_lowercase() {
                lower
            } else if c.is_numeric() {
                digit
            } else {
                other
            };
            class.unwrap_or(c)
        }));
        Ok(Some(()))
    })
}

fn elt(call: &Call<'_>) -> Result<ArrayRef> {
    let numbers = call.int(0)?;
    let choices = (1..call.len()).map(|index| call.text(index)).collect::<Result<Vec<_>>>()?;
    slices(call.rows, |row| {
        let number = some!(numbers.get(row));
        match usize::try_from(number).ok().and_then(|number| choices.get(number.checked_sub(1)?)) {
            Some(choice) => Ok(choice.get(row)),
            None if call.ansi => exec_err!(
                "[INVALID_ARRAY_INDEX] the index {number} is out of bounds; `elt` has {} values, the first is number 1",
                choices.len()
            ),
            None => Ok(None),
        }
    })
}

/// The functions of this group.
pub(super) fn functions() -> Vec<Function> {
    let (text, either, utf8) = (Kind::Text, Kind::TextOrBytes, DataType::Utf8);
    vec![
        Function::new("upper", &[text], utf8.clone(), |c| each(c, write_upper)).aliases(&["ucase"]),
        Function::new("lower", &[text], utf8.clone(), |c| each(c, write_lower)).aliases(&["lcase"]),
        Function::new("initcap", &[text], utf8.clone(), |c| each(c, write_title)),
        Function::new("reverse", &[either], utf8.clone(), reverse).returns_by(like_first),
        Function::new("repeat", &[text, Kind::Int], utf8.clone(), repeat).fails_on(&[0, 1]),
        Function::new("space", &[Kind::Int], utf8.clone(), space),
        Function::new("concat", &[], utf8.clone(), concat).rest(either).returns_by(concat_type),
        Function::new("concat_ws", &[text], utf8.clone(), concat_ws).rest(Kind::Any).nulls(Nulls::Possible),
        Function::new("replace", &[text, text, text], utf8.clone(), replace).optional(1),
        Function::new("translate", &[text, text, text], utf8.clone(), translate),
        Function::new("mask", &[text, text, text, text, text], utf8.clone(), mask).fails_on(&[1, 2, 3, 4]).optional(4),
        Function::new("elt", &[Kind::Int, text], utf8, elt).fails_on(&[0]).rest(text).nulls(Nulls::Possible),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_case_starts_words_after_blanks_only() {
        let mut out = String::new();
        write_title("hELLO o'neil-smith ßx", &mut out);
        assert_eq!(out, "Hello O'neil-smith Ssx");
    }
}
