//! Calls of processors: cut between keys, keys at fault found by halving, the outcomes of the pieces put together.

mod encode;
mod outcome;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::FieldRef;
use arrow::util::display::array_value_to_string;

use super::PluginSlot;
use super::caller::Caller;
use super::code::Request;
use super::columns;
use super::faults::Faults;
use super::isolation::{self, Work};
use super::outcome::FaultPolicy;
use crate::call::{Failure, cut};
use crate::error::WasmError;
use crate::layout::encode::encoded_len;
use crate::processor::{Invocation, KeyFault, Outcome, ProcessorSignature, Step};
use crate::wire::processor::{Expire, Initialise, Process};
use encode::{EncodedInvocation, EncodedTimers};

impl PluginSlot {
    /// Calls a processor.
    ///
    /// # Errors
    ///
    /// Under [`FaultPolicy::Fail`] the first fault. Under the other policies only what is not the keys' fault:
    /// [`WasmError::BadCall`], [`WasmError::Unavailable`], [`WasmError::Engine`].
    pub fn call_processor(&self, name: &str, step: &Step, call: &Invocation) -> Result<Outcome, WasmError> {
        self.of_keys(call.key_of_row.len(), |request| self.run_processor(request, name, step, call))
    }

    fn run_processor(
        &self,
        request: &Request,
        name: &str,
        step: &Step,
        call: &Invocation,
    ) -> Result<Outcome, WasmError> {
        let bad = |reason: String| self.bad_call(name, reason);
        let (number, signature) =
            request.component().processor(name).ok_or_else(|| bad("the component has no such processor".into()))?;
        let call = normalised(signature, step, call).map_err(bad)?;
        let (fields, shown) = dead_letter_columns(signature, step, &call).map_err(|error| bad(error.to_string()))?;
        let faults = Faults::new(self, request, name, &fields, shown);
        let work = Processing {
            slot: self,
            number,
            signature,
            step,
            caller: Caller::new(self, request),
            faults,
            weights: weights(&call),
            call: &call,
        };
        work.run()
    }
}

/// One processor over the keys of one call.
struct Processing<'a> {
    slot: &'a PluginSlot,
    number: u32,
    signature: &'a ProcessorSignature,
    step: &'a Step,
    call: &'a Invocation,
    caller: Caller<'a>,
    faults: Faults<'a>,
    /// How many rows, entries and timers belong to each key.
    weights: Vec<usize>,
}

impl Processing<'_> {
    fn run(mut self) -> Result<Outcome, WasmError> {
        let (slot, keys) = (self.slot, self.call.key_count);
        let pieces = isolation::pieces(&mut self, keys, slot.policy, &slot.limits);
        let signature = self.signature;
        let joined = pieces.and_then(|pieces| {
            outcome::joined(signature, pieces).map_err(|reason| slot.bad_call(&signature.name, reason))
        });
        let output_rows = joined.as_ref().map_or(0, |outcome| outcome.key_of_row.len());
        self.caller.end(self.call.key_of_row.len(), output_rows, self.faults.len());
        let outcome = joined?;
        self.faults.end();
        Ok(outcome)
    }

    /// The rows of keys, or, when timers are due, the keys: what dead letters are made of.
    fn shown(&self, keys: &Range<usize>) -> Range<usize> {
        match self.step {
            Step::Expire(_) => keys.clone(),
            Step::Process | Step::Initialise => self.call.rows_of(keys),
        }
    }

    fn key_text(&self, key: usize) -> String {
        let value = |column: &ArrayRef| array_value_to_string(column, key).unwrap_or_else(|error| error.to_string());
        format!("the key ({})", self.call.keys.iter().map(value).collect::<Vec<_>>().join(", "))
    }
}

impl Work for Processing<'_> {
    type Piece = (usize, Outcome);

    fn call_len(&self, rest: Range<usize>) -> usize {
        let limits = &self.slot.limits;
        let mut weight = 0;
        let fits = self.weights[rest.clone()].iter().take_while(|more| {
            weight += **more;
            weight <= limits.rows_per_call.max(1)
        });
        let mut len = fits.count().max(1);
        while len > 1 && bytes(&self.call.of_keys(&(rest.start..rest.start + len))) > limits.argument_bytes_per_call {
            len = len.div_ceil(2);
        }
        len
    }

    fn compute(&mut self, range: &Range<usize>) -> Result<(usize, Outcome), Failure> {
        self.caller.begin_at(range.start);
        let call = self.call.of_keys(range);
        let encoded = EncodedInvocation::of(&call)?;
        let slices = encoded.slices();
        let state = slices.state();
        let params = slices.call(&call, &state);
        let (number, signature, keys) = (self.number, self.signature, call.key_count);
        let check = |answer| outcome::checked(signature, answer, keys);
        let outcome = match self.step {
            Step::Process => self.caller.call::<Process, _>((number, params), check),
            Step::Initialise => self.caller.call::<Initialise, _>((number, params), check),
            Step::Expire(due) => {
                let due = EncodedTimers::of(&due.of_keys(range));
                self.caller.call::<Expire, _>((number, params, due.wire()), check)
            }
        };
        outcome.map(|outcome| (range.start, outcome))
    }

    fn accept(&mut self, (first, outcome): (usize, Outcome), _range: &Range<usize>) -> Result<Self::Piece, WasmError> {
        for KeyFault { key, error } in &outcome.faults {
            let key = first + *key as usize;
            if self.slot.policy == FaultPolicy::Fail {
                return Err(WasmError::Refused {
                    plugin: self.slot.name.clone(),
                    function: self.signature.name.clone(),
                    what: self.key_text(key),
                    message: cut(error),
                });
            }
            let shown = self.shown(&(key..key + 1));
            self.faults.record(&shown, error)?;
        }
        Ok((first, outcome))
    }

    fn error(&self, failure: Failure, range: &Range<usize>) -> WasmError {
        let mut error = failure.into_error(&self.slot.name, &self.signature.name);
        if let WasmError::Refused { what, .. } = &mut error
            && range.len() == 1
        {
            *what = self.key_text(range.start);
        }
        error
    }

    fn fault(&mut self, range: &Range<usize>, error: &str) -> Result<Self::Piece, WasmError> {
        let shown = self.shown(range);
        self.faults.record(&shown, error)?;
        let mut outcome = outcome::nothing(self.signature);
        let keys = 0..u32::try_from(range.len()).unwrap_or(u32::MAX);
        outcome.faults = keys.map(|key| KeyFault { key, error: error.to_owned() }).collect();
        Ok((range.start, outcome))
    }
}

/// The call with the columns that the processor has described.
fn normalised(signature: &ProcessorSignature, step: &Step, call: &Invocation) -> Result<Invocation, String> {
    let rows = match step {
        Step::Initialise => &signature.initial,
        Step::Process | Step::Expire(_) => &signature.input,
    };
    if call.state.len() != signature.variables.len() {
        return Err(format!("{} variables instead of {}", call.state.len(), signature.variables.len()));
    }
    let mut normal = call.clone();
    normal.keys = columns::normalised(&call.keys, &signature.key, call.key_count)?;
    normal.rows = columns::normalised(&call.rows, rows, call.key_of_row.len())?;
    for (entries, variable) in normal.state.iter_mut().zip(&signature.variables) {
        let count = entries.key_of_entry.len();
        entries.map_keys = columns::normalised(&entries.map_keys, &variable.map_key, count)?;
        entries.columns = columns::normalised(&entries.columns, &variable.columns, count)?;
    }
    Ok(normal)
}

/// What a dead letter shows: a row with its key, or a key whose timers are due.
fn dead_letter_columns(
    signature: &ProcessorSignature,
    step: &Step,
    call: &Invocation,
) -> Result<(Vec<FieldRef>, Vec<ArrayRef>), arrow::error::ArrowError> {
    let rows = match step {
        Step::Expire(_) => return Ok((signature.key.to_vec(), call.keys.clone())),
        Step::Initialise => &signature.initial,
        Step::Process => &signature.input,
    };
    let owners = UInt32Array::from(call.key_of_row.clone());
    let (mut fields, mut columns): (Vec<FieldRef>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
    for (field, column) in signature.key.iter().zip(&call.keys) {
        if rows.find(field.name()).is_none() {
            fields.push(Arc::clone(field));
            columns.push(take(column, &owners, None)?);
        }
    }
    fields.extend(rows.iter().map(Arc::clone));
    columns.extend(call.rows.iter().map(Arc::clone));
    Ok((fields, columns))
}

fn weights(call: &Invocation) -> Vec<usize> {
    let mut weights = vec![1; call.key_count];
    let of_state = call.state.iter().map(|entries| &entries.key_of_entry);
    for key in of_state.chain([&call.key_of_row, &call.timers.key_of_timer]).flatten() {
        if let Some(weight) = weights.get_mut(*key as usize) {
            *weight += 1;
        }
    }
    weights
}

/// The bytes of a call, about.
fn bytes(call: &Invocation) -> usize {
    let of_state = call.state.iter().flat_map(|entries| entries.map_keys.iter().chain(&entries.columns));
    let columns = call.keys.iter().chain(&call.rows).chain(of_state);
    columns.map(encoded_len).sum::<usize>() + 12 * call.timers.due_ms.len()
}
