//! What the tests of recovery share: a query that a process of its own runs, and random runs against a model.
//!
//! The tests themselves are in `tests/`; `recovery-child` is the process that gets killed, `crash` runs many seeds, `spill`
//! lets state grow beyond its memory.

pub mod child;
pub mod model;
pub mod seed;
pub mod spill;
