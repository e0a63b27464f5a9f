//! Changes of a table as rows: the columns of the table, then what happened, when, and where in the log it stands.

use super::values::{Raw, RowBuilder};
use crate::SourceError;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::borrow::Cow;
use std::sync::Arc;

/// How many rows a batch of Arrow has at most.
const BATCH_ROWS: usize = 8192;

/// What happened to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// It is new.
    Insert,
    /// It has other values.
    Update,
    /// It is gone.
    Delete,
    /// All rows are gone.
    Truncate,
}

impl Op {
    fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Truncate => "truncate",
        }
    }
}

/// A change of one row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    /// What happened.
    pub(crate) op: Op,
    /// The values of the table's columns.
    pub(crate) values: Vec<Raw<'static>>,
}

/// The changes of a table in one transaction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Transaction<P> {
    /// Where in the log it ends.
    pub(crate) end: P,
    /// The same, for people.
    pub(crate) position: String,
    /// When it was committed, in microseconds since 1970.
    pub(crate) committed_us: i64,
    /// In order.
    pub(crate) changes: Vec<Change>,
}

/// How many of the transactions a batch takes: whole ones, up to about `limit` changes, but at least one.
pub(crate) fn admitted<P>(transactions: &[Transaction<P>], limit: u64) -> usize {
    let mut rows = 0_u64;
    for (at, transaction) in transactions.iter().enumerate() {
        rows = rows.saturating_add(transaction.changes.len() as u64);
        if rows > limit && at > 0 {
            return at;
        }
    }
    transactions.len()
}

/// What an update is whose old values are known: with another key it is another row, and the one of the old key is gone.
pub(crate) fn updated(key: &[usize], old: Change, new: Change) -> Vec<Change> {
    match key.iter().any(|at| old.values.get(*at) != new.values.get(*at)) {
        true => vec![Change { op: Op::Delete, ..old }, Change { op: Op::Insert, ..new }],
        false => vec![Change { op: Op::Update, ..new }],
    }
}

/// The columns of a stream of changes.
#[derive(Debug, Clone)]
pub(crate) struct ChangeColumns {
    schema: SchemaRef,
    /// How many columns are the table's.
    width: usize,
}

impl ChangeColumns {
    /// Those of a table, and the stream's own; answers a name that is taken.
    pub(crate) fn new(table: &Schema) -> Result<Self, String> {
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let own = [("_op", DataType::Utf8), ("_commit_time", utc), ("_position", DataType::Utf8)];
        let own = own.map(|(name, data_type)| Arc::new(Field::new(name, data_type, true)));
        if let Some(taken) = own.iter().find(|field| table.column_with_name(field.name()).is_some()) {
            return Err(format!(
                "column `{}` of the table has a name that the stream needs; declare a schema without it",
                taken.name()
            ));
        }
        let table = table.fields().iter();
        let table: Vec<_> = table.map(|field| Arc::new(field.as_ref().clone().with_nullable(true))).collect();
        let width = table.len();
        let fields: Vec<_> = table.into_iter().chain(own).collect();
        Ok(Self { schema: Arc::new(Schema::new(fields)), width })
    }

    /// All columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many columns are the table's.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The changes as rows of the projected columns.
    pub(crate) fn rows<P>(
        &self,
        name: &str,
        transactions: &[Transaction<P>],
        projection: &[usize],
    ) -> Result<Vec<RecordBatch>, SourceError> {
        let misfit = |reason: String| SourceError::Schema { name: name.to_owned(), reason };
        let schema = Arc::new(self.schema.project(projection).map_err(|error| misfit(error.to_string()))?);
        let builder = || RowBuilder::new(Arc::clone(&schema)).map_err(|error| misfit(error.to_string()));
        let mut batches = Vec::new();
        let (mut rows, mut count) = (builder()?, 0);
        for transaction in transactions {
            for change in &transaction.changes {
                for (at, column) in projection.iter().enumerate() {
                    let raw = self.value(transaction, change, *column);
                    rows.push(at, &raw).map_err(|reason| SourceError::Malformed {
                        name: name.to_owned(),
                        place: transaction.position.clone(),
                        reason,
                    })?;
                }
                count += 1;
                if count == BATCH_ROWS {
                    let full = std::mem::replace(&mut rows, builder()?);
                    batches.push(full.finish(count).map_err(|error| misfit(error.to_string()))?);
                    count = 0;
                }
            }
        }
        if count > 0 {
            batches.push(rows.finish(count).map_err(|error| misfit(error.to_string()))?);
        }
        Ok(batches)
    }

    fn value<'a, P>(&self, transaction: &'a Transaction<P>, change: &'a Change, column: usize) -> Raw<'a> {
        let text = |text: &'a str| Raw::Text(text.as_bytes().into());
        if let Some(value) = change.values.get(column).filter(|_| column < self.width) {
            return match value {
                Raw::Null => Raw::Null,
                Raw::Text(bytes) => Raw::Text(Cow::Borrowed(bytes)),
            };
        }
        match column.checked_sub(self.width) {
            Some(0) => text(change.op.name()),
            Some(1) => match chrono::DateTime::from_timestamp_micros(transaction.committed_us) {
                Some(time) => Raw::Text(time.format("%Y-%m-%d %H:%M:%S%.6f").to_string().into_bytes().into()),
                None => Raw::Null,
            },
            Some(2) => text(&transaction.position),
            _ => Raw::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(values: &[&'static str]) -> Change {
        Change { op: Op::Update, values: values.iter().map(|text| Raw::Text(text.as_bytes().into())).collect() }
    }

    #[test]
    fn a_batch_takes_whole_transactions_and_at_least_one() {
        let transaction = |end: u64, rows: usize| Transaction {
            end,
            position: String::new(),
            committed_us: 0,
            changes: vec![change(&[]); rows],
        };
        let all = [transaction(1, 3), transaction(2, 2), transaction(3, 1)];
        for (limit, count) in [(1, 1), (3, 1), (4, 1), (5, 2), (6, 3), (100, 3)] {
            assert_eq!(admitted(&all, limit), count, "{limit}");
        }
        assert_eq!(admitted::<u64>(&[], 1), 0);
    }

    #[test]
    fn an_update_of_the_key_is_a_delete_and_an_insert() {
        let ops = |key: &[usize], old, new| {
            updated(key, change(old), change(new)).into_iter().map(|change| change.op).collect::<Vec<_>>()
        };
        assert_eq!(ops(&[0], &["1", "a"], &["1", "b"]), [Op::Update]);
        assert_eq!(ops(&[0], &["1", "a"], &["2", "a"]), [Op::Delete, Op::Insert]);
        assert_eq!(ops(&[], &["1"], &["2"]), [Op::Update], "without a key nobody knows");
    }
}
