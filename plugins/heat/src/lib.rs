//! How much a page matters: one number from what its visitors did.

use millstream_sdk::prelude::*;

/// A tenth of the page's level, nine tenths per visit, four tenths per second of dwell time, and the likes.
#[scalar_function]
fn heat(level: i64, visits: i64, dwell: f64, like: i64) -> f64 {
    0.1 * level as f64 + 0.9 * visits as f64 + 0.4 * dwell + like as f64
}

plugin!(heat);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_weighs_level_visits_dwell_time_and_likes() {
        assert!((heat(1, 1, 1.0, 1) - 2.4).abs() < 1e-12);
        assert!((heat(3, 10, 30.5, 0) - 21.5).abs() < 1e-12);
        assert_eq!(heat(0, 0, 0.0, -1), -1.0);
    }
}
