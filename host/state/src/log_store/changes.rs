//! The changes of one batch, read back from its changelog: for state that is kept in another form beside the one that runs.
//!
//! Beside the data path: whoever follows a store reads the file of each batch that it has done.
//!
//! Rule of its life: nothing of a file is used before its length and checksums are as the manifest says.

use super::chain::Chain;
use super::frame::Frame;
use super::record::Record;
use super::snapshot::each_record;
use crate::{FamilySpec, StateError, StateFile, StateFileKind};
use millstream_common::DurableFiles;

/// A change of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateChange<'a> {
    /// A key has this value.
    Put {
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// A key is gone.
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// Every key with a prefix up to this one is gone.
    DeleteThrough {
        /// The last prefix.
        through: u64,
    },
}

/// Visits what a changelog changes, in order. `files` is the folder of the store.
///
/// # Errors
/// When the file is missing, is no changelog, or is not as the manifest says.
pub fn visit_changes(
    files: &dyn DurableFiles,
    file: &StateFile,
    visit: &mut dyn FnMut(&FamilySpec, StateChange<'_>),
) -> Result<(), StateError> {
    let chain = Chain::new(files);
    let bytes = chain.get(file)?;
    let damaged = |reason: String| chain.damaged(&file.name, reason);
    let (frame, crc) = Frame::read(&bytes).map_err(damaged)?;
    let found = (bytes.len() as u64, crc, frame.kind, frame.version);
    if found != (file.bytes, file.crc, StateFileKind::Changelog, file.version) {
        return Err(damaged("it is not the changelog that the manifest names".into()));
    }
    let families: Vec<FamilySpec> = frame
        .families
        .iter()
        .map(|family| FamilySpec {
            name: family.name.to_owned(),
            layout: family.layout,
            schema_id: family.schema_id.to_owned(),
        })
        .collect();
    each_record(&frame, |record| {
        let change = match record {
            Record::Put { key, value, .. } => StateChange::Put { key, value },
            Record::Delete { key, .. } => StateChange::Delete { key },
            Record::DeleteThrough { through, .. } => StateChange::DeleteThrough { through },
        };
        visit(&families[record.family()], change);
        Ok::<(), String>(())
    })
    .map_err(damaged)
}
