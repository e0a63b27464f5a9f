//! Patterns of dates and times such as `yyyy-MM-dd HH:mm:ss.SSS`: compiled once, then written or read per row.
//!
//! Where it stands: under `date_format`, `to_date`, `to_timestamp`, `unix_timestamp`, `from_unixtime`.
//!
//! Rule of its life: the letters and their repetition follow Java's `DateTimeFormatter` with the restrictions Spark puts
//! on it; an unknown letter or length is an error of the pattern, a text that does not fit is `None`.
//!
//! It writes English names only and knows no week-based fields, as Spark does not.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use datafusion::common::{Result, exec_err};

use super::calendar::{DAY, HOUR, MINUTE, SECOND, checked_days, civil, day_of_year, days_of, weekday};
use super::format::write_year;
use super::parse::fraction;
use super::zone::{Zone, zone};

/// English names of the months.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// English names of the days, Monday first.
pub(crate) const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Field(char, usize),
    Optional(Vec<Part>),
}

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
    has_era: bool,
}

/// What a pattern is for; reading allows fewer letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Values to text.
    Write,
    /// Text to values.
    Read,
}

impl Pattern {
    /// Compiles a pattern, or says what is wrong with it.
    pub(crate) fn compile(pattern: &str, purpose: Use) -> Result<Self> {
        let mut chars = pattern.chars().peekable();
        let parts = compile_parts(&mut chars, pattern, purpose, 0)?;
        Ok(Self { parts, has_era: pattern.contains('G') })
    }

    /// Appends an instant, shown in UTC.
    pub(crate) fn write(&self, micros: i64, out: &mut String) {
        self.write_at(micros, 0, out);
    }

    /// Appends an instant, shown in a zone that is `offset` seconds ahead of UTC then.
    pub(crate) fn write_at(&self, micros: i64, offset: i64, out: &mut String) {
        let local = micros.saturating_add(offset * SECOND);
        let days = local.div_euclid(DAY);
        let (year, month, day) = civil(days);
        let shown = Shown { days, year, month, day, time: local.rem_euclid(DAY), era: self.has_era, offset };
        shown.write_all(&self.parts, out);
    }

    /// Whether it has letters that write a zone by its name, not by its offset.
    pub(crate) fn names_zone(&self) -> bool {
        fn names(parts: &[Part]) -> bool {
            parts.iter().any(|part| match part {
                Part::Field(letter, count) => matches!(letter, 'V' | 'z' | 'O') || (*letter == 'Z' && *count == 4),
                Part::Optional(inner) => names(inner),
                Part::Literal(_) => false,
            })
        }
        names(&self.parts)
    }

    /// The instant of a text, `None` when the text does not fit.
    pub(crate) fn read(&self, text: &str) -> Option<i64> {
        self.read_in(text, Zone::Fixed(0))
    }

    /// The instant of a text, in `zone` where the text does not say its own.
    pub(crate) fn read_in(&self, text: &str, zone: Zone) -> Option<i64> {
        let mut fields = Fields::default();
        let rest = read_all(&self.parts, text, &mut fields, 0)?;
        if rest.is_empty() { fields.resolve(self.has_era, zone) } else { None }
    }
}

fn compile_parts(chars: &mut Peekable<Chars<'_>>, pattern: &str, purpose: Use, depth: usize) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let mut literal = String::new();
                let mut closed = false;
                while let Some(c) = chars.next() {
                    if c != '\'' {
                        literal.push(c);
                    } else if chars.next_if_eq(&'\'').is_some() {
                        literal.push('\'');
                    } else {
                        closed = true;
                        break;
                    }
                }
                if !closed {
                    return exec_err!(
                        "[INVALID_DATETIME_PATTERN.ILLEGAL_CHARACTER] a quote in the datetime pattern `{pattern}` is not closed"
                    );
                }
                if literal.is_empty() {
                    literal.push('\'');
                }
                parts.push(Part::Literal(literal));
            }
            'A'..='Z' | 'a'..='z' => {
                let mut count = 1;
                while chars.next_if_eq(&c).is_some() {
                    count += 1;
                }
                check_field(c, count, pattern, purpose)?;
                parts.push(Part::Field(if c == 'L' { 'M' } else { c }, count));
            }
            '[' if depth < 8 => parts.push(Part::Optional(compile_parts(chars, pattern, purpose, depth + 1)?)),
            ']' if depth > 0 => return Ok(parts),
            '[' | ']' | '{' | '}' | '#' => {
                return exec_err!(
                    "[INVALID_DATETIME_PATTERN.ILLEGAL_CHARACTER] the character '{c}' is not allowed in the datetime \
                     pattern `{pattern}`"
                );
            }
            other => parts.push(Part::Literal(other.to_string())),
        }
    }
    // As in Java, an optional section may be left open at the end.
    Ok(parts)
}

fn check_field(letter: char, count: usize, pattern: &str, purpose: Use) -> Result<()> {
    if matches!(letter, 'Y' | 'W' | 'w' | 'u' | 'e' | 'c') {
        return exec_err!(
            "[INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_WEEK_BASED_PATTERN] the week-based letter '{letter}' of the \
             datetime pattern `{pattern}` is not supported; use the function extract instead"
        );
    }
    let most = match letter {
        'y' => 6,
        'G' | 'M' | 'L' | 'E' | 'Q' | 'q' | 'O' => 4,
        'z' => 4,
        'd' | 'H' | 'h' | 'K' | 'k' | 'm' | 's' => 2,
        'D' => 3,
        'S' => 9,
        'F' | 'a' => 1,
        'V' => 2,
        'X' | 'x' | 'Z' => 5,
        _ => 0,
    };
    let readable = purpose == Use::Write || !matches!(letter, 'E' | 'F' | 'Q' | 'q');
    if most == 0 || !readable {
        return exec_err!(
            "[INVALID_DATETIME_PATTERN.ILLEGAL_CHARACTER] the letter '{letter}' of the datetime pattern `{pattern}` is \
             not supported{}",
            if readable { "" } else { " for reading" }
        );
    }
    let exact = match letter {
        'V' => count == 2,
        'O' => count == 1 || count == 4,
        _ => true,
    };
    if count > most || !exact {
        return exec_err!(
            "[INVALID_DATETIME_PATTERN.LENGTH] the letter '{letter}' is repeated {count} times in the datetime pattern \
             `{pattern}`"
        );
    }
    Ok(())
}

/// A value about to be written.
struct Shown {
    days: i64,
    year: i64,
    month: i64,
    day: i64,
    time: i64,
    era: bool,
    /// Seconds ahead of UTC.
    offset: i64,
}

impl Shown {
    fn write_all(&self, parts: &[Part], out: &mut String) {
        for part in parts {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Optional(parts) => self.write_all(parts, out),
                Part::Field(letter, count) => self.write_field(*letter, *count, out),
            }
        }
    }

    fn write_field(&self, letter: char, count: usize, out: &mut String) {
        let hour = self.time / HOUR;
        let number = match letter {
            'd' => self.day,
            'D' => day_of_year(self.days),
            'F' => (self.day - 1) % 7 + 1,
            'H' => hour,
            'k' => (hour + 23) % 24 + 1,
            'K' => hour % 12,
            'h' => (hour + 11) % 12 + 1,
            'm' => self.time % HOUR / MINUTE,
            's' => self.time % MINUTE / SECOND,
            'M' if count <= 2 => self.month,
            'Q' | 'q' if count <= 2 => (self.month - 1) / 3 + 1,
            _ => return self.write_text(letter, count, out),
        };
        // Writing to a String cannot fail.
        let _ = write!(out, "{number:0count$}");
    }

    fn write_text(&self, letter: char, count: usize, out: &mut String) {
        match letter {
            'y' => {
                let year = if self.era && self.year <= 0 { 1 - self.year } else { self.year };
                if count == 2 {
                    let _ = write!(out, "{:02}", year.rem_euclid(100));
                } else {
                    write_year(year, count, out);
                }
            }
            'M' => {
                let name = MONTHS[usize::try_from(self.month - 1).unwrap_or(0) % 12];
                out.push_str(if count == 3 { &name[..3] } else { name });
            }
            'E' => {
                let name = WEEKDAYS[usize::try_from(weekday(self.days)).unwrap_or(0) % 7];
                out.push_str(if count <= 3 { &name[..3] } else { name });
            }
            'Q' | 'q' => {
                let quarter = (self.month - 1) / 3 + 1;
                if count == 3 {
                    let _ = write!(out, "Q{quarter}");
                } else {
                    out.push_str(["1st", "2nd", "3rd", "4th"][usize::try_from(quarter - 1).unwrap_or(0) % 4]);
                    out.push_str(" quarter");
                }
            }
            'a' => out.push_str(if self.time < 12 * HOUR { "AM" } else { "PM" }),
            'S' => {
                let digits = format!("{:06}000", self.time % SECOND);
                out.push_str(&digits[..count.min(9)]);
            }
            'G' => out.push_str(match (self.year > 0, count) {
                (true, 4) => "Anno Domini",
                (true, _) => "AD",
                (false, 4) => "Before Christ",
                (false, _) => "BC",
            }),
            'V' => out.push_str("UTC"),
            'z' => out.push_str(if count == 4 { "Coordinated Universal Time" } else { "UTC" }),
            'O' => out.push_str("GMT"),
            'X' if self.offset == 0 => out.push('Z'),
            'X' | 'x' => self.write_offset(count, out),
            'Z' => match count {
                4 => out.push_str("GMT"),
                5 if self.offset == 0 => out.push('Z'),
                5 => self.write_offset(5, out),
                _ => self.write_offset(2, out),
            },
            _ => {}
        }
    }

    /// `+02` (with minutes where there are some), `+0200`, `+02:00`; the last two also with seconds where there are some.
    fn write_offset(&self, form: usize, out: &mut String) {
        let size = self.offset.abs();
        let (hours, minutes, seconds) = (size / 3600, size / 60 % 60, size % 60);
        let colon = if matches!(form, 3 | 5) { ":" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(out, "{}{hours:02}", if self.offset < 0 { '-' } else { '+' });
        if form > 1 || minutes != 0 {
            let _ = write!(out, "{colon}{minutes:02}");
        }
        if form > 3 && seconds != 0 {
            let _ = write!(out, "{colon}{seconds:02}");
        }
    }
}

/// What a text said.
#[derive(Debug, Clone, Default)]
struct Fields {
    year: Option<i64>,
    era_before: bool,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: Option<i64>,
    half_day_hour: Option<i64>,
    afternoon: Option<bool>,
    minute: i64,
    second: i64,
    micros: i64,
    zone: Option<String>,
}

impl Fields {
    fn resolve(&self, era: bool, elsewhere: Zone) -> Option<i64> {
        // Beyond any date, and small enough to compute with.
        let mut year = self.year.filter(|year| year.abs() < 6_000_000).or(self.year.is_none().then_some(1970))?;
        if era && self.era_before {
            year = 1 - year;
        }
        let days = match self.day_of_year {
            Some(day) if self.month.is_none() && self.day.is_none() => {
                let days = days_of(year, 1, 1) + day - 1;
                (day >= 1 && civil(days).0 == year).then_some(days)?
            }
            Some(day) => {
                let days = checked_days(year, self.month.unwrap_or(1), self.day.unwrap_or(1))?;
                (day_of_year(days) == day).then_some(days)?
            }
            None => checked_days(year, self.month.unwrap_or(1), self.day.unwrap_or(1))?,
        };
        let hour = match (self.hour, self.half_day_hour) {
            (Some(hour), Some(half)) if hour % 12 != half => return None,
            (Some(hour), _) => match self.afternoon {
                Some(afternoon) if afternoon != (hour >= 12) => return None,
                _ => hour,
            },
            (None, Some(half)) => half + if self.afternoon == Some(true) { 12 } else { 0 },
            (None, None) => match self.afternoon {
                Some(true) => 12,
                _ => 0,
            },
        };
        let local = days
            .checked_mul(DAY)?
            .checked_add(hour * HOUR + self.minute * MINUTE + self.second * SECOND + self.micros)?;
        match &self.zone {
            Some(name) => zone(name)?.to_utc(local),
            None => elsewhere.to_utc(local),
        }
    }
}

/// Whether the part is a number of fixed width, so that digits before it must be left for it.
fn fixed_width(part: &Part) -> Option<usize> {
    match part {
        Part::Field('y' | 'M' | 'd' | 'H' | 'h' | 'K' | 'k' | 'm' | 's', 2) => Some(2),
        Part::Field('D', 3) => Some(3),
        Part::Field('y', count) if *count >= 4 => None,
        _ => None,
    }
}

fn read_all<'t>(parts: &[Part], mut text: &'t str, fields: &mut Fields, reserved_after: usize) -> Option<&'t str> {
    for (index, part) in parts.iter().enumerate() {
        match part {
            Part::Literal(literal) => {
                let front = text.get(..literal.len())?;
                if !front.eq_ignore_ascii_case(literal) {
                    return None;
                }
                text = &text[literal.len()..];
            }
            Part::Optional(inner) => {
                let mut attempt = fields.clone();
                if let Some(rest) = read_all(inner, text, &mut attempt, 0) {
                    *fields = attempt;
                    text = rest;
                }
            }
            Part::Field(letter, count) => {
                let reserved: usize = parts[index + 1..].iter().map_while(fixed_width).sum::<usize>() + reserved_after;
                text = read_field(*letter, *count, text, reserved, fields)?;
            }
        }
    }
    Some(text)
}

/// Takes `least` to `most` digits, leaving `reserved` digits for the numbers that follow without a separator.
fn number(text: &str, least: usize, most: usize, reserved: usize) -> Option<(i64, usize, &str)> {
    let found = text.bytes().take_while(u8::is_ascii_digit).count();
    let count = if least == most { most } else { found.saturating_sub(reserved).min(most) };
    if count < least || count > found {
        return None;
    }
    Some((text[..count].parse().ok()?, count, &text[count..]))
}

fn within(value: i64, least: i64, most: i64) -> Option<i64> {
    (least..=most).contains(&value).then_some(value)
}

fn read_field<'t>(letter: char, count: usize, text: &'t str, reserved: usize, fields: &mut Fields) -> Option<&'t str> {
    let plain = || number(text, count, if count == 1 { 18 } else { count }, reserved);
    match letter {
        'y' => {
            if count == 2 {
                let (value, _, rest) = number(text, 2, 2, reserved)?;
                fields.year = Some(2000 + value);
                return Some(rest);
            }
            let (sign, digits) = match text.as_bytes().first()? {
                b'-' => (-1, &text[1..]),
                b'+' => (1, &text[1..]),
                _ => (1, text),
            };
            let (value, width, rest) = number(digits, count, 18, reserved)?;
            // A year that is longer than the pattern says so by its sign.
            let signed = digits.len() != text.len();
            if count >= 4 && width > count && !signed {
                return None;
            }
            fields.year = Some(sign * value);
            Some(rest)
        }
        'M' if count <= 2 => {
            let (value, _, rest) = plain()?;
            fields.month = Some(within(value, 1, 12)?);
            Some(rest)
        }
        'M' => {
            let (index, rest) = name(text, &MONTHS, if count == 3 { 3 } else { usize::MAX })?;
            fields.month = Some(index + 1);
            Some(rest)
        }
        'd' => {
            let (value, _, rest) = plain()?;
            fields.day = Some(within(value, 1, 31)?);
            Some(rest)
        }
        'D' => {
            let (value, _, rest) = number(text, count, if count == 1 { 18 } else { 3 }, reserved)?;
            fields.day_of_year = Some(within(value, 1, 366)?);
            Some(rest)
        }
        'H' => {
            let (value, _, rest) = plain()?;
            fields.hour = Some(within(value, 0, 23)?);
            Some(rest)
        }
        'k' => {
            let (value, _, rest) = plain()?;
            fields.hour = Some(within(value, 1, 24)? % 24);
            Some(rest)
        }
        'K' => {
            let (value, _, rest) = plain()?;
            fields.half_day_hour = Some(within(value, 0, 11)?);
            Some(rest)
        }
        'h' => {
            let (value, _, rest) = plain()?;
            fields.half_day_hour = Some(within(value, 1, 12)? % 12);
            Some(rest)
        }
        'm' => {
            let (value, _, rest) = plain()?;
            fields.minute = within(value, 0, 59)?;
            Some(rest)
        }
        's' => {
            let (value, _, rest) = plain()?;
            fields.second = within(value, 0, 59)?;
            Some(rest)
        }
        'S' => {
            let found = text.bytes().take_while(u8::is_ascii_digit).count().min(count);
            if found == 0 {
                return None;
            }
            fields.micros = fraction(&text[..found]);
            Some(&text[found..])
        }
        'a' => {
            let (index, rest) = name(text, &["AM", "PM"], usize::MAX)?;
            fields.afternoon = Some(index == 1);
            Some(rest)
        }
        'G' => {
            let names: &[&str] = if count == 4 { &["Anno Domini", "Before Christ"] } else { &["AD", "BC"] };
            let (index, rest) = name(text, names, usize::MAX)?;
            fields.era_before = index == 1;
            Some(rest)
        }
        _ => read_zone(letter, count, text, fields),
    }
}

/// Which of the names, cut to `length`, stands at the front, whatever its case.
fn name<'t>(text: &'t str, names: &[&str], length: usize) -> Option<(i64, &'t str)> {
    for (index, name) in names.iter().enumerate() {
        let name = &name[..name.len().min(length)];
        if text.get(..name.len()).is_some_and(|front| front.eq_ignore_ascii_case(name)) {
            return Some((i64::try_from(index).ok()?, &text[name.len()..]));
        }
    }
    None
}

fn read_zone<'t>(letter: char, count: usize, text: &'t str, fields: &mut Fields) -> Option<&'t str> {
    let zulu = letter == 'X' || (letter == 'Z' && count == 5);
    if zulu && let Some(rest) = text.strip_prefix('Z') {
        fields.zone = Some("Z".to_string());
        return Some(rest);
    }
    let end = match letter {
        'V' | 'z' => text
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '+' | '-' | ':')))
            .unwrap_or(text.len()),
        'O' => text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | ':'))).unwrap_or(text.len()),
        _ if text.starts_with(['+', '-']) => {
            1 + text[1..].find(|c: char| !(c.is_ascii_digit() || c == ':')).unwrap_or(text.len() - 1)
        }
        _ if letter == 'Z' && count == 4 => {
            text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | ':'))).unwrap_or(text.len())
        }
        _ => return None,
    };
    if end == 0 {
        return None;
    }
    fields.zone = Some(text[..end].to_string());
    Some(&text[end..])
}

#[cfg(test)]
mod tests {
    use super::super::calendar::days_of;
    use super::*;

    fn write(pattern: &str, micros: i64) -> String {
        let mut out = String::new();
        Pattern::compile(pattern, Use::Write).unwrap().write(micros, &mut out);
        out
    }

    fn read(pattern: &str, text: &str) -> Option<i64> {
        Pattern::compile(pattern, Use::Read).unwrap().read(text)
    }

    #[test]
    fn fields_are_written_by_letter_and_count() {
        let noon = days_of(2024, 2, 5) * DAY + 12 * HOUR + 3 * MINUTE + 4 * SECOND + 56_789;
        for (pattern, text) in [
            ("yyyy-MM-dd HH:mm:ss.SSS", "2024-02-05 12:03:04.056"),
            ("yy/M/d h:m:s a", "24/2/5 12:3:4 PM"),
            ("EEE, d MMM y 'at' K 'o''clock'", "Mon, 5 Feb 2024 at 0 o'clock"),
            ("EEEE MMMM D DDD Q QQQ QQQQ", "Monday February 36 036 1 Q1 1st quarter"),
            ("XXX xxx Z z VV O G", "Z +00:00 +0000 UTC UTC GMT AD"),
        ] {
            assert_eq!(write(pattern, noon), text, "{pattern}");
        }
    }

    #[test]
    fn texts_are_read_strictly() {
        let day = days_of(2024, 2, 5) * DAY;
        assert_eq!(read("yyyy-MM-dd", "2024-02-05"), Some(day));
        assert_eq!(read("yyyyMMdd", "20240205"), Some(day));
        assert_eq!(read("dd/MM/yyyy HH:mm", "05/02/2024 23:59"), Some(day + 23 * HOUR + 59 * MINUTE));
        assert_eq!(read("d MMM yyyy", "5 fEB 2024"), Some(day));
        assert_eq!(read("yyyy-MM-dd hh:mm a", "2024-02-05 12:30 AM"), Some(day + 30 * MINUTE));
        assert_eq!(read("yyyy-DDD", "2024-036"), Some(day));
        assert_eq!(read("yyyy-MM-dd['T'HH:mm]", "2024-02-05"), Some(day));
        assert_eq!(read("yyyy-MM-dd HH:mm:ss.SSSSSS", "2024-02-05 00:00:00.5"), Some(day + 500_000));
        assert_eq!(read("yyyy-MM-dd HH:mmXXX", "2024-02-05 02:00+02:00"), Some(day));
        for (pattern, text) in [
            ("yyyy-MM-dd", "2024-2-5"),
            ("yyyy-MM-dd", "2024-02-30"),
            ("yyyy-MM-dd", "2024-02-05 "),
            ("yyyy-MM-dd", "12024-02-05"),
            ("yyyy-MM-dd", "日本"),
            ("HH", "24"),
        ] {
            assert_eq!(read(pattern, text), None, "{text}");
        }
    }

    #[test]
    fn letters_that_have_no_meaning_here_are_refused_with_their_name() {
        for pattern in ["YYYY", "w", "n", "b", "ddd", "'open", "MMMMM", "{", "]"] {
            assert!(Pattern::compile(pattern, Use::Write).is_err(), "{pattern}");
        }
        assert!(Pattern::compile("EEE", Use::Read).is_err());
    }
}
