//! The tokens of one JSON text, taken one by one from bytes.
//!
//! As lenient as Spark's reader: strings and names may stand in single quotes, numbers may be `NaN` or
//! infinite; nothing else is forgiven. Nesting is bounded, nothing recurses.

use std::borrow::Cow;

/// How deep arrays and objects may stand inside each other.
const MAX_DEPTH: usize = 1000;

/// The text is no JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A value, or the beginning of one.
#[derive(Debug, PartialEq)]
pub(super) enum Token<'a> {
    Null,
    Bool(bool),
    Integer(&'a str),
    Number(&'a str),
    NotFinite(f64),
    Text(Cow<'a, [u8]>),
    ObjectStart,
    ArrayStart,
}

/// A place in a JSON text.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn rewind(&mut self, position: usize) {
        self.at = position;
    }

    /// The bytes from `start` up to here.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    /// The next byte that is no white space, not taken.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Takes the next byte if it is `wanted`.
    pub(super) fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// Goes to the next element behind the opening bracket or the last element: `false` at the closing one.
    pub(super) fn next_element(&mut self, first: &mut bool, close: u8) -> Result<bool, Malformed> {
        if self.take(close) {
            // A comma right before the bracket was refused when the comma was taken.
            return Ok(false);
        }
        let between = !std::mem::take(first);
        if between && (!self.take(b',') || self.peek() == Some(close)) {
            return Err(Malformed);
        }
        Ok(true)
    }

    /// A field name with its colon.
    pub(super) fn name(&mut self) -> Result<Cow<'a, [u8]>, Malformed> {
        let quote = self.peek().filter(|byte| matches!(byte, b'"' | b'\'')).ok_or(Malformed)?;
        self.at += 1;
        let name = self.string(quote)?;
        if self.take(b':') { Ok(name) } else { Err(Malformed) }
    }

    /// The next value; of arrays and objects only the opening bracket is taken.
    pub(super) fn token(&mut self) -> Result<Token<'a>, Malformed> {
        let byte = self.peek().ok_or(Malformed)?;
        match byte {
            b'{' | b'[' => {
                self.at += 1;
                Ok(if byte == b'{' { Token::ObjectStart } else { Token::ArrayStart })
            }
            b'"' | b'\'' => {
                self.at += 1;
                Ok(Token::Text(self.string(byte)?))
            }
            b'0'..=b'9' => self.number(),
            b'-' if self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<Token<'a>, Malformed> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'_')));
        let word = &rest[..length.unwrap_or(rest.len())];
        self.at += word.len();
        match word {
            b"null" => Ok(Token::Null),
            b"true" => Ok(Token::Bool(true)),
            b"false" => Ok(Token::Bool(false)),
            b"NaN" => Ok(Token::NotFinite(f64::NAN)),
            b"Infinity" | b"+Infinity" | b"INF" | b"+INF" => Ok(Token::NotFinite(f64::INFINITY)),
            b"-Infinity" | b"-INF" => Ok(Token::NotFinite(f64::NEG_INFINITY)),
            _ => Err(Malformed),
        }
    }

    fn number(&mut self) -> Result<Token<'a>, Malformed> {
        let start = self.at;
        self.at += usize::from(self.bytes[start] == b'-');
        let leading_zero = self.bytes.get(self.at) == Some(&b'0');
        let whole = self.digits();
        if whole == 0 || (leading_zero && whole > 1) {
            return Err(Malformed);
        }
        let mut integer = true;
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            integer = false;
            if self.digits() == 0 {
                return Err(Malformed);
            }
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            integer = false;
            self.at += usize::from(matches!(self.bytes.get(self.at), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return Err(Malformed);
            }
        }
        if self.bytes.get(self.at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'.') {
            return Err(Malformed);
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).map_err(|_| Malformed)?;
        Ok(if integer { Token::Integer(text) } else { Token::Number(text) })
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.at - start
    }

    /// The rest of a string behind its opening quote.
    fn string(&mut self, quote: u8) -> Result<Cow<'a, [u8]>, Malformed> {
        let start = self.at;
        loop {
            let byte = *self.bytes.get(self.at).ok_or(Malformed)?;
            if byte == quote {
                self.at += 1;
                return Ok(Cow::Borrowed(&self.bytes[start..self.at - 1]));
            }
            if byte == b'\\' {
                break;
            }
            if byte < b' ' {
                return Err(Malformed);
            }
            self.at += 1;
        }
        let mut text = self.bytes[start..self.at].to_vec();
        loop {
            let byte = *self.bytes.get(self.at).ok_or(Malformed)?;
            self.at += 1;
            match byte {
                b'\\' => self.escape(&mut text)?,
                _ if byte == quote => return Ok(Cow::Owned(text)),
                0..=0x1f => return Err(Malformed),
                _ => text.push(byte),
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), Malformed> {
        let byte = *self.bytes.get(self.at).ok_or(Malformed)?;
        self.at += 1;
        match byte {
            b'"' | b'\\' | b'/' => text.push(byte),
            b'\'' => text.push(byte),
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'u' => {
                let first = self.hex()?;
                let mut code = u32::from(first);
                if (0xd800..0xdc00).contains(&first) && self.bytes[self.at..].starts_with(b"\\u") {
                    let before = self.at;
                    self.at += 2;
                    let second = self.hex()?;
                    if (0xdc00..0xe000).contains(&second) {
                        code = 0x10000 + ((u32::from(first) - 0xd800) << 10) + (u32::from(second) - 0xdc00);
                    } else {
                        self.at = before;
                    }
                }
                // Half of a pair has no UTF-8 form.
                let character = char::from_u32(code).unwrap_or('?');
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => return Err(Malformed),
        }
        Ok(())
    }

    fn hex(&mut self) -> Result<u16, Malformed> {
        let digits = self.bytes.get(self.at..self.at + 4).ok_or(Malformed)?;
        self.at += 4;
        digits.iter().try_fold(0_u16, |code, byte| {
            let digit = char::from(*byte).to_digit(16).ok_or(Malformed)?;
            Ok(code << 4 | digit as u16)
        })
    }

    /// Goes behind the next value, whatever it is.
    pub(super) fn skip(&mut self) -> Result<(), Malformed> {
        // The closing brackets that are due, and whether the innermost one has seen an element.
        let mut open: Vec<(u8, bool)> = Vec::new();
        loop {
            match self.token()? {
                Token::ObjectStart => open.push((b'}', true)),
                Token::ArrayStart => open.push((b']', true)),
                _ => {}
            }
            if open.len() > MAX_DEPTH {
                return Err(Malformed);
            }
            loop {
                let Some((close, first)) = open.last_mut() else { return Ok(()) };
                let close = *close;
                if self.next_element(first, close)? {
                    if close == b'}' {
                        self.name()?;
                    }
                    break;
                }
                open.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skips(text: &str) -> Result<usize, Malformed> {
        let mut scanner = Scanner::new(text.as_bytes());
        scanner.skip().map(|()| scanner.position())
    }

    #[test]
    fn whole_values_are_skipped_and_broken_ones_refused() {
        for text in
            ["1", "-0.5e-3", "\"a\\u00e9\\\"\"", "'it'", "[]", "{}", "[1,[2,{\"a\":null}],\"]\"]", "NaN", "-INF"]
        {
            assert_eq!(skips(text), Ok(text.len()), "{text}");
        }
        for text in [
            "",
            "01",
            "1.",
            "-",
            "+1",
            "1x",
            "tru",
            "truex",
            "\"a",
            "\"\\q\"",
            "\"\u{1}\"",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "[1}",
        ] {
            assert_eq!(skips(text), Err(Malformed), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        assert_eq!(skips(&"[".repeat(5_000_000)), Err(Malformed));
        let deep = "[".repeat(1000) + &"]".repeat(1000);
        assert_eq!(skips(&deep), Ok(deep.len()));
    }

    #[test]
    fn escapes_become_utf8() {
        let mut scanner = Scanner::new(br#""\u00e9\ud83d\ude00\ud83dx\n\/""#);
        assert_eq!(scanner.token(), Ok(Token::Text("é😀?x\n/".as_bytes().into())));
    }
}
