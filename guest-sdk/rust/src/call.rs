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

/// All functions of a plugin.
pub trait Plugin {
    /// The functions, in the order of their numbers.
    const FUNCTIONS: &'static [&'static Function];
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

/// The exports of the component, for whatever implements [`Plugin`].
#[cfg(target_arch = "wasm32")]
#[allow(missing_docs, reason = "generated from wit/, where every item has its document")]
#[allow(unsafe_code, unreachable_pub, reason = "generated: the canonical ABI")]
pub mod bindings {
    use super::{Call, CallError, Plugin, Schema};

    wit_bindgen::generate!({
        path: "../../wit",
        world: "function-plugin",
        pub_export_macro: true,
        default_bindings_module: "millstream_sdk::private::bindings",
    });

    use exports::millstream::plugin::{describe, scalar, table};
    use millstream::plugin::types;

    fn fields(fill: fn(&mut Schema)) -> Vec<types::Field> {
        let mut schema = Schema::default();
        fill(&mut schema);
        let field = |field: crate::schema::Field| types::Field {
            name: field.name,
            format: field.format,
            nullable: field.nullable,
            children: field.children,
        };
        schema.fields.into_iter().map(field).collect()
    }

    impl<P: Plugin> describe::Guest for P {
        fn describe() -> Vec<describe::Function> {
            crate::log::log_panics();
            let function = |function: &&super::Function| describe::Function {
                name: function.name.to_owned(),
                kind: match function.call {
                    Call::Scalar(_) => describe::Kind::Scalar,
                    Call::Table(_) => describe::Kind::Table,
                },
                arguments: fields(function.arguments),
                results: fields(function.results),
                volatility: match function.volatile {
                    true => describe::Volatility::Volatile,
                    false => describe::Volatility::Immutable,
                },
                nulls: describe::Nulls::Passed,
            };
            P::FUNCTIONS.iter().map(function).collect()
        }
    }

    fn error(error: CallError) -> types::Error {
        match error {
            CallError::InvalidInput(message) => types::Error::InvalidInput(message),
            CallError::Unavailable(message) => types::Error::Unavailable(message),
            CallError::Internal(message) => types::Error::Internal(message),
        }
    }

    fn row_errors(errors: Vec<(u32, String)>) -> Vec<types::RowError> {
        errors.into_iter().map(|(row, message)| types::RowError { row, message }).collect()
    }

    fn function<P: Plugin>(number: u32) -> Result<Call, types::Error> {
        let function = usize::try_from(number).ok().and_then(|number| P::FUNCTIONS.get(number));
        function.map(|function| function.call).ok_or_else(|| types::Error::Internal(format!("no function {number}")))
    }

    fn batch(batch: types::Batch) -> super::Batch {
        super::Batch { rows: batch.rows, buffers: batch.buffers }
    }

    fn wire(batch: super::Batch) -> types::Batch {
        types::Batch { rows: batch.rows, buffers: batch.buffers }
    }

    impl<P: Plugin> scalar::Guest for P {
        fn call(number: u32, arguments: types::Batch) -> Result<scalar::ScalarOutput, types::Error> {
            crate::log::log_panics();
            let Call::Scalar(call) = function::<P>(number)? else {
                return Err(types::Error::Internal(format!("function {number} is no scalar")));
            };
            let output = call(&batch(arguments)).map_err(error)?;
            Ok(scalar::ScalarOutput { values: wire(output.values), row_errors: row_errors(output.row_errors) })
        }
    }

    impl<P: Plugin> table::Guest for P {
        fn call(number: u32, arguments: types::Batch) -> Result<table::TableOutput, types::Error> {
            crate::log::log_panics();
            let Call::Table(call) = function::<P>(number)? else {
                return Err(types::Error::Internal(format!("function {number} is no table function")));
            };
            let output = call(&batch(arguments)).map_err(error)?;
            Ok(table::TableOutput {
                input_rows: output.input_rows,
                rows: wire(output.rows),
                row_errors: row_errors(output.row_errors),
            })
        }
    }
}
