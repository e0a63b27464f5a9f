//! The values of a batch by the number of their schema.

use arrow::array::{Array, BinaryArray};
use millstream_client::schema_registry::frame_of;
use std::collections::BTreeMap;

/// A row and what is to be decoded of it.
pub(in super::super) type Piece<'a> = (usize, &'a [u8]);

/// The values with one number; without one when they are not framed. Then they are whole.
pub(in super::super) struct Group<'a> {
    /// The number.
    pub(in super::super) id: Option<u32>,
    /// Their payloads, in the order of the rows.
    pub(in super::super) pieces: Vec<Piece<'a>>,
}

/// The groups of a batch, in the order of their numbers; rows without a value are in none.
pub(in super::super) fn groups(values: &BinaryArray) -> Vec<Group<'_>> {
    let mut found: BTreeMap<Option<u32>, Vec<Piece<'_>>> = BTreeMap::new();
    for (row, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        match frame_of(value) {
            Some((id, payload)) => found.entry(Some(id)).or_default().push((row, payload)),
            None => found.entry(None).or_default().push((row, value)),
        }
    }
    debug_assert!(found.values().map(Vec::len).sum::<usize>() <= values.len(), "a row is in one group");
    found.into_iter().map(|(id, pieces)| Group { id, pieces }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_number_are_together_and_in_their_order() {
        let values = BinaryArray::from_opt_vec(vec![
            Some(&[0, 0, 0, 0, 2, 7][..]),
            None,
            Some(&[0, 0, 0, 0, 1, 8]),
            Some(b"{}"),
            Some(&[0, 0, 0, 0, 2]),
        ]);
        let found: Vec<_> = groups(&values).into_iter().map(|group| (group.id, group.pieces)).collect();
        let (two, one): (Vec<Piece<'_>>, Vec<Piece<'_>>) = (vec![(0, &[7]), (4, &[])], vec![(2, &[8])]);
        assert_eq!(found, [(None, vec![(3, &b"{}"[..])]), (Some(1), one), (Some(2), two)]);
    }
}
