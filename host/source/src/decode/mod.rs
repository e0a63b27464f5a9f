//! Bytes into rows: what the file source decodes, and what others decode the same way.
//!
//! A decoder takes the bytes of whole records and a projection, and answers an Arrow batch that holds
//! exactly the projected columns. It comes after the bytes were read and before the plan sees rows.
//!
//! Rule of its life: a decoder is immutable and may be used from many threads; the same bytes give the same
//! rows. Source of the semantics: Spark's readers with their modes permissive, drop-malformed, fail-fast.
//!
//! Decoders open nothing, list nothing and know no offsets.

mod base64;
mod column;
pub mod csv;
mod error;
pub(crate) mod inference;
pub mod json;
mod lines;
mod mode;
pub mod scalar;
pub mod text;

pub use csv::{CsvDecoder, CsvOptions};
pub use error::DecodeError;
pub use json::{JsonDecoder, JsonOptions};
pub use mode::ParseMode;
pub use text::TextDecoder;

pub(crate) use column::{Column, Values};
pub(crate) use csv::one_value;
pub(crate) use error::MAX_INPUT;
pub(crate) use lines::next_line;
