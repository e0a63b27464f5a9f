//! `frame.group_by(…)` (Spark's `RelationalGroupedDataset`).

use super::DataFrame;
use super::operations::columns;
use crate::RuntimeError;
use millstream_plan::frame::{Column, Operation, functions};

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

    fn each(self, function: &str, columns: &[&str]) -> Result<DataFrame, RuntimeError> {
        let value = |name: &&str| functions::call_function(function, [functions::col(name)]);
        self.agg(columns.iter().map(|name| value(name).alias(&format!("{function}({name})"))))
    }
}
