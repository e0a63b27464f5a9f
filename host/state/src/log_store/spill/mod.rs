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
//! number, which `abort` can take back, and so files are merged between batches only. A failure to write leaves
//! everything as it was.
//!
//! It does not know which of its rows have newer ones in memory: the family does.

mod filter;
mod merge;
mod run;

pub(super) use run::{Place, Row};

use merge::Merge;
use run::{ReadBlock, Run, RunWriter};
use std::io;
use std::path::Path;

/// So many runs of like size are merged.
const LIKE_RUNS: usize = 4;
/// Rows that no longer count may be as many as those that do, and so many more.
const IDLE_ROWS: u64 = 4096;

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
    runs: Vec<Run>,
    /// Keys with a value, whatever memory says of them.
    keys: u64,
    next_id: u64,
}

impl Spill {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Keys with a value.
    pub(super) fn keys(&self) -> u64 {
        self.keys
    }

    /// Bytes of the files.
    pub(super) fn bytes(&self) -> u64 {
        self.runs.iter().map(Run::bytes).sum()
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> u64 {
        self.runs.iter().map(Run::memory).sum()
    }

    /// Whether a key may be here; mostly right.
    pub(super) fn may_hold(&self, hash: u64) -> bool {
        self.runs.iter().any(|run| run.may_hold(hash))
    }

    /// Calls `found` with each key that is here, and its value. `wanted` is in the order of places.
    pub(super) fn find<'w>(&self, wanted: &[Wanted<'w>], found: &mut dyn FnMut(&Wanted<'w>, &[u8])) -> io::Result<()> {
        let mut blocks: Vec<ReadBlock> = self.runs.iter().map(|_| ReadBlock::default()).collect();
        for wanted in wanted {
            for (run, block) in self.runs.iter().zip(&mut blocks).rev() {
                if !run.may_hold(wanted.place.hash) {
                    continue;
                }
                if let Some(row) = run.find(wanted.place, wanted.key, block)? {
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
        self.runs.extend(writer.finish(self.next_id)?);
        self.keys = self.keys + added - gone;
        Ok(())
    }

    /// Calls `visit` with every key that has a value and a prefix of `through` or below, in order.
    pub(super) fn each(&self, through: u64, visit: &mut dyn FnMut(Place, &[u8], &[u8])) -> io::Result<()> {
        let mut merge = Merge::new(&self.runs, through);
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
        let hide = |run: &mut Run| {
            let before = run.gone_through;
            run.gone_through = before.max(Some(through));
            (run.id, before)
        };
        Hidden(self.runs.iter_mut().map(hide).collect())
    }

    /// Takes `hide_through` back.
    pub(super) fn show(&mut self, hidden: &Hidden, keys: u64) {
        self.keys += keys;
        for (id, before) in &hidden.0 {
            if let Some(run) = self.runs.iter_mut().find(|run| run.id == *id) {
                run.gone_through = *before;
            }
        }
    }

    /// Merges runs where that is due; never while a batch is open.
    pub(super) fn tidy(&mut self, folder: &Path) -> io::Result<()> {
        self.runs.retain(|run| !run.is_gone());
        let rows: u64 = self.runs.iter().map(|run| run.rows).sum();
        if self.runs.len() > 1 && rows > 2 * self.keys + IDLE_ROWS {
            return self.merge_from(folder, 0);
        }
        // The newest runs, up to the first that is more than twice as large as all after it.
        let Some(newest) = self.runs.last() else { return Ok(()) };
        let (mut first, mut bytes) = (self.runs.len() - 1, newest.bytes());
        while first > 0 && self.runs[first - 1].bytes() <= 2 * bytes {
            first -= 1;
            bytes += self.runs[first].bytes();
        }
        if self.runs.len() - first >= LIKE_RUNS { self.merge_from(folder, first) } else { Ok(()) }
    }

    /// Makes one run of the run `first` and all newer ones.
    fn merge_from(&mut self, folder: &Path, first: usize) -> io::Result<()> {
        let rows: u64 = self.runs[first..].iter().map(|run| run.rows).sum();
        let mut writer = RunWriter::new(folder, rows as usize)?;
        let mut merge = Merge::new(&self.runs[first..], u64::MAX);
        while let Some(row) = merge.next()? {
            if row.value.is_some() || first > 0 {
                writer.push(&row)?;
            }
        }
        self.next_id += 1;
        let merged = writer.finish(self.next_id)?;
        self.runs.truncate(first);
        self.runs.extend(merged);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
