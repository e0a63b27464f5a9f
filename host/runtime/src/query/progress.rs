//! What a query tells about each batch: Spark's `StreamingQueryProgress`, field by field.

use chrono::{Datelike, Timelike};
use millstream_common::{QueryId, RunId};
use millstream_operators::OperatorMetrics;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The progress of one batch; as JSON it has Spark's names, and `plugins` beyond them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The query.
    pub id: QueryId,
    /// The run.
    pub run_id: RunId,
    /// The query's name.
    pub name: Option<String>,
    /// When the trigger fired, ISO-8601 in UTC with milliseconds.
    pub timestamp: String,
    /// The batch.
    pub batch_id: u64,
    /// Milliseconds from trigger to commit.
    pub batch_duration: u64,
    /// Rows read from all sources.
    pub num_input_rows: u64,
    /// Rows per second since the trigger before; left out when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_rows_per_second: Option<f64>,
    /// Rows per second of batch duration; left out for an empty duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processed_rows_per_second: Option<f64>,
    /// Milliseconds per step: latestOffset, walCommit, getBatch, addBatch, commitOffsets, triggerExecution.
    pub duration_ms: BTreeMap<String, u64>,
    /// max, min, avg of event time and the watermark used; empty without a watermark. Beyond Spark `rowsAhead`: rows too
    /// far in the future to move it.
    pub event_time: BTreeMap<String, String>,
    /// The stateful operators, the one nearest the sink first.
    pub state_operators: Vec<StateOperatorProgress>,
    /// The sources.
    pub sources: Vec<SourceProgress>,
    /// The sink.
    pub sink: SinkProgress,
    /// The plugins, with the digest that this batch ran.
    pub plugins: Vec<PluginProgress>,
    /// The tenant that pays for them, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantProgress>,
}

/// One stateful operator in a [`Progress`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateOperatorProgress {
    /// Spark's name for the operator.
    pub operator_name: String,
    /// The operator's uid.
    pub uid: String,
    /// Keys after the batch.
    pub num_rows_total: u64,
    /// Keys written.
    pub num_rows_updated: u64,
    /// Milliseconds spent on that.
    pub all_updates_time_ms: u64,
    /// Keys removed.
    pub num_rows_removed: u64,
    /// Milliseconds spent on that.
    pub all_removals_time_ms: u64,
    /// Milliseconds spent on making the version durable.
    pub commit_time_ms: u64,
    /// Bytes in memory.
    pub memory_used_bytes: u64,
    /// Late rows, counted after partial aggregation.
    pub num_rows_dropped_by_watermark: u64,
    /// Partitions.
    pub num_shuffle_partitions: u32,
    /// Stores: one per partition.
    pub num_state_store_instances: u32,
    /// Counters of one kind of operator: `numDroppedDuplicateRows`, and beyond Spark `numLateRows`; and when the memory of state is limited,
    /// `stateSpilledKeys`, the keys whose rows are not in memory, and `stateSpilledBytes`, what they take on disk.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub custom_metrics: BTreeMap<String, u64>,
}

impl StateOperatorProgress {
    /// From an operator's counters; `is_limited` is whether its state may spill.
    pub(crate) fn new(uid: &str, partitions: u32, metrics: &OperatorMetrics, is_limited: bool) -> Self {
        let mut custom_metrics = BTreeMap::new();
        if let Some(rows) = metrics.rows_dropped_as_duplicates {
            custom_metrics.insert("numDroppedDuplicateRows".to_owned(), rows);
        }
        if is_limited {
            custom_metrics.insert("stateSpilledBytes".to_owned(), metrics.spilled_bytes);
            custom_metrics.insert("stateSpilledKeys".to_owned(), metrics.spilled_keys);
        }
        Self {
            operator_name: metrics.operator_name.clone(),
            uid: uid.to_owned(),
            num_rows_total: metrics.rows_total,
            num_rows_updated: metrics.rows_updated,
            all_updates_time_ms: metrics.updates_ms,
            num_rows_removed: metrics.rows_removed,
            all_removals_time_ms: metrics.removals_ms,
            commit_time_ms: metrics.commit_ms,
            memory_used_bytes: metrics.memory_bytes,
            num_rows_dropped_by_watermark: metrics.rows_dropped_by_watermark,
            num_shuffle_partitions: partitions,
            num_state_store_instances: partitions,
            custom_metrics,
        }
    }
}

/// One source in a [`Progress`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceProgress {
    /// The stream's name in the query.
    pub name: String,
    /// Connector and place.
    pub description: String,
    /// Where the batch began.
    pub start_offset: Option<Value>,
    /// Where it ended.
    pub end_offset: Option<Value>,
    /// The newest offset there is.
    pub latest_offset: Option<Value>,
    /// Rows read.
    pub num_input_rows: u64,
    /// As for the whole batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_rows_per_second: Option<f64>,
    /// As for the whole batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processed_rows_per_second: Option<f64>,
    /// Figures of the connector's own, such as Kafka's `maxOffsetsBehindLatest`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, String>,
}

/// The sink in a [`Progress`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SinkProgress {
    /// Connector and place.
    pub description: String,
    /// Rows written.
    pub num_output_rows: i64,
}

/// One plugin in a [`Progress`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginProgress {
    /// Its name in the query.
    pub name: String,
    /// The digest of the component that ran.
    pub digest: String,
    /// Calls over the boundary.
    pub calls: u64,
    /// Rows handed over.
    pub rows: u64,
    /// Rows skipped or dead-lettered.
    pub faults: u64,
    /// Microseconds spent in calls.
    pub time_us: u64,
    /// Microseconds of CPU time spent in calls.
    #[serde(default)]
    pub cpu_us: u64,
    /// The most memory that its instances had together since the query started, in bytes.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Calls that ended in a trap, at the deadline, at a limit, or in nonsense.
    #[serde(default)]
    pub traps: u64,
    /// Microseconds that calls waited because the plugin or its tenant had spent its CPU time.
    #[serde(default)]
    pub throttled_us: u64,
    /// The candidate that computes a slice of the keys, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryProgress>,
    /// Why the last swap that was asked for did not happen, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_refused: Option<String>,
}

/// A canary in a [`Progress`], with what it has shown so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CanaryProgress {
    /// The digest of the candidate.
    pub candidate: String,
    /// Its share of the keys, in percent.
    pub share_percent: f64,
    /// Its first batch.
    pub first_batch: u64,
    /// Batches that had keys of the slice.
    pub batches: u64,
    /// After so many of them it takes over.
    pub of_batches: u64,
    /// Rows of the slice.
    pub rows: u64,
    /// Rows, groups and keys at which it answered otherwise than the running code.
    pub differing: u64,
    /// One of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// How many times the CPU time of the running code it takes; left out when both took too little to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_ratio: Option<f64>,
    /// Why it is given up at the next border, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The tenant of a query in a [`Progress`]: what all plugins of its queries have spent together in this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantProgress {
    /// Its name in the host file.
    pub name: String,
    /// Calls over the boundary.
    pub calls: u64,
    /// Rows handed over.
    pub rows: u64,
    /// Microseconds of CPU time spent in calls.
    pub cpu_us: u64,
    /// Bytes that instances have now.
    pub memory_bytes: u64,
    /// The most bytes that instances had at a time.
    pub memory_high_bytes: u64,
    /// Instances that live now.
    pub instances: u64,
    /// Calls that ended in a trap, at the deadline, at a limit, or in nonsense.
    pub traps: u64,
    /// Microseconds that calls waited because the tenant had spent its CPU time.
    pub throttled_us: u64,
}

/// `rows` per `ms`, as rows per second with one decimal; `None` when that is no number.
pub(crate) fn rate(rows: u64, ms: u64) -> Option<f64> {
    (ms > 0).then(|| (rows as f64 * 10_000.0 / ms as f64).round() / 10.0)
}

/// Milliseconds since 1970 as Spark prints them: `2024-05-01T12:00:00.000Z`.
pub fn iso_ms(ms: i64) -> String {
    let Some(time) = chrono::DateTime::from_timestamp_millis(ms) else { return format!("{ms} ms") };
    let Some(year) = u32::try_from(time.year()).ok().filter(|year| *year < 10_000) else {
        return time.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    };
    // Several of them belong to each batch, and patterns are slow.
    let mut text = String::with_capacity(24);
    let mut part = |number: u32, places: u32, end: char| {
        for place in (0..places).rev() {
            text.push(char::from(b'0' + (number / 10_u32.pow(place) % 10) as u8));
        }
        text.push(end);
    };
    part(year, 4, '-');
    part(time.month(), 2, '-');
    part(time.day(), 2, 'T');
    part(time.hour(), 2, ':');
    part(time.minute(), 2, ':');
    part(time.second(), 2, '.');
    part(time.timestamp_subsec_millis(), 3, 'Z');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_one_decimal_and_no_infinity() {
        assert_eq!(rate(100, 300), Some(333.3));
        assert_eq!(rate(5, 0), None);
        assert_eq!(iso_ms(1_714_564_800_000), "2024-05-01T12:00:00.000Z");
        for ms in [0, -1, 999, -62_135_596_800_000, -62_198_755_200_001, 253_402_300_799_999, 253_402_300_800_000] {
            let time = chrono::DateTime::from_timestamp_millis(ms).unwrap();
            assert_eq!(iso_ms(ms), time.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string());
        }
        assert_eq!(iso_ms(i64::MIN), format!("{} ms", i64::MIN));
    }
}
