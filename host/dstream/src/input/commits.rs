//! Offsets of Kafka's partitions, and their way into a consumer group.

use super::Input;
use crate::DStreamError;
use crate::rdd::InputRange;
use millstream_source::SourceError;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a batch has of a partition: the offsets from `from_offset` up to and without `until_offset`. Spark's `OffsetRange`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KafkaOffsetRange {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The first offset.
    pub from_offset: i64,
    /// The one after the last.
    pub until_offset: i64,
}

impl KafkaOffsetRange {
    /// How many offsets it has. There may be fewer records: compaction and the marks of transactions leave holes.
    pub fn count(&self) -> i64 {
        self.until_offset.saturating_sub(self.from_offset)
    }
}

/// The ranges of partitions in an input's range, ordered by topic and partition; none when it is no range of Kafka's form.
pub(crate) fn partitions_of(range: &InputRange) -> Vec<KafkaOffsetRange> {
    let (start, end) = (range.range.start.as_ref(), range.range.end.as_ref());
    let mut found = Vec::new();
    for (topic, partitions) in end.and_then(Value::as_object).into_iter().flatten() {
        for (partition, until) in partitions.as_object().into_iter().flatten() {
            let (Ok(number), Some(until_offset)) = (partition.parse(), until.as_i64()) else { continue };
            let from = start.and_then(|start| start.get(topic)?.get(partition)?.as_i64());
            // What comes later begins at its start, and so does a topic that was made again.
            let from_offset = from.filter(|from| *from <= until_offset).unwrap_or(0);
            found.push(KafkaOffsetRange { topic: topic.clone(), partition: number, from_offset, until_offset });
        }
    }
    found.sort();
    found
}

/// The ends of ranges as an offset of a source; of several of a partition the highest.
pub(crate) fn ends_of(ranges: &[KafkaOffsetRange]) -> Value {
    let mut topics = Map::new();
    for KafkaOffsetRange { topic, partition, until_offset, .. } in ranges {
        let partitions = topics.entry(topic.clone()).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(partitions) = partitions {
            let known = partitions.get(&partition.to_string()).and_then(Value::as_i64);
            let highest = known.map_or(*until_offset, |known| known.max(*until_offset));
            partitions.insert(partition.to_string(), highest.into());
        }
    }
    Value::Object(topics)
}

/// What is called when offsets are committed, or cannot be.
pub(crate) type Done = Box<dyn FnOnce(Result<(), Arc<SourceError>>) + Send>;

/// Commits offsets of a direct stream of Kafka to its consumer group, as Spark's `CanCommitOffsets`. Clones are the same.
#[derive(Clone)]
pub struct CanCommitOffsets(pub(crate) Arc<dyn Input>);

impl std::fmt::Debug for CanCommitOffsets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CanCommitOffsets").field(&self.0.name()).finish()
    }
}

impl CanCommitOffsets {
    /// Commits the ends of ranges, some time later: when the next batch is cut, or at the end. What fails is logged.
    ///
    /// # Errors
    /// When the input has no consumer groups.
    pub fn commit_async(&self, ranges: &[KafkaOffsetRange]) -> Result<(), DStreamError> {
        self.commit_async_then(ranges, |outcome| {
            if let Err(error) = outcome {
                let error = millstream_common::describe_chain(&*error);
                tracing::warn!("offsets are not committed: {error}");
            }
        })
    }

    /// As `commit_async`, and tells what became of it, on a thread of its own.
    ///
    /// # Errors
    /// As `commit_async`.
    pub fn commit_async_then(
        &self,
        ranges: &[KafkaOffsetRange],
        done: impl FnOnce(Result<(), Arc<SourceError>>) + Send + 'static,
    ) -> Result<(), DStreamError> {
        self.0.commit_async(ends_of(ranges), Box::new(done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_checkpoint::OffsetRange;
    use serde_json::json;

    fn range(topic: &str, partition: i32, from_offset: i64, until_offset: i64) -> KafkaOffsetRange {
        KafkaOffsetRange { topic: topic.into(), partition, from_offset, until_offset }
    }

    #[test]
    fn a_range_of_a_batch_has_a_range_of_each_partition() {
        let start = Some(json!({"t": {"0": 5, "10": 7}, "again": {"0": 50}}));
        let end = Some(json!({"t": {"0": 9, "10": 7, "2": 3}, "again": {"0": 4}}));
        let input = InputRange { input: "kafka".into(), range: OffsetRange { start, end } };
        let ranges = partitions_of(&input);
        assert_eq!(ranges, [range("again", 0, 0, 4), range("t", 0, 5, 9), range("t", 2, 0, 3), range("t", 10, 7, 7)]);
        assert_eq!(ranges.iter().map(KafkaOffsetRange::count).collect::<Vec<_>>(), [4, 4, 3, 0]);
        let files = OffsetRange { start: None, end: Some(json!({"logOffset": 3})) };
        assert!(partitions_of(&InputRange { input: "text".into(), range: files }).is_empty());
    }

    #[test]
    fn the_highest_end_of_a_partition_is_committed() {
        let ranges = [range("t", 0, 5, 9), range("t", 0, 0, 5), range("u", 1, 0, 2)];
        assert_eq!(ends_of(&ranges), json!({"t": {"0": 9}, "u": {"1": 2}}));
    }
}
