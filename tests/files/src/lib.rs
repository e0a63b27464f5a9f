//! Queries over files: an S3 server of their own, and a measure of a folder with very many files.

pub mod scale;
pub mod server;
