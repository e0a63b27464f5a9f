//! Values of the binary log in their text form.

use super::super::columns::{is_geometry, type_name};
use super::mariadb::{inet4, inet6, uuid};
use crate::connectors::database::Raw;
use millstream_client::mysql::{BinlogValue, Value};

/// Whether the values of a type can be read.
fn is_read(name: &str) -> bool {
    let is_plain = matches!(
        name,
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float" | "double" | "bit" | "year"
    );
    let is_time = matches!(name, "date" | "datetime" | "timestamp" | "time");
    let is_text =
        matches!(name, "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "set" | "json");
    let is_bytes = matches!(name, "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob");
    is_plain || is_time || is_text || is_bytes || is_geometry(name) || matches!(name, "inet4" | "inet6" | "uuid")
}

/// What must be known of a column to read its values: they have no type of their own in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnKind {
    /// The whole type, in small letters.
    column_type: String,
    is_unsigned: bool,
    /// The words of an enumeration or a set.
    words: Vec<String>,
    /// Whether its text has one byte for a letter, as Western Europe wrote it.
    is_latin1: bool,
}

impl ColumnKind {
    /// That of a column with a type and, when it is text, a character set; answers why its values cannot be read.
    pub(super) fn new(column_type: &str, charset: Option<&str>) -> Result<Self, String> {
        let name = type_name(column_type);
        if !is_read(name) {
            return Err(format!(
                "has the type {column_type}, whose values in the log are not read; declare a schema without it"
            ));
        }
        let is_words = matches!(name, "enum" | "set");
        let is_known = |charset| matches!(charset, "utf8mb4" | "utf8mb3" | "utf8" | "ascii" | "binary" | "latin1");
        // The words of an enumeration come from the server in UTF-8.
        if let Some(charset) = charset.filter(|charset| !is_words && !is_known(charset)) {
            return Err(format!(
                "has the character set {charset}, in which the log has its text; let it have utf8mb4, or declare a schema \
                 without it"
            ));
        }
        Ok(Self {
            column_type: column_type.to_owned(),
            is_unsigned: column_type.contains("unsigned") && !is_words,
            words: if is_words { words(column_type) } else { Vec::new() },
            is_latin1: charset == Some("latin1"),
        })
    }

    fn is(&self, name: &str) -> bool {
        type_name(&self.column_type) == name
    }

    /// A value as text; answers what cannot be one.
    pub(super) fn text(&self, value: Option<BinlogValue<'static>>) -> Result<Raw<'static>, String> {
        let value = match value {
            None => return Ok(Raw::Null),
            Some(value) => Value::try_from(value).map_err(|error| error.to_string())?,
        };
        let text = match value {
            Value::NULL => return Ok(Raw::Null),
            Value::Int(number) if self.is("enum") => self.word(number)?,
            Value::Int(number) if self.is("timestamp") => seconds(&number.to_string())?,
            Value::Int(number) if self.is_unsigned && number < 0 => self.without_sign(number).to_string(),
            Value::Int(number) => number.to_string(),
            Value::UInt(number) => number.to_string(),
            // As the snapshot has it, which is of more digits.
            Value::Float(number) => f64::from(number).to_string(),
            Value::Double(number) => number.to_string(),
            Value::Bytes(bytes) if self.is("timestamp") => seconds(&String::from_utf8_lossy(&bytes))?,
            Value::Bytes(bytes) if self.is("set") => self.set(&bytes),
            Value::Bytes(bytes) if self.is("inet4") => self.own(&bytes, inet4)?,
            Value::Bytes(bytes) if self.is("inet6") => self.own(&bytes, inet6)?,
            Value::Bytes(bytes) if self.is("uuid") => self.own(&bytes, uuid)?,
            // The log has years since 1900, and the driver does not know the year 0.
            Value::Bytes(bytes) if self.is("year") && bytes == b"1900" => "0000".to_owned(),
            Value::Bytes(bytes) if self.is("binary") => return Ok(Raw::Text(self.padded(bytes).into())),
            Value::Bytes(bytes) if self.is_latin1 => bytes.into_iter().map(latin1).collect(),
            Value::Bytes(bytes) => return Ok(Raw::Text(bytes.into())),
            Value::Date(year, month, day, ..) if self.is("date") => {
                format!("{year:04}-{month:02}-{day:02}")
            }
            Value::Date(year, month, day, hour, minute, second, micros) => {
                format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}")
            }
            Value::Time(negative, days, hour, minute, second, micros) => {
                let (sign, hours) = (if negative { "-" } else { "" }, u64::from(days) * 24 + u64::from(hour));
                let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
                format!("{sign}{hours:02}:{minute:02}:{second:02}{fraction}")
            }
        };
        Ok(Raw::Text(text.into_bytes().into()))
    }

    /// A value of one of MariaDB's own types.
    fn own(&self, bytes: &[u8], text: fn(&[u8]) -> Option<String>) -> Result<String, String> {
        text(bytes).ok_or_else(|| format!("{} bytes are no {}", bytes.len(), self.column_type))
    }

    fn without_sign(&self, number: i64) -> u64 {
        let bits = match type_name(&self.column_type) {
            "tinyint" => 8,
            "smallint" => 16,
            "mediumint" => 24,
            "int" => 32,
            _ => 64,
        };
        if bits == 64 { number as u64 } else { (number as u64) & ((1_u64 << bits) - 1) }
    }

    fn word(&self, number: i64) -> Result<String, String> {
        if number == 0 {
            return Ok(String::new());
        }
        let word = usize::try_from(number - 1).ok().and_then(|at| self.words.get(at));
        word.cloned().ok_or_else(|| format!("{number} is no word of {}", self.column_type))
    }

    fn set(&self, bytes: &[u8]) -> String {
        let is_in = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
        let words: Vec<&str> =
            self.words.iter().enumerate().filter(|(at, _)| is_in(*at)).map(|(_, word)| word.as_str()).collect();
        words.join(",")
    }

    /// The log leaves out zeros at the end of a column of a fixed number of bytes.
    fn padded(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let length = self.column_type.strip_prefix("binary(").and_then(|rest| rest.split_once(')'));
        if let Some(length) = length.and_then(|(length, _)| length.parse().ok())
            && bytes.len() < length
        {
            bytes.resize(length, 0);
        }
        bytes
    }
}

/// A letter of the character set that MySQL calls latin1, which is Windows' page 1252.
fn latin1(byte: u8) -> char {
    const FROM_80: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte.checked_sub(0x80).and_then(|at| FROM_80.get(usize::from(at))) {
        Some(letter) => *letter,
        None => char::from(byte),
    }
}

/// The words in `enum('a','it''s')`.
fn words(column_type: &str) -> Vec<String> {
    let inner = column_type.split_once('(').map_or("", |(_, rest)| rest.trim_end_matches(')'));
    let mut words = Vec::new();
    let mut rest = inner;
    while let Some(quoted) = rest.strip_prefix('\'') {
        let mut word = String::new();
        let mut chars = quoted.char_indices().peekable();
        let mut end = quoted.len();
        while let Some((at, letter)) = chars.next() {
            if letter != '\'' {
                word.push(letter);
            } else if chars.next_if(|(_, next)| *next == '\'').is_some() {
                word.push('\'');
            } else {
                end = at + 1;
                break;
            }
        }
        words.push(word);
        rest = quoted[end..].trim_start_matches(',');
    }
    words
}

/// Seconds since 1970, with a fraction, as a time in UTC.
fn seconds(text: &str) -> Result<String, String> {
    // The date of zeros, which is no time, here as in a SELECT.
    if text == "0" {
        return Ok("0000-00-00 00:00:00".to_owned());
    }
    let wrong = || format!("`{text}` is no time");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let whole: i64 = whole.parse().map_err(|_| wrong())?;
    // They have no sign, up to 2106, and the driver gives them one.
    let whole = if whole < 0 { whole + (1 << 32) } else { whole };
    let time = chrono::DateTime::from_timestamp(whole, 0).ok_or_else(wrong)?;
    Ok(format!("{}.{fraction}", time.format("%Y-%m-%d %H:%M:%S")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(column_type: &str, value: Value) -> String {
        match ColumnKind::new(column_type, None).unwrap().text(Some(BinlogValue::Value(value))).unwrap() {
            Raw::Null => "null".to_owned(),
            Raw::Text(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    #[test]
    fn values_of_the_log_get_the_meaning_of_their_column() {
        assert_eq!(text("int(10) unsigned", Value::Int(-1)), "4294967295");
        assert_eq!(text("tinyint(3) unsigned", Value::Int(-1)), "255");
        assert_eq!(text("int(11)", Value::Int(-1)), "-1");
        assert_eq!(text("enum('a','it''s, so')", Value::Int(2)), "it's, so");
        assert_eq!(text("set('a','b','c')", Value::Bytes(vec![5])), "a,c");
        assert_eq!(text("timestamp(6)", Value::Bytes(b"1.000250".to_vec())), "1970-01-01 00:00:01.000250");
        assert_eq!(text("timestamp", Value::Bytes(b"60".to_vec())), "1970-01-01 00:01:00.0");
        // MariaDB goes on after 2038, to this.
        assert_eq!(text("timestamp", Value::Bytes(b"-1".to_vec())), "2106-02-07 06:28:15.0");
        assert_eq!(text("timestamp(3)", Value::Bytes(b"-2147483648.500000".to_vec())), "2038-01-19 03:14:08.500000");
        assert_eq!(text("timestamp(3)", Value::Bytes(b"0".to_vec())), "0000-00-00 00:00:00", "no time");
        assert_eq!(text("year(4)", Value::Bytes(b"1900".to_vec())), "0000");
        assert_eq!(text("float", Value::Float(1.234_567_8)), "1.2345677614212036");
        assert_eq!(text("float", Value::Float(16_777_216.0)), "16777216");
        assert_eq!(text("date", Value::Date(2024, 5, 1, 0, 0, 0, 0)), "2024-05-01");
        assert_eq!(text("datetime", Value::Date(2024, 5, 1, 12, 0, 0, 0)), "2024-05-01 12:00:00.000000");
        assert_eq!(text("binary(3)", Value::Bytes(vec![65])), "A\0\0");
        assert_eq!(text("time", Value::Time(true, 1, 2, 3, 4, 0)), "-26:03:04");
        assert_eq!(text("varchar(5)", Value::Bytes(b"x".to_vec())), "x");
        assert_eq!(text("inet4", Value::Bytes(vec![10])), "10.0.0.0");
        assert_eq!(text("inet6", Value::Bytes(vec![])), "::");
        assert_eq!(text("uuid /* old */", Value::Bytes(vec![1])), "01000000-0000-0000-0000-000000000000");
        assert_eq!(text("polygon", Value::Bytes(b"\0\0".to_vec())), "\0\0");
        let kind = ColumnKind::new("enum('a')", Some("latin2")).unwrap();
        assert!(kind.text(Some(BinlogValue::Value(Value::Int(9)))).is_err());
    }

    #[test]
    fn text_of_another_character_set_is_read_right_or_not_at_all() {
        let kind = ColumnKind::new("varchar(9)", Some("latin1")).unwrap();
        // These two bytes are a letter in UTF-8 too, and another one.
        let text = kind.text(Some(BinlogValue::Value(Value::Bytes(vec![0xc3, 0xbc, 0x80]))));
        assert_eq!(text, Ok(Raw::Text("Ã¼€".as_bytes().into())));
        assert!(ColumnKind::new("varchar(9)", Some("sjis")).unwrap_err().contains("sjis"));
    }
    #[test]
    fn a_type_without_a_rule_is_refused_by_name() {
        for column_type in ["vector(3)", "xmltype", ""] {
            let reason = ColumnKind::new(column_type, None).unwrap_err();
            assert!(reason.contains(&format!("type {column_type},")), "{reason}");
        }
    }
}
