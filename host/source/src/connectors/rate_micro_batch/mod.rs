//! So many rows per batch, whatever the time: columns `timestamp` and `value`, counting from 0.
//!
//! The most predictable source there is: an offset is the number of rows so far with the time of the next
//! batch, and nothing is kept anywhere. Source of the semantics: Spark's `rate-micro-batch`.
//!
//! Rule of its life: there is always one more batch; under a trigger that ends by itself there is exactly
//! one per run.

mod source;
#[cfg(test)]
mod tests;

pub use source::RateMicroBatchSourceFactory;
