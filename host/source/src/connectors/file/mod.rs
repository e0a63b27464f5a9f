//! Files of a folder or of a bucket, each read once, in the order of their modification times.
//!
//! The flow: [`factory`] checks the options ([`config`], [`patterns`]) and finds the schema ([`discovery`], [`partitions`]);
//! [`listing`] sees which files there are, [`seen`] which of them are new, [`log`] writes down in the checkpoint which files an
//! offset stands for; [`reader`] opens the files of a range ([`input`], [`spans`], [`compression`]), decodes them ([`chunks`],
//! [`columnar`]) and holds to what was decided about bad ones ([`verdicts`]); [`cleaner`] moves or deletes what is
//! committed. Object stores are behind [`bucket`].
//!
//! Rule of its life: the log entry of offset N is written before the offset is answered, and it is the only
//! authority on what a range holds: a range always reads the same files. A file must appear as a whole
//! (renamed into place); once seen it is never read again, even if it changes.

mod bucket;
mod chunks;
mod cleaner;
mod columnar;
mod compression;
mod config;
mod discovery;
mod factory;
mod input;
mod listing;
mod log;
mod partitions;
mod patterns;
mod reader;
mod seen;
mod source;
mod spans;
#[cfg(test)]
mod tests;
mod verdicts;

pub use config::FileFormat;
pub use factory::FileSourceFactory;
