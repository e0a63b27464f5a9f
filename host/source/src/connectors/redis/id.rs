//! The id of an entry: milliseconds, and a number among those of the same millisecond.

use std::fmt;
use std::str::FromStr;

/// An id; they grow within a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryId {
    pub(super) ms: u64,
    pub(super) number: u64,
}

impl EntryId {
    /// Before all entries; no entry can have it.
    pub(super) const ZERO: Self = Self { ms: 0, number: 0 };

    /// The id right behind; the greatest has none.
    pub(super) fn next(self) -> Option<Self> {
        match self.number.checked_add(1) {
            Some(number) => Some(Self { number, ..self }),
            None => Some(Self { ms: self.ms.checked_add(1)?, number: 0 }),
        }
    }

    /// Its time in microseconds since 1970, if there is such a time.
    pub(super) fn micros(self) -> Option<i64> {
        i64::try_from(self.ms).ok()?.checked_mul(1000)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.number)
    }
}

impl FromStr for EntryId {
    type Err = String;

    /// `1700000000000-3`, or `1700000000000` for the first of its millisecond.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            let is_plain = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<u64>().ok().filter(|_| is_plain)
        };
        let (ms, rest) = text.split_once('-').unwrap_or((text, "0"));
        match (number(ms), number(rest)) {
            (Some(ms), Some(number)) => Ok(Self { ms, number }),
            _ => Err(format!("`{text}` is no id of an entry, such as 1700000000000-0")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_and_written_and_has_one_behind_it() {
        let id: EntryId = "1700000000000-3".parse().unwrap();
        assert_eq!((id.ms, id.number, id.to_string().as_str()), (1_700_000_000_000, 3, "1700000000000-3"));
        assert_eq!("5".parse(), Ok(EntryId { ms: 5, number: 0 }));
        assert_eq!(id.next().unwrap().to_string(), "1700000000000-4");
        assert_eq!(EntryId { ms: 1, number: u64::MAX }.next(), Some(EntryId { ms: 2, number: 0 }));
        assert_eq!(EntryId { ms: u64::MAX, number: u64::MAX }.next(), None);
        for text in ["", "-", "1-", "-1", "+1-0", "1-0-0", "a", "99999999999999999999-0"] {
            assert!(text.parse::<EntryId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_that_does_not_fit_is_none() {
        assert_eq!(EntryId { ms: 1, number: 9 }.micros(), Some(1000));
        assert_eq!(EntryId { ms: u64::MAX, number: 0 }.micros(), None);
        assert_eq!(EntryId { ms: i64::MAX as u64, number: 0 }.micros(), None);
    }
}
