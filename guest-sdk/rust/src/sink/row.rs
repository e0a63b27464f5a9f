//! Rows of a sink: of known columns, or of any.

use super::any::AnyRow;
use crate::argument::Argument;
use crate::call::Batch;
use crate::error::CallResult;
use crate::processor::Columns;
use crate::schema::{Field, Schema};
use crate::value::Value;

/// A row that a sink takes: a struct that derives [`Row`](crate::Row), or [`AnyRow`].
pub trait SinkRow: Sized + 'static {
    /// Its columns; none for any.
    #[doc(hidden)]
    fn columns() -> Vec<Field>;

    /// The rows of a batch, `None` where a row is not what the type takes.
    #[doc(hidden)]
    fn decode(columns: &[Field], batch: &Batch) -> CallResult<Vec<Option<Self>>>;
}

impl<T: Columns> SinkRow for T {
    fn columns() -> Vec<Field> {
        let mut schema = Schema::default();
        <T as Value>::describe_columns("value", &mut schema);
        schema.fields
    }

    fn decode(_columns: &[Field], batch: &Batch) -> CallResult<Vec<Option<Self>>> {
        let column = <T as Argument<'_>>::open_columns(&mut batch.reader());
        Ok((0..batch.rows as usize).map(|row| <T as Argument<'_>>::get(&column, row)).collect())
    }
}

impl SinkRow for AnyRow {
    fn columns() -> Vec<Field> {
        Vec::new()
    }

    fn decode(columns: &[Field], batch: &Batch) -> CallResult<Vec<Option<Self>>> {
        Ok(super::any::rows(columns, batch)?.into_iter().map(Some).collect())
    }
}
