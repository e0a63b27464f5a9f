//! One record of separated values, taken apart and put together.
//!
//! A value in quotes ends at a quote behind which there are only blanks before the next separator or the end; when another
//! character stands there, the quotes are part of a plain value, which ends at the next separator. Quotes that are not closed hold
//! the rest of the text.

use super::options::{Shape, WriteOptions};

/// The values of a record; reused for the next.
#[derive(Debug, Default)]
pub(super) struct Record {
    text: String,
    /// Where each value ends, and whether it stood in quotes.
    ends: Vec<(usize, bool)>,
}

/// What counts as a blank.
fn is_blank(c: char) -> bool {
    c <= ' '
}

impl Record {
    /// Takes a text apart.
    pub(super) fn split(&mut self, text: &str, shape: &Shape) {
        self.text.clear();
        self.ends.clear();
        let mut rest = text;
        loop {
            if shape.trims_start {
                rest = rest.trim_start_matches(|c| is_blank(c) && !shape.separator.starts_with(c));
            }
            let start = self.text.len();
            let quoted = if rest.starts_with(shape.quote) { self.take_quoted(rest, shape) } else { None };
            let taken = quoted.unwrap_or_else(|| {
                self.text.truncate(start);
                let end = rest.find(&shape.separator).unwrap_or(rest.len());
                let value = &rest[..end];
                self.text.push_str(if shape.trims_end { value.trim_end_matches(is_blank) } else { value });
                end
            });
            self.ends.push((self.text.len(), quoted.is_some()));
            match rest.get(taken + shape.separator.len()..) {
                Some(next) if taken < rest.len() => rest = next,
                _ => return,
            }
        }
    }

    /// Takes the value that begins with a quote; answers where it ends, or `None` when it is a plain one after all.
    fn take_quoted(&mut self, text: &str, shape: &Shape) -> Option<usize> {
        let mut characters = text.char_indices().skip(1).peekable();
        while let Some((at, c)) = characters.next() {
            let next = characters.peek().map(|(_, next)| *next);
            let is_escape = c == shape.escape
                && (next == Some(shape.quote) || (shape.escape != shape.quote && next == Some(shape.escape)));
            if is_escape {
                self.text.extend(next);
                characters.next();
            } else if c == shape.quote {
                let behind = &text[at + c.len_utf8()..];
                let blanks = behind.trim_start_matches(|c| is_blank(c) && !shape.separator.starts_with(c));
                let ends = blanks.is_empty() || blanks.starts_with(&shape.separator);
                return ends.then_some(text.len() - blanks.len());
            } else {
                self.text.push(c);
            }
        }
        Some(text.len())
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The value at a place, and whether it stood in quotes.
    pub(super) fn value(&self, place: usize) -> Option<(&str, bool)> {
        let (end, is_quoted) = *self.ends.get(place)?;
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before].0);
        Some((&self.text[start..end], is_quoted))
    }
}

/// Appends a value to a record; `place` is how many stand before it.
pub(super) fn write(value: Option<&str>, place: usize, options: &WriteOptions, out: &mut String) {
    let shape = &options.shape;
    if place > 0 {
        out.push_str(&shape.separator);
    }
    let Some(value) = value else {
        return write_quoted(&options.null_value, options.quote_all, shape, out);
    };
    let mut value = value;
    if shape.trims_start {
        value = value.trim_start_matches(is_blank);
    }
    if shape.trims_end {
        value = value.trim_end_matches(is_blank);
    }
    if value.is_empty() {
        out.push_str(&options.empty_value);
        return;
    }
    let needs_quotes = options.quote_all
        || value.contains(['\n', '\r'])
        || value.contains(&shape.separator)
        || (place == 0 && value.starts_with('#'))
        || if options.escape_quotes { value.contains(shape.quote) } else { value.starts_with(shape.quote) };
    write_quoted(value, needs_quotes, shape, out);
}

fn write_quoted(value: &str, needs_quotes: bool, shape: &Shape, out: &mut String) {
    if !needs_quotes {
        out.push_str(value);
        return;
    }
    out.push(shape.quote);
    for c in value.chars() {
        if c == shape.quote || c == shape.escape {
            out.push(shape.escape);
        }
        out.push(c);
    }
    out.push(shape.quote);
}

#[cfg(test)]
mod tests {
    use super::super::options::{ReadOptions, options};
    use super::*;

    fn values(text: &str, map: &str) -> Vec<String> {
        let options =
            options("from_csv", Some(map)).and_then(|options| ReadOptions::new("from_csv", &options)).unwrap();
        let mut record = Record::default();
        record.split(text, &options.shape);
        (0..record.len()).map(|place| record.value(place).unwrap().0.to_owned()).collect()
    }

    /// Texts, and the values that Spark 4.3 finds in them.
    #[test]
    fn records_are_taken_apart_as_spark_takes_them_apart() {
        for (text, expected) in [
            ("1,\"x,y\"", &["1", "x,y"][..]),
            ("1, x ", &["1", " x "]),
            ("1,\"x\"\"y\"", &["1", "\"x\"\"y\""]),
            (r#"1,"x\"y""#, &["1", "x\"y"]),
            (r#"1,"a\\b","a\b""#, &["1", r"a\b", r"a\b"]),
            (r#"1,"a\\\"b",c"#, &["1", r#"a\"b"#, "c"]),
            ("1,\"x,y", &["1", "x,y"]),
            ("\"1\"2,x", &["\"1\"2", "x"]),
            ("1,\"a\"b,c\"", &["1", "\"a\"b", "c\""]),
            ("1,\"a\" , \"b\"", &["1", "a", " \"b\""]),
            ("1,\"a\" x,b", &["1", "\"a\" x", "b"]),
            ("1,\"a\nb\",c\r\n", &["1", "a\nb", "c\r\n"]),
            (",", &["", ""]),
        ] {
            assert_eq!(values(text, "{}"), expected, "{text}");
        }
        assert_eq!(
            values(
                " 1 | \"x|y\" |z",
                r#"{"sep":"|","ignoreLeadingWhiteSpace":"true","ignoreTrailingWhiteSpace":"true"}"#
            ),
            ["1", "x|y", "z"]
        );
        assert_eq!(values("a||'b||c'||d", r#"{"delimiter":"||","quote":"'"}"#), ["a", "b||c", "d"]);
        assert_eq!(values("\"a\"\"b\",\"\\\"\",x", r#"{"escape":"\""}"#), ["a\"b", "\\\",x"]);
    }
}
