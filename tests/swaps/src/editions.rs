//! The components that take each other's place.

use anyhow::Result;
use millstream_common::Digest;
use streaming_stories::component;

/// An edition of the plugin.
#[derive(Debug, Clone)]
pub(crate) struct Edition {
    /// What its `version` adds.
    pub(crate) number: i64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: Digest,
}

/// All editions, in the order of their numbers.
pub(crate) fn all() -> Result<Vec<Edition>> {
    let names = [(1, "edition_one"), (2, "edition_two"), (3, "edition_three")];
    names
        .into_iter()
        .map(|(number, name)| {
            let bytes = component(name)?;
            let digest = Digest::of(&bytes);
            Ok(Edition { number, bytes, digest })
        })
        .collect()
}

/// What must be refused: other signatures, no component, a core module, nothing.
pub(crate) fn refused() -> Result<Vec<Vec<u8>>> {
    let mut garbage = component("edition_two")?;
    garbage.truncate(garbage.len() / 2);
    Ok(vec![
        component("edition_foreign")?,
        component("words_loud")?,
        garbage,
        b"\0asm\x01\0\0\0".to_vec(),
        b"no component".to_vec(),
        Vec::new(),
    ])
}
