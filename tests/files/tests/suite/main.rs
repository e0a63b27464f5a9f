//! Queries over files, whole: what they read, keep and write, on this machine and on an S3 server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

mod bad_files;
mod objects;
mod scale;
mod world;
