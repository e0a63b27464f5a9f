//! Settings of a context, with Spark's names.

use crate::rdd::default_workers;
use crate::{DStreamError, Refusal};

/// What a program may set.
pub(crate) const NAMES: [&str; 5] = [
    "spark.default.parallelism",
    "spark.streaming.receiver.maxRate",
    "spark.streaming.kafka.maxRatePerPartition",
    "spark.streaming.receiver.writeAheadLog.enable",
    "spark.streaming.gracefulStopTimeout",
];

/// Settings, checked.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Partitions of operations that the program gave none, and of inputs.
    pub(crate) parallelism: usize,
    /// Records per second and receiver; no limit without one.
    pub(crate) receiver_max_rate: Option<u64>,
    /// Records per second and partition of a direct stream.
    pub(crate) direct_max_rate: Option<u64>,
    /// Whether received rows are kept in the checkpoint before their batch runs.
    pub(crate) keep_received: bool,
    /// How long a graceful stop may take; ten batch intervals without one.
    pub(crate) graceful_stop_ms: Option<i64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            parallelism: default_workers(),
            receiver_max_rate: None,
            direct_max_rate: None,
            keep_received: true,
            graceful_stop_ms: None,
        }
    }
}

impl Settings {
    /// Sets one.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), DStreamError> {
        let refused = |reason: &str| {
            let (setting, value) = (name.to_owned(), value.to_owned());
            DStreamError::from(Refusal::Setting { setting, value, reason: reason.to_owned() })
        };
        let positive = || match value.trim().parse::<u64>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(refused("write a whole number greater than 0")),
        };
        match name {
            "spark.default.parallelism" => {
                let number = usize::try_from(positive()?).unwrap_or(usize::MAX);
                if number > 4096 {
                    return Err(refused("write a number up to 4096"));
                }
                self.parallelism = number;
            }
            "spark.streaming.receiver.maxRate" => self.receiver_max_rate = Some(positive()?),
            "spark.streaming.kafka.maxRatePerPartition" => self.direct_max_rate = Some(positive()?),
            "spark.streaming.receiver.writeAheadLog.enable" => {
                self.keep_received = value.trim().parse().map_err(|_| refused("write true or false"))?;
            }
            "spark.streaming.gracefulStopTimeout" => {
                let micros = match value.trim().parse::<i64>() {
                    Ok(ms) => ms.saturating_mul(1000),
                    Err(_) => millstream_common::duration::parse_micros(value)
                        .map_err(|_| refused("write milliseconds, or a duration such as `10 seconds`"))?,
                };
                if micros <= 0 {
                    return Err(refused("write a duration above zero"));
                }
                self.graceful_stop_ms = Some(micros / 1000);
            }
            _ => return Err(refused(&format!("there is no such setting; there are {}", NAMES.join(", ")))),
        }
        Ok(())
    }
}

/// How many records a batch may take at a rate per second, one at least.
pub(crate) fn rows_per_batch(rate: u64, interval_ms: i64) -> u64 {
    let rows = u128::from(rate) * u128::from(interval_ms.unsigned_abs()) / 1000;
    u64::try_from(rows).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_nobody_reads_is_refused() {
        let mut settings = Settings::default();
        let error = settings.set("spark.streaming.blockInterval", "200ms").unwrap_err().to_string();
        assert!(error.contains("there is no such setting"), "{error}");
        assert!(settings.set("spark.streaming.receiver.maxRate", "0").is_err());
        settings.set("spark.streaming.gracefulStopTimeout", "10 seconds").unwrap();
        assert_eq!(settings.graceful_stop_ms, Some(10_000));
    }

    #[test]
    fn a_rate_is_per_second() {
        assert_eq!(rows_per_batch(100, 500), 50);
        assert_eq!(rows_per_batch(1, 100), 1);
    }
}
