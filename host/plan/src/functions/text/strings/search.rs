//! Finding and measuring: `instr`, `locate`, `startswith`, `length`, `ascii`, `levenshtein`, `soundex`, …
//!
//! Where it stands: a group of [`Function`]s.
//!
//! Rule of its life: positions and lengths count characters, `octet_length` and `bit_length` count UTF-8.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int32Type};
use datafusion::common::{Result, exec_datafusion_err};

use super::super::column::{bools, texts, values};
use super::super::function::{Call, Function, some};
use super::super::kind::Kind;
use super::slice::{byte_of, count};

fn int(value: i64) -> Result<i32> {
    i32::try_from(value)
        .map_err(|_| exec_datafusion_err!("[ARITHMETIC_OVERFLOW] the length {value} is out of the range of INT"))
}

fn lengths(call: &Call<'_>, of_text: fn(&str) -> i64, unit: usize) -> Result<ArrayRef> {
    if call.is_bytes(0) {
        let source = call.bytes(0)?;
        return values::<Int32Type>(call.rows, |row| {
            int(i64::try_from(some!(source.get(row)).len().saturating_mul(unit)).unwrap_or(i64::MAX)).map(Some)
        });
    }
    let source = call.text(0)?;
    values::<Int32Type>(call.rows, |row| int(of_text(some!(source.get(row)))).map(Some))
}

fn octets(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// Position of `part` in `text` from 1, searching from the character `start` counted from 1; 0 when it is not there.
fn position(part: &str, text: &str, start: i64) -> i64 {
    if start < 1 {
        return 0;
    }
    if part.is_empty() {
        return 1;
    }
    let from = byte_of(text, start - 1);
    match text[from..].find(part) {
        Some(at) => count(&text[..from + at]) + 1,
        None => 0,
    }
}

fn instr(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, parts) = (call.text(0)?, call.text(1)?);
    values::<Int32Type>(call.rows, |row| int(position(some!(parts.get(row)), some!(source.get(row)), 1)).map(Some))
}

fn locate(call: &Call<'_>) -> Result<ArrayRef> {
    let (parts, source) = (call.text(0)?, call.text(1)?);
    let starts = if call.has(2) { Some(call.int(2)?) } else { None };
    values::<Int32Type>(call.rows, |row| {
        // A NULL start finds nothing, whatever the other arguments are.
        let start = match starts.as_ref().map(|starts| starts.get(row)) {
            Some(None) => return Ok(Some(0)),
            Some(Some(start)) => i64::from(start),
            None => 1,
        };
        int(position(some!(parts.get(row)), some!(source.get(row)), start)).map(Some)
    })
}

/// Compares the bytes of two texts or two binaries.
fn compare(call: &Call<'_>, test: fn(&[u8], &[u8]) -> bool) -> Result<ArrayRef> {
    let source = Kind::Bytes.canonical(call.raw(0).0, call.rules())?;
    let parts = Kind::Bytes.canonical(call.raw(1).0, call.rules())?;
    let (source, parts) = (source.as_binary::<i32>(), parts.as_binary::<i32>());
    let (source_stride, part_stride) = (call.raw(0).1, call.raw(1).1);
    bools(call.rows, |row| {
        let (s, p) = (row * source_stride, row * part_stride);
        let known = !source.is_null(s) && !parts.is_null(p);
        Ok(known.then(|| test(source.value(s), parts.value(p))))
    })
}

fn contains(call: &Call<'_>) -> Result<ArrayRef> {
    if call.is_bytes(0) || call.is_bytes(1) {
        return compare(call, |bytes, part| part.is_empty() || bytes.windows(part.len()).any(|window| window == part));
    }
    let (source, parts) = (call.text(0)?, call.text(1)?);
    bools(call.rows, |row| Ok(Some(some!(source.get(row)).contains(some!(parts.get(row))))))
}

fn find_in_set(call: &Call<'_>) -> Result<ArrayRef> {
    let (words, sets) = (call.text(0)?, call.text(1)?);
    values::<Int32Type>(call.rows, |row| {
        let (word, set) = (some!(words.get(row)), some!(sets.get(row)));
        if word.contains(',') {
            return Ok(Some(0));
        }
        let index = set.split(',').position(|item| item == word).map_or(0, |index| index + 1);
        int(i64::try_from(index).unwrap_or(i64::MAX)).map(Some)
    })
}

fn ascii(call: &Call<'_>) -> Result<ArrayRef> {
    let source = call.text(0)?;
    values::<Int32Type>(call.rows, |row| {
        let code = some!(source.get(row)).chars().next().map_or(0, u32::from);
        int(i64::from(code)).map(Some)
    })
}

/// Edits between two texts; with a limit, `None` when there are more.
fn edits(left: &str, right: &str, limit: Option<usize>) -> Option<usize> {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    if let Some(limit) = limit
        && left.len().abs_diff(right.len()) > limit
    {
        return None;
    }
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    let mut current = vec![0; right.len() + 1];
    for (i, l) in left.iter().enumerate() {
        current[0] = i + 1;
        let mut least = current[0];
        for (j, r) in right.iter().enumerate() {
            let replaced = previous[j] + usize::from(l != r);
            current[j + 1] = replaced.min(previous[j + 1] + 1).min(current[j] + 1);
            least = least.min(current[j + 1]);
        }
        if limit.is_some_and(|limit| least > limit) {
            return None;
        }
        std::mem::swap(&mut previous, &mut current);
    }
    let distance = previous[right.len()];
    if limit.is_some_and(|limit| distance > limit) { None } else { Some(distance) }
}

fn levenshtein(call: &Call<'_>) -> Result<ArrayRef> {
    let (left, right) = (call.text(0)?, call.text(1)?);
    let limits = if call.has(2) { Some(call.int(2)?) } else { None };
    values::<Int32Type>(call.rows, |row| {
        let (left, right) = (some!(left.get(row)), some!(right.get(row)));
        let limit = match &limits {
            Some(limits) => match usize::try_from(some!(limits.get(row))) {
                Ok(limit) => Some(limit),
                Err(_) => return Ok(Some(-1)),
            },
            None => None,
        };
        match edits(left, right, limit) {
            Some(distance) => int(i64::try_from(distance).unwrap_or(i64::MAX)).map(Some),
            None => Ok(Some(-1)),
        }
    })
}

/// Code of the letters A to Z; `7` is skipped as if it were not there.
const SOUNDS: &[u8; 26] = b"01230127022455012623017202";

fn write_soundex(text: &str, out: &mut String) {
    let mut bytes = text.bytes();
    let Some(first) = bytes.next().filter(u8::is_ascii_alphabetic) else {
        out.push_str(text);
        return;
    };
    let code_of = |byte: u8| SOUNDS[usize::from(byte.to_ascii_uppercase() - b'A') % 26];
    out.push(char::from(first.to_ascii_uppercase()));
    let (mut last, mut written) = (code_of(first), 1);
    for byte in bytes {
        if !byte.is_ascii_alphabetic() {
            last = b'0';
            continue;
        }
        let code = code_of(byte);
        if code == b'7' {
            continue;
        }
        if code != b'0' && code != last {
            out.push(char::from(code));
            written += 1;
            if written == 4 {
                break;
            }
        }
        last = code;
    }
    for _ in written..4 {
        out.push('0');
    }
}

fn soundex(call: &Call<'_>) -> Result<ArrayRef> {
    let source = call.text(0)?;
    texts(call.rows, |row, out| {
        write_soundex(some!(source.get(row)), out);
        Ok(Some(()))
    })
}

/// The functions of this group.
pub(super) fn functions() -> Vec<Function> {
    let (text, either, int) = (Kind::Text, Kind::TextOrBytes, DataType::Int32);
    vec![
        Function::new("length", &[either], int.clone(), |c| lengths(c, count, 1)).aliases(&[
            "char_length",
            "character_length",
            "len",
        ]),
        Function::new("octet_length", &[either], int.clone(), |c| lengths(c, octets, 1)),
        Function::new("bit_length", &[either], int.clone(), |c| lengths(c, |t| octets(t).saturating_mul(8), 8)),
        Function::new("instr", &[text, text], int.clone(), instr),
        Function::new("locate", &[text, text, Kind::Int], int.clone(), locate).aliases(&["position"]).optional(1),
        Function::new("startswith", &[either, either], DataType::Boolean, |c| compare(c, <[u8]>::starts_with)),
        Function::new("endswith", &[either, either], DataType::Boolean, |c| compare(c, <[u8]>::ends_with)),
        Function::new("contains", &[either, either], DataType::Boolean, contains),
        Function::new("find_in_set", &[text, text], int.clone(), find_in_set),
        Function::new("ascii", &[text], int.clone(), ascii),
        Function::new("levenshtein", &[text, text, Kind::Int], int, levenshtein).optional(1),
        Function::new("soundex", &[text], DataType::Utf8, soundex),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let mut out = String::new();
        write_soundex(text, &mut out);
        out
    }

    #[test]
    fn positions_count_characters() {
        assert_eq!(position("語", "日本語", 1), 3);
        assert_eq!(position("a", "banana", 3), 4);
        assert_eq!(position("", "abc", 2), 1);
        assert_eq!(position("a", "abc", 0), 0);
        assert_eq!(position("a", "abc", 99), 0);
    }

    #[test]
    fn soundex_keeps_what_does_not_start_with_a_letter() {
        for (text, sound) in [("straße", "S360"), ("Miller", "M460"), ("Ashcraft", "A261"), ("10x", "10x"), ("", "")] {
            assert_eq!(code(text), sound, "{text}");
        }
    }

    #[test]
    fn edits_stop_at_the_limit() {
        assert_eq!(edits("kitten", "sitting", None), Some(3));
        assert_eq!(edits("kitten", "sitting", Some(2)), None);
        assert_eq!(edits("", "日本", None), Some(2));
    }
}
