//! Offsets of partitions, and their JSON: `{"topic":{"0":134,"1":20}}`.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The earliest offset there is, in options.
pub(super) const EARLIEST: i64 = -2;
/// The offset after the last, in options.
pub(super) const LATEST: i64 = -1;

/// A partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TopicPartition {
    pub(super) topic: Arc<str>,
    pub(super) partition: i32,
}

impl TopicPartition {
    pub(super) fn new(topic: &str, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

/// What a map or set has of one topic: from here on, as long as it is the topic.
pub(super) fn first_of(topic: &str) -> TopicPartition {
    TopicPartition::new(topic, i32::MIN)
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "partition {} of topic `{}`", self.partition, self.topic)
    }
}

/// An offset, or a time, for each partition.
pub(super) type Positions = BTreeMap<TopicPartition, i64>;

/// Reads the JSON; numbers below `least` are refused. The error says what is wrong.
pub(super) fn parse(json: &Value, least: i64) -> Result<Positions, String> {
    let topics = json.as_object().ok_or("it is no JSON object of topics")?;
    let mut positions = Positions::new();
    for (topic, partitions) in topics {
        let partitions =
            partitions.as_object().ok_or_else(|| format!("topic `{topic}` has no object of partitions"))?;
        let shared: Arc<str> = topic.as_str().into();
        for (partition, number) in partitions {
            let id = partition.parse::<i32>().ok().filter(|id| *id >= 0 && id.to_string() == *partition);
            let id = id.ok_or_else(|| format!("`{partition}` is no partition of topic `{topic}`"))?;
            let number = number
                .as_i64()
                .filter(|number| *number >= least)
                .ok_or_else(|| format!("partition {id} of topic `{topic}` cannot be at {number}"))?;
            positions.insert(TopicPartition { topic: Arc::clone(&shared), partition: id }, number);
        }
    }
    Ok(positions)
}

/// The JSON of positions.
pub(super) fn to_json(positions: &Positions) -> Value {
    let mut topics = Map::new();
    for (place, number) in positions {
        let topic = topics.entry(&*place.topic).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(partitions) = topic {
            partitions.insert(place.partition.to_string(), (*number).into());
        }
    }
    Value::Object(topics)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn offsets_are_written_as_spark_writes_them_and_read_back() {
        let positions = Positions::from([
            (TopicPartition::new("b", 1), 20),
            (TopicPartition::new("b", 0), 134),
            (TopicPartition::new("a", 10), 0),
        ]);
        let json = to_json(&positions);
        assert_eq!(json, json!({"a": {"10": 0}, "b": {"0": 134, "1": 20}}));
        assert_eq!(parse(&json, 0), Ok(positions));
        assert_eq!(parse(&json!({}), 0), Ok(Positions::new()));
    }

    #[test]
    fn what_is_no_offset_is_refused_with_its_place() {
        for (json, part) in [
            (json!([1]), "object"),
            (json!({"somebody": "else"}), "`somebody`"),
            (json!({"t": {"x": 1}}), "`x`"),
            (json!({"t": {"-1": 1}}), "`-1`"),
            (json!({"t": {"+1": 1}}), "`+1`"),
            (json!({"t": {"0": -1}}), "-1"),
            (json!({"t": {"0": "1"}}), "\"1\""),
            (json!({"t": {"0": 1.5}}), "1.5"),
        ] {
            let reason = parse(&json, 0).unwrap_err();
            assert!(reason.contains(part), "{reason}");
        }
        assert!(parse(&json!({"t": {"0": -2, "1": -1}}), EARLIEST).is_ok());
        assert!(parse(&json!({"t": {"0": -3}}), EARLIEST).is_err());
    }
}
