//! Rows that a source of a plugin gives.
//!
//! ```text
//!   initial-offset ──► sources/<name>/initial, once
//!   latest-offset(start, until, max rows) ──► end ──► (the offset log)
//!   read(start, end) ──► page, page, … ──► rows
//!   commit(end), when a later range is logged
//! ```
//!
//! An offset is text that only the plugin understands; in the logs it is a JSON string. Options that the source describes
//! are handed to it with every call.
//!
//! Rule of its life: nothing that a plugin says is believed. Pages, rows and bytes of a range have limits, an offset that was
//! left behind does not come again, and a range that is read again must give the same rows: a digest of them is kept.
//!
//! It makes no instances and keeps no component: the slot does, so a swap reaches the source with the next call.

mod config;
mod factory;
mod source;

pub use factory::PluginSourceFactory;

/// The format under which a query names it.
pub const FORMAT: &str = "plugin";
