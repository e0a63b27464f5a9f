//! Columns and types from what files hold, when a user asks for that instead of a schema.
//!
//! Rule of its life: the same texts in the same order give the same columns. Nothing fails on data: what fits no narrower
//! type is a string.
//!
//! Source of the semantics: Spark's inference of CSV and JSON. It reads nothing itself, and looks at as much as its caller
//! shows.

mod csv;
mod json;

pub(crate) use csv::CsvInference;
pub(crate) use json::JsonInference;
