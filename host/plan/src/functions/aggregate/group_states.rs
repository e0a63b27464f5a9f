//! States of many groups kept by column, and the two faces that DataFusion wants of them.
//!
//! A [`GroupStates`] knows how to take rows and stored states in and how to give states and results out.
//! [`Grouped`] is the accumulator of a GROUP BY over it, [`SingleGroup`] that of an aggregate without one.

use std::fmt;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::NullBuffer;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

/// The states of many groups.
pub(super) trait GroupStates: Send + Sync + 'static {
    /// The same kind of states, without groups.
    fn fresh(&self) -> Box<dyn GroupStates>;

    /// Makes sure that there are `groups` groups.
    fn grow(&mut self, groups: usize);

    /// Takes in the rows that `filter` lets pass; row `i` belongs to group `groups[i]`.
    fn update(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>) -> Result<()>;

    /// Takes in states that [`GroupStates::state`] gave.
    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()>;

    /// Takes the states of these groups out.
    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>>;

    /// Takes the results of these groups out.
    fn results(&mut self, emit: EmitTo) -> Result<ArrayRef>;

    /// Memory in bytes.
    fn bytes(&self) -> usize;
}

/// Calls `apply(row, group)` for every row that is not null and passes the filter.
pub(super) fn each_row(
    nulls: Option<&NullBuffer>,
    filter: Option<&BooleanArray>,
    groups: &[usize],
    mut apply: impl FnMut(usize, usize) -> Result<()>,
) -> Result<()> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    if nulls.is_none() && filter.is_none() {
        for (row, &group) in groups.iter().enumerate() {
            apply(row, group)?;
        }
        return Ok(());
    }
    for (row, &group) in groups.iter().enumerate() {
        let passes = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        if passes && nulls.is_none_or(|nulls| nulls.is_valid(row)) {
            apply(row, group)?;
        }
    }
    Ok(())
}

/// The accumulator of a GROUP BY.
pub(super) struct Grouped {
    states: Box<dyn GroupStates>,
}

impl Grouped {
    /// Over these states, which have no groups yet.
    pub(super) fn new(states: Box<dyn GroupStates>) -> Self {
        Self { states }
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
        self.states.grow(total_num_groups);
        self.states.update(values, group_indices, opt_filter)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.states.results(emit_to)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.states.state(emit_to)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.states.grow(total_num_groups);
        self.states.merge(values, group_indices)
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = values.first().map_or(0, |array| array.len());
        let groups: Vec<usize> = (0..rows).collect();
        let mut states = self.states.fresh();
        states.grow(rows);
        states.update(values, &groups, opt_filter)?;
        states.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.states.bytes()
    }
}

/// The accumulator of an aggregate without GROUP BY.
pub(super) struct SingleGroup {
    states: Box<dyn GroupStates>,
    indices: Vec<usize>,
}

impl SingleGroup {
    /// Over these states, which have no groups yet.
    pub(super) fn new(mut states: Box<dyn GroupStates>) -> Self {
        states.grow(1);
        Self { states, indices: Vec::new() }
    }

    fn zeros(&mut self, values: &[ArrayRef]) -> usize {
        let rows = values.first().map_or(0, |array| array.len());
        if self.indices.len() < rows {
            self.indices.resize(rows, 0);
        }
        rows
    }

    fn take_state(&mut self) -> Result<Vec<ArrayRef>> {
        let state = self.states.state(EmitTo::All)?;
        self.states.grow(1);
        self.states.merge(&state, &[0])?;
        Ok(state)
    }
}

impl fmt::Debug for SingleGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleGroup").finish_non_exhaustive()
    }
}

impl Accumulator for SingleGroup {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = self.zeros(values);
        self.states.update(values, &self.indices[..rows], None)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = self.zeros(states);
        self.states.merge(states, &self.indices[..rows])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.take_state()?;
        let result = self.states.results(EmitTo::All)?;
        self.states.grow(1);
        self.states.merge(&state, &[0])?;
        ScalarValue::try_from_array(&result, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = self.take_state()?;
        state.iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.states.bytes() + self.indices.capacity() * size_of::<usize>()
    }
}
