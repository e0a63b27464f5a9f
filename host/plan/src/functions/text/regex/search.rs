//! Searching by regular expression: `rlike`, `regexp_extract`, `regexp_replace`, `regexp_count`, …
//!
//! Where it stands: a group of [`Function`]s over compiled patterns.
//!
//! Rule of its life: groups, replacement texts and empty matches follow Java; positions count characters from 1.

use std::sync::Arc;

use arrow::array::{ArrayRef, ListBuilder, StringBuilder};
use arrow::datatypes::{DataType, Int32Type};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use regex::{Captures, Regex};

use super::super::column::{bools, check_size, slices, texts, values};
use super::super::function::{Call, Function, Nulls, some};
use super::super::kind::Kind;
use super::super::memo::Memo;
use super::super::strings::slice::{byte_of, count};
use super::pattern::{compile, next_start};

/// The matches of a text, with empty ones where Java sees them.
struct Matches<'r, 't> {
    regex: &'r Regex,
    text: &'t str,
    next: Option<usize>,
}

impl<'r, 't> Matches<'r, 't> {
    fn new(regex: &'r Regex, text: &'t str) -> Self {
        Self { regex, text, next: Some(0) }
    }

    fn advance(&mut self, start: usize, end: usize) {
        self.next = next_start(self.text, start, end);
    }

    /// Byte range of the next match.
    fn range(&mut self) -> Option<(usize, usize)> {
        let found = self.regex.find_at(self.text, self.next?);
        match found {
            Some(found) => {
                self.advance(found.start(), found.end());
                Some((found.start(), found.end()))
            }
            None => {
                self.next = None;
                None
            }
        }
    }

    /// The next match with its groups.
    fn captures(&mut self) -> Option<Captures<'t>> {
        let found = self.regex.captures_at(self.text, self.next?);
        match found.as_ref().and_then(|captures| captures.get(0)) {
            Some(whole) => self.advance(whole.start(), whole.end()),
            None => self.next = None,
        }
        found
    }
}

fn rlike(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, patterns) = (call.text(0)?, call.text(1)?);
    let mut memo = Memo::new();
    bools(call.rows, |row| {
        let (text, pattern) = (some!(source.get(row)), some!(patterns.get(row)));
        Ok(Some(memo.get(pattern, compile)?.is_match(text)))
    })
}

/// A group's index, refused when the pattern has no such group.
fn group_index(call: &Call<'_>, regex: &Regex, index: i32) -> Result<usize> {
    let groups = regex.captures_len() - 1;
    match usize::try_from(index) {
        Ok(index) if index <= groups => Ok(index),
        _ => exec_err!(
            "[INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX] the group index of `{}` must be 0 to {groups}, not {index}",
            call.name
        ),
    }
}

fn extract(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, patterns) = (call.text(0)?, call.text(1)?);
    let indices = if call.has(2) { Some(call.int(2)?) } else { None };
    let mut memo = Memo::new();
    slices(call.rows, |row| {
        let (text, pattern) = (some!(source.get(row)), some!(patterns.get(row)));
        let index = match &indices {
            Some(indices) => some!(indices.get(row)),
            None => 1,
        };
        let regex = memo.get(pattern, compile)?;
        // Without a match Spark does not look at the index.
        let Some(captures) = regex.captures(text) else { return Ok(Some("")) };
        let index = group_index(call, regex, index)?;
        Ok(Some(captures.get(index).map_or("", |group| group.as_str())))
    })
}

fn extract_all(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, patterns) = (call.text(0)?, call.text(1)?);
    let indices = if call.has(2) { Some(call.int(2)?) } else { None };
    let mut memo = Memo::new();
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..call.rows {
        let index = match &indices {
            Some(indices) => indices.get(row),
            None => Some(1),
        };
        let (Some(text), Some(pattern), Some(index)) = (source.get(row), patterns.get(row), index) else {
            lists.append_null();
            continue;
        };
        let regex = memo.get(pattern, compile)?;
        let mut matches = Matches::new(regex, text);
        let mut checked = None;
        while let Some(captures) = matches.captures() {
            let group = match checked {
                Some(group) => group,
                None => *checked.insert(group_index(call, regex, index)?),
            };
            lists.values().append_value(captures.get(group).map_or("", |group| group.as_str()));
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// One piece of a replacement text.
enum Piece {
    Text(String),
    Group(usize),
}

fn bad_replacement<T>(replacement: &str, reason: &str) -> Result<T> {
    exec_err!("[INVALID_REGEXP_REPLACE] the replacement '{replacement}' of `regexp_replace` {reason}")
}

/// Reads `$1`, `${name}`, `\$` and `\\`.
fn replacement_pieces(replacement: &str, regex: &Regex) -> Result<Vec<Piece>> {
    let groups = regex.captures_len() - 1;
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped) => text.push(escaped),
                None => return bad_replacement(replacement, "ends with a backslash"),
            },
            '$' => {
                let group = if chars.next_if_eq(&'{').is_some() {
                    let mut name = String::new();
                    loop {
                        match chars.next() {
                            Some('}') => break,
                            Some(c) => name.push(c),
                            None => return bad_replacement(replacement, "has an unclosed '${'"),
                        }
                    }
                    match regex.capture_names().position(|known| known == Some(name.as_str())) {
                        Some(group) => group,
                        None => return bad_replacement(replacement, &format!("names the unknown group '{name}'")),
                    }
                } else {
                    let Some(digit) = chars.next_if(char::is_ascii_digit) else {
                        return bad_replacement(
                            replacement,
                            "has a '$' without a group; write '\\$' for the sign itself",
                        );
                    };
                    let mut group = digit as usize - '0' as usize;
                    if group > groups {
                        return bad_replacement(
                            replacement,
                            &format!("names the group {group}; the pattern has {groups}"),
                        );
                    }
                    // Further digits belong to the number as long as there is such a group.
                    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                        let longer = group * 10 + digit as usize;
                        if longer > groups {
                            break;
                        }
                        group = longer;
                        chars.next();
                    }
                    group
                };
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(Piece::Group(group));
            }
            other => text.push(other),
        }
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// Appends `text` with every match replaced.
fn write_replaced(regex: &Regex, text: &str, replacement: &str, out: &mut String) -> Result<()> {
    let mut matches = Matches::new(regex, text);
    let mut copied = 0;
    let mut pieces = None;
    while let Some(captures) = matches.captures() {
        let Some(whole) = captures.get(0) else { break };
        let pieces = match &pieces {
            Some(pieces) => pieces,
            None => pieces.insert(replacement_pieces(replacement, regex)?),
        };
        out.push_str(&text[copied..whole.start()]);
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Group(group) => out.push_str(captures.get(*group).map_or("", |group| group.as_str())),
            }
        }
        copied = whole.end();
        check_size("regexp_replace", out.len())?;
    }
    out.push_str(&text[copied..]);
    Ok(())
}

fn replace(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, patterns, replacements) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let positions = if call.has(3) { Some(call.int(3)?) } else { None };
    let mut memo = Memo::new();
    texts(call.rows, |row, out| {
        let (text, pattern) = (some!(source.get(row)), some!(patterns.get(row)));
        let replacement = some!(replacements.get(row));
        let position = match &positions {
            Some(positions) => i64::from(some!(positions.get(row))),
            None => 1,
        };
        if position < 1 {
            return exec_err!(
                "[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] the position of `regexp_replace` must be at least 1, not {position}"
            );
        }
        let regex = memo.get(pattern, compile)?;
        let from = byte_of(text, position - 1);
        out.push_str(&text[..from]);
        if from == text.len() && position > 1 {
            return Ok(Some(()));
        }
        write_replaced(regex, &text[from..], replacement, out)?;
        Ok(Some(()))
    })
}

fn substr(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, patterns) = (call.text(0)?, call.text(1)?);
    let mut memo = Memo::new();
    slices(call.rows, |row| {
        let (text, pattern) = (some!(source.get(row)), some!(patterns.get(row)));
        Ok(memo.get(pattern, compile)?.find(text).map(|found| found.as_str()))
    })
}

fn int(value: i64) -> Result<i32> {
    i32::try_from(value).map_err(|_| exec_datafusion_err!("[ARITHMETIC_OVERFLOW] {value} is out of the range of INT"))
}

fn instr(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, patterns) = (call.text(0)?, call.text(1)?);
    let indices = if call.has(2) { Some(call.int(2)?) } else { None };
    let mut memo = Memo::new();
    values::<Int32Type>(call.rows, |row| {
        let (text, pattern) = (some!(source.get(row)), some!(patterns.get(row)));
        if let Some(indices) = &indices {
            some!(indices.get(row));
        }
        let position = memo.get(pattern, compile)?.find(text).map_or(0, |found| count(&text[..found.start()]) + 1);
        int(position).map(Some)
    })
}

fn count_matches(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, patterns) = (call.text(0)?, call.text(1)?);
    let mut memo = Memo::new();
    values::<Int32Type>(call.rows, |row| {
        let (text, pattern) = (some!(source.get(row)), some!(patterns.get(row)));
        let mut matches = Matches::new(memo.get(pattern, compile)?, text);
        let mut found = 0;
        while matches.range().is_some() {
            found += 1;
        }
        int(found).map(Some)
    })
}

/// What a separator pattern is.
pub(crate) enum Separator {
    Characters,
    Text(String),
    Expression(Arc<Regex>),
}

impl Separator {
    /// Reads a regular expression of Java's.
    pub(crate) fn compile(pattern: &str) -> Result<Self> {
        Ok(if pattern.is_empty() {
            Self::Characters
        } else if pattern.contains(['\\', '[', ']', '(', ')', '{', '}', '.', '*', '+', '?', '^', '$', '|']) {
            Self::Expression(compile(pattern)?)
        } else {
            Self::Text(pattern.to_string())
        })
    }

    /// Calls `piece` with every piece of the text; at most `limit` when it is positive.
    pub(crate) fn split<'t>(&self, text: &'t str, limit: i32, mut piece: impl FnMut(&'t str)) {
        let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        match self {
            Self::Characters => {
                let mut rest = text;
                let mut given = 0;
                while given + 1 < limit {
                    let Some(width) = rest.chars().next().map(char::len_utf8).filter(|width| *width < rest.len())
                    else {
                        break;
                    };
                    piece(&rest[..width]);
                    rest = &rest[width..];
                    given += 1;
                }
                piece(rest);
            }
            Self::Text(separator) => text.splitn(limit, separator.as_str()).for_each(piece),
            Self::Expression(regex) => {
                let mut matches = Matches::new(regex, text);
                let (mut copied, mut given) = (0, 0);
                while given + 1 < limit
                    && let Some((start, end)) = matches.range()
                {
                    // An empty match in front gives no empty piece.
                    if start == 0 && end == 0 {
                        continue;
                    }
                    piece(&text[copied..start]);
                    copied = end;
                    given += 1;
                }
                piece(&text[copied..]);
            }
        }
    }
}

fn split(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, patterns) = (call.text(0)?, call.text(1)?);
    let limits = if call.has(2) { Some(call.int(2)?) } else { None };
    let mut memo = Memo::new();
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..call.rows {
        let limit = match &limits {
            Some(limits) => limits.get(row),
            None => Some(-1),
        };
        let (Some(text), Some(pattern), Some(limit)) = (source.get(row), patterns.get(row), limit) else {
            lists.append_null();
            continue;
        };
        let separator = memo.get(pattern, Separator::compile)?;
        separator.split(text, limit, |piece| lists.values().append_value(piece));
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// The functions of this group.
pub(super) fn functions() -> Vec<Function> {
    let (text, int) = (Kind::Text, Kind::Int);
    let texts = || DataType::new_list(DataType::Utf8, true);
    vec![
        Function::new("rlike", &[text, text], DataType::Boolean, rlike)
            .fails_on(&[1])
            .aliases(&["regexp", "regexp_like"]),
        Function::new("regexp_extract", &[text, text, int], DataType::Utf8, extract).fails_on(&[1, 2]).optional(1),
        Function::new("regexp_extract_all", &[text, text, int], texts(), extract_all).fails_on(&[1, 2]).optional(1),
        Function::new("regexp_replace", &[text, text, text, int], DataType::Utf8, replace)
            .fails_on(&[1, 2])
            .optional(1),
        Function::new("regexp_substr", &[text, text], DataType::Utf8, substr).fails_on(&[1]).nulls(Nulls::Possible),
        Function::new("regexp_instr", &[text, text, int], DataType::Int32, instr).fails_on(&[1]).optional(1),
        Function::new("regexp_count", &[text, text], DataType::Int32, count_matches).fails_on(&[1]),
        Function::new("split", &[text, text, int], texts(), split).fails_on(&[1]).optional(1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str, pattern: &str, limit: i32) -> Vec<String> {
        let mut pieces = Vec::new();
        Separator::compile(pattern).unwrap().split(text, limit, |piece| pieces.push(piece.to_string()));
        pieces
    }

    fn replaced(text: &str, pattern: &str, replacement: &str) -> Result<String> {
        let mut out = String::new();
        write_replaced(&*compile(pattern)?, text, replacement, &mut out)?;
        Ok(out)
    }

    #[test]
    fn splitting_keeps_empty_pieces_at_the_end_and_gives_one_for_an_empty_text() {
        assert_eq!(pieces("", " ", -1), [""]);
        assert_eq!(pieces("a,b,,", ",", -1), ["a", "b", "", ""]);
        assert_eq!(pieces("a,b,,", ",", 0), ["a", "b", "", ""]);
        assert_eq!(pieces("oneAtwoBthreeC", "[ABC]", -1), ["one", "two", "three", ""]);
        assert_eq!(pieces("oneAtwoBthreeC", "[ABC]", 2), ["one", "twoBthreeC"]);
        assert_eq!(pieces("a1b22c", "[0-9]+", 1), ["a1b22c"]);
        assert_eq!(pieces("日本", "", -1), ["日", "本"]);
        assert_eq!(pieces("abc", "", 2), ["a", "bc"]);
        assert_eq!(pieces("", "", -1), [""]);
        assert_eq!(pieces("ab", "x*", -1), ["a", "b", ""]);
        assert_eq!(pieces("", "x*", -1), [""]);
    }

    #[test]
    fn replacements_name_groups_as_java_does() {
        assert_eq!(replaced("x1y22", "([a-z])([0-9])", "$2$1").unwrap(), "1x2y2");
        assert_eq!(replaced("ab", "(?<l>a)", "<${l}>").unwrap(), "<a>b");
        assert_eq!(replaced("a", "(a)", "$12").unwrap(), "a2");
        assert_eq!(replaced("a", "a", r"\$\\").unwrap(), r"$\");
        assert_eq!(replaced("abc", "b*", "-").unwrap(), "-a--c-");
        assert_eq!(replaced("abc", "x*", "-").unwrap(), "-a-b-c-");
        for bad in ["$", "$2", "${x}", "\\"] {
            assert!(replaced("a", "(a)", bad).is_err(), "{bad}");
        }
        assert_eq!(replaced("b", "a", "$9").unwrap(), "b");
    }
}
