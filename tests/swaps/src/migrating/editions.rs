//! The editions of `ledger` and what must be refused in their place.

use anyhow::{Context, Result};
use millstream_common::Digest;
use std::path::Path;
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

/// What must be refused, whole.
const REFUSED_FILES: [&str; 3] = ["ledger_lost", "ledger_fails", "words_loud"];

/// The bytes of a component: from a folder, where they have been [written](write), or compiled.
fn bytes(folder: Option<&Path>, name: &str) -> Result<Vec<u8>> {
    match folder {
        Some(folder) => std::fs::read(folder.join(name)).with_context(|| format!("cannot read the component {name}")),
        None => component(name),
    }
}

/// Writes all components into a folder, for processes that would take long to compile them.
pub(super) fn write(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for name in EDITION_FILES.into_iter().chain(REFUSED_FILES) {
        std::fs::write(folder.join(name), component(name)?)?;
    }
    Ok(())
}

/// All editions, in order.
pub(super) fn all(folder: Option<&Path>) -> Result<Vec<Edition>> {
    let edition = |(name, form): (&str, u8)| {
        let bytes = bytes(folder, name)?;
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
pub(super) fn refused(folder: Option<&Path>) -> Result<Vec<Vec<u8>>> {
    let mut refused = REFUSED_FILES.into_iter().map(|name| bytes(folder, name)).collect::<Result<Vec<_>>>()?;
    let mut torn = bytes(folder, EDITION_FILES[1])?;
    torn.truncate(torn.len() / 2);
    refused.push(torn);
    Ok(refused)
}
