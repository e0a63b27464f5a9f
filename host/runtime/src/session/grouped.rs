//! `frame.group_by(…)` (Spark's `RelationalGroupedDataset`).

use super::DataFrame;
use super::operations::columns;
use crate::RuntimeError;
use millstream_common::OutputMode;
use millstream_plan::frame::{Column, Operation, ProcessCall, functions};

/// What a stateful processor gets beside its rows.
#[derive(Debug, Clone, Default)]
pub struct ProcessOptions {
    initial: Option<GroupedData>,
    event_time: Option<String>,
}

impl ProcessOptions {
    /// Initial state, grouped by the same keys: rows of a static table, which the processor gets before the first batch.
    #[must_use]
    pub fn initial_state(self, initial: GroupedData) -> Self {
        Self { initial: Some(initial), ..self }
    }

    /// The column of the result that carries event time, for what follows. The code must not give out rows that the watermark
    /// has passed.
    #[must_use]
    pub fn event_time_column(self, column: &str) -> Self {
        Self { event_time: Some(column.to_owned()), ..self }
    }
}

/// Rows in groups, until it is said what is computed per group. The keys come out first.
#[derive(Debug, Clone)]
#[must_use]
pub struct GroupedData {
    frame: DataFrame,
    keys: Vec<Column>,
}

impl GroupedData {
    pub(super) fn new(frame: DataFrame, keys: Vec<Column>) -> Self {
        Self { frame, keys }
    }

    /// Computes these columns: `agg(["count(*) AS n", "max(at)"])`, `agg([sum("n").alias("total")])`.
    ///
    /// # Errors
    /// As [`DataFrame::select`].
    pub fn agg<C: Into<Column>>(self, values: impl IntoIterator<Item = C>) -> Result<DataFrame, RuntimeError> {
        self.frame.then(Operation::Aggregate { keys: self.keys, values: columns(values) })
    }

    /// The number of rows, as `count`.
    ///
    /// # Errors
    /// As [`agg`](Self::agg).
    pub fn count(self) -> Result<DataFrame, RuntimeError> {
        self.agg([functions::count("*").alias("count")])
    }

    /// The sum of each column, as `sum(column)`.
    ///
    /// # Errors
    /// As [`agg`](Self::agg).
    pub fn sum(self, columns: &[&str]) -> Result<DataFrame, RuntimeError> {
        self.each("sum", columns)
    }

    /// The mean of each column, as `avg(column)`.
    ///
    /// # Errors
    /// As [`agg`](Self::agg).
    pub fn avg(self, columns: &[&str]) -> Result<DataFrame, RuntimeError> {
        self.each("avg", columns)
    }

    /// The least value of each column, as `min(column)`.
    ///
    /// # Errors
    /// As [`agg`](Self::agg).
    pub fn min(self, columns: &[&str]) -> Result<DataFrame, RuntimeError> {
        self.each("min", columns)
    }

    /// The greatest value of each column, as `max(column)`.
    ///
    /// # Errors
    /// As [`agg`](Self::agg).
    pub fn max(self, columns: &[&str]) -> Result<DataFrame, RuntimeError> {
        self.each("max", columns)
    }

    /// Runs the stateful processor of a plugin over the groups: its code sees all rows of a group together with what it stored
    /// under the group's key before. `mode` must be the query's.
    ///
    /// ```text
    /// clicks.group_by(["user"]).transform_with_state("sessions", OutputMode::Append)
    /// ```
    ///
    /// # Errors
    /// When there is no such processor, or its columns do not fit.
    pub fn transform_with_state(self, processor: &str, mode: OutputMode) -> Result<DataFrame, RuntimeError> {
        self.process(processor, mode, ProcessOptions::default(), false)
    }

    /// As [`transform_with_state`](Self::transform_with_state), with initial state or an event time of the result.
    ///
    /// # Errors
    /// As [`transform_with_state`](Self::transform_with_state).
    pub fn transform_with_state_using(
        self,
        processor: &str,
        mode: OutputMode,
        options: ProcessOptions,
    ) -> Result<DataFrame, RuntimeError> {
        self.process(processor, mode, options, false)
    }

    /// Runs a processor that is a function over groups, with one state and one timeout per key. Where timeouts go by event time
    /// no other stateful operation may follow.
    ///
    /// # Errors
    /// As [`transform_with_state`](Self::transform_with_state).
    pub fn flat_map_groups_with_state(self, processor: &str, mode: OutputMode) -> Result<DataFrame, RuntimeError> {
        self.process(processor, mode, ProcessOptions::default(), true)
    }

    /// As [`flat_map_groups_with_state`](Self::flat_map_groups_with_state), with initial state.
    ///
    /// # Errors
    /// As [`transform_with_state`](Self::transform_with_state).
    pub fn flat_map_groups_with_state_using(
        self,
        processor: &str,
        mode: OutputMode,
        options: ProcessOptions,
    ) -> Result<DataFrame, RuntimeError> {
        self.process(processor, mode, options, true)
    }

    fn process(
        self,
        processor: &str,
        mode: OutputMode,
        options: ProcessOptions,
        is_flat_map: bool,
    ) -> Result<DataFrame, RuntimeError> {
        let (initial, initial_keys) = match options.initial {
            Some(initial) => (Some(initial.frame), initial.keys),
            None => (None, Vec::new()),
        };
        let (keys, event_time) = (self.keys, options.event_time);
        let processor = processor.to_owned();
        let operation =
            Operation::Process(ProcessCall { processor, keys, initial_keys, mode, event_time, is_flat_map });
        match initial {
            Some(initial) => self.frame.with(&initial, operation),
            None => self.frame.then(operation),
        }
    }

    fn each(self, function: &str, columns: &[&str]) -> Result<DataFrame, RuntimeError> {
        let value = |name: &&str| functions::call_function(function, [functions::col(name)]);
        self.agg(columns.iter().map(|name| value(name).alias(&format!("{function}({name})"))))
    }
}
