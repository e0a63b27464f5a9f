//! Settings of a context, with Spark's names.

use crate::input::Gains;
use crate::rdd::default_workers;
use crate::{DStreamError, Refusal};

/// What a program may set.
pub(crate) const NAMES: [&str; 12] = [
    "spark.default.parallelism",
    "spark.streaming.receiver.maxRate",
    "spark.streaming.kafka.maxRatePerPartition",
    "spark.streaming.receiver.writeAheadLog.enable",
    "spark.streaming.gracefulStopTimeout",
    "spark.streaming.backpressure.enabled",
    "spark.streaming.backpressure.initialRate",
    "spark.streaming.backpressure.rateEstimator",
    "spark.streaming.backpressure.pid.proportional",
    "spark.streaming.backpressure.pid.integral",
    "spark.streaming.backpressure.pid.derived",
    "spark.streaming.backpressure.pid.minRate",
];

/// Rates that adapt.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Backpressure {
    pub(crate) gains: Gains,
    /// Records per second of an input before there is a batch to learn from.
    pub(crate) initial_rate: Option<u64>,
}

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
    /// Whether rates adapt.
    pub(crate) backpressure: Option<Backpressure>,
    /// What `spark.streaming.backpressure.*` say, also while it is off.
    pressure: Backpressure,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            parallelism: default_workers(),
            receiver_max_rate: None,
            direct_max_rate: None,
            keep_received: true,
            graceful_stop_ms: None,
            backpressure: None,
            pressure: Backpressure::default(),
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
        let gain = || match value.trim().parse::<f64>() {
            Ok(number) if number >= 0.0 && number.is_finite() => Ok(number),
            _ => Err(refused("write a number of 0 or more")),
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
            "spark.streaming.backpressure.enabled" => {
                let is_on = value.trim().parse().map_err(|_| refused("write true or false"))?;
                self.backpressure = Some(self.pressure).filter(|_| is_on);
            }
            "spark.streaming.backpressure.initialRate" => self.pressure.initial_rate = Some(positive()?),
            "spark.streaming.backpressure.rateEstimator" => {
                if !value.trim().eq_ignore_ascii_case("pid") {
                    return Err(refused("there is one estimator, `pid`"));
                }
            }
            "spark.streaming.backpressure.pid.proportional" => self.pressure.gains.proportional = gain()?,
            "spark.streaming.backpressure.pid.integral" => self.pressure.gains.integral = gain()?,
            "spark.streaming.backpressure.pid.derived" => self.pressure.gains.derived = gain()?,
            "spark.streaming.backpressure.pid.minRate" => self.pressure.gains.least = positive()? as f64,
            _ => return Err(refused(&format!("there is no such setting; there are {}", NAMES.join(", ")))),
        }
        self.backpressure = self.backpressure.map(|_| self.pressure);
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
    fn backpressure_is_off_until_it_is_asked_for_whatever_else_is_said_of_it() {
        let mut settings = Settings::default();
        settings.set("spark.streaming.backpressure.initialRate", "50").unwrap();
        assert!(settings.backpressure.is_none());
        settings.set("spark.streaming.backpressure.enabled", "true").unwrap();
        settings.set("spark.streaming.backpressure.pid.minRate", "7").unwrap();
        let backpressure = settings.backpressure.unwrap();
        assert_eq!(
            (backpressure.initial_rate, backpressure.gains),
            (Some(50), Gains { least: 7.0, ..Gains::default() })
        );
        for (name, value) in
            [("pid.integral", "-1"), ("pid.derived", "NaN"), ("pid.minRate", "0"), ("rateEstimator", "x")]
        {
            assert!(settings.set(&format!("spark.streaming.backpressure.{name}"), value).is_err(), "{name}");
        }
        settings.set("spark.streaming.backpressure.enabled", "false").unwrap();
        assert!(settings.backpressure.is_none());
    }

    #[test]
    fn a_rate_is_per_second() {
        assert_eq!(rows_per_batch(100, 500), 50);
        assert_eq!(rows_per_batch(1, 100), 1);
    }
}
