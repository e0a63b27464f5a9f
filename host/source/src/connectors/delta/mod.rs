//! A table of Delta Lake as a stream of its versions, or as it is now.
//!
//! ```text
//!   start ──► the files of the table as it is (version 7, initial) ──► files that version 8 adds ──► version 9 …
//! ```
//!
//! [`config`] has the options, [`offset`] the place in the table's history, [`commit`] says what a version of the log does,
//! [`files`] reads data files, [`source`] walks from one to the next.
//!
//! Rule of its life: an offset names a version and a file in it, so a range always is the same files, as long as the table
//! keeps them: neither log nor files may be cleaned up behind the query. Only versions that add rows go on by themselves; one
//! that takes rows away stops the query unless an option says what that means.
//!
//! It does not read change data feeds, and no tables with mapped column names.

mod commit;
mod config;
mod files;
mod offset;
mod source;
#[cfg(test)]
mod tests;

pub use source::DeltaSourceFactory;
