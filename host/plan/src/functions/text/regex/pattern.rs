//! Java's regular expressions, rewritten for an engine that runs in linear time.
//!
//! Where it stands: under every regular-expression function.
//!
//! Rule of its life: a construct means what it means in Java or it is refused by name. Refused: look-around, atomic
//! groups, possessive quantifiers and back references, which need backtracking.
//!
//! Known differences: `$` without `(?m)` matches only at the very end, not also before a final line break; `(?i)` folds
//! all letters, not only ASCII ones; of alternatives that match the first one wins, as in Java.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use regex::{Regex, RegexBuilder};

/// Compiled patterns that are kept between batches.
const KEPT: usize = 256;
/// Most bytes of a compiled pattern.
const SIZE_LIMIT: usize = 4 << 20;
/// Longest pattern that is kept; longer ones come from data rather than from queries.
const LONGEST_KEPT: usize = 4096;
/// Most classes within classes.
const NESTING_LIMIT: usize = 50;

static COMPILED: LazyLock<Mutex<HashMap<String, Arc<Regex>>>> = LazyLock::new(Mutex::default);

fn refused(pattern: &str, what: &str) -> DataFusionError {
    exec_datafusion_err!(
        "[INVALID_PARAMETER_VALUE.PATTERN] the regular expression '{pattern}' uses {what}, which is not supported here; \
         rewrite it without"
    )
}

/// The compiled form of a Java pattern.
pub(crate) fn compile(pattern: &str) -> Result<Arc<Regex>> {
    cached(&format!("java {pattern}"), pattern, translate)
}

/// Compiles text made by `make`, kept under `key`.
pub(super) fn cached(key: &str, pattern: &str, make: fn(&str) -> Result<String>) -> Result<Arc<Regex>> {
    if let Ok(known) = COMPILED.lock()
        && let Some(regex) = known.get(key)
    {
        return Ok(Arc::clone(regex));
    }
    let regex = RegexBuilder::new(&make(pattern)?).size_limit(SIZE_LIMIT).build().map_err(|e| {
        // The engine's message spans lines and points into the rewritten pattern; its last line says what is wrong.
        let text = e.to_string();
        let reason = text.lines().last().unwrap_or("it is malformed").trim_start_matches("error: ").to_string();
        exec_datafusion_err!(
            "[INVALID_PARAMETER_VALUE.PATTERN] the regular expression '{pattern}' cannot be compiled: {reason}"
        )
    })?;
    let regex = Arc::new(regex);
    if key.len() <= LONGEST_KEPT
        && let Ok(mut known) = COMPILED.lock()
    {
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(key.to_string(), Arc::clone(&regex));
    }
    Ok(regex)
}

/// Reads a pattern from left to right.
struct Reader<'p> {
    pattern: &'p str,
    rest: std::iter::Peekable<std::str::Chars<'p>>,
    out: String,
    dot_matches_all: bool,
}

/// A Java pattern in the engine's syntax.
fn translate(pattern: &str) -> Result<String> {
    let mut reader = Reader {
        pattern,
        rest: pattern.chars().peekable(),
        out: String::with_capacity(pattern.len() + 16),
        dot_matches_all: has_flag_s(pattern),
    };
    reader.outside()?;
    Ok(reader.out)
}

/// Whether some `(?…s…)` switches the dot to match line breaks.
fn has_flag_s(pattern: &str) -> bool {
    pattern.split("(?").skip(1).any(|after| {
        after.chars().take_while(|c| c.is_ascii_alphabetic()).any(|c| c == 's')
            && after.trim_start_matches(|c: char| c.is_ascii_alphabetic()).starts_with([')', ':', '-'])
    })
}

impl Reader<'_> {
    fn outside(&mut self) -> Result<()> {
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => self.escape(false)?,
                '[' => self.class(0)?,
                '(' => self.group()?,
                '.' if !self.dot_matches_all => self.out.push_str(r"[^\n\r\x{85}\x{2028}\x{2029}]"),
                '*' | '+' | '?' => {
                    self.out.push(c);
                    self.after_quantifier()?;
                }
                '}' => {
                    self.out.push(c);
                    self.after_quantifier()?;
                }
                other => self.out.push(other),
            }
        }
        Ok(())
    }

    fn after_quantifier(&mut self) -> Result<()> {
        match self.rest.peek() {
            Some('+') => Err(refused(self.pattern, "a possessive quantifier")),
            Some('?') => {
                self.rest.next();
                self.out.push('?');
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn group(&mut self) -> Result<()> {
        self.out.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        self.out.push('?');
        match self.rest.peek() {
            Some('=' | '!') => Err(refused(self.pattern, "look-ahead")),
            Some('>') => Err(refused(self.pattern, "an atomic group")),
            Some('<') => {
                self.rest.next();
                if matches!(self.rest.peek(), Some('=' | '!')) {
                    return Err(refused(self.pattern, "look-behind"));
                }
                self.out.push('<');
                Ok(())
            }
            _ => {
                while let Some(flag) = self.rest.next_if(|c| c.is_ascii_alphabetic() || *c == '-') {
                    match flag {
                        'd' => return Err(refused(self.pattern, "the flag d")),
                        // Unicode case folding is always on.
                        'u' | 'U' => {}
                        flag => self.out.push(flag),
                    }
                }
                if self.out.ends_with("(?") && self.rest.peek() == Some(&')') {
                    // Only dropped flags: an empty group that matches nothing is the same.
                    self.out.push(':');
                }
                Ok(())
            }
        }
    }

    /// `[…]`, with nested classes and intersections as they are.
    fn class(&mut self, depth: usize) -> Result<()> {
        if depth > NESTING_LIMIT {
            return Err(refused(self.pattern, "too many classes within classes"));
        }
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        while let Some(c) = self.rest.next() {
            match c {
                ']' if !first => {
                    self.out.push(']');
                    return Ok(());
                }
                ']' => self.out.push_str(r"\]"),
                '\\' => self.escape(true)?,
                '[' => self.class(depth + 1)?,
                '&' if self.rest.peek() == Some(&'&') => {
                    self.rest.next();
                    self.out.push_str("&&");
                }
                // These are operators or blanks in the engine's classes when doubled or under (?x).
                '&' | '~' | '#' => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                '-' if self.rest.peek() == Some(&'-') => self.out.push_str(r"\-"),
                other => self.out.push(other),
            }
            first = false;
        }
        exec_err!("[INVALID_PARAMETER_VALUE.PATTERN] a '[' of the regular expression '{}' is not closed", self.pattern)
    }

    fn escape(&mut self, in_class: bool) -> Result<()> {
        let Some(c) = self.rest.next() else {
            return exec_err!(
                "[INVALID_PARAMETER_VALUE.PATTERN] the regular expression '{}' ends with a backslash",
                self.pattern
            );
        };
        // Classes of ASCII, whose insides serve within brackets too.
        let class = match c {
            'd' | 'D' => "0-9",
            'w' | 'W' => "a-zA-Z0-9_",
            's' | 'S' => r"\t\n\x0B\x0C\r ",
            'h' | 'H' => r" \t\x{A0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}",
            'v' | 'V' => r"\n\x0B\x0C\r\x{85}\x{2028}\x{2029}",
            _ => "",
        };
        if !class.is_empty() {
            if c.is_ascii_uppercase() {
                self.out.push_str(&format!("[^{class}]"));
            } else if in_class {
                self.out.push_str(class);
            } else {
                self.out.push_str(&format!("[{class}]"));
            }
            return Ok(());
        }
        match c {
            'Q' => {
                let mut quoted = String::new();
                for c in self.rest.by_ref() {
                    quoted.push(c);
                    if quoted.ends_with("\\E") {
                        quoted.truncate(quoted.len() - 2);
                        break;
                    }
                }
                self.out.push_str(&regex::escape(&quoted));
            }
            'E' => {}
            'p' | 'P' => self.property(c)?,
            '0' => {
                let mut code = 0;
                let mut count = 0;
                while count < 3
                    && let Some(digit) = self.rest.next_if(|d| ('0'..='7').contains(d) && (count < 2 || code < 0o40))
                {
                    code = code * 8 + digit.to_digit(8).unwrap_or(0);
                    count += 1;
                }
                self.out.push_str(&format!("\\x{{{code:x}}}"));
            }
            '1'..='9' => return Err(refused(self.pattern, "a back reference")),
            'k' => return Err(refused(self.pattern, "a back reference")),
            'G' | 'X' | 'N' | 'c' => return Err(refused(self.pattern, &format!("the escape \\{c}"))),
            'R' if !in_class => self.out.push_str(r"(?:\r\n|[\n\x0B\x0C\r\x{85}\x{2028}\x{2029}])"),
            'Z' if !in_class => self.out.push_str(r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z"),
            'e' => self.out.push_str(r"\x1B"),
            'u' => {
                let digits: String = (0..4).map_while(|_| self.rest.next_if(char::is_ascii_hexdigit)).collect();
                match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32) {
                    Some(c) if digits.len() == 4 => self.out.push_str(&format!("\\x{{{:x}}}", u32::from(c))),
                    _ => return Err(refused(self.pattern, "a malformed \\u escape")),
                }
            }
            't' | 'n' | 'r' | 'f' | 'a' | 'x' | 'A' | 'z' | 'b' | 'B' => {
                self.out.push('\\');
                self.out.push(c);
            }
            c if c.is_ascii_alphabetic() => return Err(refused(self.pattern, &format!("the escape \\{c}"))),
            // A blank or sign stands for itself.
            c => self.out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
        Ok(())
    }

    /// `\p{…}`: POSIX names are ASCII, `Is` and `In` prefixes fall away.
    fn property(&mut self, letter: char) -> Result<()> {
        let name = if self.rest.next_if_eq(&'{').is_some() {
            let mut name = String::new();
            loop {
                match self.rest.next() {
                    Some('}') => break name,
                    Some(c) => name.push(c),
                    None => return Err(refused(self.pattern, "an unclosed \\p{")),
                }
            }
        } else {
            self.rest.next().map(String::from).unwrap_or_default()
        };
        let negated = letter == 'P';
        if matches!(
            name.as_str(),
            "Lower"
                | "Upper"
                | "ASCII"
                | "Alpha"
                | "Digit"
                | "Alnum"
                | "Punct"
                | "Graph"
                | "Print"
                | "Blank"
                | "Cntrl"
                | "XDigit"
                | "Space"
        ) {
            let caret = if negated { "^" } else { "" };
            self.out.push_str(&format!("[[:{caret}{}:]]", name.to_ascii_lowercase()));
            return Ok(());
        }
        let name = name.strip_prefix("Is").unwrap_or(&name);
        self.out.push_str(&format!("\\{letter}{{{name}}}"));
        Ok(())
    }
}

/// Finds matches as Java does: an empty match may follow directly on a match.
pub(super) fn next_start(text: &str, start: usize, end: usize) -> Option<usize> {
    if end > start {
        return Some(end);
    }
    text[end..].chars().next().map(|c| end + c.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(pattern: &str, text: &str) -> bool {
        compile(pattern).unwrap().is_match(text)
    }

    #[test]
    fn classes_are_ascii_as_in_java() {
        assert!(!finds(r"^\d$", "٣"));
        assert!(!finds(r"^\w$", "é"));
        assert!(finds(r"^[\w-]+$", "a-b_9"));
        assert!(finds(r"^\W$", "é"));
        assert!(finds(r"\p{Punct}", "a!"));
        assert!(finds(r"^\p{IsAlphabetic}$", "é"));
        assert!(finds(r"\Qa.b\E$", "xa.b"));
        assert!(finds(r"a\<b", "a<b"));
        assert!(finds("[a-z&&[^b]]", "c"));
        assert!(!finds("^a.b$", "a\rb"));
        assert!(finds("(?s)^a.b$", "a\nb"));
        assert!(finds(r"\u0041\0101\x41", "AAA"));
    }

    #[test]
    fn what_needs_backtracking_is_refused_by_name() {
        for (pattern, name) in [
            ("a(?=b)", "look-ahead"),
            ("(?<!a)b", "look-behind"),
            (r"(a)\1", "back reference"),
            ("a++", "possessive"),
            ("a{1,2}+", "possessive"),
            ("(?>a)", "atomic"),
        ] {
            let error = compile(pattern).unwrap_err().to_string();
            assert!(error.contains(name), "{pattern}: {error}");
        }
        assert!(compile(&"[".repeat(100_000)).is_err());
        for pattern in ["(", "[", "*", "\\", "a{99999}{99999}"] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }
}
