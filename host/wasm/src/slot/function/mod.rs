//! Scalar and table functions: what is computed row by row.

mod invocation;
mod piece;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::datatypes::FieldRef;
pub(super) use invocation::{Asked, Invocation, Target};
pub(super) use piece::Piece;

use super::PluginSlot;
use super::code::Request;
use super::columns;
use super::outcome::{RowFault, ScalarOutcome, TableOutcome};
use crate::component::Component;
use crate::error::WasmError;
use crate::signature::{FunctionKind, FunctionSignature};

impl PluginSlot {
    /// Computes a scalar function over `rows` rows.
    ///
    /// # Errors
    ///
    /// Under [`FaultPolicy::Fail`](super::FaultPolicy::Fail) the first fault. Under the other policies only what is not
    /// the rows' fault: [`WasmError::BadCall`], [`WasmError::Unavailable`], [`WasmError::Engine`].
    pub fn call_scalar(&self, function: &str, rows: usize, arguments: &[ArrayRef]) -> Result<ScalarOutcome, WasmError> {
        let run = |request: &Request, rows: usize, arguments: &[ArrayRef]| -> Result<ScalarOutcome, WasmError> {
            let (number, signature) = self.function_of(request.component(), function, FunctionKind::Scalar)?;
            let (pieces, faults) = self.run(request, number, signature, rows, arguments)?;
            let values = self.per_row(function, &signature.results, &pieces)?;
            Ok(ScalarOutcome { values, faults })
        };
        match self.canary() {
            None => run(&self.request(), rows, arguments),
            Some(canary) => self.scalar_with_canary(&canary, arguments, rows, run),
        }
    }

    /// Computes a table function over `rows` rows.
    ///
    /// # Errors
    ///
    /// As [`Self::call_scalar`].
    pub fn call_table(&self, function: &str, rows: usize, arguments: &[ArrayRef]) -> Result<TableOutcome, WasmError> {
        let run = |request: &Request, rows: usize, arguments: &[ArrayRef]| -> Result<TableOutcome, WasmError> {
            let (number, signature) = self.function_of(request.component(), function, FunctionKind::Table)?;
            let (pieces, faults) = self.run(request, number, signature, rows, arguments)?;
            let input_rows =
                UInt32Array::from_iter_values(pieces.iter().flat_map(|piece| piece.input_rows.iter().copied()));
            let columns = (0..).zip(&signature.results).map(|(i, field)| {
                let parts: Vec<&ArrayRef> = pieces.iter().filter_map(|piece| piece.columns.get(i)).collect();
                columns::joined(field, &parts).map_err(|reason| self.bad_call(function, reason))
            });
            Ok(TableOutcome { input_rows, columns: columns.collect::<Result<_, _>>()?, faults })
        };
        match self.canary() {
            None => run(&self.request(), rows, arguments),
            Some(canary) => self.table_with_canary(&canary, arguments, rows, run),
        }
    }

    fn function_of<'c>(
        &self,
        component: &'c Component,
        function: &str,
        kind: FunctionKind,
    ) -> Result<(u32, &'c FunctionSignature), WasmError> {
        let found = component.function(function);
        let (number, signature) =
            found.ok_or_else(|| self.bad_call(function, "the component has no such function".into()))?;
        if signature.kind != kind {
            return Err(self.bad_call(function, format!("it is `{signature}`")));
        }
        Ok((number, signature))
    }

    fn run(
        &self,
        request: &Request,
        number: u32,
        signature: &FunctionSignature,
        rows: usize,
        arguments: &[ArrayRef],
    ) -> Result<(Vec<Piece>, Vec<RowFault>), WasmError> {
        let arguments = columns::normalised(arguments, &signature.arguments, rows);
        let arguments = arguments.map_err(|reason| self.bad_call(&signature.name, reason))?;
        let asked = Asked {
            target: match signature.kind {
                FunctionKind::Scalar => Target::Scalar,
                FunctionKind::Table => Target::Table,
            },
            number,
            name: &signature.name,
            arguments: &signature.arguments,
            results: &signature.results,
            nulls_passed: signature.nulls_passed,
        };
        Invocation::new(self, request, asked, arguments).run(rows)
    }

    /// The one column of results.
    pub(super) fn per_row(
        &self,
        function: &str,
        results: &[FieldRef],
        pieces: &[Piece],
    ) -> Result<ArrayRef, WasmError> {
        let field = results.first().ok_or_else(|| self.bad_call(function, "it has no result".into()))?;
        let parts: Vec<&ArrayRef> = pieces.iter().filter_map(|piece| piece.columns.first()).collect();
        columns::joined(field, &parts).map_err(|reason| self.bad_call(function, reason))
    }
}
