//! Where a query begins, and where a batch query ends, as the options say it.

use super::offset::{self, EARLIEST, LATEST, Positions, TopicPartition};
use crate::SourceError;
use millstream_common::Options;
use std::collections::BTreeSet;

/// Where to begin or to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bound {
    /// At the earliest offsets there are.
    Earliest,
    /// After the last records there are.
    Latest,
    /// At what the group of consumers has, and at the earliest offsets where it has nothing.
    Committed,
    /// At these offsets; -2 is earliest, -1 latest.
    Offsets(Positions),
    /// At the first records that are not older, in milliseconds since 1970, by partition.
    Times(Positions),
    /// The same time for all partitions.
    Time(i64),
}

/// Where to begin, and where to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Where a new query begins; `None` when the user does not say.
    pub(super) start: Option<Bound>,
    /// Where a batch query ends; `None` when the user does not say.
    pub(super) end: Option<Bound>,
    /// Whether a partition without a record from the starting time on is begun at its end, and is no error.
    pub(super) begins_late_without_match: bool,
}

/// The names of the options for one side.
struct Side {
    time: &'static str,
    times: &'static str,
    offsets: &'static str,
}

const STARTING: Side =
    Side { time: "startingTimestamp", times: "startingOffsetsByTimestamp", offsets: "startingOffsets" };
const ENDING: Side = Side { time: "endingTimestamp", times: "endingOffsetsByTimestamp", offsets: "endingOffsets" };
const STRATEGY: &str = "startingOffsetsByTimestampStrategy";

impl Bounds {
    /// The names of the options that are read here.
    pub(super) const KNOWN: [&'static str; 7] =
        [STARTING.time, STARTING.times, STARTING.offsets, ENDING.time, ENDING.times, ENDING.offsets, STRATEGY];

    pub(super) fn new(owner: &str, options: &Options) -> Result<Self, SourceError> {
        let begins_late_without_match = match options.get(STRATEGY).map(str::to_ascii_lowercase).as_deref() {
            None | Some("error") => false,
            Some("latest") => true,
            Some(other) => return Err(Options::invalid(owner, STRATEGY, other, "write error or latest").into()),
        };
        let end = bound(owner, options, &ENDING)?;
        match &end {
            Some(Bound::Earliest) => {
                let reason = "a batch query that ends where it begins reads nothing; write latest or offsets";
                return Err(Options::invalid(owner, ENDING.offsets, "earliest", reason).into());
            }
            Some(Bound::Offsets(offsets)) if offsets.values().any(|offset| *offset == EARLIEST) => {
                let text = options.get(ENDING.offsets).unwrap_or_default();
                return Err(Options::invalid(owner, ENDING.offsets, text, "-2, earliest, is no end").into());
            }
            _ => {}
        }
        Ok(Self { start: bound(owner, options, &STARTING)?, end, begins_late_without_match })
    }

    /// A stream has no end.
    pub(super) fn check_stream(owner: &str, options: &Options) -> Result<(), SourceError> {
        for name in [ENDING.time, ENDING.times, ENDING.offsets] {
            if let Some(value) = options.get(name) {
                let reason = "a stream has no end; run it as a batch query, or leave it out";
                return Err(Options::invalid(owner, name, value, reason).into());
            }
        }
        Ok(())
    }

    /// A batch query that begins at the end would read nothing.
    pub(super) fn check_batch(&self, owner: &str) -> Result<(), SourceError> {
        let reason = "a batch query that begins at the end reads nothing; write earliest or offsets";
        match &self.start {
            Some(Bound::Latest) => Err(Options::invalid(owner, STARTING.offsets, "latest", reason).into()),
            Some(Bound::Offsets(offsets)) if offsets.values().any(|offset| *offset == LATEST) => {
                let text = offset::to_json(offsets).to_string();
                Err(Options::invalid(owner, STARTING.offsets, &text, reason).into())
            }
            _ => Ok(()),
        }
    }
}

/// One side, by its precedence: one time for all, times, offsets.
fn bound(owner: &str, options: &Options, side: &Side) -> Result<Option<Bound>, SourceError> {
    let invalid =
        |name: &str, value: &str, reason: &str| SourceError::from(Options::invalid(owner, name, value, reason));
    if let Some(text) = options.get(side.time) {
        let time = text.trim().parse::<i64>().ok().filter(|time| *time >= 0);
        let expected = "write milliseconds since 1970";
        return Ok(Some(Bound::Time(time.ok_or_else(|| invalid(side.time, text, expected))?)));
    }
    let positions = |name: &str, text: &str, least: i64, example: &str| {
        let fail = |reason: &str| invalid(name, text, &format!("{reason}; write for example {example}"));
        let json = serde_json::from_str(text).map_err(|_| fail("it is no JSON"))?;
        offset::parse(&json, least).map_err(|reason| fail(&reason))
    };
    if let Some(text) = options.get(side.times) {
        let example = r#"{"clicks":{"0":1700000000000}}"#;
        return Ok(Some(Bound::Times(positions(side.times, text, 0, example)?)));
    }
    let Some(text) = options.get(side.offsets) else { return Ok(None) };
    Ok(Some(match text.trim().to_ascii_lowercase().as_str() {
        "earliest" => Bound::Earliest,
        "latest" => Bound::Latest,
        "committed" if side.offsets == STARTING.offsets => Bound::Committed,
        _ => {
            let example = r#"earliest, latest, or {"clicks":{"0":23,"1":-2}}"#;
            Bound::Offsets(positions(side.offsets, text, EARLIEST, example)?)
        }
    }))
}

/// Says which partitions a bound leaves out, or names beside those that are read.
pub(super) fn check_complete(given: &Positions, read: &BTreeSet<TopicPartition>) -> Result<(), String> {
    let list = |places: Vec<&TopicPartition>| {
        places.iter().map(|place| format!("{}-{}", place.topic, place.partition)).collect::<Vec<_>>().join(", ")
    };
    let missing: Vec<_> = read.iter().filter(|place| !given.contains_key(*place)).collect();
    let foreign: Vec<_> = given.keys().filter(|place| !read.contains(*place)).collect();
    match (missing.is_empty(), foreign.is_empty()) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("it leaves out {}; name all partitions that are read, and no other", list(missing))),
        (true, false) => Err(format!("{} is not read; name all partitions that are read, and no other", list(foreign))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(options: &[(&str, &str)]) -> Result<Bounds, SourceError> {
        let options = options.iter().fold(Options::new(), |all, (name, value)| all.with(*name, *value));
        Bounds::new("source `t`", &options)
    }

    #[test]
    fn a_time_goes_before_times_and_times_before_offsets() {
        let json = r#"{"t":{"0":5,"1":-2}}"#;
        let offsets = ("startingOffsets", json);
        let times = ("startingOffsetsByTimestamp", r#"{"t":{"0":1000}}"#);
        let time = ("startingTimestamp", "2000");
        assert_eq!(bounds(&[]).unwrap().start, None);
        assert!(matches!(bounds(&[offsets]).unwrap().start, Some(Bound::Offsets(_))));
        assert!(matches!(bounds(&[offsets, times]).unwrap().start, Some(Bound::Times(_))));
        assert_eq!(bounds(&[offsets, times, time]).unwrap().start, Some(Bound::Time(2000)));
        assert_eq!(bounds(&[("startingOffsets", "EARLIEST")]).unwrap().start, Some(Bound::Earliest));
        assert_eq!(bounds(&[("endingOffsets", "latest")]).unwrap().end, Some(Bound::Latest));
        assert!(bounds(&[("startingOffsetsByTimestampStrategy", "latest")]).unwrap().begins_late_without_match);
    }

    #[test]
    fn bounds_that_mean_nothing_are_refused() {
        for (name, value) in [
            ("startingOffsets", "first"),
            ("startingOffsets", r#"{"t":{"0":-3}}"#),
            ("startingOffsetsByTimestamp", r#"{"t":{"0":-1}}"#),
            ("startingTimestamp", "-1"),
            ("startingTimestamp", "yesterday"),
            ("startingOffsetsByTimestampStrategy", "earliest"),
            ("endingOffsets", "earliest"),
            ("endingOffsets", r#"{"t":{"0":-2}}"#),
        ] {
            let error = bounds(&[(name, value)]).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
        let late = bounds(&[("startingOffsets", "latest")]).unwrap();
        assert!(late.check_batch("x").is_err());
        let late = bounds(&[("startingOffsets", r#"{"t":{"0":-1}}"#)]).unwrap();
        assert!(late.check_batch("x").is_err());
        let ends = Options::new().with("endingTimestamp", "5");
        assert!(Bounds::check_stream("x", &ends).unwrap_err().to_string().contains("a stream has no end"));
    }

    #[test]
    fn partitions_that_are_left_out_or_not_read_are_named() {
        let read = BTreeSet::from([TopicPartition::new("t", 0), TopicPartition::new("t", 1)]);
        let given = |partitions: &[i32]| -> Positions {
            partitions.iter().map(|partition| (TopicPartition::new("t", *partition), 0)).collect()
        };
        assert_eq!(check_complete(&given(&[0, 1]), &read), Ok(()));
        assert!(check_complete(&given(&[0]), &read).unwrap_err().contains("t-1"));
        assert!(check_complete(&given(&[0, 1, 2]), &read).unwrap_err().contains("t-2"));
    }
}
