//! Rows taken back out of states, in as many calls as the limits ask for.

use arrow::array::ArrayRef;

use super::Aggregate;
use super::groups::{Place, gathered, numbered};
use crate::call::Failure;
use crate::slot::caller::Caller;
use crate::slot::columns::{self, Encoded};
use crate::wire::aggregate::Retract;

/// The states without the rows.
pub(super) fn retracted(
    caller: &mut Caller<'_>,
    aggregate: Aggregate<'_>,
    states: Vec<ArrayRef>,
    group_of_row: &[u32],
    arguments: &[ArrayRef],
) -> Result<Vec<ArrayRef>, Failure> {
    let fields = &aggregate.signature.state;
    let groups = states.first().map_or(0, |column| column.len());
    let mut places: Vec<Place> = (0..groups).map(|row| (0, row)).collect();
    let mut sources = vec![states];
    let mut next = 0;
    while next < group_of_row.len() {
        let rest = next..group_of_row.len();
        let range = next..next + columns::call_len(arguments, rest, &aggregate.slot.limits).max(1);
        next = range.end;
        let mut rows = columns::sliced(arguments, &range);
        let mut group_of_row = group_of_row[range].to_vec();
        if !aggregate.signature.nulls_passed
            && let Some(kept) = columns::rows_without_nulls(&rows)
        {
            rows = columns::taken(&rows, &kept)?;
            group_of_row = kept.iter().map(|row| group_of_row[*row as usize]).collect();
        }
        let (numbers, touched) = numbered(group_of_row.into_iter());
        if touched.is_empty() {
            continue;
        }
        let wanted: Vec<Place> = touched.iter().map(|group| places[*group as usize]).collect();
        let before = Encoded::of(&gathered(&sources, &wanted, fields)?, touched.len())?;
        let encoded = Encoded::of(&rows, numbers.len())?;
        let (before_slices, slices, number_bytes) = (before.slices(), encoded.slices(), columns::numbers(&numbers));
        let params = (aggregate.number, before.batch(&before_slices), number_bytes.as_slice(), encoded.batch(&slices));
        let (after, errors) = caller.call::<Retract, _>(params, |output| {
            let errors = columns::row_errors(output.row_errors, numbers.len())?;
            Ok((columns::states(fields, output.states, touched.len())?, errors))
        })?;
        if let Some((_, message)) = errors.first() {
            return Err(Failure::Refused(format!("a row cannot be taken back: {message}")));
        }
        for (row, group) in touched.iter().enumerate() {
            places[*group as usize] = (sources.len(), row);
        }
        sources.push(after);
    }
    gathered(&sources, &places, fields)
}
