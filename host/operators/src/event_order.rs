//! Event times as numbers that order like the times: the eight bytes in front of a key in a windowed family.

use crate::EventTimeKind;
use arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::TimestampMicrosecondType;

/// The prefix of keys without event time: no watermark passes it.
pub(crate) const NEVER: u64 = u64::MAX;

/// Microseconds since 1970 as an unsigned number of the same order.
pub(crate) fn ordered(time_us: i64) -> u64 {
    (time_us as u64) ^ (1 << 63)
}

/// The prefix through which a watermark, in microseconds, has passed: the greatest time at or before it.
pub(crate) fn passed(watermark_us: i64) -> u64 {
    ordered(watermark_us).min(NEVER - 1)
}

/// The event times of a column as prefixes, [`NEVER`] where there is none; `None` when a window has no end.
pub(crate) fn prefixes(column: &ArrayRef, kind: EventTimeKind) -> Option<Vec<u64>> {
    let (times, outer) = match kind {
        EventTimeKind::Timestamp => (column, None),
        EventTimeKind::Window => (column.as_struct().column_by_name("end")?, column.nulls()),
    };
    let times: &TimestampMicrosecondArray = times.as_primitive::<TimestampMicrosecondType>();
    let nulls = NullBuffer::union(times.nulls(), outer);
    let is_null = |row| nulls.as_ref().is_some_and(|nulls: &NullBuffer| nulls.is_null(row));
    let times = times.values().iter().enumerate();
    Some(times.map(|(row, &time)| if is_null(row) { NEVER } else { ordered(time) }).collect())
}
