//! Tables of Delta Lake: where one is, what its log says, how its columns are named here.
//!
//! A [`DeltaTable`] is opened from a path or URL and the options of an object store; [`snapshot`](DeltaTable::snapshot) reads
//! its log by Delta's own kernel. Sink and source build on that: the one makes transactions, the other reads versions.
//!
//! Rule of its life: the kernel waits for a runtime of its own, so nothing of it runs on a thread of the caller
//! ([`apart`](DeltaTable::apart)); what panics there is an error here. Passwords and keys are in options only, and
//! neither places nor errors show options.
//!
//! On a folder of this machine what is written is on the disk when the kernel hears of it (`durable_store`). The rows of a
//! data file are read by the kernel, but for timestamps in Spark's old form, which it misreads (`data_file`).
//!
//! It writes nothing of its own; at most it makes an empty folder.

mod data_file;
mod durable_store;
mod error;
mod schema;
mod table;

pub use data_file::FileRows;
pub use error::DeltaError;
pub use schema::{all_nullable, arrow_schema, kernel_schema, same_type};
pub use table::{DeltaEngine, DeltaTable};
