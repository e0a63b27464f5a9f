//! Where a query begins, as the options say it.

use crate::SourceError;
use chrono::{DateTime, SecondsFormat};
use millstream_common::Options;

/// The names of the options.
pub(super) const OPTIONS: [&str; 2] = ["startingOffsets", "startingTimestamp"];

/// Where to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Start {
    /// At the first message that is there.
    Earliest,
    /// After the last message.
    Latest,
    /// At this message, or at the first one behind it.
    At(u64),
    /// At the first message that is not older, written as in RFC 3339.
    Time(String),
}

/// Where the options say; `default` where they do not.
pub(super) fn start(owner: &str, options: &Options, default: Start) -> Result<Start, SourceError> {
    let [offsets, time] = OPTIONS;
    if let Some(ms) = options.parse::<i64>(owner, time, "write milliseconds since 1970")? {
        let time_of = DateTime::from_timestamp_millis(ms).filter(|_| ms >= 0);
        let found = time_of.ok_or_else(|| {
            let text = options.get(time).unwrap_or_default();
            SourceError::from(Options::invalid(owner, time, text, "write milliseconds since 1970"))
        })?;
        return Ok(Start::Time(found.to_rfc3339_opts(SecondsFormat::Millis, true)));
    }
    let Some(text) = options.get(offsets) else { return Ok(default) };
    match text.trim().to_ascii_lowercase().as_str() {
        "earliest" => Ok(Start::Earliest),
        "latest" => Ok(Start::Latest),
        number => match number.parse() {
            Ok(number) if number > 0 => Ok(Start::At(number)),
            _ => {
                let reason = "write earliest, latest, or the sequence number of a message, from 1 on";
                Err(Options::invalid(owner, offsets, text, reason).into())
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &[(&str, &str)]) -> Result<Start, String> {
        let options = options.iter().fold(Options::new(), |all, (name, value)| all.with(*name, *value));
        start("source `s`", &options, Start::Latest).map_err(|error| error.to_string())
    }

    #[test]
    fn a_start_is_a_word_a_number_or_a_time() {
        assert_eq!(of(&[]), Ok(Start::Latest));
        assert_eq!(of(&[("startingOffsets", " Earliest")]), Ok(Start::Earliest));
        assert_eq!(of(&[("startingOffsets", "17")]), Ok(Start::At(17)));
        let time = Ok(Start::Time("2026-11-30T15:17:33.074Z".into()));
        assert_eq!(of(&[("startingTimestamp", "1796051853074")]), time);
        assert_eq!(of(&[("startingTimestamp", "1796051853074"), ("startingOffsets", "latest")]), time);
    }

    #[test]
    fn a_start_that_means_nothing_is_refused_with_the_way_out() {
        for (name, text, part) in [
            ("startingOffsets", "first", "earliest, latest"),
            ("startingOffsets", "0", "from 1 on"),
            ("startingOffsets", "-1", "from 1 on"),
            ("startingOffsets", r#"{"S":1}"#, "earliest, latest"),
            ("startingTimestamp", "yesterday", "milliseconds"),
            ("startingTimestamp", "-5", "milliseconds"),
        ] {
            let error = of(&[(name, text)]).unwrap_err();
            assert!(error.contains(part) && error.contains(name), "{error}");
        }
    }
}
