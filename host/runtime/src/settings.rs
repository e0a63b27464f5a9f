//! The settings of a query, with their defaults.
//!
//! Names are Spark's where Spark has the setting. Those marked *frozen* define what stored state means: they are
//! written to the offset log, and on restart the logged value wins.

use millstream_common::WatermarkPolicy;
use millstream_common::duration::parse_micros;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Values of all settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `spark.sql.shuffle.partitions`, frozen: how many partitions state has.
    pub partitions: u32,
    /// `spark.sql.ansi.enabled`, frozen: errors instead of nulls and wrap-around.
    pub ansi: bool,
    /// `spark.sql.streaming.multipleWatermarkPolicy`, frozen.
    pub watermark_policy: WatermarkPolicy,
    /// `spark.sql.streaming.noDataMicroBatches.enabled`: batches without input when the watermark moved.
    pub no_data_batches: bool,
    /// `spark.sql.streaming.minBatchesToRetain`: how many batches can be replayed or returned to.
    pub batches_retained: u64,
    /// `spark.sql.streaming.pollingDelay`: milliseconds between looks at idle sources.
    pub polling_delay_ms: u64,
    /// `spark.sql.streaming.noDataProgressEventInterval`: milliseconds between progress reports of an idle query.
    pub idle_progress_ms: u64,
    /// `spark.sql.streaming.numRecentProgressUpdates`: how many progress reports are kept.
    pub recent_progress: usize,
    /// `spark.sql.streaming.stateStore.minDeltasForSnapshot`: changelogs before a snapshot is considered.
    pub changelogs_before_snapshot: usize,
    /// `spark.sql.streaming.schemaInference`: whether sources find their columns by looking at the data where none are
    /// declared.
    pub schema_inference: bool,
    /// `millstream.watermark.idleTimeout`: how long a stream without rows holds the watermark back, in milliseconds; for
    /// ever without. Beyond Spark.
    pub idle_timeout_ms: Option<i64>,
    /// `millstream.watermark.maxAhead`: how far ahead of the clock an event time may be to move the watermark, in
    /// milliseconds; any distance without. Beyond Spark.
    pub max_ahead_ms: Option<i64>,
    /// `millstream.watermark.finishOnEnd`: whether a query with the trigger available now closes all that is open when it
    /// has read everything. Beyond Spark.
    pub finish_on_end: bool,
    /// `millstream.lateRows.exact`: whether late rows are counted one by one. Beyond Spark.
    pub exact_late_rows: bool,
    /// `millstream.outputDigests`: whether each commit entry keeps a digest of what went out, so that `replay` can compare.
    /// Beyond Spark.
    pub output_digests: bool,
    /// `millstream.swap.dryRunBatches`: how many of the last batches are run again with other code before it may take a
    /// plugin's place. Beyond Spark.
    pub dry_run_batches: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            partitions: 2,
            ansi: true,
            watermark_policy: WatermarkPolicy::Min,
            no_data_batches: true,
            batches_retained: 100,
            polling_delay_ms: 10,
            idle_progress_ms: 10_000,
            recent_progress: 100,
            changelogs_before_snapshot: 10,
            schema_inference: false,
            idle_timeout_ms: None,
            max_ahead_ms: None,
            finish_on_end: false,
            exact_late_rows: false,
            output_digests: true,
            dry_run_batches: 3,
        }
    }
}

/// A setting is unknown or has a value that does not fit.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SettingError {
    /// Nobody reads a setting of this name.
    #[error("setting `{name}` is unknown; there are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// The value does not fit.
    #[error("setting `{name}` cannot be `{value}`: {reason}")]
    Invalid {
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// What is expected.
        reason: &'static str,
    },
}

/// Names, kept in one place; the order is that of the documents.
pub(crate) const PARTITIONS: &str = "spark.sql.shuffle.partitions";
/// See [`Settings::ansi`].
pub(crate) const ANSI: &str = "spark.sql.ansi.enabled";
/// See [`Settings::watermark_policy`].
pub(crate) const WATERMARK_POLICY: &str = "spark.sql.streaming.multipleWatermarkPolicy";
const NO_DATA_BATCHES: &str = "spark.sql.streaming.noDataMicroBatches.enabled";
const BATCHES_RETAINED: &str = "spark.sql.streaming.minBatchesToRetain";
const POLLING_DELAY: &str = "spark.sql.streaming.pollingDelay";
const IDLE_PROGRESS: &str = "spark.sql.streaming.noDataProgressEventInterval";
const RECENT_PROGRESS: &str = "spark.sql.streaming.numRecentProgressUpdates";
const CHANGELOGS: &str = "spark.sql.streaming.stateStore.minDeltasForSnapshot";
const SCHEMA_INFERENCE: &str = "spark.sql.streaming.schemaInference";

const IDLE_TIMEOUT: &str = "millstream.watermark.idleTimeout";
const MAX_AHEAD: &str = "millstream.watermark.maxAhead";
const FINISH_ON_END: &str = "millstream.watermark.finishOnEnd";
const EXACT_LATE_ROWS: &str = "millstream.lateRows.exact";
/// See [`Settings::output_digests`].
pub(crate) const OUTPUT_DIGESTS: &str = "millstream.outputDigests";
const DRY_RUN_BATCHES: &str = "millstream.swap.dryRunBatches";
/// The value of a duration that is not set.
const NONE: &str = "none";

/// All names.
pub(crate) const NAMES: [&str; 16] = [
    PARTITIONS,
    ANSI,
    WATERMARK_POLICY,
    NO_DATA_BATCHES,
    BATCHES_RETAINED,
    POLLING_DELAY,
    IDLE_PROGRESS,
    RECENT_PROGRESS,
    CHANGELOGS,
    SCHEMA_INFERENCE,
    IDLE_TIMEOUT,
    MAX_AHEAD,
    FINISH_ON_END,
    EXACT_LATE_ROWS,
    OUTPUT_DIGESTS,
    DRY_RUN_BATCHES,
];

impl Settings {
    /// Sets one by name.
    ///
    /// # Errors
    /// [`SettingError`] when the name is unknown or the value does not fit.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        let invalid = |reason| SettingError::Invalid { name: name.into(), value: value.into(), reason };
        fn number<T: FromStr>(value: &str) -> Option<T> {
            value.trim().parse().ok()
        }
        let flag = || match value.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(invalid("write true or false")),
        };
        match name {
            PARTITIONS => {
                self.partitions = number(value)
                    .filter(|n| (1..=1024).contains(n))
                    .ok_or_else(|| invalid("a number from 1 to 1024 is expected"))?;
            }
            ANSI => self.ansi = flag()?,
            WATERMARK_POLICY => {
                self.watermark_policy = match value.trim().to_ascii_lowercase().as_str() {
                    "min" => WatermarkPolicy::Min,
                    "max" => WatermarkPolicy::Max,
                    _ => return Err(invalid("write min or max")),
                }
            }
            NO_DATA_BATCHES => self.no_data_batches = flag()?,
            BATCHES_RETAINED => {
                self.batches_retained =
                    number(value).filter(|n| *n >= 2).ok_or_else(|| invalid("a number of at least 2 is expected"))?;
            }
            POLLING_DELAY => {
                self.polling_delay_ms = number(value)
                    .filter(|n| (1..=60_000).contains(n))
                    .ok_or_else(|| invalid("milliseconds from 1 to 60000 are expected"))?;
            }
            IDLE_PROGRESS => {
                self.idle_progress_ms = number(value).ok_or_else(|| invalid("milliseconds are expected"))?;
            }
            RECENT_PROGRESS => {
                self.recent_progress = number(value)
                    .filter(|n| (1..=100_000).contains(n))
                    .ok_or_else(|| invalid("a number from 1 to 100000 is expected"))?;
            }
            CHANGELOGS => {
                self.changelogs_before_snapshot =
                    number(value).filter(|n| *n >= 1).ok_or_else(|| invalid("a number of at least 1 is expected"))?;
            }
            SCHEMA_INFERENCE => self.schema_inference = flag()?,
            IDLE_TIMEOUT => self.idle_timeout_ms = duration_ms(value).map_err(invalid)?,
            MAX_AHEAD => self.max_ahead_ms = duration_ms(value).map_err(invalid)?,
            FINISH_ON_END => self.finish_on_end = flag()?,
            EXACT_LATE_ROWS => self.exact_late_rows = flag()?,
            OUTPUT_DIGESTS => self.output_digests = flag()?,
            DRY_RUN_BATCHES => {
                self.dry_run_batches = number(value)
                    .filter(|n| *n <= 1000)
                    .ok_or_else(|| invalid("a number up to 1000 is expected, 0 for no dry run"))?;
            }
            _ => return Err(SettingError::Unknown { name: name.into(), known: NAMES.join(", ") }),
        }
        Ok(())
    }

    /// Every setting with its value as text, in the order of [`NAMES`].
    pub fn values(&self) -> Vec<(&'static str, String)> {
        let policy = match self.watermark_policy {
            WatermarkPolicy::Min => "min",
            WatermarkPolicy::Max => "max",
        };
        vec![
            (PARTITIONS, self.partitions.to_string()),
            (ANSI, self.ansi.to_string()),
            (WATERMARK_POLICY, policy.to_owned()),
            (NO_DATA_BATCHES, self.no_data_batches.to_string()),
            (BATCHES_RETAINED, self.batches_retained.to_string()),
            (POLLING_DELAY, self.polling_delay_ms.to_string()),
            (IDLE_PROGRESS, self.idle_progress_ms.to_string()),
            (RECENT_PROGRESS, self.recent_progress.to_string()),
            (CHANGELOGS, self.changelogs_before_snapshot.to_string()),
            (SCHEMA_INFERENCE, self.schema_inference.to_string()),
            (IDLE_TIMEOUT, duration_text(self.idle_timeout_ms)),
            (MAX_AHEAD, duration_text(self.max_ahead_ms)),
            (FINISH_ON_END, self.finish_on_end.to_string()),
            (EXACT_LATE_ROWS, self.exact_late_rows.to_string()),
            (OUTPUT_DIGESTS, self.output_digests.to_string()),
            (DRY_RUN_BATCHES, self.dry_run_batches.to_string()),
        ]
    }

    /// The frozen ones, as the offset log keeps them.
    pub fn frozen(&self) -> BTreeMap<String, String> {
        let is_frozen = |name: &str| [PARTITIONS, ANSI, WATERMARK_POLICY].contains(&name);
        self.values()
            .into_iter()
            .filter(|(name, _)| is_frozen(name))
            .map(|(name, value)| (name.into(), value))
            .collect()
    }

    /// Takes the frozen settings of the offset log; answers those that differ from what was asked for, as
    /// (name, asked, logged).
    ///
    /// # Errors
    /// When the log has a setting that this version does not know.
    pub fn restore(
        &mut self,
        logged: &BTreeMap<String, String>,
    ) -> Result<Vec<(String, String, String)>, SettingError> {
        let asked = self.frozen();
        let mut changed = Vec::new();
        for (name, value) in logged {
            if let Some(asked) = asked.get(name)
                && asked != value
            {
                changed.push((name.clone(), asked.clone(), value.clone()));
            }
            self.set(name, value)?;
        }
        Ok(changed)
    }
}

/// Milliseconds of a duration as in `5 minutes`; `None` for `none`.
fn duration_ms(value: &str) -> Result<Option<i64>, &'static str> {
    if value.trim().eq_ignore_ascii_case(NONE) {
        return Ok(None);
    }
    match parse_micros(value) {
        Ok(micros) if micros >= 1000 => Ok(Some(micros / 1000)),
        _ => Err("a duration such as `5 minutes` is expected, at least 1 ms, or `none`"),
    }
}

fn duration_text(ms: Option<i64>) -> String {
    ms.map_or_else(|| NONE.to_owned(), |ms| format!("{ms} ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_set_to_its_own_text() {
        let mut settings = Settings::default();
        for (name, value) in Settings::default().values() {
            settings.set(name, &value).unwrap();
        }
        assert_eq!(settings, Settings::default());
        assert_eq!(settings.values().iter().map(|(name, _)| *name).collect::<Vec<_>>(), NAMES);
        assert!(matches!(settings.set("spark.sql.nonsense", "1"), Err(SettingError::Unknown { .. })));
        assert!(matches!(settings.set(PARTITIONS, "0"), Err(SettingError::Invalid { .. })));
    }

    #[test]
    fn logged_settings_win_and_the_difference_is_told() {
        let mut settings = Settings::default();
        settings.set(PARTITIONS, "5").unwrap();
        let logged = BTreeMap::from([(PARTITIONS.to_owned(), "3".to_owned())]);
        assert_eq!(settings.restore(&logged).unwrap(), [(PARTITIONS.into(), "5".into(), "3".into())]);
        assert_eq!(settings.partitions, 3);
    }
}
