//! A real HDFS for tests, Apache Hadoop's own: a name node and a data node on loopback, started, halted, killed and started
//! again.
//!
//! [`Hdfs::shared`] is one that all tests of a program have in common, each in a folder of its own; [`Hdfs::of_own`] one that
//! a test may kill.
//!
//! Rule of its life: whatever becomes of the test program, its servers end with it, and so do their folders.
//!
//! With `MILLSTREAM_TEST_HDFS` set to a folder of another cluster (`hdfs://host:port/folder`), [`Hdfs::shared`] is that; what
//! kills servers is then left out, with a line that says so.

#![allow(clippy::panic, reason = "helpers of tests may fail a test")]

mod jars;
mod process;
mod server;

pub use process::Role;
pub use server::Hdfs;
