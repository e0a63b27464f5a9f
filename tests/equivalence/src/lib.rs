//! Prefix consistency, tried at random: the result of a stream is the batch query's over the rows read so far.
//!
//! ```text
//!              ┌─ cut into batches, restarts, crashes, partitions ──► streaming engine ──► what the sink has
//!   seed ──► rows, query                                                                        ║ equal
//!              └─ all at once ──────────────────────────────────────► batch query ─────────► the answer
//! ```
//!
//! A seed picks a [`Shape`]: a kind of query with random columns, windows and conditions, over streams with random
//! rows. Where the output mode gives final rows only, no row is late, and in the end rows from far in the future close
//! what is open; they carry a mark and are left out of the comparison.
//!
//! The batch query shares the front end with the stream, and nothing after that.

mod answer;
mod input;
mod play;
mod shape;

use anyhow::{Context, Result, ensure};
use rand::SeedableRng;
use rand::rngs::StdRng;

pub use shape::{Compare, NAMES, Shape};

/// What a seed went through.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    /// Batches that ran to their commit.
    pub batches: u64,
    /// Crashes and restarts.
    pub restarts: u64,
    /// Rows of the answer.
    pub rows: u64,
}

/// Runs a seed; shapes take turns.
///
/// # Errors
/// When the stream's result is not the batch query's, with the query and both.
pub fn run(seed: u64) -> Result<Outcome> {
    let mut random = StdRng::seed_from_u64(seed);
    let name = NAMES[(seed % NAMES.len() as u64) as usize];
    let shape = shape::random(name, &mut random);
    check(&shape, &mut random).with_context(|| format!("seed {seed}, {name}: {shape:?}"))
}

fn check(shape: &Shape, random: &mut StdRng) -> Result<Outcome> {
    let units = input::random_units(shape, random);
    let played = play::play(shape, &units, random)?;
    let expected = answer::answer(shape, &units)?;
    let rows = expected.len() as u64;
    let given = answer::result(shape, &played.batches);
    ensure!(given == expected, "the stream gave {given:#?}\nthe batch query {expected:#?}\nfrom {units:?}");
    Ok(Outcome { batches: played.batches.len() as u64, restarts: played.restarts, rows })
}
