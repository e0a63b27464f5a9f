//! The operations of a [`DataFrame`], with Spark's names.

use super::data_frame::check_name;
use super::{DataFrame, GroupedData};
use crate::RuntimeError;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_common::duration::parse_micros;
use millstream_plan::frame::{Column, JoinKind, JoinOn, Operation};
use std::error::Error;
use std::sync::Arc;

/// Columns as a method takes them.
pub(super) fn columns<C: Into<Column>>(columns: impl IntoIterator<Item = C>) -> Vec<Column> {
    columns.into_iter().map(Into::into).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

impl DataFrame {
    /// These columns: `select(["word", "n + 1 AS next"])`, `select([col("word"), lit(1).alias("one")])`.
    ///
    /// # Errors
    /// When a column does not parse, names what is not there, or has types that do not fit.
    pub fn select<C: Into<Column>>(&self, items: impl IntoIterator<Item = C>) -> Result<Self, RuntimeError> {
        self.then(Operation::Select(columns(items)))
    }

    /// As [`select`](Self::select), of texts in SQL.
    ///
    /// # Errors
    /// As [`select`](Self::select).
    pub fn select_expr(&self, items: &[&str]) -> Result<Self, RuntimeError> {
        self.select(items)
    }

    /// All columns, and one that is added, or takes the place of the one of its name.
    ///
    /// # Errors
    /// As [`select`](Self::select).
    pub fn with_column(&self, name: &str, column: impl Into<Column>) -> Result<Self, RuntimeError> {
        self.then(Operation::WithColumn(name.to_owned(), column.into()))
    }

    /// All columns, one under another name; no change when there is none of that name.
    ///
    /// # Errors
    /// When the result cannot be planned.
    pub fn with_column_renamed(&self, from: &str, to: &str) -> Result<Self, RuntimeError> {
        self.then(Operation::Rename { from: from.to_owned(), to: to.to_owned() })
    }

    /// All columns but these; names that are not there are fine.
    ///
    /// # Errors
    /// When no column is left.
    pub fn drop(&self, columns: &[&str]) -> Result<Self, RuntimeError> {
        self.then(Operation::Drop(names(columns)))
    }

    /// The rows for which the condition holds: `filter("n > 3")`, `filter(col("n").gt(3))`.
    ///
    /// # Errors
    /// As [`select`](Self::select).
    pub fn filter(&self, condition: impl Into<Column>) -> Result<Self, RuntimeError> {
        self.then(Operation::Filter(condition.into()))
    }

    /// As [`filter`](Self::filter).
    ///
    /// # Errors
    /// As [`select`](Self::select).
    pub fn where_(&self, condition: impl Into<Column>) -> Result<Self, RuntimeError> {
        self.filter(condition)
    }

    /// Groups the rows; what is computed per group comes next: `group_by(["word"]).count()`.
    pub fn group_by<C: Into<Column>>(&self, keys: impl IntoIterator<Item = C>) -> GroupedData {
        GroupedData::new(self.clone(), columns(keys))
    }

    /// Computes over all rows.
    ///
    /// # Errors
    /// As [`select`](Self::select).
    pub fn agg<C: Into<Column>>(&self, values: impl IntoIterator<Item = C>) -> Result<Self, RuntimeError> {
        GroupedData::new(self.clone(), Vec::new()).agg(values)
    }

    /// Joins with another frame. `on` are names of columns that both have, or a condition; `how` is Spark's word: `inner`, `cross`,
    /// `left_outer`, `right_outer`, `full_outer`, `left_semi`, `left_anti`. In a condition, the sides are told apart by their
    /// [`alias`](Self::alias).
    ///
    /// # Errors
    /// As [`select`](Self::select); when `how` is no kind of join; when two different streams have one name.
    pub fn join(&self, other: &Self, on: impl Into<JoinOn>, how: &str) -> Result<Self, RuntimeError> {
        let kind: JoinKind = how.parse()?;
        self.with(other, Operation::Join { on: on.into(), kind })
    }

    /// All pairs of rows.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn cross_join(&self, other: &Self) -> Result<Self, RuntimeError> {
        self.with(other, Operation::Join { on: JoinOn::Nothing, kind: JoinKind::Cross })
    }

    /// The rows of both; columns belong together by their place.
    ///
    /// # Errors
    /// When the columns do not fit, or two different streams have one name.
    pub fn union(&self, other: &Self) -> Result<Self, RuntimeError> {
        self.with(other, Operation::Union { by_name: false })
    }

    /// The rows of both; columns belong together by their names.
    ///
    /// # Errors
    /// As [`union`](Self::union).
    pub fn union_by_name(&self, other: &Self) -> Result<Self, RuntimeError> {
        self.with(other, Operation::Union { by_name: true })
    }

    /// Declares a column to be event time, and how long late rows are waited for.
    ///
    /// # Errors
    /// When the column is no TIMESTAMP, the delay is no duration of at least 0, or event time is declared below already.
    pub fn with_watermark(&self, column: &str, delay: &str) -> Result<Self, RuntimeError> {
        let invalid = |reason: String| RuntimeError::Invalid { reason, hint: None };
        let delay_us = parse_micros(delay).map_err(|error| invalid(error.to_string()))?;
        if delay_us < 0 {
            return Err(invalid(format!("the delay `{delay}` of a watermark must not be negative")));
        }
        self.then(Operation::Watermark { column: column.to_owned(), delay_us })
    }

    /// Drops rows whose values in `columns` (all columns if there are none) have been seen before. With the event time among
    /// them a value is remembered until the watermark passes it, otherwise for ever.
    ///
    /// # Errors
    /// When a column is not there.
    pub fn drop_duplicates(&self, columns: &[&str]) -> Result<Self, RuntimeError> {
        self.then(Operation::DropDuplicates { columns: names(columns), within_watermark: false })
    }

    /// Drops rows whose values in `columns` have been seen less than the watermark's delay before, in event time.
    ///
    /// # Errors
    /// When a column is not there, or there is no watermark.
    pub fn drop_duplicates_within_watermark(&self, columns: &[&str]) -> Result<Self, RuntimeError> {
        self.then(Operation::DropDuplicates { columns: names(columns), within_watermark: true })
    }

    /// Every row once: an aggregation over all columns.
    ///
    /// # Errors
    /// When a type cannot be compared.
    pub fn distinct(&self) -> Result<Self, RuntimeError> {
        self.then(Operation::Distinct)
    }

    /// The rows in order: `order_by([col("n").desc()])`, `order_by(["n DESC"])`.
    ///
    /// # Errors
    /// As [`select`](Self::select).
    pub fn order_by<C: Into<Column>>(&self, keys: impl IntoIterator<Item = C>) -> Result<Self, RuntimeError> {
        self.then(Operation::OrderBy(columns(keys)))
    }

    /// The first rows.
    ///
    /// # Errors
    /// When it cannot be planned.
    pub fn limit(&self, rows: usize) -> Result<Self, RuntimeError> {
        self.then(Operation::Limit(rows))
    }

    /// Gives it a name: its columns are `name.column` then, and the uid of a stateful operation in it begins with the name.
    ///
    /// # Errors
    /// When the name is no identifier, or two columns have one name.
    pub fn alias(&self, name: &str) -> Result<Self, RuntimeError> {
        check_name(name)?;
        self.then(Operation::Alias(name.to_owned()))
    }

    /// Makes rows of the columns `schema` from each batch of rows, in this process. How rows are cut into batches may differ
    /// between runs, so the function should work row by row; event time has to be declared anew behind it.
    ///
    /// # Errors
    /// When `schema` does not fit, or this is a static table.
    pub fn map_batches<E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        schema: SchemaRef,
        function: impl Fn(RecordBatch) -> Result<RecordBatch, E> + Send + Sync + 'static,
    ) -> Result<Self, RuntimeError> {
        let function = Arc::new(move |rows| Ok(vec![function(rows).map_err(Into::into)?]));
        self.then(Operation::Map { schema, function })
    }

    /// As [`map_batches`](Self::map_batches), with any number of batches of rows for each.
    ///
    /// # Errors
    /// As [`map_batches`](Self::map_batches).
    pub fn flat_map<R: IntoIterator<Item = RecordBatch>, E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        schema: SchemaRef,
        function: impl Fn(RecordBatch) -> Result<R, E> + Send + Sync + 'static,
    ) -> Result<Self, RuntimeError> {
        let function = Arc::new(move |rows| Ok(function(rows).map_err(Into::into)?.into_iter().collect()));
        self.then(Operation::Map { schema, function })
    }
}
