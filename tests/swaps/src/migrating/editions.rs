//! The editions of `ledger` and what must be refused in their place.

use anyhow::{Context, Result};
use millstream_common::Digest;
use streaming_stories::component;

/// An edition.
#[derive(Debug, Clone)]
pub(super) struct Edition {
    pub(super) bytes: Vec<u8>,
    pub(super) digest: Digest,
    /// Editions of the same form have the same state.
    pub(super) form: u8,
}

/// Their files, in order.
pub(crate) const EDITION_FILES: [&str; 4] = ["ledger_one", "ledger_two", "ledger_three", "ledger_four"];
/// The forms of their state.
const FORMS: [u8; 4] = [1, 2, 3, 2];

/// All editions, in order.
pub(super) fn all() -> Result<Vec<Edition>> {
    let edition = |(name, form): (&str, u8)| {
        let bytes = component(name)?;
        let digest = Digest::of(&bytes);
        Ok(Edition { bytes, digest, form })
    };
    EDITION_FILES.into_iter().zip(FORMS).map(edition).collect()
}

/// The place of an edition among all.
pub(super) fn number(editions: &[Edition], digest: Digest) -> Result<usize> {
    editions.iter().position(|edition| edition.digest == digest).context("the log names an unknown component")
}

/// What must be refused: no way for the state, ways that fail, another plugin, half a file.
pub(super) fn refused() -> Result<Vec<Vec<u8>>> {
    let mut torn = component("ledger_two")?;
    torn.truncate(torn.len() / 2);
    Ok(vec![component("ledger_lost")?, component("ledger_fails")?, component("words_loud")?, torn])
}
