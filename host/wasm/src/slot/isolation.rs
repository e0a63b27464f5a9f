//! A batch cut into calls, and those at fault found by halving.
//!
//! Works on units: rows, states, keys. Under [`FaultPolicy::Fail`] the first fault ends it. Under the other policies a
//! call that fails as a whole is cut in two, and the halves are called again, until single units are left: those are
//! at fault. That costs calls and time, so both are limited per batch: when `isolation_calls` failed calls are spent,
//! ranges that fail are at fault as a whole; when `isolation_time` is spent too, so is every range not yet computed.
//!
//! Rule of its life: pieces come in the order of the units and cover them all.
//!
//! It makes no call itself.

use std::ops::Range;
use std::time::Instant;

use super::outcome::FaultPolicy;
use crate::call::Failure;
use crate::error::WasmError;
use crate::limits::PluginLimits;

/// What is done to a range of units.
pub(super) trait Work {
    /// The answer for a range.
    type Piece;

    /// How many of the units of `rest` go into the next call, at least one.
    fn call_len(&self, rest: Range<usize>) -> usize;

    /// Makes the call for a range.
    fn compute(&mut self, range: &Range<usize>) -> Result<Self::Piece, Failure>;

    /// Takes an answer: keeps the units that the guest named as failed.
    fn accept(&mut self, piece: Self::Piece, range: &Range<usize>) -> Result<Self::Piece, WasmError>;

    /// The error of a failed call.
    fn error(&self, failure: Failure, range: &Range<usize>) -> WasmError;

    /// What stands for a range that is at fault as a whole.
    fn fault(&mut self, range: &Range<usize>, error: &str) -> Result<Self::Piece, WasmError>;
}

/// Computes `units` units.
pub(super) fn pieces<W: Work>(
    work: &mut W,
    units: usize,
    policy: FaultPolicy,
    limits: &PluginLimits,
) -> Result<Vec<W::Piece>, WasmError> {
    let mut pieces = Vec::new();
    let mut open: Vec<Range<usize>> = Vec::new();
    let mut next = 0;
    let mut first_failure: Option<Instant> = None;
    let mut failed_calls = 0;
    loop {
        let range = match open.pop() {
            Some(range) => range,
            None if next < units => {
                let range = next..next + work.call_len(next..units).clamp(1, units - next);
                next = range.end;
                range
            }
            None => return Ok(pieces),
        };
        if first_failure.is_some_and(|first| first.elapsed() > limits.isolation_time) {
            let spent = "not computed: the time for finding faulty rows of this batch is spent";
            pieces.push(work.fault(&range, spent)?);
            continue;
        }
        match work.compute(&range) {
            Ok(piece) => pieces.push(work.accept(piece, &range)?),
            Err(failure) => {
                if policy == FaultPolicy::Fail || !failure.is_of_rows() {
                    return Err(work.error(failure, &range));
                }
                first_failure.get_or_insert_with(Instant::now);
                failed_calls += 1;
                if range.len() > 1 && failed_calls < limits.isolation_calls {
                    let middle = range.start + range.len() / 2;
                    open.push(middle..range.end);
                    open.push(range.start..middle);
                } else {
                    let error = work.error(failure, &range).to_string();
                    pieces.push(work.fault(&range, &error)?);
                }
            }
        }
    }
}
