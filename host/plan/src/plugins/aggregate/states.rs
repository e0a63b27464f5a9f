//! The states of many groups while rows and states come in.
//!
//! Rows are kept until there are enough for a call; what the guest made of them is kept as parts, each with the states
//! of some groups; parts are merged when the states are asked for, or when they have grown too many.

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array, new_empty_array};
use arrow::compute::{concat, take_arrays};
use arrow::datatypes::FieldRef;
use datafusion::common::{DataFusionError, Result, exec_err};
use millstream_wasm::{AggregateSignature, FaultPolicy, PluginSlot, WasmError};
use std::collections::HashMap;
use std::sync::Arc;

/// Parts are merged early when they have twice as many states as there are groups, and this many more.
const LOOSE_STATES: usize = 64 << 10;

/// The states of many groups.
#[derive(Debug)]
pub(super) struct States {
    slot: Arc<PluginSlot>,
    function: Arc<AggregateSignature>,
    groups: usize,
    /// Rows that the guest has not seen, in order.
    rows: Vec<Rows>,
    /// States in the order in which they are to be merged; older than the rows.
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Rows {
    arguments: Vec<ArrayRef>,
    group_of_row: Vec<u32>,
}

/// One state for each of some groups.
#[derive(Debug)]
struct Part {
    groups: Vec<u32>,
    states: Vec<ArrayRef>,
}

fn external(error: WasmError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn numbers(groups: &[usize]) -> Result<Vec<u32>> {
    match groups.iter().map(|group| u32::try_from(*group)).collect::<std::result::Result<_, _>>() {
        Ok(numbers) => Ok(numbers),
        Err(_) => exec_err!("more than {} groups in one batch", u32::MAX),
    }
}

impl States {
    /// No groups.
    pub(super) fn new(slot: Arc<PluginSlot>, function: Arc<AggregateSignature>) -> Self {
        Self { slot, function, groups: 0, rows: Vec::new(), parts: Vec::new() }
    }

    /// The same function, no groups.
    pub(super) fn fresh(&self) -> Self {
        Self::new(Arc::clone(&self.slot), Arc::clone(&self.function))
    }

    /// How many groups there are.
    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// Makes sure that there are so many groups.
    pub(super) fn grow(&mut self, groups: usize) {
        self.groups = self.groups.max(groups);
    }

    /// Whether rows can be taken back: the guest can, and has taken all that it was given.
    pub(super) fn retracts(&self) -> bool {
        self.function.retracts && self.slot.policy() == FaultPolicy::Fail
    }

    /// Adds the rows that `filter` lets pass; row `i` belongs to group `groups[i]`.
    pub(super) fn update(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
    ) -> Result<()> {
        let mut group_of_row = numbers(groups)?;
        let mut arguments = values.to_vec();
        if let Some(filter) = filter {
            let passes = |row: &u32| filter.is_valid(*row as usize) && filter.value(*row as usize);
            let kept: Vec<u32> = (0..group_of_row.len() as u32).filter(passes).collect();
            if kept.len() < group_of_row.len() {
                group_of_row = kept.iter().map(|row| group_of_row[*row as usize]).collect();
                arguments = take_arrays(&arguments, &UInt32Array::from(kept), None)?;
            }
        }
        if !group_of_row.is_empty() {
            self.rows.push(Rows { arguments, group_of_row });
        }
        let limits = self.slot.limits();
        let (rows, bytes) =
            (self.kept_rows(), self.rows.iter().flat_map(|rows| &rows.arguments).map(size).sum::<usize>());
        if rows >= limits.rows_per_call || bytes >= limits.argument_bytes_per_call {
            self.accumulate()?;
        }
        Ok(())
    }

    /// Adds states; row `i` belongs to group `groups[i]`.
    pub(super) fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.accumulate()?;
        if !groups.is_empty() {
            self.parts.push(Part { groups: numbers(groups)?, states: states.to_vec() });
        }
        self.tidy()
    }

    /// Takes rows back out of group 0.
    pub(super) fn retract(&mut self, values: &[ArrayRef]) -> Result<()> {
        let states = self.settle()?;
        let rows = values.first().map_or(0, |column| column.len());
        let states = self.slot.retract(&self.function.name, &states, &vec![0; rows], values).map_err(external)?;
        self.keep(states);
        Ok(())
    }

    /// One state for each group, which stays.
    pub(super) fn settle(&mut self) -> Result<Vec<ArrayRef>> {
        let states = self.merged()?;
        self.keep(states.clone());
        Ok(states)
    }

    /// One state for each of the first `groups` groups, which go; the others move up.
    pub(super) fn take(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        let states = self.merged()?;
        let rest = self.groups.saturating_sub(groups);
        self.groups = rest;
        if rest == 0 {
            self.rows.clear();
            self.parts.clear();
            return Ok(states);
        }
        self.keep(states.iter().map(|column| column.slice(groups, rest)).collect());
        Ok(states.iter().map(|column| column.slice(0, groups)).collect())
    }

    /// One value for each state.
    pub(super) fn values(&self, states: &[ArrayRef]) -> Result<ArrayRef> {
        if states.first().is_none_or(|column| column.is_empty()) {
            return Ok(new_empty_array(self.function.result.data_type()));
        }
        Ok(self.slot.evaluate(&self.function.name, states).map_err(external)?.values)
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let rows = self.rows.iter().flat_map(|rows| &rows.arguments);
        rows.chain(self.parts.iter().flat_map(|part| &part.states)).map(|column| column.get_array_memory_size()).sum()
    }

    fn keep(&mut self, states: Vec<ArrayRef>) {
        self.rows.clear();
        self.parts = vec![Part { groups: (0..self.groups as u32).collect(), states }];
    }

    fn kept_rows(&self) -> usize {
        self.rows.iter().map(|rows| rows.group_of_row.len()).sum()
    }

    /// The rows that are kept, as one; none are kept any more.
    fn take_rows(&mut self) -> Result<(Vec<ArrayRef>, Vec<u32>)> {
        let rows = std::mem::take(&mut self.rows);
        let fields = self.function.arguments.iter().enumerate();
        let column = |(index, field): (usize, &FieldRef)| {
            let parts: Vec<&dyn Array> =
                rows.iter().filter_map(|rows| rows.arguments.get(index)).map(AsRef::as_ref).collect();
            match parts.is_empty() {
                true => Ok(new_empty_array(field.data_type())),
                false => concat(&parts),
            }
        };
        let arguments = fields.map(column).collect::<std::result::Result<Vec<_>, _>>()?;
        Ok((arguments, rows.iter().flat_map(|rows| rows.group_of_row.iter().copied()).collect()))
    }

    /// Makes a part of the rows that are kept: the states of the groups that they are of.
    fn accumulate(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let (arguments, mut group_of_row) = self.take_rows()?;
        let mut known: HashMap<u32, u32> = HashMap::new();
        let mut groups = Vec::new();
        for group in &mut group_of_row {
            *group = *known.entry(*group).or_insert_with(|| {
                groups.push(*group);
                (groups.len() - 1) as u32
            });
        }
        let made = self.slot.accumulate(&self.function.name, groups.len(), &group_of_row, &arguments);
        self.parts.push(Part { groups, states: made.map_err(external)?.states });
        self.tidy()
    }

    /// Merges the parts when they have grown too many.
    fn tidy(&mut self) -> Result<()> {
        let states: usize = self.parts.iter().map(|part| part.groups.len()).sum();
        if self.parts.len() > 1 && states > 2 * self.groups + LOOSE_STATES {
            self.settle()?;
        }
        Ok(())
    }

    /// One state for each group.
    fn merged(&mut self) -> Result<Vec<ArrayRef>> {
        if self.groups == 0 {
            return Ok(self.function.state.iter().map(|field| new_empty_array(field.data_type())).collect());
        }
        if self.parts.is_empty() {
            let (arguments, group_of_row) = self.take_rows()?;
            let made = self.slot.accumulate(&self.function.name, self.groups, &group_of_row, &arguments);
            return Ok(made.map_err(external)?.states);
        }
        self.accumulate()?;
        if let [part] = self.parts.as_slice()
            && part.groups.len() == self.groups
            && (0..).zip(&part.groups).all(|(number, group)| number == *group)
        {
            return Ok(part.states.clone());
        }
        let mut has_state = vec![false; self.groups];
        self.parts.iter().flat_map(|part| &part.groups).for_each(|group| has_state[*group as usize] = true);
        let missing: Vec<u32> = (0..).zip(has_state).filter_map(|(group, has)| (!has).then_some(group)).collect();
        if !missing.is_empty() {
            let (arguments, _) = self.take_rows()?;
            let made = self.slot.accumulate(&self.function.name, missing.len(), &[], &arguments);
            self.parts.push(Part { groups: missing, states: made.map_err(external)?.states });
        }
        let group_of_state: Vec<u32> = self.parts.iter().flat_map(|part| part.groups.iter().copied()).collect();
        let column = |index: usize| {
            let parts: Vec<&dyn Array> =
                self.parts.iter().filter_map(|part| part.states.get(index)).map(AsRef::as_ref).collect();
            concat(&parts)
        };
        let states = (0..self.function.state.len()).map(column).collect::<std::result::Result<Vec<_>, _>>()?;
        self.slot.merge(&self.function.name, self.groups, &group_of_state, &states).map_err(external)
    }
}

fn size(column: &ArrayRef) -> usize {
    column.to_data().get_slice_memory_size().unwrap_or_default()
}
