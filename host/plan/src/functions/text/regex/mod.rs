//! Patterns over strings: `LIKE`, regular expressions, splitting.
//!
//! Where it stands: beside the functions of strings.
//!
//! Rule of its life: patterns are compiled once and kept between batches; their run time is linear in the text.

mod like;
mod pattern;
mod search;

use super::function::Function;
pub(super) use pattern::compile;
pub(crate) use search::Separator;

/// All functions of patterns.
pub(super) fn functions() -> Vec<Function> {
    let mut all = like::functions();
    all.extend(search::functions());
    all
}
