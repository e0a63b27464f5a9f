//! Stateful processors: what a component says of them, what a call takes, and what comes back.
//!
//! ```text
//!   rows, state and timers of many keys ──► Invocation ──pieces of whole keys──► guest
//!   output rows, changes of state and timers ◄── Outcome ◄────── checked ────────┘
//! ```
//!
//! Beside the data path: the operator puts an [`Invocation`] together from a batch and its state store, once per batch
//! and partition, and does what the [`Outcome`] says.
//!
//! Rule of its life: keys are numbered from 0 within a call, and all that belongs to keys stands in their order. A call
//! is cut between keys, never within one. An outcome names only keys, variables and types that the call has; where a key
//! is at fault it has no rows and changes nothing.
//!
//! It knows no store, no watermark's course and no output mode.

mod invocation;
mod outcome;
mod signature;

pub use invocation::{Entries, Invocation, Step, Timers};
pub use outcome::{KeyFault, Outcome, VariableChanges};
pub use signature::{ProcessorSignature, TimeMode, VariableKind, VariableSignature};
