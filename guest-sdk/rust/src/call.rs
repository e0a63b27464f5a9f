//! One call: from buffers to buffers, over the rows.

use crate::buffers::Reader;
use crate::error::CallError;
use crate::outcome::{Failure, IntoFailure, Outcome};
use crate::schema::Schema;
use crate::value::Value;

/// The argument columns of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The number of rows.
    pub rows: u32,
    /// The buffers in pre-order.
    pub buffers: Vec<Vec<u8>>,
}

impl Batch {
    /// The buffers, from the first.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&self.buffers)
    }
}

/// The values of a scalar call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScalarOutput {
    /// One value per row.
    pub values: Batch,
    /// The rows that failed.
    pub row_errors: Vec<(u32, String)>,
}

/// The rows of a table call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableOutput {
    /// For each output row the argument row, 32-bit little-endian.
    pub input_rows: Vec<u8>,
    /// The columns.
    pub rows: Batch,
    /// The rows that failed.
    pub row_errors: Vec<(u32, String)>,
}

/// A function of a plugin, as the attribute macros register it.
#[derive(Debug)]
pub struct Function {
    /// The name in SQL.
    pub name: &'static str,
    /// Whether calls may not be moved or left out.
    pub volatile: bool,
    /// Appends the arguments.
    pub arguments: fn(&mut Schema),
    /// Appends the results.
    pub results: fn(&mut Schema),
    /// Computes.
    pub call: Call,
}

/// The two kinds of functions.
#[derive(Debug, Clone, Copy)]
pub enum Call {
    /// One value per row.
    Scalar(fn(&Batch) -> Result<ScalarOutput, CallError>),
    /// Any number of rows per row.
    Table(fn(&Batch) -> Result<TableOutput, CallError>),
}

/// Computes a scalar function; `call` gives `None` for rows with a null that the function does not take.
///
/// # Errors
///
/// The function's refusal of the whole call.
#[inline(always)]
pub fn scalar<R: Outcome>(batch: &Batch, call: impl Fn(usize) -> Option<R>) -> Result<ScalarOutput, CallError> {
    let mut builder = <R::Value as Value>::Builder::default();
    let mut row_errors = Vec::new();
    R::Value::reserve(&mut builder, batch.rows as usize);
    for row in 0..batch.rows {
        let Some(result) = call(row as usize) else {
            R::Value::append_null(&mut builder);
            continue;
        };
        match result.outcome() {
            Ok(value) => value.append(&mut builder),
            Err(Failure::Row(message)) => {
                row_errors.push((row, message));
                R::Value::append_null(&mut builder);
            }
            Err(Failure::Call(error)) => return Err(error),
        }
    }
    let mut buffers = Vec::new();
    R::Value::finish(builder, &mut buffers);
    Ok(ScalarOutput { values: Batch { rows: batch.rows, buffers }, row_errors })
}

/// Rows of a table function under construction.
struct Rows<V: Value> {
    builder: V::Builder,
    input_rows: Vec<[u8; 4]>,
    row_errors: Vec<(u32, String)>,
}

impl<V: Value> Rows<V> {
    fn new(rows: u32) -> Self {
        Self { builder: V::Builder::default(), input_rows: Vec::with_capacity(rows as usize), row_errors: Vec::new() }
    }

    /// Appends the rows of one argument row. The first failure ends it.
    ///
    /// A row that failed has no output, so rows that came before its failure are computed but not kept: they are
    /// buffered when items can fail at all.
    #[inline(always)]
    fn extend<R: Outcome<Value = V>>(&mut self, row: u32, items: impl IntoIterator<Item = R>) -> Result<(), CallError> {
        let number = row.to_le_bytes();
        if !R::CAN_FAIL {
            for item in items {
                if let Ok(value) = item.outcome() {
                    value.append(&mut self.builder);
                    self.input_rows.push(number);
                }
            }
            return Ok(());
        }
        match items.into_iter().map(Outcome::outcome).collect::<Result<Vec<V>, Failure>>() {
            Ok(values) => {
                for value in values {
                    value.append(&mut self.builder);
                    self.input_rows.push(number);
                }
                Ok(())
            }
            Err(failure) => self.fail(row, failure),
        }
    }

    fn fail(&mut self, row: u32, failure: Failure) -> Result<(), CallError> {
        match failure {
            Failure::Row(message) => {
                self.row_errors.push((row, message));
                Ok(())
            }
            Failure::Call(error) => Err(error),
        }
    }

    fn finish(self) -> TableOutput {
        let rows = u32::try_from(self.input_rows.len()).unwrap_or(u32::MAX);
        let mut buffers = Vec::new();
        V::finish_columns(self.builder, &mut buffers);
        TableOutput {
            input_rows: self.input_rows.into_flattened(),
            rows: Batch { rows, buffers },
            row_errors: self.row_errors,
        }
    }
}

/// Computes a table function.
///
/// # Errors
///
/// The function's refusal of the whole call.
#[inline(always)]
pub fn table<R: Outcome, I: IntoIterator<Item = R>>(
    batch: &Batch,
    call: impl Fn(usize) -> Option<I>,
) -> Result<TableOutput, CallError> {
    let mut rows = Rows::<R::Value>::new(batch.rows);
    for row in 0..batch.rows {
        if let Some(items) = call(row as usize) {
            rows.extend(row, items)?;
        }
    }
    Ok(rows.finish())
}

/// Computes a table function that returns a `Result`.
///
/// # Errors
///
/// The function's refusal of the whole call.
#[inline(always)]
pub fn table_of_result<R: Outcome, I: IntoIterator<Item = R>, E: IntoFailure>(
    batch: &Batch,
    call: impl Fn(usize) -> Option<Result<I, E>>,
) -> Result<TableOutput, CallError> {
    let mut rows = Rows::<R::Value>::new(batch.rows);
    for row in 0..batch.rows {
        match call(row as usize) {
            None => {}
            Some(Ok(items)) => rows.extend(row, items)?,
            Some(Err(error)) => rows.fail(row, error.into_failure())?,
        }
    }
    Ok(rows.finish())
}
