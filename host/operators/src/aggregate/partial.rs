//! The groups of one batch, before the state is asked: Spark's partial aggregation.
//!
//! Lives from the first rows of a batch to its barrier. Rows are grouped as they come, so what is kept is one row per
//! group, not the rows.

use super::functions::{Accumulators, Functions};
use super::keys::KeyColumns;
use arrow::array::{ArrayRef, RecordBatch};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use std::sync::Arc;

/// The groups of one batch.
pub(crate) struct Partial {
    /// `None` for the one group of a global aggregate.
    groups: Option<Box<dyn GroupValues>>,
    accumulators: Accumulators,
    /// The group of each of the last rows; kept for its memory.
    indices: Vec<usize>,
}

/// Groups with their partial states, as columns.
pub(crate) struct Groups {
    /// The keys.
    pub(crate) keys: Vec<ArrayRef>,
    /// The states of all functions.
    pub(crate) states: Vec<ArrayRef>,
    /// How many groups.
    pub(crate) len: usize,
}

impl Partial {
    pub(crate) fn try_new(keys: &KeyColumns, functions: &Functions) -> Result<Self, DataFusionError> {
        let groups = match keys.is_global() {
            true => None,
            false => Some(new_group_values(Arc::clone(keys.flat_schema()), &GroupOrdering::None)?),
        };
        Ok(Self { groups, accumulators: functions.accumulators()?, indices: Vec::new() })
    }

    /// Adds rows.
    pub(crate) fn add(
        &mut self,
        keys: &KeyColumns,
        functions: &Functions,
        rows: &RecordBatch,
    ) -> Result<(), DataFusionError> {
        let arguments = functions.arguments(rows)?;
        let Some(groups) = &mut self.groups else {
            self.indices.clear();
            self.indices.resize(rows.num_rows(), 0);
            return functions.update(&mut self.accumulators, &arguments, &self.indices, 1);
        };
        for columns in keys.evaluate(rows)? {
            groups.intern(&columns, &mut self.indices)?;
            functions.update(&mut self.accumulators, &arguments, &self.indices, groups.len())?;
        }
        Ok(())
    }

    /// Ends the batch: one row per group.
    pub(crate) fn finish(mut self, keys: &KeyColumns, functions: &Functions) -> Result<Groups, DataFusionError> {
        let (columns, len) = match &mut self.groups {
            Some(groups) => {
                let len = groups.len();
                (keys.fold(groups.emit(EmitTo::All)?)?, len)
            }
            None => {
                if self.indices.is_empty() {
                    functions.update(&mut self.accumulators, &functions.no_arguments(), &[0], 1)?;
                }
                (Vec::new(), 1)
            }
        };
        Ok(Groups { keys: columns, states: functions.states(self.accumulators)?, len })
    }
}
