//! Functions over maps: `map`, `map_keys`, `map_from_entries`, `str_to_map`, `map_concat`, …
//!
//! A map never has one key twice nor a null key: every function that makes a map goes through [`build`], which
//! refuses both, as Spark does.

mod build;
mod parts;

pub(super) use build::unique_keys;

use super::function::Definition;

/// All functions of this folder.
pub(super) fn definitions() -> Vec<Definition> {
    [build::definitions(), parts::definitions()].concat()
}
