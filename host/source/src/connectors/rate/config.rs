//! The options of the rate source, and the arithmetic of its ramp.

use crate::{SourceError, SourceSpec};
use millstream_common::{Options, duration};

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct RateConfig {
    pub(super) rows_per_second: i64,
    pub(super) ramp_up_s: i64,
    pub(super) partitions: Option<usize>,
}

impl RateConfig {
    pub(super) fn new(spec: &SourceSpec) -> Result<Self, SourceError> {
        let owner = format!("source `{}`", spec.name);
        let owner = owner.as_str();
        let options = &spec.options;
        options.only(owner, &["rowsPerSecond", "rampUpTime", "numPartitions"])?;
        if spec.schema.is_some() {
            let reason = "it has its own columns `timestamp` and `value`; leave the schema out".into();
            return Err(SourceError::Schema { name: spec.name.clone(), reason });
        }
        let expected = "write a whole number greater than 0";
        let rows_per_second = options.parse(owner, "rowsPerSecond", expected)?.unwrap_or(1);
        if rows_per_second <= 0 {
            return Err(Options::invalid(owner, "rowsPerSecond", &rows_per_second.to_string(), expected).into());
        }
        let ramp_up_s = match options.get("rampUpTime") {
            None => 0,
            Some(text) => {
                let micros = match text.trim().parse::<i64>() {
                    // A bare number is seconds.
                    Ok(seconds) => seconds.saturating_mul(1_000_000),
                    Err(_) => duration::parse_micros(text)
                        .map_err(|error| Options::invalid(owner, "rampUpTime", text, &error.to_string()))?,
                };
                if micros < 0 {
                    return Err(Options::invalid(owner, "rampUpTime", text, "it cannot be negative").into());
                }
                micros / 1_000_000
            }
        };
        Ok(Self { rows_per_second, ramp_up_s, partitions: partitions(owner, options)? })
    }

    /// How many rows there are in the first `seconds` seconds.
    pub(super) fn rows_until(&self, seconds: i64) -> i64 {
        let seconds = i128::from(seconds.max(0));
        let ramp = i128::from(self.ramp_up_s);
        let full = i128::from(self.rows_per_second);
        // While it ramps up, each second brings `step` rows more than the one before.
        let step = full / (ramp + 1);
        let triangle = |n: i128| step * (n * (n + 1) / 2);
        let rows = if seconds <= ramp { triangle(seconds) } else { triangle(ramp) + (seconds - ramp) * full };
        i64::try_from(rows).unwrap_or(i64::MAX)
    }
}

/// Option `numPartitions`.
pub(crate) fn partitions(owner: &str, options: &Options) -> Result<Option<usize>, SourceError> {
    let expected = "write a whole number greater than 0";
    match options.parse::<usize>(owner, "numPartitions", expected)? {
        Some(0) => Err(Options::invalid(owner, "numPartitions", "0", expected).into()),
        other => Ok(other),
    }
}
