//! The JSON reader: one value from the front of a text, with the written form of everything in it.
//!
//! Strings may stand in single quotes. What follows the first value is not looked at. Deep nesting is refused.

use std::borrow::Cow;

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

/// Reads the first value of a text; `None` when it is malformed or there is none.
pub(super) fn parse(text: &str) -> Option<Json<'_>> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0 };
    reader.value(0)
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
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
        self.skip_blanks();
        let start = self.at;
        let node = match self.peek()? {
            b'{' => self.object(depth)?,
            b'[' => self.array(depth)?,
            b'"' | b'\'' => Node::Text(self.string()?),
            b't' => self.word("true", Node::Bool(true))?,
            b'f' => self.word("false", Node::Bool(false))?,
            b'n' => self.word("null", Node::Null)?,
            b'N' => self.word("NaN", Node::Float)?,
            b'I' => self.word("Infinity", Node::Float)?,
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
        if self.peek() == Some(b'I') {
            return self.word("Infinity", Node::Float);
        }
        let digits = |reader: &mut Self| {
            let start = reader.at;
            while reader.peek().is_some_and(|b| b.is_ascii_digit()) {
                reader.at += 1;
            }
            (reader.at > start).then_some(reader.at - start)
        };
        let leading_zero = self.peek() == Some(b'0');
        let whole = digits(self)?;
        if leading_zero && whole > 1 {
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
                        b'"' | b'\'' | b'\\' | b'/' => char::from(escape),
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'u' => self.unicode()?,
                        _ => return None,
                    };
                    text.push(c);
                    start = self.at;
                }
                _ => self.at += 1,
            }
        }
    }

    /// The character behind `\u`; half of a pair without the other half becomes the replacement character.
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
        Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
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

    fn array(&mut self, depth: usize) -> Option<Node<'a>> {
        self.at += 1;
        let mut elements = Vec::new();
        self.skip_blanks();
        if self.eat(b']').is_some() {
            return Some(Node::Array(elements));
        }
        loop {
            elements.push(self.value(depth + 1)?);
            self.skip_blanks();
            if self.eat(b',').is_none() {
                self.eat(b']')?;
                return Some(Node::Array(elements));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Node<'a>> {
        self.at += 1;
        let mut fields = Vec::new();
        self.skip_blanks();
        if self.eat(b'}').is_some() {
            return Some(Node::Object(fields));
        }
        loop {
            self.skip_blanks();
            if !matches!(self.peek()?, b'"' | b'\'') {
                return None;
            }
            let name = self.string()?;
            self.skip_blanks();
            self.eat(b':')?;
            fields.push((name, self.value(depth + 1)?));
            self.skip_blanks();
            if self.eat(b',').is_none() {
                self.eat(b'}')?;
                return Some(Node::Object(fields));
            }
        }
    }
}

/// Appends a string with its quotes and escapes.
pub(super) fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Appends a value without blanks, numbers with a fraction in their shortest form.
pub(super) fn write(json: &Json<'_>, out: &mut String) {
    match &json.node {
        Node::Null => out.push_str("null"),
        Node::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Node::Integer => out.push_str(json.raw),
        Node::Float => match json.raw.parse::<f64>() {
            Ok(value) if value.is_finite() => out.push_str(&super::number::double(value)),
            _ => write_text(json.raw, out),
        },
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
