//! Event times as numbers that order like the times: the eight bytes in front of a key in a windowed family.

/// The prefix of keys without event time: no watermark passes it.
pub(crate) const NEVER: u64 = u64::MAX;

/// Microseconds since 1970 as an unsigned number of the same order.
pub(crate) fn ordered(time_us: i64) -> u64 {
    (time_us as u64) ^ (1 << 63)
}
