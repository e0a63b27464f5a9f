//! HDFS as a store of objects, by its own protocol: no Java, no library of C.
//!
//! ```text
//!   put, copy, parts   .<id>.tmp  ──data nodes acknowledge, close──►  rename(<name>), or over it  ──►  done
//!   get, list, delete  ──────────────────────────────────────────►  name node, data nodes
//! ```
//!
//! The name node renames in one step, and refuses a name that is taken: that is the put-if-absent of checkpoints and of Delta's
//! log. A name is given to whole files only, so nobody reads half of one.
//!
//! Rule of its life: names of this form are writes that did not come to their end; the store does not list them. What a
//! killed process leaves of them stays until somebody removes it. Every wait has an end ([`patience`]).
//!
//! How durable a closed file is, is HDFS's word: all data nodes that hold it have it, in memory or on the disk as
//! `dfs.datanode.synconclose` says; the names are on the disk of the name node.

mod address;
mod failure;
mod name_node;
mod patience;
mod store;
mod temporary_file;
mod upload;

pub(crate) use store::HdfsStore;

use object_store::path::Path;

/// The name of the store in errors.
const NAME: &str = "HDFS";

/// A path as HDFS has it.
fn absolute(path: &Path) -> String {
    format!("/{path}")
}
