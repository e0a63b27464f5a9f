//! Numbers as formatted text: `format_number`.
//!
//! Where it stands: a group of [`Function`]s.
//!
//! Rule of its life: digits are those of the exact value, ties round to the even digit, thousands are grouped by commas.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use datafusion::common::{Result, exec_err};

use super::super::column::texts;
use super::super::function::{Call, Function, Nulls, some};
use super::super::kind::Kind;

/// How a number is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shape {
    prefix: String,
    suffix: String,
    least_whole: usize,
    least_fraction: usize,
    most_fraction: usize,
    group: usize,
    percent: bool,
}

impl Shape {
    /// Commas between thousands and this many decimals.
    fn decimals(count: usize) -> Self {
        Self {
            prefix: String::new(),
            suffix: String::new(),
            least_whole: 1,
            least_fraction: count,
            most_fraction: count,
            group: 3,
            percent: false,
        }
    }

    /// Reads a pattern such as `#,##0.00`.
    fn parse(pattern: &str) -> Result<Self> {
        let positive = pattern.split(';').next().unwrap_or(pattern);
        let is_digit = |c: char| matches!(c, '#' | '0' | ',' | '.');
        let start = positive.find(is_digit).unwrap_or(positive.len());
        let end = positive.rfind(is_digit).map_or(start, |at| at + 1);
        let (whole, fraction) = match positive[start..end].split_once('.') {
            Some((whole, fraction)) => (whole, fraction),
            None => (&positive[start..end], ""),
        };
        let bad =
            positive[start..end].contains(|c| !is_digit(c)) || fraction.contains(['.', ',']) || fraction.contains("#0");
        if bad || start == end {
            return exec_err!(
                "[INVALID_PARAMETER_VALUE.PATTERN] '{pattern}' is not a number pattern such as '#,##0.00'"
            );
        }
        let unquoted = |text: &str| text.replace('\'', "");
        let (mut least_whole, mut least_fraction) = (whole.matches('0').count(), fraction.matches('0').count());
        // With a point and no `0`, one digit is shown always: the last in front of the point, or the first behind it.
        if least_whole + least_fraction == 0 && positive[start..end].contains('.') {
            if whole.contains('#') { least_whole = 1 } else { least_fraction = usize::from(fraction.contains('#')) }
        }
        Ok(Self {
            prefix: unquoted(&positive[..start]),
            suffix: unquoted(&positive[end..]),
            least_whole,
            least_fraction,
            most_fraction: fraction.len(),
            group: whole.rfind(',').map_or(0, |at| whole.len() - at - 1),
            percent: positive[end..].contains('%') || positive[..start].contains('%'),
        })
    }

    /// Appends a number given as plain decimal digits, already rounded to `most_fraction` decimals.
    fn write(&self, digits: &str, out: &mut String) {
        let (negative, digits) = match digits.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, digits),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let whole = whole.trim_start_matches('0');
        let mut fraction = fraction;
        while fraction.len() > self.least_fraction && fraction.ends_with('0') {
            fraction = &fraction[..fraction.len() - 1];
        }
        if negative {
            out.push('-');
        }
        out.push_str(&self.prefix);
        // No number is without a digit.
        let least_whole = self.least_whole.max(usize::from(fraction.is_empty()));
        let missing = least_whole.saturating_sub(whole.len());
        let total = missing + whole.len();
        for (index, digit) in std::iter::repeat_n('0', missing).chain(whole.chars()).enumerate() {
            if index > 0 && self.group > 0 && (total - index) % self.group == 0 {
                out.push(',');
            }
            out.push(digit);
        }
        if !fraction.is_empty() {
            out.push('.');
            out.push_str(fraction);
        }
        out.push_str(&self.suffix);
    }
}

/// The exact digits of a decimal, rounded half to even.
fn decimal_digits(value: i128, scale: usize, decimals: usize) -> String {
    let mut digits = value.unsigned_abs();
    let mut scale = scale;
    if scale > decimals {
        let unit = 10_u128.checked_pow(u32::try_from(scale - decimals).unwrap_or(u32::MAX)).unwrap_or(u128::MAX);
        let (whole, rest) = (digits / unit, digits % unit);
        let up = rest > unit - rest || (rest == unit - rest && whole % 2 == 1);
        digits = whole + u128::from(up);
        scale = decimals;
    }
    let text = format!("{digits:0width$}", width = scale + 1);
    let (whole, fraction) = text.split_at(text.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{whole}.{fraction}{}", "0".repeat(decimals - scale))
}

fn format_number(call: &Call<'_>) -> Result<ArrayRef> {
    let (source, stride) = call.raw(0);
    let (shapes, _) = call.raw(1);
    let by_pattern = matches!(shapes.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let patterns = if by_pattern { Kind::Text } else { Kind::Int }.canonical(shapes, call.rules())?;
    let pattern_stride = call.raw(1).1;
    let source = match source.data_type() {
        t if t.is_integer() => Kind::Long.canonical(source, call.rules())?,
        DataType::Decimal128(_, _) => std::sync::Arc::clone(source),
        _ => Kind::Double.canonical(source, call.rules())?,
    };
    texts(call.rows, |row, out| {
        let (index, at) = (row * stride, row * pattern_stride);
        if source.is_null(index) || patterns.is_null(at) {
            return Ok(None);
        }
        let shape = if by_pattern {
            match patterns.as_string::<i32>().value(at) {
                "" => Shape::decimals(0),
                pattern => Shape::parse(pattern)?,
            }
        } else {
            let count = patterns.as_primitive::<arrow::datatypes::Int32Type>().value(at);
            // More decimals than any number has would only make memory.
            Shape::decimals(some!(usize::try_from(count).ok()).min(400))
        };
        let scaled = if shape.percent { 2 } else { 0 };
        let digits = match source.data_type() {
            DataType::Int64 => {
                let value = i128::from(source.as_primitive::<Int64Type>().value(index));
                decimal_digits(value * 10_i128.pow(scaled), 0, shape.most_fraction)
            }
            DataType::Decimal128(_, scale) => {
                let value = source.as_primitive::<Decimal128Type>().value(index);
                let value = value.checked_mul(10_i128.pow(scaled)).unwrap_or(value);
                decimal_digits(value, usize::try_from(*scale).unwrap_or(0), shape.most_fraction)
            }
            _ => {
                let value = source.as_primitive::<Float64Type>().value(index) * if shape.percent { 100.0 } else { 1.0 };
                if !value.is_finite() {
                    out.push_str(if value.is_nan() {
                        "NaN"
                    } else if value > 0.0 {
                        "∞"
                    } else {
                        "-∞"
                    });
                    return Ok(Some(()));
                }
                format!("{value:.*}", shape.most_fraction)
            }
        };
        shape.write(&digits, out);
        Ok(Some(()))
    })
}

/// The functions of this group.
pub(super) fn functions() -> Vec<Function> {
    vec![
        Function::new("format_number", &[Kind::Number, Kind::Any], DataType::Utf8, format_number)
            .fails_on(&[1])
            .nulls(Nulls::Possible),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(shape: &Shape, digits: &str) -> String {
        let mut out = String::new();
        shape.write(digits, &mut out);
        out
    }

    #[test]
    fn thousands_are_grouped_and_ties_go_to_the_even_digit() {
        assert_eq!(shown(&Shape::decimals(2), &decimal_digits(123_456_785, 3, 2)), "123,456.78");
        assert_eq!(shown(&Shape::decimals(2), &decimal_digits(123_456_775, 3, 2)), "123,456.78");
        assert_eq!(shown(&Shape::decimals(0), &format!("{:.0}", -1_234_567.5)), "-1,234,568");
        assert_eq!(shown(&Shape::decimals(4), &decimal_digits(-5, 0, 4)), "-5.0000");
    }

    #[test]
    fn patterns_say_how_many_digits_there_are() {
        assert_eq!(shown(&Shape::parse("#,##0.0#").unwrap(), "1234.50"), "1,234.5");
        assert_eq!(shown(&Shape::parse("$#.00 x").unwrap(), "0.50"), "$.50 x");
        assert!(Shape::parse("abc").is_err());
    }

    #[test]
    fn a_pattern_without_a_zero_shows_a_digit_still() {
        for (pattern, digits, expected) in [
            ("#,###", "0", "0"),
            ("#,###", "1234", "1,234"),
            ("#.##", "0.25", "0.25"),
            ("#.##", "0.00", "0"),
            ("#.##", "12.50", "12.5"),
            (".##", "0.25", ".25"),
            (".##", "0.00", ".0"),
            ("#.00", "0.50", ".50"),
        ] {
            assert_eq!(shown(&Shape::parse(pattern).unwrap(), digits), expected, "{digits} as {pattern}");
        }
    }
}
