//! Reading dates from text without a pattern, as casts and typed literals do.
//!
//! Where it stands: implicit casts of arguments, `to_date`, `DATE'…'`. Timestamps are read by the casts' own reader.
//!
//! Rule of its life: a text is a value or it is not; the caller decides between NULL and an error.

use super::calendar::checked_days;

/// Blanks and control characters at both ends do not count.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ' || c == '\u{7f}')
}

/// Takes `least` to `most` digits from the front.
fn digits(text: &str, least: usize, most: usize) -> Option<(i64, usize, &str)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    if count < least || count > most {
        return None;
    }
    Some((text[..count].parse().ok()?, count, &text[count..]))
}

/// The date at the front, and what follows.
fn leading_date(text: &str) -> Option<(i64, &str)> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (year, _, rest) = digits(rest, 4, 7)?;
    let (mut month, mut day, mut rest) = (1, 1, rest);
    if let Some(after) = rest.strip_prefix('-') {
        (month, _, rest) = digits(after, 1, 2)?;
        if let Some(after) = rest.strip_prefix('-') {
            (day, _, rest) = digits(after, 1, 2)?;
        } else if !rest.is_empty() {
            return None;
        }
    } else if !rest.is_empty() {
        return None;
    }
    Some((checked_days(sign * year, month, day)?, rest))
}

/// `[+-]yyyy[-[m]m[-[d]d]]`, after a full date anything that starts with a blank or `T`.
pub(crate) fn date(text: &str) -> Option<i32> {
    let (days, rest) = leading_date(trim(text))?;
    if !rest.is_empty() && !rest.starts_with([' ', 'T']) {
        return None;
    }
    i32::try_from(days).ok()
}

/// Microseconds of the digits after a point; further digits are cut.
pub(crate) fn fraction(digits: &str) -> i64 {
    let mut micros = 0;
    let mut bytes = digits.bytes();
    for _ in 0..6 {
        micros = micros * 10 + bytes.next().map_or(0, |b| i64::from(b - b'0'));
    }
    micros
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_short_forms_and_with_a_time_behind() {
        for text in ["2024-01-05", "2024-1-5", " 2024-01-05\n", "2024-01-05T10:00", "2024-01-05 whatever"] {
            assert_eq!(date(text), Some(19_727), "{text}");
        }
        assert_eq!(date("2024"), Some(19_723));
        assert_eq!(date("1969-12-31"), Some(-1));
        for text in ["", "24-01-05", "2024-13-01", "2023-02-29", "2024-01-05x", "2024/01/05", "2024-01x", "日本"] {
            assert_eq!(date(text), None, "{text}");
        }
    }
}
