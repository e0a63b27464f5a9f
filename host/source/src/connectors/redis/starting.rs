//! Where a query begins, as the option says it.

use super::id::EntryId;
use crate::SourceError;
use millstream_common::Options;
use serde_json::Value;
use std::collections::BTreeMap;

/// The name of the option.
pub(super) const OPTION: &str = "startingOffsets";

const EXAMPLE: &str = r#"write earliest, latest, the id of an entry, or one of them for each stream, as in {"clicks":"1700000000000-0","orders":"earliest"}"#;

/// Where to begin with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// At the first entry that is there.
    Earliest,
    /// After the last entry.
    Latest,
    /// After this entry.
    After(EntryId),
}

impl Start {
    fn parse(text: &str) -> Option<Self> {
        Some(match text.trim().to_ascii_lowercase().as_str() {
            "earliest" => Self::Earliest,
            "latest" => Self::Latest,
            id => Self::After(id.parse().ok()?),
        })
    }
}

/// Where each of `streams` begins; `default` is for all when the option is not set.
pub(super) fn starts(
    owner: &str,
    options: &Options,
    streams: &[String],
    default: Start,
) -> Result<BTreeMap<String, Start>, SourceError> {
    let all = |start: Start| streams.iter().map(|stream| (stream.clone(), start)).collect();
    let Some(text) = options.get(OPTION) else { return Ok(all(default)) };
    let invalid = |reason: &str| SourceError::from(Options::invalid(owner, OPTION, text, reason));
    if !text.trim_start().starts_with('{') {
        return Start::parse(text).map(all).ok_or_else(|| invalid(EXAMPLE));
    }
    let given: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|_| invalid(EXAMPLE))?;
    let mut found = BTreeMap::new();
    for (stream, value) in &given {
        if !streams.contains(stream) {
            return Err(invalid(&format!(
                "stream `{stream}` is not read; name all streams that are read, and no other"
            )));
        }
        let start = value.as_str().and_then(Start::parse);
        found.insert(stream.clone(), start.ok_or_else(|| invalid(&format!("stream `{stream}`: {EXAMPLE}")))?);
    }
    match streams.iter().find(|stream| !found.contains_key(*stream)) {
        Some(missing) => {
            Err(invalid(&format!("it leaves out stream `{missing}`; name all streams that are read, and no other")))
        }
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: Option<&str>) -> Result<Vec<Start>, String> {
        let options = text.map_or(Options::new(), |text| Options::new().with(OPTION, text));
        let streams = ["a".to_owned(), "b".to_owned()];
        let starts = starts("source `s`", &options, &streams, Start::Latest);
        starts.map(|starts| starts.into_values().collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_start_is_for_all_streams_or_for_each() {
        let at = Start::After(EntryId { ms: 5, number: 2 });
        assert_eq!(of(None), Ok(vec![Start::Latest; 2]));
        assert_eq!(of(Some("Earliest")), Ok(vec![Start::Earliest; 2]));
        assert_eq!(of(Some("5-2")), Ok(vec![at; 2]));
        assert_eq!(of(Some(r#"{"a":"5-2","b":"latest"}"#)), Ok(vec![at, Start::Latest]));
    }

    #[test]
    fn a_start_that_means_nothing_is_refused_with_the_way_out() {
        for (text, part) in [
            ("first", "earliest, latest"),
            ("$", "earliest, latest"),
            ("{", "earliest, latest"),
            (r#"{"a":"5-2"}"#, "leaves out stream `b`"),
            (r#"{"a":"5-2","b":"x"}"#, "stream `b`"),
            (r#"{"a":"5-2","b":7}"#, "stream `b`"),
            (r#"{"a":"5-2","b":"6","c":"7"}"#, "`c` is not read"),
        ] {
            let error = of(Some(text)).unwrap_err();
            assert!(error.contains(part) && error.contains("startingOffsets"), "{error}");
        }
    }
}
