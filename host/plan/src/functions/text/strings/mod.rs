//! Functions of strings and of their bytes.
//!
//! Where it stands: beside regular expressions and hashes.
//!
//! Rule of its life: a string is characters, never UTF-16 units; BINARY is bytes.

mod base;
pub(crate) mod edit;
mod encoding;
mod number;
pub(crate) mod search;
pub(crate) mod slice;

use super::function::Function;

/// All functions of strings.
pub(super) fn functions() -> Vec<Function> {
    let mut all = base::functions();
    all.extend(edit::functions());
    all.extend(slice::functions());
    all.extend(search::functions());
    all.extend(encoding::functions());
    all.extend(number::functions());
    all
}
