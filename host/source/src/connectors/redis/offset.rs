//! Offsets: the last entry that was read, per stream.
//!
//! ```text
//!   {"clicks": {"id": "1700000000000-3", "added": 134}, "orders": {"id": "0-0", "added": 0, "life": 1}}
//! ```
//!
//! `added` is how many entries were ever added up to there, as the server counts them; it is left out where nobody knows.
//! `life` counts the streams of this name: each begins at its start.

use super::id::EntryId;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How far a stream is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    /// The last entry that was read.
    pub(super) id: EntryId,
    /// How many entries were added up to there; `None` when not known.
    pub(super) added: Option<u64>,
    /// Which stream of the name it is.
    pub(super) life: u64,
}

impl Position {
    /// Before the first entry of a stream that is watched from its beginning.
    pub(super) fn start(life: u64) -> Self {
        Self { id: EntryId::ZERO, added: Some(0), life }
    }
}

/// How far streams are read, by name.
pub(super) type Positions = BTreeMap<String, Position>;

/// The JSON of positions.
pub(super) fn to_json(positions: &Positions) -> Value {
    let one = |(name, position): (&String, &Position)| {
        let mut value = json!({ "id": position.id.to_string() });
        if let Some(added) = position.added {
            value["added"] = added.into();
        }
        if position.life > 0 {
            value["life"] = position.life.into();
        }
        (name.clone(), value)
    };
    Value::Object(positions.iter().map(one).collect())
}

/// The positions in a JSON; answers what is wrong with it.
pub(super) fn parse(value: &Value) -> Result<Positions, String> {
    let Value::Object(streams) = value else { return Err("it is no object".to_owned()) };
    let one = |(name, value): (&String, &Value)| {
        let read = value.as_object().and_then(position);
        Ok((name.clone(), read.ok_or_else(|| format!("stream `{name}` cannot be at {value}"))?))
    };
    streams.iter().map(one).collect()
}

fn position(value: &Map<String, Value>) -> Option<Position> {
    let number = |name: &str| match value.get(name) {
        None => Some(None),
        Some(number) => number.as_u64().map(Some),
    };
    let id = value.get("id")?.as_str()?.parse().ok()?;
    let is_known = |name: &String| matches!(name.as_str(), "id" | "added" | "life");
    let position = Position { id, added: number("added")?, life: number("life")?.unwrap_or(0) };
    value.keys().all(is_known).then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_written_and_read_back() {
        let at = |id: &str, added, life| Position { id: id.parse().unwrap(), added, life };
        let positions = Positions::from([
            ("b".to_owned(), at("5-1", Some(7), 0)),
            ("a".to_owned(), at("0-0", None, 2)),
            ("c".to_owned(), at("18446744073709551615-18446744073709551615", Some(u64::MAX), 0)),
        ]);
        let json = to_json(&positions);
        assert_eq!(json["b"], json!({"id": "5-1", "added": 7}));
        assert_eq!(json["a"], json!({"id": "0-0", "life": 2}));
        assert_eq!(parse(&json), Ok(positions));
    }

    #[test]
    fn what_is_no_position_is_refused_with_its_place() {
        for (json, part) in [
            (json!([1]), "object"),
            (json!({"somebody": "else"}), "`somebody`"),
            (json!({"t": {"id": 5}}), "`t`"),
            (json!({"t": {"id": "x"}}), "`t`"),
            (json!({"t": {"id": "1-0", "added": -1}}), "`t`"),
            (json!({"t": {"id": "1-0", "more": 1}}), "`t`"),
            (json!({"t": {"added": 1}}), "`t`"),
        ] {
            let reason = parse(&json).unwrap_err();
            assert!(reason.contains(part), "{reason}");
        }
    }
}
