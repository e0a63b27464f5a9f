//! Batches as tables on a screen.
//!
//! Each batch is a headline and the first rows as a table, in Spark's layout to the letter ([`table`]), its
//! values in Spark's text form ([`cell`]).
//!
//! Rule of its life: a batch is written in one piece. It is for looking: a batch handed over twice appears
//! twice.

mod cell;
mod config;
mod sink;
pub(crate) mod table;
#[cfg(test)]
mod tests;

pub use sink::ConsoleSinkFactory;
