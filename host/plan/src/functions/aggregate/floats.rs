//! Running sums of doubles, in the order in which a micro-batch adds them.

use datafusion::logical_expr::EmitTo;

/// Sums of many groups, NULL until the first value.
///
/// Rows are added up apart from merged states and joined with them when the sum is read: so a sum over stored
/// state and new rows rounds the same way whether the state or the rows came first.
#[derive(Debug, Default)]
pub(super) struct FloatSums {
    merged: Vec<Option<f64>>,
    rows: Vec<Option<f64>>,
}

impl FloatSums {
    /// Makes sure that there are `groups` groups.
    pub(super) fn grow(&mut self, groups: usize) {
        if self.rows.len() < groups {
            self.rows.resize(groups, None);
            self.merged.resize(groups, None);
        }
    }

    /// Adds the value of a row.
    pub(super) fn add(&mut self, group: usize, value: f64) {
        let sum = &mut self.rows[group];
        *sum = Some(sum.unwrap_or(0.0) + value);
    }

    /// Adds a stored sum.
    pub(super) fn merge(&mut self, group: usize, value: f64) {
        let sum = &mut self.merged[group];
        *sum = Some(sum.map_or(value, |sum| sum + value));
    }

    /// Takes the sums out.
    pub(super) fn take(&mut self, emit: EmitTo) -> Vec<Option<f64>> {
        let merged = emit.take_needed(&mut self.merged);
        let rows = emit.take_needed(&mut self.rows);
        merged
            .into_iter()
            .zip(rows)
            .map(|pair| match pair {
                (Some(merged), Some(rows)) => Some(merged + rows),
                (merged, rows) => merged.or(rows),
            })
            .collect()
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        (self.merged.capacity() + self.rows.capacity()) * size_of::<Option<f64>>()
    }
}
