//! What a store does to stay within its memory budget.
//!
//! ```text
//!   before rows are read or changed      make room, then recall their rows from the spill
//!   before a changelog is written        make room
//!   after a batch                        make room for the next one, merge files of the spill
//! ```
//!
//! Rule of its life: without a budget nothing of this happens. The coldest rows go first: each entry knows when it was
//! last written, or read while there is a spill. A failure between two batches is told; one within a batch fails the batch.

use super::LogStore;
use super::eviction::Evicted;
use super::family::Family;
use super::table::Entry;
use crate::{ByteRows, MemoryBudget, StateError};
use millstream_common::describe_chain;
use std::io;
use std::ops::Range;
use std::path::Path;

/// So many rows are changed between two looks at the memory budget.
pub(super) const ROWS_AT_ONCE: usize = 512;

/// A file of the spill has no fewer rows, unless there are no more.
const LEAST_RUN: usize = 256;

/// So many entries are looked at to know which are the coldest.
const SAMPLE: usize = 4096;

impl LogStore {
    pub(super) fn spilled(&self, source: io::Error) -> StateError {
        let folder = self.share.budget().map_or_else(|| Path::new(""), MemoryBudget::folder);
        StateError::Spill { place: self.options.files.location(), folder: folder.display().to_string(), source }
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> u64 {
        self.families.iter().map(Family::memory).sum::<u64>() + self.batch.bytes() + self.found.bytes()
    }

    /// Makes room for `more` keys of a family, if memory is limited.
    pub(super) fn make_room(&mut self, family: usize, more: usize) -> io::Result<()> {
        if !self.share.is_limited() {
            return Ok(());
        }
        let growth = self.families.get(family).map_or(0, |family| family.growth(more));
        let own = self.memory();
        let excess = self.share.excess(own, growth);
        if excess == 0 { Ok(()) } else { self.evict(excess) }
    }

    /// Makes room between two batches, and merges files of the spill. What fails here is told, and fails the next batch
    /// when it fails again.
    pub(super) fn rest(&mut self) {
        if !self.share.is_limited() {
            return;
        }
        let own = self.memory();
        let excess = self.share.excess_at_rest(own);
        let evicted = if excess == 0 { Ok(()) } else { self.evict(excess) };
        if let Err(error) = evicted.and_then(|()| self.tidy()) {
            let error = describe_chain(&self.spilled(error));
            tracing::warn!(error, "state stays in memory beyond its limit");
        }
        let limit = self.share.budget().map_or(u64::MAX, MemoryBudget::limit);
        let bytes = self.memory();
        if bytes > limit && !std::mem::replace(&mut self.is_told, true) {
            let place = self.options.files.location();
            tracing::warn!(
                place,
                bytes,
                limit,
                "the memory limit of state cannot be kept: it is too small for an index of what is spilled"
            );
        }
    }

    pub(super) fn tidy(&mut self) -> io::Result<()> {
        let Some(budget) = self.share.budget() else { return Ok(()) };
        self.families.iter_mut().try_for_each(|family| family.tidy(budget.folder()))
    }

    /// Rows `0..len` in the pieces between which memory is looked at: one piece when it is not limited.
    pub(super) fn pieces(&self, len: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let piece = if self.share.is_limited() { ROWS_AT_ONCE } else { len.max(1) };
        (0..len).step_by(piece).map(move |start| start..(start + piece).min(len))
    }

    /// Moves the coldest entries to the spill, until about `bytes` are free: those whose last use is longest ago. What the
    /// open batch changed stays.
    fn evict(&mut self, bytes: u64) -> io::Result<()> {
        let (Some(budget), Some(newest)) = (self.share.budget(), self.batch.stamp_before()) else { return Ok(()) };
        let hot = self.families.iter().map(|family| family.weight().keys).sum::<u64>() as usize;
        let held: u64 = self.families.iter().map(|family| family.weight().bytes).sum();
        let sampled = self.families.iter().flat_map(Family::hot).step_by((hot / SAMPLE).max(1)).map(Entry::stamp);
        let (mut stamps, mut looked_at) = (Vec::with_capacity(2 * SAMPLE), 0_u64);
        for stamp in sampled {
            looked_at += 1;
            if stamp <= newest {
                stamps.push(stamp);
            }
        }
        let evictable = held * stamps.len() as u64 / looked_at.max(1);
        // Files should not be tiny: the next batch makes more rows evictable.
        if stamps.is_empty() || evictable < budget.limit() / 64 {
            return Ok(());
        }
        stamps.sort_unstable();
        let wanted = (u128::from(bytes) * stamps.len() as u128).div_ceil(u128::from(evictable.max(1)));
        let through = stamps[(wanted as usize).clamp(1, stamps.len()) - 1];
        let hasher = &self.hasher;
        let most = (budget.limit() / 32) as usize / size_of::<Evicted>();
        let out = (budget.folder(), most.max(LEAST_RUN));
        self.families.iter_mut().try_for_each(|family| family.evict(hasher, out, through))?;
        let own = self.memory();
        self.share.report(own);
        Ok(())
    }

    /// Brings rows of the spill into memory: those of keys `range` of `keys`.
    pub(super) fn recall(&mut self, family: usize, keys: &ByteRows, range: Range<usize>) -> Result<(), StateError> {
        self.make_room(family, range.len()).map_err(|error| self.spilled(error))?;
        let stamp = self.batch.stamp_before().unwrap_or(0);
        let keys = range.map(|index| keys.row(index));
        self.families[family].recall(&self.hasher, keys, stamp).map_err(|error| self.spilled(error))
    }
}
