//! Which keys run in which code while a plugin has a canary: those of its slice in the candidate, the others in the code
//! that runs.
//!
//! A key is of the slice by the bytes that decide on its partition, so all that is ever kept under it runs in the same
//! code. The operator goes over its keys lane by lane, and the plugins see by the [`Scope`] of the thread which it is.

use crate::row_codec::EncodedRows;
use arrow::array::ArrayRef;
use datafusion::error::DataFusionError;
use millstream_wasm::{PluginSlot, Scope, Slice};
use std::sync::Arc;

/// The slice of a plugin's canary, while one of them has one. A query has one canary at a time.
pub(crate) fn slice_of(plugins: &[Arc<PluginSlot>]) -> Option<Slice> {
    plugins.iter().find_map(|plugin| plugin.slice())
}

/// Does something to the keys of the code that runs, then to those of the slice; once to all keys when there is no slice.
pub(crate) fn each_lane<E>(
    slice: Option<Slice>,
    mut work: impl FnMut(Option<(Slice, bool)>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(slice) = slice else { return work(None) };
    [false, true]
        .into_iter()
        .try_for_each(|is_slice| Scope::current().slice(is_slice).enter(|| work(Some((slice, is_slice)))))
}

/// The bytes of keys by which their lane is chosen.
pub(crate) type LaneBytes<'a> = dyn Fn(&[ArrayRef]) -> Result<EncodedRows, DataFusionError> + 'a;

/// The keys of one lane.
pub(crate) struct Lane<'a> {
    pub(crate) slice: Slice,
    pub(crate) is_slice: bool,
    pub(crate) bytes: &'a LaneBytes<'a>,
}

impl Lane<'_> {
    /// Which of `len` keys are of this lane.
    pub(crate) fn rows(&self, keys: &[ArrayRef], len: usize) -> Result<Vec<u32>, DataFusionError> {
        let encoded = (self.bytes)(keys)?;
        let is_mine = |row: &u32| self.slice.has(encoded.row(*row as usize)) == self.is_slice;
        Ok((0..len as u32).filter(is_mine).collect())
    }
}
