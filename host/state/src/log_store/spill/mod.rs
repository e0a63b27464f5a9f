//! The cold part of a family: rows that memory has no room for, in files that end with the run.
//!
//! ```text
//!   hot tables ──evict──► run 3   the newest: a key that is found here is as it is here
//!        ▲                run 2
//!        └──recall──────  run 1   runs of like size are merged to one, so there are few
//! ```
//!
//! Below the family, which asks here what its tables do not know.
//!
//! Rule of its life: what stands here is never durable truth. Runs are never changed; a range of prefixes is hidden by a
//! number, which `abort` can take back, and so merged runs take their place between batches only; they are made on a
//! thread of their own. A failure to write leaves everything as it was.
//!
//! It does not know which of its rows have newer ones in memory: the family does.

mod filter;
mod merge;
mod merging;
mod run;

pub(super) use run::{Place, Row};

use merge::Merge;
use merging::Merging;
use run::{Layer, ReadBlock, RunWriter};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// So many runs of like size are merged.
const LIKE_RUNS: usize = 4;
/// With so many runs, the merge that is under way is waited for.
const MOST_RUNS: usize = 32;
/// Rows that no longer count may be as many as those that do, and so many more.
const IDLE_ROWS: u64 = 4096;

/// Takes the place, the key and the value of a row.
pub(super) type Visit<'a> = dyn FnMut(Place, &[u8], &[u8]) + 'a;

/// A key that is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) place: Place,
    pub(super) key: &'a [u8],
}

/// What `hide_through` hid before, per run.
#[derive(Debug)]
pub(super) struct Hidden(Vec<(u64, Option<u64>)>);

/// The cold part of a family.
#[derive(Debug, Default)]
pub(super) struct Spill {
    /// The oldest first.
    layers: Vec<Layer>,
    merging: Option<Merging>,
    /// Keys with a value, whatever memory says of them.
    keys: u64,
    next_id: u64,
}

impl Spill {
    pub(super) fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Keys with a value.
    pub(super) fn keys(&self) -> u64 {
        self.keys
    }

    /// Bytes of the files.
    pub(super) fn bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.run.bytes()).sum()
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> u64 {
        self.layers.iter().map(|layer| layer.run.memory()).sum()
    }

    /// Whether a key may be here; mostly right.
    pub(super) fn may_hold(&self, hash: u64) -> bool {
        self.layers.iter().any(|layer| layer.run.may_hold(hash))
    }

    /// Calls `found` with each key that is here, and its value. `wanted` is in the order of places.
    pub(super) fn find<'w>(&self, wanted: &[Wanted<'w>], found: &mut dyn FnMut(&Wanted<'w>, &[u8])) -> io::Result<()> {
        let mut blocks: Vec<ReadBlock> = self.layers.iter().map(|_| ReadBlock::default()).collect();
        for wanted in wanted {
            for (layer, block) in self.layers.iter().zip(&mut blocks).rev() {
                if !layer.run.may_hold(wanted.place.hash) {
                    continue;
                }
                if let Some(row) = layer.find(wanted.place, wanted.key, block)? {
                    if let Some(value) = row.value {
                        found(wanted, value);
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes rows, which are in order, as the newest run. `added` keys are new here, `gone` ones are so no longer.
    pub(super) fn add<'r>(
        &mut self,
        folder: &Path,
        rows: impl ExactSizeIterator<Item = Row<'r>>,
        (added, gone): (u64, u64),
    ) -> io::Result<()> {
        let mut writer = RunWriter::new(folder, rows.len())?;
        for row in rows {
            writer.push(&row)?;
        }
        self.next_id += 1;
        let run = writer.finish(self.next_id)?;
        self.layers.extend(run.map(|run| Layer { run: Arc::new(run), gone_through: None }));
        self.keys = self.keys + added - gone;
        Ok(())
    }

    /// Calls `visit` with every key that has a value and a prefix of `through` or below, in order.
    pub(super) fn each(&self, through: u64, visit: &mut Visit<'_>) -> io::Result<()> {
        let mut merge = Merge::new(&self.layers, through);
        while let Some(row) = merge.next()? {
            if let Some(value) = row.value {
                visit(row.place, row.key, value);
            }
        }
        Ok(())
    }

    /// Hides every row with a prefix of `through` or below: `keys` of them have a value.
    pub(super) fn hide_through(&mut self, through: u64, keys: u64) -> Hidden {
        self.keys -= keys;
        let hide = |layer: &mut Layer| {
            let before = layer.gone_through;
            layer.gone_through = before.max(Some(through));
            (layer.run.id, before)
        };
        Hidden(self.layers.iter_mut().map(hide).collect())
    }

    /// Takes `hide_through` back.
    pub(super) fn show(&mut self, hidden: &Hidden, keys: u64) {
        self.keys += keys;
        for (id, before) in &hidden.0 {
            if let Some(layer) = self.layers.iter_mut().find(|layer| layer.run.id == *id) {
                layer.gone_through = *before;
            }
        }
    }

    /// Lets a merge that is done take its place, and begins one that is due; never while a batch is open.
    pub(super) fn tidy(&mut self, folder: &Path) -> io::Result<()> {
        let must_wait = self.layers.len() >= MOST_RUNS;
        if let Some(done) = self.merging.take_if(|merging| must_wait || merging.is_done()) {
            self.replace(done)?;
        }
        if self.merging.is_some() {
            return Ok(());
        }
        self.layers.retain(|layer| !layer.is_gone());
        let rows: u64 = self.layers.iter().map(|layer| layer.run.rows).sum();
        // One run alone gets smaller only by what is hidden in it.
        let can_shrink = self.layers.len() > 1 || self.layers.iter().any(|layer| layer.gone_through.is_some());
        if can_shrink && rows > 2 * self.keys + IDLE_ROWS {
            return self.merge_from(folder, 0);
        }
        // The newest runs, up to the first that is more than twice as large as all after it.
        let Some(newest) = self.layers.last() else { return Ok(()) };
        let (mut first, mut bytes) = (self.layers.len() - 1, newest.run.bytes());
        while first > 0 && self.layers[first - 1].run.bytes() <= 2 * bytes {
            first -= 1;
            bytes += self.layers[first].run.bytes();
        }
        if self.layers.len() - first >= LIKE_RUNS { self.merge_from(folder, first) } else { Ok(()) }
    }

    /// Begins to make one run of the run `first` and all newer ones.
    fn merge_from(&mut self, folder: &Path, first: usize) -> io::Result<()> {
        self.next_id += 1;
        let merging = Merging::begin(folder, self.layers[first..].to_vec(), first == 0, self.next_id)?;
        self.merging = Some(merging);
        Ok(())
    }

    /// Puts a merged run in the place of those that it was made of.
    fn replace(&mut self, merging: Merging) -> io::Result<()> {
        let (inputs, merged) = merging.end()?;
        let Some(first) = inputs.first().and_then(|input| self.layers.iter().position(|layer| layer.is(input))) else {
            return Ok(());
        };
        // What was hidden since: of every run that was there, and so of all of it.
        let now = self.layers[first..first + inputs.len()].iter();
        let hidden = now.zip(&inputs).filter(|(now, then)| now.gone_through != then.gone_through);
        let gone_through = hidden.filter_map(|(now, _)| now.gone_through).max();
        let merged = merged.map(|run| Layer { run: Arc::new(run), gone_through });
        self.layers.splice(first..first + inputs.len(), merged);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
