//! Schemas written as text: `a INT, b STRUCT<x: INT>, c ARRAY<STRING> NOT NULL COMMENT 'why'`.
//!
//! The words are Spark's data definition language; the result is Arrow's types. Query files, catalog entries and
//! `from_json` bring their schemas in this form, before anything is planned.
//!
//! The rule: the text comes from outside, so its nesting is limited and every refusal names the place.
//! What it does not do: defaults, generated columns and collations other than the binary one are refused.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit};
use millstream_common::{Fault, Hint};

/// The deepest nesting of arrays, maps and structs.
const MAX_DEPTH: usize = 64;

/// Why a schema text could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DdlError {
    /// Another word or sign was needed.
    #[error("cannot read the schema: expected {expected} at character {at}, found {found}")]
    Unexpected {
        /// What would have been right.
        expected: &'static str,
        /// What is there.
        found: String,
        /// Place in the text, in characters, from 1.
        at: usize,
    },
    /// No such type.
    #[error("cannot read the schema: unsupported type `{name}` at character {at}")]
    UnknownType {
        /// The word that should be a type.
        name: String,
        /// Place in the text, in characters, from 1.
        at: usize,
    },
    /// A decimal type that does not exist.
    #[error(
        "cannot read the schema: `DECIMAL({precision},{scale})` is outside precision 1 to 38 and scale 0 to precision"
    )]
    Decimal {
        /// Digits in all.
        precision: u64,
        /// Digits after the point.
        scale: u64,
    },
    /// A number that no type can have.
    #[error("cannot read the schema: the number `{text}` is too large")]
    Number {
        /// The digits.
        text: String,
    },
    /// A quote or backquote without its end.
    #[error("cannot read the schema: the quote at character {at} is never closed")]
    OpenQuote {
        /// Place in the text, in characters, from 1.
        at: usize,
    },
    /// The same name twice among the fields of one struct.
    #[error("cannot read the schema: the field `{name}` occurs twice")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// Types inside types inside types.
    #[error("cannot read the schema: types are nested deeper than {MAX_DEPTH}")]
    TooDeep,
}

impl Hint for DdlError {
    fn fault(&self) -> Fault {
        Fault::Query
    }

    fn hint(&self) -> Option<String> {
        Some("write a schema as `name TYPE, …`, for example `id INT, tags ARRAY<STRING>, place STRUCT<x: DOUBLE, y: DOUBLE>`".into())
    }
}

/// Reads the columns of a table: `a INT, b STRING NOT NULL COMMENT 'text'`.
///
/// A comment becomes the field's metadata entry `comment`. Names that occur twice are refused.
pub fn parse_ddl(text: &str) -> Result<Fields, DdlError> {
    let mut parser = Parser::new(text)?;
    let fields = parser.fields(0, false)?;
    parser.expect_end()?;
    Ok(fields)
}

/// Reads one type: `ARRAY<STRUCT<x: INT>>`.
pub fn parse_data_type(text: &str) -> Result<DataType, DdlError> {
    let mut parser = Parser::new(text)?;
    let data_type = parser.data_type(0)?;
    parser.expect_end()?;
    Ok(data_type)
}

/// Reads either one type or the columns of a table; columns become a struct. What `from_json` accepts.
pub fn parse_type_or_columns(text: &str) -> Result<DataType, DdlError> {
    parse_data_type(text).or_else(|_| parse_ddl(text).map(DataType::Struct))
}

/// The Arrow type of `ARRAY<element>`.
pub fn list_type(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(element, true)))
}

/// The Arrow type of `MAP<key,value>`.
pub fn map_type(key: DataType, value: DataType) -> DataType {
    let entries = Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
}

/// Writes a type as schema text, in the form that [`parse_data_type`] reads.
pub fn format_data_type(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "VOID".into(),
        DataType::Boolean => "BOOLEAN".into(),
        DataType::Int8 => "TINYINT".into(),
        DataType::Int16 => "SMALLINT".into(),
        DataType::Int32 => "INT".into(),
        DataType::Int64 => "BIGINT".into(),
        DataType::Float32 => "FLOAT".into(),
        DataType::Float64 => "DOUBLE".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "STRING".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BINARY".into(),
        DataType::Date32 => "DATE".into(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP".into(),
        DataType::Timestamp(_, None) => "TIMESTAMP_NTZ".into(),
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::List(element) | DataType::LargeList(element) => {
            format!("ARRAY<{}>", format_data_type(element.data_type()))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                format!("MAP<{}, {}>", format_data_type(pair[0].data_type()), format_data_type(pair[1].data_type()))
            }
            other => other.to_string(),
        },
        DataType::Struct(fields) => {
            let inner: Vec<_> = fields.iter().map(|field| format_field(field)).collect();
            format!("STRUCT<{}>", inner.join(", "))
        }
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL".into(),
        other => other.to_string(),
    }
}

fn format_field(field: &Field) -> String {
    let name = field.name();
    let plain =
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    let name = if plain && !name.is_empty() { name.clone() } else { format!("`{}`", name.replace('`', "``")) };
    let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
    format!("{name}: {}{not_null}", format_data_type(field.data_type()))
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Quoted(String),
    Text(String),
    Number(String),
    Sign(char),
    End,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(text) | Self::Quoted(text) | Self::Number(text) => write!(f, "`{text}`"),
            Self::Text(text) => write!(f, "the string '{text}'"),
            Self::Sign(sign) => write!(f, "`{sign}`"),
            Self::End => write!(f, "the end"),
        }
    }
}

/// Cuts the text into words and signs, each with its place.
fn tokens(text: &str) -> Result<Vec<(Token, usize)>, DdlError> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut next = 0;
    while next < chars.len() {
        let (start, c) = (next, chars[next]);
        next += 1;
        let token = match c {
            c if c.is_whitespace() => continue,
            '-' if chars.get(next) == Some(&'-') => {
                while next < chars.len() && chars[next] != '\n' {
                    next += 1;
                }
                continue;
            }
            '`' | '\'' | '"' => {
                let mut inner = String::new();
                loop {
                    match chars.get(next) {
                        None => return Err(DdlError::OpenQuote { at: start + 1 }),
                        Some(&end) if end == c && chars.get(next + 1) == Some(&c) => {
                            inner.push(c);
                            next += 2;
                        }
                        Some(&end) if end == c => break,
                        Some('\\') if c != '`' && next + 1 < chars.len() => {
                            inner.push(match chars[next + 1] {
                                'n' => '\n',
                                't' => '\t',
                                'r' => '\r',
                                other => other,
                            });
                            next += 2;
                        }
                        Some(&other) => {
                            inner.push(other);
                            next += 1;
                        }
                    }
                }
                next += 1;
                if c == '`' { Token::Quoted(inner) } else { Token::Text(inner) }
            }
            c if c.is_alphanumeric() || c == '_' => {
                while next < chars.len() && (chars[next].is_alphanumeric() || chars[next] == '_') {
                    next += 1;
                }
                let word: String = chars[start..next].iter().collect();
                if word.chars().all(|c| c.is_ascii_digit()) { Token::Number(word) } else { Token::Word(word) }
            }
            sign => Token::Sign(sign),
        };
        found.push((token, start + 1));
    }
    found.push((Token::End, chars.len() + 1));
    Ok(found)
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    next: usize,
}

impl Parser {
    fn new(text: &str) -> Result<Self, DdlError> {
        Ok(Self { tokens: tokens(text)?, next: 0 })
    }

    fn peek(&self) -> &Token {
        // The last token is `End` and is never stepped over.
        &self.tokens[self.next].0
    }

    fn at(&self) -> usize {
        self.tokens[self.next].1
    }

    fn step(&mut self) -> Token {
        let token = self.peek().clone();
        if self.next + 1 < self.tokens.len() {
            self.next += 1;
        }
        token
    }

    fn unexpected<T>(&self, expected: &'static str) -> Result<T, DdlError> {
        Err(DdlError::Unexpected { expected, found: self.peek().to_string(), at: self.at() })
    }

    fn sign(&mut self, sign: char) -> bool {
        let found = *self.peek() == Token::Sign(sign);
        if found {
            self.step();
        }
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(text) if text.eq_ignore_ascii_case(word));
        if found {
            self.step();
        }
        found
    }

    fn expect_sign(&mut self, sign: char, expected: &'static str) -> Result<(), DdlError> {
        if self.sign(sign) { Ok(()) } else { self.unexpected(expected) }
    }

    fn expect_end(&self) -> Result<(), DdlError> {
        if *self.peek() == Token::End { Ok(()) } else { self.unexpected("the end of the schema") }
    }

    /// `name type, …`; inside a struct a colon may stand between and the list ends before `>`.
    fn fields(&mut self, depth: usize, in_struct: bool) -> Result<Fields, DdlError> {
        let mut fields: Vec<FieldRef> = Vec::new();
        let ended =
            |parser: &Self| if in_struct { *parser.peek() == Token::Sign('>') } else { *parser.peek() == Token::End };
        if ended(self) {
            return Ok(Fields::empty());
        }
        loop {
            let field = self.field(depth, in_struct)?;
            if fields.iter().any(|other| other.name() == field.name()) {
                return Err(DdlError::Duplicate { name: field.name().clone() });
            }
            fields.push(Arc::new(field));
            if !self.sign(',') {
                return Ok(Fields::from(fields));
            }
        }
    }

    fn field(&mut self, depth: usize, in_struct: bool) -> Result<Field, DdlError> {
        let name = match self.peek() {
            Token::Word(_) | Token::Quoted(_) => match self.step() {
                Token::Word(name) | Token::Quoted(name) => name,
                _ => return self.unexpected("a name"),
            },
            _ => return self.unexpected("a name"),
        };
        if in_struct {
            self.sign(':');
        }
        let data_type = self.data_type(depth)?;
        let mut field = Field::new(name, data_type, true);
        loop {
            if self.word("not") {
                if !self.word("null") {
                    return self.unexpected("NULL after NOT");
                }
                field = field.with_nullable(false);
            } else if self.word("comment") {
                let Token::Text(comment) = self.step() else {
                    self.next = self.next.saturating_sub(1);
                    return self.unexpected("the quoted text of the comment");
                };
                field = field.with_metadata([("comment".to_owned(), comment)].into());
            } else {
                return Ok(field);
            }
        }
    }

    fn data_type(&mut self, depth: usize) -> Result<DataType, DdlError> {
        if depth > MAX_DEPTH {
            return Err(DdlError::TooDeep);
        }
        let at = self.at();
        let Token::Word(name) = self.peek().clone() else { return self.unexpected("a type") };
        self.step();
        Ok(match name.to_ascii_lowercase().as_str() {
            "boolean" | "bool" => DataType::Boolean,
            "tinyint" | "byte" => DataType::Int8,
            "smallint" | "short" => DataType::Int16,
            "int" | "integer" => DataType::Int32,
            "bigint" | "long" => DataType::Int64,
            "float" | "real" => DataType::Float32,
            "double" => DataType::Float64,
            "date" => DataType::Date32,
            "timestamp" | "timestamp_ltz" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
            "binary" => DataType::Binary,
            "void" => DataType::Null,
            "string" => self.collation()?,
            "char" | "character" | "varchar" => {
                self.expect_sign('(', "`(` and a length")?;
                self.number()?;
                self.expect_sign(')', "`)`")?;
                self.collation()?
            }
            "decimal" | "dec" | "numeric" => self.decimal()?,
            "interval" => {
                while matches!(self.peek(), Token::Word(word) if is_interval_word(word)) {
                    self.step();
                }
                DataType::Interval(IntervalUnit::MonthDayNano)
            }
            "array" => {
                self.expect_sign('<', "`<` and the type of the elements")?;
                let element = self.data_type(depth + 1)?;
                self.expect_sign('>', "`>`")?;
                list_type(element)
            }
            "map" => {
                self.expect_sign('<', "`<` and the types of key and value")?;
                let key = self.data_type(depth + 1)?;
                self.expect_sign(',', "`,` and the type of the values")?;
                let value = self.data_type(depth + 1)?;
                self.expect_sign('>', "`>`")?;
                map_type(key, value)
            }
            "struct" => {
                self.expect_sign('<', "`<` and fields")?;
                let fields = self.fields(depth + 1, true)?;
                self.expect_sign('>', "`,` or `>`")?;
                DataType::Struct(fields)
            }
            _ => return Err(DdlError::UnknownType { name, at }),
        })
    }

    fn collation(&mut self) -> Result<DataType, DdlError> {
        if self.word("collate") {
            let at = self.at();
            match self.step() {
                Token::Word(name) if name.eq_ignore_ascii_case("utf8_binary") => {}
                other => {
                    return Err(DdlError::UnknownType { name: format!("STRING COLLATE {other}").replace('`', ""), at });
                }
            }
        }
        Ok(DataType::Utf8)
    }

    fn decimal(&mut self) -> Result<DataType, DdlError> {
        let (mut precision, mut scale) = (10, 0);
        if self.sign('(') {
            precision = self.number()?;
            if self.sign(',') {
                scale = self.number()?;
            }
            self.expect_sign(')', "`)`")?;
        }
        match (u8::try_from(precision), i8::try_from(scale)) {
            (Ok(p @ 1..=38), Ok(s)) if scale <= precision => Ok(DataType::Decimal128(p, s)),
            _ => Err(DdlError::Decimal { precision, scale }),
        }
    }

    fn number(&mut self) -> Result<u64, DdlError> {
        let Token::Number(text) = self.peek().clone() else { return self.unexpected("a number") };
        self.step();
        text.parse().map_err(|_| DdlError::Number { text })
    }
}

fn is_interval_word(word: &str) -> bool {
    ["year", "month", "day", "hour", "minute", "second", "to"].iter().any(|unit| word.eq_ignore_ascii_case(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_every_kind_are_read() {
        let fields = parse_ddl(
            "a INT, b STRING, c ARRAY<INT>, d STRUCT<x: INT, q: STRUCT<z: STRING>>, m MAP<STRING,INT>, e DECIMAL(10,2) NOT NULL COMMENT 'it''s', `odd name` timestamp",
        )
        .unwrap();
        assert_eq!(fields.len(), 7);
        assert_eq!(fields[0].data_type(), &DataType::Int32);
        assert_eq!(fields[2].data_type(), &list_type(DataType::Int32));
        let DataType::Struct(d) = fields[3].data_type() else { panic!("a struct") };
        assert_eq!(format_data_type(d[1].data_type()), "STRUCT<z: STRING>");
        assert_eq!(fields[4].data_type(), &map_type(DataType::Utf8, DataType::Int32));
        assert_eq!(fields[5].data_type(), &DataType::Decimal128(10, 2));
        assert!(!fields[5].is_nullable());
        assert_eq!(fields[5].metadata()["comment"], "it's");
        assert_eq!(fields[6].name(), "odd name");
        assert_eq!(fields[6].data_type(), &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    }

    #[test]
    fn a_type_alone_is_read_and_columns_become_a_struct() {
        assert_eq!(parse_type_or_columns("ARRAY<BIGINT>").unwrap(), list_type(DataType::Int64));
        let DataType::Struct(fields) = parse_type_or_columns("a INT, b ARRAY<STRUCT<c DOUBLE>>").unwrap() else {
            panic!("a struct")
        };
        assert_eq!(fields.len(), 2);
        assert_eq!(parse_type_or_columns("decimal").unwrap(), DataType::Decimal128(10, 0));
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in
            ["ARRAY<MAP<STRING, STRUCT<a: INT NOT NULL, `b c`: DECIMAL(38,18)>>>", "TIMESTAMP_NTZ", "STRUCT<>", "VOID"]
        {
            assert_eq!(format_data_type(&parse_data_type(text).unwrap()), text);
        }
    }

    #[test]
    fn bad_texts_are_refused_with_their_place() {
        assert_eq!(parse_ddl("a FOO"), Err(DdlError::UnknownType { name: "FOO".into(), at: 3 }));
        assert_eq!(parse_ddl("a INT, a STRING"), Err(DdlError::Duplicate { name: "a".into() }));
        assert_eq!(parse_ddl("a DECIMAL(39,2)"), Err(DdlError::Decimal { precision: 39, scale: 2 }));
        assert_eq!(parse_ddl("`a INT"), Err(DdlError::OpenQuote { at: 1 }));
        assert!(matches!(parse_ddl("a INT,"), Err(DdlError::Unexpected { at: 7, .. })));
        assert!(matches!(parse_ddl("a ARRAY<INT"), Err(DdlError::Unexpected { .. })));
        assert!(matches!(parse_ddl("a INT COMMENT"), Err(DdlError::Unexpected { .. })));
        assert!(matches!(parse_ddl("a INT DEFAULT 3"), Err(DdlError::Unexpected { .. })));
    }

    #[test]
    fn endless_nesting_is_refused() {
        let text = format!("a {}INT{}", "ARRAY<".repeat(100_000), ">".repeat(100_000));
        assert_eq!(parse_ddl(&text), Err(DdlError::TooDeep));
    }
}
