//! Taking parts of strings and padding them: `substring`, `left`, `lpad`, `trim`, `overlay`, `split_part`, …
//!
//! Where it stands: a group of [`Function`]s over characters (BINARY: over bytes).
//!
//! Rule of its life: positions count characters from 1, negative ones from the end; parts are borrowed, not copied first.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};

use super::super::column::{binaries, check_size, slices, texts};
use super::super::function::{Call, Function, some};
use super::super::kind::{Kind, to_text};

/// BINARY when the first argument is, else STRING.
pub(super) fn like_first(types: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(match types.first() {
        Some(DataType::Binary | DataType::LargeBinary | DataType::BinaryView) => DataType::Binary,
        _ => DataType::Utf8,
    })
}

/// Characters of a text.
pub(crate) fn count(text: &str) -> i64 {
    i64::try_from(if text.is_ascii() { text.len() } else { text.chars().count() }).unwrap_or(i64::MAX)
}

/// Byte index of the character `index`, the text's length when there are fewer.
pub(crate) fn byte_of(text: &str, index: i64) -> usize {
    let Ok(index) = usize::try_from(index) else { return 0 };
    if text.is_ascii() {
        index.min(text.len())
    } else {
        text.char_indices().nth(index).map_or(text.len(), |(at, _)| at)
    }
}

/// Start and end, counted from 0, of a position counted from 1 (or from the end) and a length.
fn bounds(total: impl FnOnce() -> i64, position: i64, length: i64) -> (i64, i64) {
    let start = match position {
        1.. => position - 1,
        0 => 0,
        _ => total() + position,
    };
    (start, start.saturating_add(length))
}

/// SQL's substring; a length below nothing gives nothing.
pub(super) fn part(text: &str, position: i64, length: i64) -> &str {
    let (start, end) = bounds(|| count(text), position, length);
    if end <= start || end <= 0 {
        return "";
    }
    let from = byte_of(text, start.max(0));
    let rest = &text[from..];
    &rest[..byte_of(rest, end - start.max(0))]
}

fn part_of_bytes(bytes: &[u8], position: i64, length: i64) -> &[u8] {
    let total = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let (start, end) = bounds(|| total, position, length);
    let at = |index: i64| usize::try_from(index.clamp(0, total)).unwrap_or(0);
    if end <= start { &[] } else { &bytes[at(start)..at(end)] }
}

/// A part of every row's text or bytes; the closure gives position and length.
fn parts(call: &Call<'_>, mut which: impl FnMut(usize) -> Result<Option<(i64, i64)>>) -> Result<ArrayRef> {
    if call.is_bytes(0) {
        let source = call.bytes(0)?;
        return binaries(call.rows, |row, out| {
            let (position, length) = some!(which(row)?);
            out.extend_from_slice(part_of_bytes(some!(source.get(row)), position, length));
            Ok(Some(()))
        });
    }
    let source = call.text(0)?;
    slices(call.rows, |row| {
        let (position, length) = some!(which(row)?);
        Ok(source.get(row).map(|text| part(text, position, length)))
    })
}

fn substring(call: &Call<'_>) -> Result<ArrayRef> {
    let positions = call.int(1)?;
    let lengths = if call.has(2) { Some(call.int(2)?) } else { None };
    parts(call, |row| {
        let position = i64::from(some!(positions.get(row)));
        let length = match &lengths {
            Some(lengths) => i64::from(some!(lengths.get(row))),
            None => i64::from(i32::MAX),
        };
        Ok(Some((position, length)))
    })
}

fn left(call: &Call<'_>) -> Result<ArrayRef> {
    let lengths = call.int(1)?;
    parts(call, |row| Ok(lengths.get(row).map(|length| (1, i64::from(length)))))
}

fn right(call: &Call<'_>) -> Result<ArrayRef> {
    let lengths = call.int(1)?;
    parts(call, |row| {
        Ok(lengths.get(row).map(|length| if length <= 0 { (1, 0) } else { (-i64::from(length), i64::from(length)) }))
    })
}

/// Pads or cuts to a number of characters.
fn pad(call: &Call<'_>, at_front: bool) -> Result<ArrayRef> {
    let lengths = call.int(1)?;
    if call.is_bytes(0) && (!call.has(2) || call.is_bytes(2)) {
        let source = call.bytes(0)?;
        let fills = if call.has(2) { Some(call.bytes(2)?) } else { None };
        return binaries(call.rows, |row, out| {
            let (bytes, length) = (some!(source.get(row)), usize::try_from(some!(lengths.get(row))).unwrap_or(0));
            let fill: &[u8] = match &fills {
                Some(fills) => some!(fills.get(row)),
                None => &[0],
            };
            check_size(call.name, length)?;
            let kept = &bytes[..bytes.len().min(length)];
            let filling = fill.iter().cycle().take(length - kept.len());
            if at_front {
                out.extend(filling);
                out.extend_from_slice(kept);
            } else {
                out.extend_from_slice(kept);
                out.extend(filling);
            }
            Ok(Some(()))
        });
    }
    let source = to_text(call.raw(0).0)?;
    let (source, stride) = (source.as_string::<i32>(), call.raw(0).1);
    let fills = if call.has(2) { Some(to_text(call.raw(2).0)?) } else { None };
    let fill_stride = if call.has(2) { call.raw(2).1 } else { 0 };
    texts(call.rows, |row, out| {
        let index = row * stride;
        let text = some!((!source.is_null(index)).then(|| source.value(index)));
        let length = i64::from(some!(lengths.get(row)));
        let fill = match &fills {
            Some(fills) => {
                let (fills, index) = (fills.as_string::<i32>(), row * fill_stride);
                some!((!fills.is_null(index)).then(|| fills.value(index)))
            }
            None => " ",
        };
        let kept = part(text, 1, length);
        let missing = usize::try_from(length - count(kept)).unwrap_or(0);
        if !fill.is_empty() {
            check_size(call.name, missing.saturating_mul(4))?;
        }
        if at_front {
            out.extend(fill.chars().cycle().take(missing));
            out.push_str(kept);
        } else {
            out.push_str(kept);
            out.extend(fill.chars().cycle().take(missing));
        }
        Ok(Some(()))
    })
}

/// Which ends to trim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Both,
    Front,
    Back,
}

fn trimmed<'t>(text: &'t str, characters: &str, ends: Ends) -> &'t str {
    let drop = |c: char| characters.contains(c);
    match ends {
        Ends::Both => text.trim_matches(drop),
        Ends::Front => text.trim_start_matches(drop),
        Ends::Back => text.trim_end_matches(drop),
    }
}

/// Trims `text` at argument `source`, the characters at the other one.
fn trim(call: &Call<'_>, ends: Ends, source: usize) -> Result<ArrayRef> {
    if !call.has(1) {
        let source = call.text(0)?;
        return slices(call.rows, |row| Ok(source.get(row).map(|text| trimmed(text, " ", ends))));
    }
    let (source, characters) = (call.text(source)?, call.text(1 - source)?);
    slices(call.rows, |row| {
        let characters = some!(characters.get(row));
        Ok(source.get(row).map(|text| trimmed(text, characters, ends)))
    })
}

fn overlay(call: &Call<'_>) -> Result<ArrayRef> {
    let positions = call.int(2)?;
    let lengths = if call.has(3) { Some(call.int(3)?) } else { None };
    if call.is_bytes(0) && call.is_bytes(1) {
        let (source, replacement) = (call.bytes(0)?, call.bytes(1)?);
        return binaries(call.rows, |row, out| {
            let (bytes, middle) = (some!(source.get(row)), some!(replacement.get(row)));
            let position = i64::from(some!(positions.get(row)));
            let length = match &lengths {
                Some(lengths) => i64::from(some!(lengths.get(row))),
                None => -1,
            };
            let length = if length < 0 { i64::try_from(middle.len()).unwrap_or(0) } else { length };
            out.extend_from_slice(part_of_bytes(bytes, 1, position - 1));
            out.extend_from_slice(middle);
            out.extend_from_slice(part_of_bytes(bytes, position + length, i64::from(i32::MAX)));
            Ok(Some(()))
        });
    }
    let (source, replacement) = (to_text(call.raw(0).0)?, to_text(call.raw(1).0)?);
    let (source, replacement) = (source.as_string::<i32>(), replacement.as_string::<i32>());
    let (source_stride, replacement_stride) = (call.raw(0).1, call.raw(1).1);
    texts(call.rows, |row, out| {
        let (s, r) = (row * source_stride, row * replacement_stride);
        if source.is_null(s) || replacement.is_null(r) {
            return Ok(None);
        }
        let (text, middle) = (source.value(s), replacement.value(r));
        let position = i64::from(some!(positions.get(row)));
        let length = match &lengths {
            Some(lengths) => i64::from(some!(lengths.get(row))),
            None => -1,
        };
        let length = if length < 0 { count(middle) } else { length };
        out.push_str(part(text, 1, position - 1));
        out.push_str(middle);
        out.push_str(part(text, position + length, i64::from(i32::MAX)));
        Ok(Some(()))
    })
}

/// The part of this number, from the end when it is negative; the text is cut from the left either way.
fn split<'t>(text: &'t str, delimiter: &str, number: i32) -> &'t str {
    let index = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX) - 1;
    if delimiter.is_empty() {
        return if index == 0 { text } else { "" };
    }
    let index = if number > 0 { Some(index) } else { text.matches(delimiter).count().checked_sub(index) };
    index.and_then(|index| text.split(delimiter).nth(index)).unwrap_or("")
}

fn split_part(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, delimiters, numbers) = (call.text(0)?, call.text(1)?, call.int(2)?);
    slices(call.rows, |row| {
        let (text, delimiter) = (some!(source.get(row)), some!(delimiters.get(row)));
        let number = some!(numbers.get(row));
        if number == 0 {
            return exec_err!(
                "[INVALID_INDEX_OF_ZERO] the part number of `split_part` must not be 0; parts count from 1 or from -1"
            );
        }
        Ok(Some(split(text, delimiter, number)))
    })
}

/// What stands before the `count`-th delimiter, or behind it when counted from the end. Delimiters may overlap: the next
/// one begins at least one character further on.
fn before_or_behind<'t>(text: &'t str, delimiter: &str, count: i32) -> &'t str {
    let (Some(first), Some(last)) = (delimiter.chars().next(), delimiter.chars().next_back()) else { return "" };
    if count == 0 {
        return "";
    }
    let (mut from, mut until) = (0, text.len());
    for step in 1..=count.unsigned_abs() {
        let is_wanted = step == count.unsigned_abs();
        if count > 0 {
            let Some(at) = text[from..].find(delimiter).map(|at| from + at) else { return text };
            if is_wanted {
                return &text[..at];
            }
            from = at + first.len_utf8();
        } else {
            let Some(at) = text[..until].rfind(delimiter) else { return text };
            let end = at + delimiter.len();
            if is_wanted {
                return &text[end..];
            }
            until = end - last.len_utf8();
        }
    }
    text
}

fn substring_index(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, delimiters, counts) = (call.text(0)?, call.text(1)?, call.int(2)?);
    slices(call.rows, |row| {
        let (text, delimiter) = (some!(source.get(row)), some!(delimiters.get(row)));
        Ok(Some(before_or_behind(text, delimiter, some!(counts.get(row)))))
    })
}

/// The functions of this group.
pub(super) fn functions() -> Vec<Function> {
    let (text, either, int, utf8) = (Kind::Text, Kind::TextOrBytes, Kind::Int, DataType::Utf8);
    vec![
        Function::new("substring", &[either, int, int], utf8.clone(), substring)
            .aliases(&["substr"])
            .optional(1)
            .returns_by(like_first),
        Function::new("left", &[either, int], utf8.clone(), left).returns_by(like_first),
        Function::new("right", &[either, int], utf8.clone(), right).returns_by(like_first),
        Function::new("lpad", &[either, int, either], utf8.clone(), |c| pad(c, true)).optional(1).returns_by(pad_type),
        Function::new("rpad", &[either, int, either], utf8.clone(), |c| pad(c, false)).optional(1).returns_by(pad_type),
        Function::new("trim", &[text, text], utf8.clone(), |c| trim(c, Ends::Both, 1)).optional(1),
        Function::new("ltrim", &[text, text], utf8.clone(), |c| trim(c, Ends::Front, 1)).optional(1),
        Function::new("rtrim", &[text, text], utf8.clone(), |c| trim(c, Ends::Back, 1)).optional(1),
        Function::new("btrim", &[text, text], utf8.clone(), |c| trim(c, Ends::Both, 0)).optional(1),
        Function::new("overlay", &[either, either, int, int], utf8.clone(), overlay)
            .optional(1)
            .returns_by(overlay_type),
        Function::new("split_part", &[text, text, int], utf8.clone(), split_part).fails_on(&[2]),
        Function::new("substring_index", &[text, text, int], utf8, substring_index),
    ]
}

fn is_bytes(data_type: Option<&DataType>) -> bool {
    matches!(data_type, Some(DataType::Binary | DataType::LargeBinary | DataType::BinaryView))
}

fn pad_type(types: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    let bytes = is_bytes(types.first()) && (types.len() < 3 || is_bytes(types.get(2)));
    Ok(if bytes { DataType::Binary } else { DataType::Utf8 })
}

fn overlay_type(types: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(if is_bytes(types.first()) && is_bytes(types.get(1)) { DataType::Binary } else { DataType::Utf8 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substrings_count_characters_and_clip_at_both_ends() {
        assert_eq!(part("日本語", 2, 1), "本");
        assert_eq!(part("日本語", -2, 5), "本語");
        assert_eq!(part("abc", 0, 2), "ab");
        assert_eq!(part("a", -3, 2), "");
        assert_eq!(part("ab", -3, 2), "a");
        assert_eq!(part("abc", 2, -1), "");
        assert_eq!(part("abc", 9, 1), "");
        assert_eq!(part_of_bytes(b"abc", -2, i64::MAX), b"bc");
    }

    #[test]
    fn delimiters_that_overlap_are_counted_one_character_apart() {
        for (text, delimiter, count, expected) in [
            ("www.apache.org", ".", 2, "www.apache"),
            ("www.apache.org", ".", -2, "apache.org"),
            ("a...b", "..", 2, "a."),
            ("a...b", "..", -2, ".b"),
            ("a...b", "..", 3, "a...b"),
            ("日日日", "日日", 2, "日"),
            ("日日日", "日日", -2, "日"),
            ("aaa", "aa", -1, ""),
            ("a.b", ".", i32::MIN, "a.b"),
            ("a.b", "", 1, ""),
        ] {
            assert_eq!(before_or_behind(text, delimiter, count), expected, "{text} by {delimiter}, {count}");
        }
    }

    #[test]
    fn parts_are_cut_from_the_left_however_they_are_counted() {
        for (text, delimiter, number, expected) in [
            ("a,,,b", ",,", 1, "a"),
            ("a,,,b", ",,", 2, ",b"),
            ("a,,,b", ",,", -1, ",b"),
            ("a,,,b", ",,", -2, "a"),
            ("a,,,b", ",,", -3, ""),
            ("a,b", "", -1, "a,b"),
            ("a,b", ",", i32::MIN, ""),
        ] {
            assert_eq!(split(text, delimiter, number), expected, "{text} by {delimiter}, {number}");
        }
    }
}
