//! Numbers in other bases: `conv`.
//!
//! Where it stands: a group of [`Function`]s.
//!
//! Rule of its life: the number is 64 bits without a sign, read up to the first character that is no digit of its base.
//! Source: Spark's `NumberConverter`.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};

use super::super::column::texts;
use super::super::function::{Call, Function, Nulls, some};
use super::super::kind::Kind;

/// The value of a text in a base, and whether it has a minus; `None` when it does not fit 64 bits.
fn read(text: &str, base: u32) -> (bool, Option<u64>) {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let mut value = Some(0_u64);
    for digit in digits.chars().map_while(|digit| digit.to_digit(base)) {
        value = value.and_then(|value| value.checked_mul(u64::from(base))?.checked_add(u64::from(digit)));
    }
    (is_negative, value)
}

fn write(out: &mut String, mut value: u64, base: u32) {
    let mut digits = Vec::new();
    loop {
        // A digit is less than its base, and so are both less than 36.
        let digit = char::from_digit((value % u64::from(base)) as u32, base).unwrap_or('0');
        digits.push(digit.to_ascii_uppercase());
        value /= u64::from(base);
        if value == 0 {
            break;
        }
    }
    out.extend(digits.iter().rev());
}

/// The text in base `to` of what `text` is in base `from`, with a sign if `to` is negative.
fn convert(text: &str, from: i32, to: i32, ansi: bool, out: &mut String) -> Result<Option<()>> {
    let is_base = |base: u32| (2..=36).contains(&base);
    let text = text.trim_matches(' ');
    let (from, to, is_signed) = (from.unsigned_abs(), to.unsigned_abs(), to < 0);
    if text.is_empty() || !is_base(from) || !is_base(to) {
        return Ok(None);
    }
    let (mut is_negative, value) = read(text, from);
    let mut value = match value {
        Some(value) => value,
        None if ansi => return exec_err!("[ARITHMETIC_OVERFLOW] '{text}' in base {from} has more than 64 bits"),
        None => u64::MAX,
    };
    let is_large = value > i64::MAX as u64;
    if is_negative && !is_signed {
        value = if is_large { u64::MAX } else { value.wrapping_neg() };
    }
    if is_signed && is_large {
        value = value.wrapping_neg();
        is_negative = true;
    }
    if is_negative && is_signed {
        out.push('-');
    }
    write(out, value, to);
    Ok(Some(()))
}

fn conv(call: &Call<'_>) -> Result<ArrayRef> {
    let (numbers, from, to) = (call.text(0)?, call.int(1)?, call.int(2)?);
    texts(call.rows, |row, out| {
        let (number, from, to) = (some!(numbers.get(row)), some!(from.get(row)), some!(to.get(row)));
        if from < 0 { Ok(None) } else { convert(number, from, to, call.ansi, out) }
    })
}

/// The functions of this group.
pub(super) fn functions() -> Vec<Function> {
    vec![
        Function::new("conv", &[Kind::Text, Kind::Int, Kind::Int], DataType::Utf8, conv)
            .fails_on(&[0])
            .nulls(Nulls::Possible),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_change_their_base_as_in_spark() {
        for (text, from, to, expected) in [
            ("100", 2, 10, Some("4")),
            ("-10", 16, -10, Some("-16")),
            ("-10", 16, 10, Some("18446744073709551600")),
            ("zz", 36, 10, Some("1295")),
            ("12x", 10, 10, Some("12")),
            ("x", 10, 16, Some("0")),
            (" 7 ", 8, 2, Some("111")),
            ("FFFFFFFFFFFFFFFF", 16, -10, Some("-1")),
            ("99999999999999999999", 10, 16, Some("FFFFFFFFFFFFFFFF")),
            ("", 10, 16, None),
            ("1", 1, 10, None),
            ("1", 10, 37, None),
        ] {
            let mut out = String::new();
            let found = convert(text, from, to, false, &mut out).unwrap().map(|()| out.as_str());
            assert_eq!(found, expected, "conv('{text}', {from}, {to})");
        }
        let overflow = convert("99999999999999999999", 10, 16, true, &mut String::new()).unwrap_err();
        assert!(overflow.to_string().contains("ARITHMETIC_OVERFLOW"));
    }
}
