//! A plugin's state on its way from the planner to a family: marked in the metadata of its columns.
//!
//! The planner marks the state columns of a plugin's aggregate function; the operator, which knows functions only by
//! their columns, reads the marks and says so in its family and in its schema id.

use super::PluginColumns;
use arrow::datatypes::{Field, FieldRef};
use std::sync::Arc;

const PLUGIN: &str = "millstream.plugin";
const STATE: &str = "millstream.state";
const STATE_ID: &str = "millstream.state-id";
const COLUMN: &str = "millstream.column";

/// The columns of `fields` under the names that `rename` gives, marked as state of a plugin.
pub fn mark_plugin_state(
    plugin: &str,
    state: &str,
    state_id: &str,
    fields: &[FieldRef],
    rename: impl Fn(&str) -> String,
) -> Vec<FieldRef> {
    let mark = |field: &FieldRef| {
        let mut metadata = field.metadata().clone();
        for (key, value) in [(PLUGIN, plugin), (STATE, state), (STATE_ID, state_id), (COLUMN, field.name())] {
            metadata.insert(key.to_owned(), value.to_owned());
        }
        Arc::new(Field::clone(field).with_name(rename(field.name())).with_metadata(metadata))
    };
    fields.iter().map(mark).collect()
}

/// What was marked: whose state these columns are, and the columns under their own names. None for other states.
pub(crate) fn plugin_state(fields: &[FieldRef]) -> Option<(PluginColumns, Vec<FieldRef>)> {
    let mark = |key: &str| fields.first()?.metadata().get(key).cloned();
    let columns = PluginColumns {
        plugin: mark(PLUGIN)?,
        state: mark(STATE)?,
        state_id: mark(STATE_ID)?,
        first: 0,
        count: fields.len(),
    };
    let own = |field: &FieldRef| {
        let name = field.metadata().get(COLUMN).unwrap_or(field.name()).clone();
        Arc::new(Field::new(name, field.data_type().clone(), field.is_nullable()))
    };
    Some((columns, fields.iter().map(own).collect()))
}
