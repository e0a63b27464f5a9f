//! Texts as bytes and bytes as texts: `base64`, `hex`, `encode`, `chr`, …
//!
//! Where it stands: a group of [`Function`]s.
//!
//! Rule of its life: what cannot be decoded is an error in ANSI mode unless Spark's function gives NULL.

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err};

use super::super::column::{binaries, texts};
use super::super::function::{Call, Function, Nulls, some};
use super::super::kind::Kind;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn write_base64(bytes: &[u8], out: &mut String) {
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for index in 0..4 {
            if index <= chunk.len() {
                out.push(char::from(ALPHABET[(group >> (18 - 6 * index) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
}

/// Characters outside the alphabet do not count, as in MIME; `None` when the rest is not whole.
fn read_base64(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let (mut group, mut filled, mut padding) = (0_u32, 0, 0);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                padding += 1;
                continue;
            }
            _ => continue,
        };
        if padding > 0 {
            return None;
        }
        group = group << 6 | u32::from(value);
        filled += 1;
        if filled == 4 {
            out.extend_from_slice(&group.to_be_bytes()[1..]);
            (group, filled) = (0, 0);
        }
    }
    match (filled, padding) {
        (0, 0) => Some(()),
        (2, 0 | 2) => {
            out.push((group >> 4) as u8);
            Some(())
        }
        (3, 0 | 1) => {
            out.extend_from_slice(&((group >> 2) as u16).to_be_bytes());
            Some(())
        }
        _ => None,
    }
}

fn base64(call: &Call<'_>) -> Result<ArrayRef> {
    let source = call.bytes(0)?;
    texts(call.rows, |row, out| {
        write_base64(some!(source.get(row)), out);
        Ok(Some(()))
    })
}

fn unbase64(call: &Call<'_>, lenient: bool) -> Result<ArrayRef> {
    let source = call.text(0)?;
    binaries(call.rows, |row, out| {
        let text = some!(source.get(row));
        match read_base64(text, out) {
            Some(()) => Ok(Some(())),
            None if lenient => Ok(None),
            None => exec_err!(
                "[CONVERSION_INVALID_INPUT] the value '{text}' cannot be converted to BINARY because it is not BASE64"
            ),
        }
    })
}

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

fn write_hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

fn hex(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, stride) = call.raw(0);
    if source.data_type().is_numeric() {
        let source = Kind::Long.canonical(source, call.rules())?;
        let source: &PrimitiveArray<Int64Type> = source.as_primitive();
        return texts(call.rows, |row, out| {
            let index = row * stride;
            let value = some!((!source.is_null(index)).then(|| source.value(index)));
            let bytes = value.to_be_bytes();
            let mut digits = String::new();
            write_hex(&bytes, &mut digits);
            let digits = digits.trim_start_matches('0');
            out.push_str(if digits.is_empty() { "0" } else { digits });
            Ok(Some(()))
        });
    }
    let source = Kind::TextOrBytes.canonical(source, call.rules())?;
    let source = Kind::Bytes.canonical(&source, call.rules())?;
    let source = source.as_binary::<i32>();
    texts(call.rows, |row, out| {
        let index = row * stride;
        if source.is_null(index) {
            return Ok(None);
        }
        write_hex(source.value(index), out);
        Ok(Some(()))
    })
}

fn unhex(call: &Call<'_>) -> Result<ArrayRef> {
    let source = call.text(0)?;
    binaries(call.rows, |row, out| {
        let text = some!(source.get(row)).as_bytes();
        // An odd number of digits has a zero in front.
        let mut half = (text.len() % 2 == 1).then_some(0_u8);
        for byte in text {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                b'A'..=b'F' => byte - b'A' + 10,
                _ => return Ok(None),
            };
            half = match half {
                Some(high) => {
                    out.push(high << 4 | digit);
                    None
                }
                None => Some(digit),
            };
        }
        Ok(Some(()))
    })
}

fn chr(call: &Call<'_>) -> Result<ArrayRef> {
    let codes = call.long(0)?;
    texts(call.rows, |row, out| {
        let code = some!(codes.get(row));
        if let Ok(byte) = u8::try_from(code & 0xFF)
            && code >= 0
        {
            out.push(char::from(byte));
        }
        Ok(Some(()))
    })
}

/// A character set of `encode` and `decode`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Charset {
    Ascii,
    Latin1,
    Utf8,
    Utf16Be,
    Utf16Le,
    Utf16,
    Utf32,
}

impl Charset {
    fn named(name: &str) -> Result<Self> {
        Ok(match name.to_ascii_uppercase().as_str() {
            "US-ASCII" => Self::Ascii,
            "ISO-8859-1" => Self::Latin1,
            "UTF-8" => Self::Utf8,
            "UTF-16BE" => Self::Utf16Be,
            "UTF-16LE" => Self::Utf16Le,
            "UTF-16" => Self::Utf16,
            "UTF-32" => Self::Utf32,
            _ => {
                return exec_err!(
                    "[INVALID_PARAMETER_VALUE.CHARSET] '{name}' is not a known character set; use US-ASCII, ISO-8859-1, \
                     UTF-8, UTF-16BE, UTF-16LE, UTF-16 or UTF-32"
                );
            }
        })
    }

    /// Whether every character could be written; others become `?`.
    fn encode(self, text: &str, out: &mut Vec<u8>) -> bool {
        let mut whole = true;
        let mut narrow = |limit: u32, out: &mut Vec<u8>| {
            for c in text.chars() {
                match u8::try_from(u32::from(c)) {
                    Ok(byte) if u32::from(c) < limit => out.push(byte),
                    _ => {
                        whole = false;
                        out.push(b'?');
                    }
                }
            }
        };
        match self {
            Self::Ascii => narrow(128, out),
            Self::Latin1 => narrow(256, out),
            Self::Utf8 => out.extend_from_slice(text.as_bytes()),
            Self::Utf16Le => text.encode_utf16().for_each(|unit| out.extend_from_slice(&unit.to_le_bytes())),
            Self::Utf16Be | Self::Utf16 => {
                if self == Self::Utf16 {
                    out.extend_from_slice(&[0xFE, 0xFF]);
                }
                text.encode_utf16().for_each(|unit| out.extend_from_slice(&unit.to_be_bytes()));
            }
            Self::Utf32 => text.chars().for_each(|c| out.extend_from_slice(&u32::from(c).to_be_bytes())),
        }
        whole
    }

    /// Whether all bytes could be read; others become the replacement character.
    fn decode(self, bytes: &[u8], out: &mut String) -> bool {
        let mut whole = true;
        match self {
            Self::Ascii | Self::Latin1 => out.extend(bytes.iter().map(|byte| {
                if self == Self::Ascii && !byte.is_ascii() {
                    whole = false;
                    char::REPLACEMENT_CHARACTER
                } else {
                    char::from(*byte)
                }
            })),
            Self::Utf8 => {
                let text = String::from_utf8_lossy(bytes);
                whole = matches!(text, std::borrow::Cow::Borrowed(_));
                out.push_str(&text);
            }
            Self::Utf16Be | Self::Utf16Le | Self::Utf16 => {
                let (bytes, little) = match bytes {
                    [0xFE, 0xFF, rest @ ..] if self == Self::Utf16 => (rest, false),
                    [0xFF, 0xFE, rest @ ..] if self == Self::Utf16 => (rest, true),
                    _ => (bytes, self == Self::Utf16Le),
                };
                whole = bytes.len().is_multiple_of(2);
                let units = bytes.chunks_exact(2).map(|pair| {
                    let pair = [pair[0], pair[1]];
                    if little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) }
                });
                for unit in char::decode_utf16(units) {
                    out.push(unit.unwrap_or_else(|_| {
                        whole = false;
                        char::REPLACEMENT_CHARACTER
                    }));
                }
            }
            Self::Utf32 => {
                whole = bytes.len().is_multiple_of(4);
                for unit in bytes.chunks_exact(4) {
                    let code = u32::from_be_bytes([unit[0], unit[1], unit[2], unit[3]]);
                    out.push(char::from_u32(code).unwrap_or_else(|| {
                        whole = false;
                        char::REPLACEMENT_CHARACTER
                    }));
                }
            }
        }
        whole
    }
}

fn malformed<T>(function: &str, charset: &str) -> Result<T> {
    exec_err!("[MALFORMED_CHARACTER_CODING] `{function}` met a value that the character set {charset} does not have")
}

fn encode(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, charsets) = (call.text(0)?, call.text(1)?);
    binaries(call.rows, |row, out| {
        let (text, name) = (some!(source.get(row)), some!(charsets.get(row)));
        if Charset::named(name)?.encode(text, out) { Ok(Some(())) } else { malformed("encode", name) }
    })
}

fn decode(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, charsets) = (call.bytes(0)?, call.text(1)?);
    texts(call.rows, |row, out| {
        let (bytes, name) = (some!(source.get(row)), some!(charsets.get(row)));
        if Charset::named(name)?.decode(bytes, out) { Ok(Some(())) } else { malformed("decode", name) }
    })
}

fn hex_type(types: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    match types.first() {
        Some(t) if t.is_nested() => datafusion::common::plan_err!(
            "[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] `hex` takes BIGINT, STRING or BINARY, not {t}"
        ),
        _ => Ok(DataType::Utf8),
    }
}

/// The bits of a BIGINT in two's complement, without leading zeros.
fn bin(call: &Call<'_>) -> Result<ArrayRef> {
    let source = call.long(0)?;
    texts(call.rows, |row, out| {
        std::fmt::Write::write_fmt(out, format_args!("{:b}", some!(source.get(row))))?;
        Ok(Some(()))
    })
}

/// The functions of this group.
pub(super) fn functions() -> Vec<Function> {
    let (text, bytes) = (Kind::Text, Kind::Bytes);
    vec![
        Function::new("bin", &[Kind::Long], DataType::Utf8, bin),
        Function::new("base64", &[bytes], DataType::Utf8, base64),
        Function::new("unbase64", &[text], DataType::Binary, |c| unbase64(c, !c.ansi))
            .fails_on(&[0])
            .nulls(Nulls::Possible),
        Function::new("hex", &[Kind::Any], DataType::Utf8, hex).returns_by(hex_type),
        Function::new("unhex", &[text], DataType::Binary, unhex).nulls(Nulls::Possible),
        Function::new("chr", &[Kind::Long], DataType::Utf8, chr).aliases(&["char"]),
        Function::new("encode", &[text, text], DataType::Binary, encode).fails_on(&[0, 1]),
        Function::new("decode", &[bytes, text], DataType::Utf8, decode).fails_on(&[0, 1]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_reads_back_what_it_writes_and_skips_foreign_characters() {
        for bytes in [b"".as_slice(), b"a", b"ab", b"abc", b"\xff\x00\xfe\x01"] {
            let mut text = String::new();
            write_base64(bytes, &mut text);
            let mut back = Vec::new();
            assert_eq!(read_base64(&text, &mut back), Some(()), "{text}");
            assert_eq!(back, bytes);
        }
        let mut out = Vec::new();
        assert_eq!(read_base64("YW\r\nJj", &mut out), Some(()));
        assert_eq!(out, b"abc");
        for bad in ["Y", "YWJjY", "YW=Jj", "YWJj="] {
            assert_eq!(read_base64(bad, &mut Vec::new()), None, "{bad}");
        }
    }

    #[test]
    fn charsets_say_when_a_character_does_not_fit() {
        let mut out = Vec::new();
        assert!(Charset::Utf16.encode("aé", &mut out));
        assert_eq!(out, [0xFE, 0xFF, 0, 97, 0, 0xE9]);
        assert!(!Charset::Ascii.encode("é", &mut Vec::new()));
        assert!(!Charset::Utf8.decode(b"\xff", &mut String::new()));
    }
}
