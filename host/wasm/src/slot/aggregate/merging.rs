//! Many states into one per group, in as many calls as the limits ask for.
//!
//! A call takes whole groups as long as they fit. A group with more states than fit into a call is merged in parts, and
//! the parts again, until one state is left.

use arrow::array::ArrayRef;

use super::Aggregate;
use super::groups::{Lists, Place, gathered};
use crate::call::Failure;
use crate::layout::encode;
use crate::slot::caller::Caller;
use crate::slot::columns::{self, Encoded};
use crate::wire::aggregate::{Merge, StatesOutput};

/// The states of the groups, one row each. Every list has a state.
pub(super) fn merged(
    caller: &mut Caller<'_>,
    aggregate: Aggregate<'_>,
    mut sources: Vec<Vec<ArrayRef>>,
    mut lists: Lists,
) -> Result<Vec<ArrayRef>, Failure> {
    let fields = &aggregate.signature.state;
    let limit = states_per_call(aggregate, &sources);
    while !lists.are_single() {
        let mut next = Lists::default();
        let mut call = Call::default();
        for list in lists.iter() {
            for part in list.chunks(limit) {
                if let [single] = part {
                    next.push(*single);
                    continue;
                }
                if !call.places.is_empty() && call.places.len() + part.len() > limit {
                    sources.push(call.make(caller, aggregate, &sources)?);
                    call = Call::default();
                }
                next.push((sources.len(), call.groups as usize));
                call.add(part);
            }
            next.end_group();
        }
        if !call.places.is_empty() {
            sources.push(call.make(caller, aggregate, &sources)?);
        }
        lists = next;
    }
    gathered(&sources, lists.places(), fields)
}

/// How many states go into a call, at least two: by their number and by their mean size.
fn states_per_call(aggregate: Aggregate<'_>, sources: &[Vec<ArrayRef>]) -> usize {
    let limits = &aggregate.slot.limits;
    let rows: usize = sources.iter().filter_map(|source| source.first()).map(|column| column.len()).sum();
    let bytes: usize = sources.iter().flatten().map(encode::encoded_len).sum();
    let mean = bytes.div_ceil(rows.max(1)).max(1);
    limits.rows_per_call.min(limits.argument_bytes_per_call / mean).max(2)
}

/// A call in the making.
#[derive(Default)]
struct Call {
    places: Vec<Place>,
    numbers: Vec<u32>,
    groups: u32,
}

impl Call {
    /// Adds the states of a group.
    fn add(&mut self, states: &[Place]) {
        self.places.extend_from_slice(states);
        self.numbers.resize(self.places.len(), self.groups);
        self.groups += 1;
    }

    fn make(
        &self,
        caller: &mut Caller<'_>,
        aggregate: Aggregate<'_>,
        sources: &[Vec<ArrayRef>],
    ) -> Result<Vec<ArrayRef>, Failure> {
        let fields = &aggregate.signature.state;
        let states = gathered(sources, &self.places, fields)?;
        let encoded = Encoded::of(&states, self.places.len())?;
        let (slices, numbers) = (encoded.slices(), columns::numbers(&self.numbers));
        let params = (aggregate.number, self.groups, numbers.as_slice(), encoded.batch(&slices));
        let rows = self.places.len();
        let (states, errors) = caller.call::<Merge, _>(params, |output: StatesOutput| {
            let errors = columns::row_errors(output.row_errors, rows)?;
            Ok((columns::states(fields, output.states, self.groups as usize)?, errors))
        })?;
        match errors.first() {
            Some((_, message)) => Err(Failure::Refused(format!("a state cannot be merged: {message}"))),
            None => Ok(states),
        }
    }
}
