//! The rows at fault of one request, kept as the plugin's policy says.
//!
//! Under [`FaultPolicy::Fail`] the first one is the error of the request; under the others each is counted, and with
//! dead letters its columns are kept as JSON.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, FieldRef, Schema};
use arrow::json::writer::{LineDelimited, WriterBuilder};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::code::{Request, Role};
use super::columns::RowErrors;
use super::outcome::{DeadLetter, FaultPolicy, RowFault};
use super::{PluginSlot, locked};
use crate::call::{Failure, cut};
use crate::error::WasmError;

pub(super) struct Faults<'a> {
    slot: &'a PluginSlot,
    function: &'a str,
    request: &'a Request,
    /// The columns that a dead letter shows.
    fields: Cow<'a, [FieldRef]>,
    columns: Vec<ArrayRef>,
    /// Rows of the request that are not among the columns, because they came before them.
    before: usize,
    rows: Vec<RowFault>,
    letters: Vec<DeadLetter>,
}

impl<'a> Faults<'a> {
    pub(super) fn new(
        slot: &'a PluginSlot,
        request: &'a Request,
        function: &'a str,
        fields: &'a [FieldRef],
        columns: Vec<ArrayRef>,
    ) -> Self {
        let fields = Cow::Borrowed(fields);
        Self { slot, function, request, fields, columns, before: 0, rows: Vec::new(), letters: Vec::new() }
    }

    /// As [`Self::new`], for a part of a request that has `before` rows before it. Ranges are those of the part.
    pub(super) fn of_rows_after(
        slot: &'a PluginSlot,
        request: &'a Request,
        function: &'a str,
        (fields, columns): (Vec<FieldRef>, Vec<ArrayRef>),
        before: usize,
    ) -> Self {
        let fields = Cow::Owned(fields);
        Self { slot, function, request, fields, columns, before, rows: Vec::new(), letters: Vec::new() }
    }

    /// The error of a call over a range of rows.
    pub(super) fn error(&self, failure: Failure, range: &Range<usize>) -> WasmError {
        let mut error = failure.into_error(&self.slot.name, self.function);
        if let WasmError::Refused { what, .. } = &mut error
            && range.len() == 1
        {
            *what = format!("row {} of the batch", self.before + range.start);
        }
        error
    }

    /// Keeps rows that the guest named; the numbers are those of the batch.
    pub(super) fn keep(&mut self, errors: &RowErrors) -> Result<(), WasmError> {
        for (row, message) in errors {
            if self.slot.policy == FaultPolicy::Fail {
                return Err(WasmError::Refused {
                    plugin: self.slot.name.clone(),
                    function: self.function.to_owned(),
                    what: format!("row {} of the batch", self.before + *row as usize),
                    message: cut(message),
                });
            }
            let row = *row as usize;
            self.record(&(row..row + 1), message)?;
        }
        Ok(())
    }

    /// All rows of `range` are at fault.
    pub(super) fn record(&mut self, range: &Range<usize>, error: &str) -> Result<(), WasmError> {
        let rows = range.clone().filter_map(|row| u32::try_from(self.before + row).ok());
        self.rows.extend(rows.map(|row| RowFault { row, error: error.to_owned() }));
        if self.slot.policy == FaultPolicy::DeadLetter && self.request.role == Role::Answer {
            let lines = self.json(range).map_err(|e| self.slot.bad_call(self.function, e.to_string()))?;
            self.letters.extend(lines.into_iter().map(|arguments| DeadLetter {
                function: self.function.to_owned(),
                digest: self.request.component().digest(),
                message: error.to_owned(),
                arguments,
            }));
        }
        Ok(())
    }

    /// How many rows are at fault.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The request succeeded: the dead letters count.
    pub(super) fn end(mut self) -> Vec<RowFault> {
        locked(&self.slot.dead_letters).append(&mut self.letters);
        self.rows
    }

    /// The columns of each row of `range` as one JSON object.
    fn json(&self, range: &Range<usize>) -> Result<Vec<String>, arrow::error::ArrowError> {
        if self.columns.is_empty() {
            return Ok(vec!["{}".to_owned(); range.len()]);
        }
        let nullable = |field: &FieldRef| Arc::new(Field::clone(field).with_nullable(true));
        let schema = Schema::new(self.fields.iter().map(nullable).collect::<Vec<_>>());
        let columns = super::columns::sliced(&self.columns, range);
        let options = RecordBatchOptions::new().with_row_count(Some(range.len()));
        let batch = RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)?;
        let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
        writer.write(&batch)?;
        writer.finish()?;
        let text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
        Ok(text.lines().map(str::to_owned).collect())
    }
}
