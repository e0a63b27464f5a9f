//! The JSON reader: one value from the front of a text, with the written form of everything in it; and the writer.
//!
//! Where it stands: under every function of this folder; what a text may have beyond the standard is said by a [`Leniency`].
//! What follows the first value is not looked at. Deep nesting is refused. Source: Spark's options of JSON, and what the
//! reader below them accepts.

use crate::functions::expr::text_out;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 128;

/// A value in a JSON text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Json<'a> {
    /// What it is.
    pub(super) node: Node<'a>,
    /// As it is written.
    pub(super) raw: &'a str,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node<'a> {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number without point and exponent.
    Integer,
    /// Another number, also `NaN` and the infinities.
    Float,
    /// A string, unescaped.
    Text(Cow<'a, str>),
    /// `[…]`
    Array(Vec<Json<'a>>),
    /// `{…}`, in order; names may repeat.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// What a text may have although the standard forbids it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leniency {
    /// `/* … */` and `// …`
    pub(super) comments: bool,
    /// Names of fields without quotes.
    pub(super) unquoted_names: bool,
    /// Names and strings in single quotes.
    pub(super) single_quotes: bool,
    /// `007`
    pub(super) leading_zeros: bool,
    /// `NaN`, `-Infinity`, `+INF`
    pub(super) non_numeric: bool,
    /// A backslash before any character.
    pub(super) any_escape: bool,
    /// Control characters in strings.
    pub(super) control_characters: bool,
}

impl Leniency {
    /// Of `from_json` and `schema_of_json` without options.
    pub(super) const READING: Self = Self {
        comments: false,
        unquoted_names: false,
        single_quotes: true,
        leading_zeros: false,
        non_numeric: true,
        any_escape: false,
        control_characters: false,
    };

    /// Of the functions that have no options, such as `get_json_object`.
    pub(super) const ASKING: Self = Self { non_numeric: false, control_characters: true, ..Self::READING };
}

/// Reads the first value of a text; `None` when it is malformed or there is none.
pub(super) fn parse(text: &str, leniency: Leniency) -> Option<Json<'_>> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, leniency };
    reader.value(0)
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    leniency: Leniency,
}

/// Whether a name without quotes may have the character, as a name in JavaScript and a little more.
fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '@' | '#' | '*' | '-' | '+' | '¢' | '£' | '¤' | '¥' | '€')
}

impl<'a> Reader<'a> {
    /// Goes to what is neither blank nor comment; `None` when a comment does not end, or is none.
    fn skip_blanks(&mut self) -> Option<()> {
        loop {
            while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
                self.at += 1;
            }
            if !self.leniency.comments || self.peek() != Some(b'/') {
                return Some(());
            }
            let inside = self.text.get(self.at + 2..)?;
            self.at += 2 + match self.bytes[self.at + 1] {
                b'*' => inside.find("*/")? + 2,
                b'/' => inside.find(['\n', '\r']).unwrap_or(inside.len()),
                _ => return None,
            };
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    fn value(&mut self, depth: usize) -> Option<Json<'a>> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.skip_blanks()?;
        let start = self.at;
        let special = self.leniency.non_numeric;
        let node = match self.peek()? {
            b'{' => self.object(depth)?,
            b'[' => self.array(depth)?,
            b'"' => Node::Text(self.string()?),
            b'\'' if self.leniency.single_quotes => Node::Text(self.string()?),
            b't' => self.word("true", Node::Bool(true))?,
            b'f' => self.word("false", Node::Bool(false))?,
            b'n' => self.word("null", Node::Null)?,
            b'N' if special => self.word("NaN", Node::Float)?,
            b'I' if special => self.word("Infinity", Node::Float)?,
            b'+' | b'-' if special && self.bytes.get(self.at + 1) == Some(&b'I') => {
                self.at += 1;
                self.word("Infinity", Node::Float).or_else(|| self.word("INF", Node::Float))?
            }
            _ => self.number()?,
        };
        Some(Json { node, raw: &self.text[start..self.at] })
    }

    fn word(&mut self, word: &str, node: Node<'a>) -> Option<Node<'a>> {
        let end = self.at + word.len();
        let there = self.bytes.get(self.at..end)? == word.as_bytes();
        let ended = !self.bytes.get(end).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        (there && ended).then(|| {
            self.at = end;
            node
        })
    }

    fn number(&mut self) -> Option<Node<'a>> {
        let _ = self.eat(b'-');
        let digits = |reader: &mut Self| {
            let start = reader.at;
            while reader.peek().is_some_and(|b| b.is_ascii_digit()) {
                reader.at += 1;
            }
            (reader.at > start).then_some(reader.at - start)
        };
        let leading_zero = self.peek() == Some(b'0');
        let whole = digits(self)?;
        if leading_zero && whole > 1 && !self.leniency.leading_zeros {
            return None;
        }
        let mut node = Node::Integer;
        if self.eat(b'.').is_some() {
            digits(self)?;
            node = Node::Float;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            digits(self)?;
            node = Node::Float;
        }
        match self.peek() {
            Some(b) if b.is_ascii_alphanumeric() || b == b'_' || b == b'.' => None,
            _ => Some(node),
        }
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        let quote = self.peek()?;
        self.at += 1;
        let mut start = self.at;
        let mut owned: Option<String> = None;
        loop {
            match self.peek()? {
                b if b == quote => {
                    let last = &self.text[start..self.at];
                    self.at += 1;
                    return Some(match owned {
                        None => Cow::Borrowed(last),
                        Some(mut text) => {
                            text.push_str(last);
                            Cow::Owned(text)
                        }
                    });
                }
                b'\\' => {
                    let text = owned.get_or_insert_default();
                    text.push_str(&self.text[start..self.at]);
                    self.at += 1;
                    let escape = self.peek()?;
                    self.at += 1;
                    let c = match escape {
                        b'"' | b'\\' | b'/' => char::from(escape),
                        b'\'' if self.leniency.single_quotes => '\'',
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'u' => self.unicode()?,
                        _ if self.leniency.any_escape => {
                            let c = self.text.get(self.at - 1..)?.chars().next()?;
                            self.at += c.len_utf8() - 1;
                            c
                        }
                        _ => return None,
                    };
                    text.push(c);
                    start = self.at;
                }
                b if b < b' ' && !self.leniency.control_characters => return None,
                _ => self.at += 1,
            }
        }
    }

    /// The character behind `\u`; half of a pair without the other half becomes a question mark, as Java writes it.
    fn unicode(&mut self) -> Option<char> {
        let first = self.four_digits()?;
        if (0xd800..0xdc00).contains(&first) && self.bytes.get(self.at..self.at + 2) == Some(b"\\u") {
            let back = self.at;
            self.at += 2;
            let second = self.four_digits()?;
            if (0xdc00..0xe000).contains(&second) {
                return char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            }
            self.at = back;
        }
        Some(char::from_u32(first).unwrap_or('?'))
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.bytes.get(self.at..self.at + 4)?;
        let mut code = 0;
        for &digit in digits {
            code = code * 16 + char::from(digit).to_digit(16)?;
        }
        self.at += 4;
        Some(code)
    }

    /// The name of a field.
    fn name(&mut self) -> Option<Cow<'a, str>> {
        match self.peek()? {
            b'"' => self.string(),
            b'\'' if self.leniency.single_quotes => self.string(),
            _ if self.leniency.unquoted_names => {
                let rest = self.text.get(self.at..)?;
                let end = rest.find(|c| !is_name_character(c)).filter(|&end| end > 0)?;
                self.at += end;
                Some(Cow::Borrowed(&rest[..end]))
            }
            _ => None,
        }
    }

    fn array(&mut self, depth: usize) -> Option<Node<'a>> {
        self.at += 1;
        let mut elements = Vec::new();
        self.skip_blanks()?;
        if self.eat(b']').is_some() {
            return Some(Node::Array(elements));
        }
        loop {
            elements.push(self.value(depth + 1)?);
            self.skip_blanks()?;
            if self.eat(b',').is_none() {
                self.eat(b']')?;
                return Some(Node::Array(elements));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Node<'a>> {
        self.at += 1;
        let mut fields = Vec::new();
        self.skip_blanks()?;
        if self.eat(b'}').is_some() {
            return Some(Node::Object(fields));
        }
        loop {
            self.skip_blanks()?;
            let name = self.name()?;
            self.skip_blanks()?;
            self.eat(b':')?;
            fields.push((name, self.value(depth + 1)?));
            self.skip_blanks()?;
            if self.eat(b',').is_none() {
                self.eat(b'}')?;
                return Some(Node::Object(fields));
            }
        }
    }
}

/// Appends a string with its quotes and escapes.
pub(super) fn write_text(text: &str, out: &mut String) {
    write_quoted(text, false, out);
}

/// Appends a string with its quotes and escapes; `ascii` asks for escapes of everything that is not ASCII, too.
pub(super) fn write_quoted(text: &str, ascii: bool, out: &mut String) {
    out.push('"');
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        let escape = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            c if c < ' ' || (ascii && !c.is_ascii()) => "",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        plain = at + c.len_utf8();
        if escape.is_empty() {
            // Writing to a String cannot fail.
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04X}");
            }
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

/// Appends a finite DOUBLE.
pub(super) fn write_double(value: f64, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = text_out::write_double(out, value);
}

/// Appends a finite FLOAT.
pub(super) fn write_float(value: f32, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = text_out::write_float(out, value);
}

/// Appends a whole number as its value: without zeros in front, and without a sign before zero.
fn write_integer(raw: &str, out: &mut String) {
    let (sign, digits) = raw.strip_prefix('-').map_or(("", raw), |digits| ("-", digits));
    match digits.trim_start_matches('0') {
        "" => out.push('0'),
        digits => {
            out.push_str(sign);
            out.push_str(digits);
        }
    }
}

/// Appends the number that a text means as a DOUBLE; those that are not finite stand in quotes.
fn write_float_text(raw: &str, out: &mut String) {
    match special(raw).or_else(|| raw.parse().ok()) {
        Some(value) if f64::is_finite(value) => write_double(value, out),
        Some(value) if value.is_nan() => out.push_str("\"NaN\""),
        Some(value) if value < 0.0 => out.push_str("\"-Infinity\""),
        _ => out.push_str("\"Infinity\""),
    }
}

/// The number behind a word for one that is not finite.
pub(super) fn special(word: &str) -> Option<f64> {
    match word {
        "NaN" => Some(f64::NAN),
        "Infinity" | "+Infinity" | "+INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Appends a value without blanks, numbers as their value and not as they were written.
pub(super) fn write(json: &Json<'_>, out: &mut String) {
    match &json.node {
        Node::Null => out.push_str("null"),
        Node::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Node::Integer => write_integer(json.raw, out),
        Node::Float => write_float_text(json.raw, out),
        Node::Text(text) => write_text(text, out),
        Node::Array(elements) => {
            out.push('[');
            for (position, element) in elements.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write(element, out);
            }
            out.push(']');
        }
        Node::Object(fields) => {
            out.push('{');
            for (position, (name, value)) in fields.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write_text(name, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}
