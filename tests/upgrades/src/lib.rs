//! A corpus of upgrades, and what must be said of each: bad ones are refused or held, and the message names what and where;
//! good ones are let through without a question.
//!
//! ```text
//!   query over the base edition ──► some batches ──► checkpoint
//!                                                        │
//!                             a case's component ────────┴──► verdict ──► the case's expectation
//! ```
//! Most cases are one component with another mark in its data: `tests/components/examples/upgrade.rs` for editions that
//! behave otherwise, `upgrade_shape.rs` for those that describe themselves otherwise.

mod case;
mod corpus;
mod stage;

pub use case::{Case, Expected};
pub use corpus::{bad, good};
pub use stage::{Query, Stage};
