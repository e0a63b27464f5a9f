//! The two faces that DataFusion wants of an aggregate function: many groups, and one.

use super::states::States;
use arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

/// The accumulator of a GROUP BY.
#[derive(Debug)]
pub(super) struct Grouped(States);

impl Grouped {
    /// Over these states, which have no groups yet.
    pub(super) fn new(states: States) -> Self {
        Self(states)
    }

    fn take(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = match emit_to {
            EmitTo::All => self.0.groups(),
            EmitTo::First(groups) => groups.min(self.0.groups()),
        };
        self.0.take(groups)
    }
}

impl GroupsAccumulator for Grouped {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.0.grow(total_num_groups);
        self.0.update(values, group_indices, opt_filter)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let states = self.take(emit_to)?;
        self.0.values(&states)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.take(emit_to)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.0.grow(total_num_groups);
        self.0.merge(values, group_indices)
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = values.first().map_or(0, |column| column.len());
        let groups: Vec<usize> = (0..rows).collect();
        let mut states = self.0.fresh();
        states.grow(rows);
        states.update(values, &groups, opt_filter)?;
        states.take(rows)
    }

    fn size(&self) -> usize {
        self.0.bytes()
    }
}

/// The accumulator of an aggregate without GROUP BY, and of a window of rows.
#[derive(Debug)]
pub(super) struct Single(States);

impl Single {
    /// Over these states, which have no groups yet.
    pub(super) fn new(mut states: States) -> Self {
        states.grow(1);
        Self(states)
    }
}

fn zeros(columns: &[ArrayRef]) -> Vec<usize> {
    vec![0; columns.first().map_or(0, |column| column.len())]
}

impl Accumulator for Single {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update(values, &zeros(values), None)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge(states, &zeros(states))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.retract(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.retracts()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let states = self.0.settle()?;
        ScalarValue::try_from_array(&self.0.values(&states)?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.settle()?.iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.bytes()
    }
}
