//! When batches are cut, and how one runs.
//!
//! ```text
//!   timer    ──at the end of each interval──► cut: an offset range per input ──► queue
//!   runner   ◄── queue ── define (offset log) ─ load ─ bring state on ─ outputs in order ─ commit ─► next
//! ```
//!
//! Rule of its life: batches run one after the other, in the order of their times; none is left out. After a restart the
//! batch that a crash cut short runs first, as it was defined, and then all whose time has passed.
//!
//! It does not know what a stream computes.

mod control;
mod engine;
mod journal;
mod plan;
mod stepper;

pub(crate) use control::Control;
pub(crate) use engine::{Engine, Opened};
pub(crate) use plan::Plan;
pub use stepper::Stepper;
