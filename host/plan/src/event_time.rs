//! Which columns carry event time, and which are sessions: marks in the metadata of a field.
//!
//! The mark of event time is set by the watermark node, kept by everything that passes a column through, and handed on by
//! `window(...)`, `session_window(...)` and `window_time(...)`. The mark of a session is set by `session_window(...)` and
//! kept like it; an aggregation by a column that has it merges sessions. Source of the semantics: Spark's
//! `EventTimeWatermark.delayKey` and `SessionWindow.marker`.

use arrow::datatypes::{Field, FieldRef};
use datafusion::common::metadata::FieldMetadata;
use std::collections::BTreeMap;

/// The key of the mark; the value is the delay in microseconds.
const KEY: &str = "millstream.event_time_delay_us";

/// The key of the mark of sessions.
const SESSION: &str = "millstream.session";

/// The field with the mark.
pub(crate) fn mark(field: &Field, delay_us: i64) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(KEY.to_owned(), delay_us.to_string());
    field.clone().with_metadata(metadata)
}

/// Whether a field carries event time.
pub(crate) fn is_marked(field: &Field) -> bool {
    field.metadata().contains_key(KEY)
}

/// The delay of the watermark that a field carries, in microseconds.
pub(crate) fn delay_us(field: &Field) -> Option<i64> {
    field.metadata().get(KEY)?.parse().ok()
}

/// The field without the mark.
pub(crate) fn unmark(field: &Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.remove(KEY);
    field.clone().with_metadata(metadata)
}

/// The mark of `from` as alias metadata, when it has one.
pub(crate) fn metadata_of(from: &FieldRef) -> Option<FieldMetadata> {
    from.metadata().get(KEY).map(|delay| FieldMetadata::from(BTreeMap::from([(KEY.to_owned(), delay.clone())])))
}

/// `to` with the mark of `from`, when it has one.
pub(crate) fn hand_on(from: &Field, to: Field) -> Field {
    match from.metadata().get(KEY) {
        Some(delay) => {
            let mut metadata = to.metadata().clone();
            metadata.insert(KEY.to_owned(), delay.clone());
            to.with_metadata(metadata)
        }
        None => to,
    }
}

/// Whether a field is a session that grows with its rows.
pub(crate) fn is_session(field: &Field) -> bool {
    field.metadata().contains_key(SESSION)
}

/// The field with the mark of a session.
pub(crate) fn mark_session(field: Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(SESSION.to_owned(), String::new());
    field.with_metadata(metadata)
}

/// The mark of a session, and that of event time when `from` has it, as alias metadata.
pub(crate) fn session_metadata_of(from: &FieldRef) -> FieldMetadata {
    let mut marks = BTreeMap::from([(SESSION.to_owned(), String::new())]);
    marks.extend(from.metadata().get(KEY).map(|delay| (KEY.to_owned(), delay.clone())));
    FieldMetadata::from(marks)
}
