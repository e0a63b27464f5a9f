//! Which states belong to which group, and how the rows of a call are numbered.

use arrow::array::{Array, ArrayRef};
use arrow::compute::interleave;
use arrow::datatypes::FieldRef;
use std::collections::HashMap;

use crate::call::Failure;
use crate::layout::encode;

/// A state: the number of its source and its row there.
pub(super) type Place = (usize, usize);

/// For each group the places of its states, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lists {
    /// The places of all groups, group by group.
    places: Vec<Place>,
    /// Where the list of each group ends.
    ends: Vec<usize>,
}

impl Lists {
    /// The rows of one source by their groups, which are below `groups`.
    pub(super) fn by_group(groups: usize, group_of_row: impl Iterator<Item = u32> + Clone) -> Self {
        let mut ends = vec![0; groups];
        group_of_row.clone().for_each(|group| ends[group as usize] += 1);
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        // Now each end is where its list starts, and moves on with every row.
        let mut places = vec![(0, 0); start];
        for (row, group) in group_of_row.enumerate() {
            let end = &mut ends[group as usize];
            places[*end] = (0, row);
            *end += 1;
        }
        Self { places, ends }
    }

    /// The list of each group.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[Place]> {
        (0..self.ends.len()).map(|group| {
            let start = if group == 0 { 0 } else { self.ends[group - 1] };
            &self.places[start..self.ends[group]]
        })
    }

    /// Whether a group has none.
    pub(super) fn has_empty(&self) -> bool {
        self.iter().any(<[Place]>::is_empty)
    }

    /// Whether every group has one.
    pub(super) fn are_single(&self) -> bool {
        self.iter().all(|list| list.len() == 1)
    }

    /// Adds a state to the last group.
    pub(super) fn push(&mut self, place: Place) {
        self.places.push(place);
    }

    /// Ends the last group.
    pub(super) fn end_group(&mut self) {
        self.ends.push(self.places.len());
    }

    /// All places, group by group.
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }
}

/// The states at these places, in their order. Every source has all columns.
pub(super) fn gathered(
    sources: &[Vec<ArrayRef>],
    places: &[Place],
    fields: &[FieldRef],
) -> Result<Vec<ArrayRef>, Failure> {
    if let [only] = sources
        && only.first().is_some_and(|column| column.len() == places.len())
        && places.iter().enumerate().all(|(row, place)| *place == (0, row))
    {
        return Ok(only.clone());
    }
    let column = |(index, field): (usize, &FieldRef)| {
        let parts: Vec<&dyn Array> = sources.iter().filter_map(|source| source.get(index)).map(AsRef::as_ref).collect();
        if parts.is_empty() {
            return Ok(encode::nulls(field.data_type(), 0));
        }
        interleave(&parts, places).map_err(|error| Failure::Engine(error.to_string()))
    };
    fields.iter().enumerate().map(column).collect()
}

/// The groups of the rows of a call, numbered in the order in which they first come: the number of each row's group, and
/// the groups by their numbers.
pub(super) fn numbered(group_of_row: impl Iterator<Item = u32>) -> (Vec<u32>, Vec<u32>) {
    let mut known: HashMap<u32, u32> = HashMap::new();
    let mut groups = Vec::new();
    let numbers = group_of_row
        .map(|group| {
            *known.entry(group).or_insert_with(|| {
                groups.push(group);
                (groups.len() - 1) as u32
            })
        })
        .collect();
    (numbers, groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_listed_by_group_in_their_order() {
        let lists = Lists::by_group(4, [2, 0, 2, 3, 2].into_iter());
        let rows: Vec<Vec<usize>> = lists.iter().map(|list| list.iter().map(|place| place.1).collect()).collect();
        assert_eq!(rows, [vec![1], vec![], vec![0, 2, 4], vec![3]]);
        assert!(lists.has_empty() && !lists.are_single());
        assert!(Lists::by_group(2, [1, 0].into_iter()).are_single());
        assert_eq!(Lists::by_group(0, std::iter::empty()), Lists::default());
    }

    #[test]
    fn groups_of_a_call_are_numbered_as_they_come() {
        assert_eq!(numbered([7, 3, 7, 9].into_iter()), (vec![0, 1, 0, 2], vec![7, 3, 9]));
    }
}
