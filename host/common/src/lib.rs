//! The words that every crate of the host shares.
//!
//! Layer 0 of the house: ids, digests, watermark, trigger, output mode, clock, options, faults, and the
//! contract of durable files. Everything above imports it; it imports nothing of ours.
//!
//! Rule of its life: values and pure functions only. Time, randomness and files are traits here and
//! are implemented above.
//!
//! It does not know Arrow, SQL, WebAssembly or any connector.

pub mod clock;
pub mod closed_output;
pub mod digest;
pub mod durable;
pub mod duration;
pub mod fault;
pub mod hinted;
pub mod ids;
pub mod memory_files;
pub mod options;
pub mod output_mode;
pub mod panicked;
pub mod read_limit;
pub mod secrets;
pub mod sql_settings;
pub mod stop;
pub mod trigger;
pub mod watermark;

pub use clock::{Clock, ManualClock, SystemClock};
pub use closed_output::ClosedOutput;
pub use digest::Digest;
pub use durable::{DurableError, DurableFiles, ScopedFiles};
pub use fault::{Fault, Hint, describe_chain, find_cause};
pub use hinted::Hinted;
pub use ids::{BatchId, OperatorUid, QueryId, RunId};
pub use memory_files::MemoryFiles;
pub use options::{OptionError, Options};
pub use output_mode::OutputMode;
pub use panicked::{Panicked, guarded};
pub use read_limit::ReadLimit;
pub use sql_settings::{BatchTime, SqlSettings};
pub use stop::StopSignal;
pub use trigger::Trigger;
pub use watermark::{Watermark, WatermarkPolicy, WatermarkTracker, Watermarks};
