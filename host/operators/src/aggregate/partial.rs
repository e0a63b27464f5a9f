//! The groups of one batch, before the state is asked: Spark's partial aggregation.
//!
//! Filled from the first rows of a batch to its barrier, then emptied for the next one. Rows are grouped as they come, so
//! what is kept is one row per group, not the rows. A batch that failed drops it.

use super::functions::{Accumulators, Arguments, Functions};
use super::keys::KeyColumns;
use super::lane::Lane;
use super::numbering::Numbering;
use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take_arrays;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use std::sync::Arc;

/// The groups of one batch.
pub(crate) struct Partial {
    numbers: Numbers,
    /// `None` while the batch has no rows.
    accumulators: Option<Accumulators>,
    /// The group of each of the last rows; kept for its memory.
    indices: Vec<usize>,
}

/// Who numbers the groups.
enum Numbers {
    /// A global aggregate has one group.
    One,
    /// Keys of the usual types.
    Usual(Numbering),
    /// All others.
    Any(Box<dyn GroupValues>),
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

impl Groups {
    /// The same groups, at most so many at a time.
    pub(crate) fn pieces(self, most: usize) -> impl Iterator<Item = Self> {
        let cut = move |start: usize| {
            let len = most.min(self.len - start);
            let slice = |columns: &[ArrayRef]| columns.iter().map(|column| column.slice(start, len)).collect();
            Self { keys: slice(&self.keys), states: slice(&self.states), len }
        };
        (0..self.len).step_by(most).map(cut)
    }
}

impl Partial {
    pub(crate) fn try_new(keys: &KeyColumns) -> Result<Self, DataFusionError> {
        Ok(Self { numbers: Numbers::try_new(keys)?, accumulators: None, indices: Vec::new() })
    }

    /// Whether the batch has no rows so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.accumulators.is_none()
    }

    /// Adds rows; with a lane only those whose keys are of it.
    pub(crate) fn add(
        &mut self,
        keys: &KeyColumns,
        functions: &Functions,
        rows: &RecordBatch,
        lane: Option<&Lane<'_>>,
    ) -> Result<(), DataFusionError> {
        let arguments = functions.arguments(rows)?;
        if let Some(lane) = lane {
            return self.add_lane(keys, functions, (rows, &arguments), lane);
        }
        let accumulators = match &mut self.accumulators {
            Some(accumulators) => accumulators,
            none => none.insert(functions.accumulators()?),
        };
        if matches!(self.numbers, Numbers::One) {
            self.indices.clear();
            self.indices.resize(rows.num_rows(), 0);
            return functions.update(accumulators, &arguments, &self.indices, 1);
        }
        for columns in keys.evaluate(rows)? {
            let total = self.numbers.number(&columns, &mut self.indices)?;
            functions.update(accumulators, &arguments, &self.indices, total)?;
        }
        Ok(())
    }

    fn add_lane(
        &mut self,
        keys: &KeyColumns,
        functions: &Functions,
        (rows, arguments): (&RecordBatch, &Arguments),
        lane: &Lane<'_>,
    ) -> Result<(), DataFusionError> {
        for columns in keys.evaluate(rows)? {
            let mine = lane.rows(&keys.fold(columns.clone())?, rows.num_rows())?;
            if mine.is_empty() {
                continue;
            }
            let mine = UInt32Array::from(mine);
            let accumulators = match &mut self.accumulators {
                Some(accumulators) => accumulators,
                none => none.insert(functions.accumulators()?),
            };
            let total = self.numbers.number(&take_arrays(&columns, &mine, None)?, &mut self.indices)?;
            functions.update(accumulators, &arguments.of_rows(&mine)?, &self.indices, total)?;
        }
        Ok(())
    }

    /// Ends the batch: one row per group. It is then ready for the next one.
    pub(crate) fn finish(&mut self, keys: &KeyColumns, functions: &Functions) -> Result<Groups, DataFusionError> {
        let (columns, len) = match &mut self.numbers {
            Numbers::One => (Vec::new(), 1),
            Numbers::Usual(numbering) => {
                let len = numbering.len();
                (keys.fold(numbering.emit()?)?, len)
            }
            Numbers::Any(groups) => {
                let len = groups.len();
                let columns = keys.fold(groups.emit(EmitTo::All)?)?;
                self.numbers = Numbers::try_new(keys)?;
                (columns, len)
            }
        };
        let accumulators = match self.accumulators.take() {
            Some(accumulators) => accumulators,
            None => {
                let mut accumulators = functions.accumulators()?;
                if len > 0 {
                    functions.update(&mut accumulators, &functions.no_arguments(), &[0], len)?;
                }
                accumulators
            }
        };
        Ok(Groups { keys: columns, states: functions.states(accumulators)?, len })
    }
}

impl Numbers {
    fn try_new(keys: &KeyColumns) -> Result<Self, DataFusionError> {
        if keys.is_global() {
            return Ok(Self::One);
        }
        match Numbering::try_new(keys.flat_schema(), keys.flat_window()) {
            Some(numbering) => Ok(Self::Usual(numbering)),
            None => Ok(Self::Any(new_group_values(Arc::clone(keys.flat_schema()), &GroupOrdering::None)?)),
        }
    }

    /// The group of each row; answers how many groups there are.
    fn number(&mut self, columns: &[ArrayRef], numbers: &mut Vec<usize>) -> Result<usize, DataFusionError> {
        match self {
            Self::One => Ok(1),
            Self::Usual(numbering) => {
                numbering.number(columns, numbers)?;
                Ok(numbering.len())
            }
            Self::Any(groups) => {
                groups.intern(columns, numbers)?;
                Ok(groups.len())
            }
        }
    }
}
