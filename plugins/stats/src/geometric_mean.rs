//! The mean of ratios: growth, speed-up, latency.

use millstream_sdk::prelude::*;

/// How many numbers there were, and the sum of their logarithms.
#[derive(Row, Default, Debug)]
pub struct GeometricMean {
    count: i64,
    logarithms: f64,
}

#[aggregate_function(state_id = "count and sum of natural logarithms")]
impl GeometricMean {
    fn accumulate(&mut self, value: f64) -> Result<(), String> {
        if !(value > 0.0 && value.is_finite()) {
            return Err(format!("a geometric mean is of positive numbers, and {value} is none"));
        }
        self.count += 1;
        self.logarithms += value.ln();
        Ok(())
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.logarithms += other.logarithms;
    }

    fn retract(&mut self, value: f64) {
        self.count -= 1;
        self.logarithms -= value.ln();
    }

    fn evaluate(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.logarithms / self.count as f64).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> GeometricMean {
        let mut mean = GeometricMean::default();
        values.iter().for_each(|value| mean.accumulate(*value).unwrap_or_else(|error| assert_eq!(error, "")));
        mean
    }

    #[test]
    fn it_is_the_root_of_the_product() {
        let close = |mean: &GeometricMean, value: f64| (mean.evaluate().unwrap_or(0.0) - value).abs() < 1e-9;
        assert!(close(&of(&[1.0, 10.0, 100.0]), 10.0));
        let mut parts = of(&[2.0]);
        parts.merge(of(&[4.0, 1.0]));
        assert!(close(&parts, 2.0));
        parts.retract(1.0);
        assert!(close(&parts, 8f64.sqrt()));
        assert_eq!(GeometricMean::default().evaluate(), None);
    }

    #[test]
    fn other_numbers_fail_and_change_nothing() {
        let mut mean = of(&[3.0]);
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(mean.accumulate(value).is_err());
        }
        assert_eq!(mean.count, 1);
    }
}
