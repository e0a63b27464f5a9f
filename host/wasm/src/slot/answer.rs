//! What requests answer, compared: the rows, groups or keys at which two answers to one question differ.

use arrow::array::{Array, ArrayRef};
use arrow::util::display::array_value_to_string;
use std::collections::BTreeSet;
use std::ops::Range;

use super::outcome::{ScalarOutcome, StatesOutcome, TableOutcome};
use crate::processor::{Outcome, Timers};

/// An answer that can be compared with another one to the same question.
pub(super) trait Answer {
    /// What could not be computed, and why.
    fn faults(&self) -> Vec<(u32, &str)>;

    /// The rows, groups or keys at which they differ.
    fn differing(&self, other: &Self) -> BTreeSet<u32>;

    /// The answer at a row, group or key, for people; `None` where there is nothing short to show.
    fn shown(&self, at: u32) -> Option<String>;
}

impl Answer for ScalarOutcome {
    fn faults(&self) -> Vec<(u32, &str)> {
        self.faults.iter().map(|fault| (fault.row, fault.error.as_str())).collect()
    }

    fn differing(&self, other: &Self) -> BTreeSet<u32> {
        differing_rows(std::slice::from_ref(&self.values), std::slice::from_ref(&other.values))
    }

    fn shown(&self, at: u32) -> Option<String> {
        shown(std::slice::from_ref(&self.values), at)
    }
}

impl Answer for TableOutcome {
    fn faults(&self) -> Vec<(u32, &str)> {
        self.faults.iter().map(|fault| (fault.row, fault.error.as_str())).collect()
    }

    fn differing(&self, other: &Self) -> BTreeSet<u32> {
        differing_lists((self.input_rows.values(), &self.columns), (other.input_rows.values(), &other.columns))
    }

    fn shown(&self, at: u32) -> Option<String> {
        let rows = places(self.input_rows.values(), at);
        Some(format!("{} rows", rows.len()))
    }
}

impl Answer for StatesOutcome {
    fn faults(&self) -> Vec<(u32, &str)> {
        self.faults.iter().map(|fault| (fault.row, fault.error.as_str())).collect()
    }

    fn differing(&self, other: &Self) -> BTreeSet<u32> {
        differing_rows(&self.states, &other.states)
    }

    fn shown(&self, at: u32) -> Option<String> {
        shown(&self.states, at)
    }
}

/// Merged states, one row per group.
impl Answer for Vec<ArrayRef> {
    fn faults(&self) -> Vec<(u32, &str)> {
        Vec::new()
    }

    fn differing(&self, other: &Self) -> BTreeSet<u32> {
        differing_rows(self, other)
    }

    fn shown(&self, at: u32) -> Option<String> {
        shown(self, at)
    }
}

impl Answer for Outcome {
    fn faults(&self) -> Vec<(u32, &str)> {
        self.faults.iter().map(|fault| (fault.key, fault.error.as_str())).collect()
    }

    fn differing(&self, other: &Self) -> BTreeSet<u32> {
        let mut keys = differing_lists((&self.key_of_row, &self.rows), (&other.key_of_row, &other.rows));
        for (one, two) in self.changes.iter().zip(&other.changes) {
            let one_cleared: BTreeSet<u32> = one.cleared.iter().copied().collect();
            let two_cleared: BTreeSet<u32> = two.cleared.iter().copied().collect();
            keys.extend(one_cleared.symmetric_difference(&two_cleared));
            keys.extend(differing_lists((&one.key_of_removed, &one.removed), (&two.key_of_removed, &two.removed)));
            let columns = |put: &crate::processor::Entries| [put.map_keys.clone(), put.columns.clone()].concat();
            let (one_put, two_put) = (columns(&one.put), columns(&two.put));
            keys.extend(differing_lists((&one.put.key_of_entry, &one_put), (&two.put.key_of_entry, &two_put)));
        }
        for (one, two) in [(&self.deleted, &other.deleted), (&self.registered, &other.registered)] {
            keys.extend(differing_timers(one, two));
        }
        let failed = |outcome: &Self| outcome.faults.iter().map(|fault| fault.key).collect::<BTreeSet<_>>();
        keys.extend(failed(self).symmetric_difference(&failed(other)));
        keys
    }

    fn shown(&self, at: u32) -> Option<String> {
        let rows = places(&self.key_of_row, at);
        match rows.len() {
            1 => shown(&self.rows, rows.start as u32),
            several => Some(format!("{several} rows")),
        }
    }
}

/// A row of columns.
fn shown(columns: &[ArrayRef], row: u32) -> Option<String> {
    let value = |column: &ArrayRef| match column.is_valid(row as usize) {
        true => array_value_to_string(column, row as usize).unwrap_or_else(|error| error.to_string()),
        false => "null".to_owned(),
    };
    let is_there = columns.iter().all(|column| column.len() > row as usize);
    is_there.then(|| columns.iter().map(value).collect::<Vec<_>>().join(", "))
}

/// The rows at which columns of equal types differ.
fn differing_rows(one: &[ArrayRef], two: &[ArrayRef]) -> BTreeSet<u32> {
    let rows = |columns: &[ArrayRef]| columns.first().map_or(0, |column| column.len());
    if one.len() != two.len() || rows(one) != rows(two) {
        return (0..rows(one).max(rows(two)).max(1) as u32).collect();
    }
    let mut differing = BTreeSet::new();
    for (one, two) in one.iter().zip(two).filter(|(one, two)| one != two) {
        let rows = 0..one.len();
        differing.extend(rows.filter(|row| one.slice(*row, 1) != two.slice(*row, 1)).map(|row| row as u32));
    }
    differing
}

/// The owners, ascending, whose lists of rows differ.
fn differing_lists(one: (&[u32], &[ArrayRef]), two: (&[u32], &[ArrayRef])) -> BTreeSet<u32> {
    if one.0 == two.0 && one.1 == two.1 {
        return BTreeSet::new();
    }
    let owners: BTreeSet<u32> = one.0.iter().chain(two.0).copied().collect();
    let of = |(owners, columns): (&[u32], &[ArrayRef]), owner: u32| {
        let place = places(owners, owner);
        columns.iter().map(|column| column.slice(place.start, place.len())).collect::<Vec<_>>()
    };
    let lengths = |owner: u32| places(one.0, owner).len() != places(two.0, owner).len();
    owners.into_iter().filter(|owner| lengths(*owner) || of(one, *owner) != of(two, *owner)).collect()
}

fn differing_timers(one: &Timers, two: &Timers) -> BTreeSet<u32> {
    let set = |timers: &Timers| timers.iter().collect::<BTreeSet<(u32, i64)>>();
    set(one).symmetric_difference(&set(two)).map(|(key, _)| *key).collect()
}

/// Where the rows of an owner stand.
fn places(owners: &[u32], owner: u32) -> Range<usize> {
    owners.partition_point(|of| *of < owner)..owners.partition_point(|of| *of <= owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, UInt32Array};
    use std::sync::Arc;

    fn column(values: &[Option<i64>]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    #[test]
    fn answers_differ_at_the_rows_whose_values_do() {
        let scalar = |values: &[Option<i64>]| ScalarOutcome { values: column(values), faults: vec![] };
        let (one, two) = (scalar(&[Some(1), None, Some(3)]), scalar(&[Some(1), Some(0), Some(3)]));
        assert_eq!(one.differing(&two), BTreeSet::from([1]));
        assert!(one.differing(&one.clone()).is_empty());
        assert_eq!((one.shown(1).unwrap(), two.shown(1).unwrap()), ("null".to_owned(), "0".to_owned()));
    }

    #[test]
    fn answers_differ_at_the_input_rows_whose_lists_do() {
        let table = |rows: &[u32], values: &[i64]| TableOutcome {
            input_rows: UInt32Array::from(rows.to_vec()),
            columns: vec![Arc::new(Int64Array::from(values.to_vec()))],
            faults: vec![],
        };
        let one = table(&[0, 0, 2, 3], &[1, 2, 3, 4]);
        assert_eq!(one.differing(&table(&[0, 0, 2, 3], &[1, 2, 3, 4])), BTreeSet::new());
        assert_eq!(one.differing(&table(&[0, 1, 2, 3], &[1, 2, 3, 5])), BTreeSet::from([0, 1, 3]));
    }

    #[test]
    fn outcomes_differ_at_the_keys_whose_rows_state_or_timers_do() {
        let mut one = Outcome { changes: vec![Default::default()], ..Outcome::default() };
        one.changes[0].put.key_of_entry = vec![0, 1];
        one.changes[0].put.columns = vec![column(&[Some(1), Some(2)])];
        let mut two = one.clone();
        assert!(one.differing(&two).is_empty());
        two.changes[0].put.columns = vec![column(&[Some(1), Some(3)])];
        two.registered.push(4, 9);
        two.changes[0].cleared = vec![2];
        assert_eq!(one.differing(&two), BTreeSet::from([1, 2, 4]));
    }
}
