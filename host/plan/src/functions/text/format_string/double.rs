//! Doubles in the forms `%f`, `%e` and `%g`.
//!
//! Java rounds half up on the shortest decimal text of a double, so `%.2f` of 1.005 is 1.01. Source: the documentation of
//! Java's `Formatter`, and what Spark 4.3 gives.

/// The letter of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Fixed,
    Scientific,
    /// Whichever of the two is the shorter, with so many digits in all.
    General,
}

/// `[flags][width][.precision]letter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DoubleFormat {
    form: Form,
    precision: usize,
    width: usize,
    is_left: bool,
    has_zeros: bool,
    has_groups: bool,
    /// What stands before a number that is not negative.
    sign: Option<char>,
    in_brackets: bool,
}

impl DoubleFormat {
    /// The format; `None` when it is none of a double or has what is not known here.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let form = match text.chars().last()? {
            'f' => Form::Fixed,
            'e' => Form::Scientific,
            'g' => Form::General,
            _ => return None,
        };
        let text = &text[..text.len() - 1];
        let flags = text.find(|c| !matches!(c, '-' | '+' | ' ' | '0' | ',' | '(')).unwrap_or(text.len());
        let (flags, sizes) = text.split_at(flags);
        let (width, precision) = match sizes.split_once('.') {
            Some((width, precision)) => (width, precision.parse().ok()?),
            None => (sizes, 6),
        };
        let has = |flag| flags.contains(flag);
        let clash = (has('-') && has('0')) || (has('+') && has(' ')) || (has(',') && form == Form::Scientific);
        let width = if width.is_empty() { 0 } else { width.parse().ok()? };
        let needs_width = has('-') || has('0');
        if clash || (needs_width && width == 0) {
            return None;
        }
        let sign = if has('+') { Some('+') } else { has(' ').then_some(' ') };
        Some(Self {
            form,
            precision,
            width,
            is_left: has('-'),
            has_zeros: has('0'),
            has_groups: has(','),
            sign,
            in_brackets: has('('),
        })
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn is_left(&self) -> bool {
        self.is_left
    }

    /// A number in its place.
    pub(super) fn write(&self, value: f64) -> String {
        let is_negative = value.is_sign_negative() && !value.is_nan();
        let (before, behind) = match (is_negative, self.in_brackets, self.sign) {
            (true, true, _) => ("(".to_owned(), ")"),
            (true, false, _) => ("-".to_owned(), ""),
            (false, _, Some(sign)) if !value.is_nan() => (sign.to_string(), ""),
            _ => (String::new(), ""),
        };
        let number = match value.abs() {
            value if value.is_nan() => "NaN".to_owned(),
            value if value.is_infinite() => "Infinity".to_owned(),
            value => self.digits(&Decimal::of(value)),
        };
        let missing = self.width.saturating_sub(before.len() + number.len() + behind.len());
        if self.is_left {
            return before + &number + behind + &" ".repeat(missing);
        }
        if self.has_zeros && value.is_finite() {
            return before + &"0".repeat(missing) + &number + behind;
        }
        " ".repeat(missing) + &before + &number + behind
    }

    fn digits(&self, value: &Decimal) -> String {
        match self.form {
            Form::Fixed => self.grouped(value.fixed(self.precision)),
            Form::Scientific => value.scientific(self.precision),
            Form::General => {
                let precision = self.precision.max(1);
                let exponent = value.rounded(precision).exponent;
                let places = i64::try_from(precision).unwrap_or(i64::MAX) - 1 - exponent;
                match usize::try_from(places) {
                    Ok(places) if exponent >= -4 => self.grouped(value.fixed(places)),
                    _ => value.scientific(precision - 1),
                }
            }
        }
    }

    fn grouped(&self, number: String) -> String {
        if !self.has_groups {
            return number;
        }
        let whole = number.find('.').unwrap_or(number.len());
        let mut grouped = String::with_capacity(number.len() + whole / 3);
        for (at, digit) in number.char_indices() {
            if at > 0 && at < whole && (whole - at).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        grouped
    }
}

/// `d.ddd… × 10^exponent`, with the fewest digits that tell the double from others.
#[derive(Debug)]
struct Decimal {
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    fn of(value: f64) -> Self {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        Self {
            digits: digits.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect(),
            exponent: exponent.parse().unwrap_or(0),
        }
    }

    /// With so many digits at most, half up.
    fn rounded(&self, digits: usize) -> Self {
        let mut kept: Vec<u8> = self.digits.iter().copied().take(digits).collect();
        let mut exponent = self.exponent;
        if self.digits.get(digits).is_some_and(|next| *next >= 5) {
            match kept.iter().rposition(|digit| *digit < 9) {
                Some(at) => {
                    kept[at] += 1;
                    kept[at + 1..].fill(0);
                }
                None => {
                    kept.fill(0);
                    kept.insert(0, 1);
                    exponent += 1;
                }
            }
        }
        Self { digits: kept, exponent }
    }

    /// With so many digits behind the point.
    fn fixed(&self, places: usize) -> String {
        let wanted = self.exponent + 1 + i64::try_from(places).unwrap_or(i64::MAX / 2);
        let rounded = match usize::try_from(wanted) {
            Ok(digits) => self.rounded(digits),
            Err(_) => Self { digits: Vec::new(), exponent: 0 },
        };
        let digit = |place: i64| {
            let index = usize::try_from(rounded.exponent - place).ok();
            char::from(b'0' + index.and_then(|index| rounded.digits.get(index)).copied().unwrap_or(0))
        };
        let mut text: String = (0..=rounded.exponent.max(0)).rev().map(digit).collect();
        if places > 0 {
            text.push('.');
            text.extend((1..=places).map(|place| digit(-i64::try_from(place).unwrap_or(i64::MAX))));
        }
        text
    }

    fn scientific(&self, places: usize) -> String {
        let rounded = self.rounded(places + 1);
        let digit = |index: usize| char::from(b'0' + rounded.digits.get(index).copied().unwrap_or(0));
        let mut text = digit(0).to_string();
        if places > 0 {
            text.push('.');
            text.extend((1..=places).map(digit));
        }
        let sign = if rounded.exponent < 0 { '-' } else { '+' };
        text + &format!("e{sign}{:02}", rounded.exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_spark_writes_them() {
        for (format, value, written) in [
            (".2f", 1.005, "1.01"),
            (".2f", 2.675, "2.68"),
            (".0f", 0.5, "1"),
            (".0f", -0.5, "-1"),
            (".0f", 2.5, "3"),
            (".3f", 1e20, "100000000000000000000.000"),
            ("f", 1e-7, "0.000000"),
            (".2f", f64::NAN, "NaN"),
            ("012.2f", f64::NEG_INFINITY, "   -Infinity"),
            ("8.2f", 1.005, "    1.01"),
            ("-8.2f", 1.005, "1.01    "),
            ("+.1f", 0.25, "+0.3"),
            (",.2f", 1_234_567.005, "1,234,567.01"),
            (".20f", 0.1, "0.10000000000000000000"),
            (".2f", f64::from(2.675_f32), "2.67"),
            (".1f", -0.04, "-0.0"),
            ("08.2f", 1.005, "00001.01"),
            ("(.2f", -1.005, "(1.01)"),
            (".1f", 99.96, "100.0"),
            (".2e", 1.005, "1.01e+00"),
            (".1e", 0.000_099_9, "1.0e-04"),
            ("e", 0.0, "0.000000e+00"),
            ("g", 0.0, "0.00000"),
            ("g", 1.005, "1.00500"),
            (".3g", 123_456.0, "1.23e+05"),
            ("g", 0.000_01, "1.00000e-05"),
            ("g", 0.5, "0.500000"),
        ] {
            assert_eq!(DoubleFormat::parse(format).unwrap().write(value), written, "%{format} of {value}");
        }
        for unknown in ["d", "#.2f", "-f", "-08.2f", "+ f", ".f", "x.2f", ""] {
            assert_eq!(DoubleFormat::parse(unknown), None, "{unknown}");
        }
    }
}
