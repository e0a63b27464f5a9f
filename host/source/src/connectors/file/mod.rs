//! Files of a folder, each read once, in the order of their modification times.
//!
//! The flow: [`listing`] sees which files there are, [`seen`] which of them are new, [`log`] writes down in the
//! checkpoint which files an offset stands for, [`reader`] decodes the files of a range, [`cleaner`] moves or
//! deletes what is committed.
//!
//! Rule of its life: the log entry of offset N is written before the offset is answered, and it is the only
//! authority on what a range holds: a range always reads the same files. A file must appear as a whole
//! (renamed into place); once seen it is never read again, even if it changes.
//!
//! Only local folders are read, and only files that are not compressed as a whole.

mod cleaner;
mod config;
mod listing;
mod log;
mod reader;
mod seen;
mod source;
#[cfg(test)]
mod tests;

pub use config::FileFormat;
pub use source::FileSourceFactory;
