//! Functions over arrays: `array`, `size`, `element_at`, `sort_array`, `array_union`, `sequence`, …
//!
//! Each file has one family and lists its functions as definitions; [`definitions`] gathers them.

mod access;
mod edit;
mod generators;
mod join;
mod search;
mod sequence;
mod sets;
mod sort;
mod zip;

pub(super) use access::find_key;

use super::function::Definition;

/// All functions of this folder.
pub(super) fn definitions() -> Vec<Definition> {
    [
        access::definitions(),
        edit::definitions(),
        generators::definitions(),
        join::definitions(),
        search::definitions(),
        sequence::definitions(),
        sets::definitions(),
        sort::definitions(),
        zip::definitions(),
    ]
    .concat()
}
