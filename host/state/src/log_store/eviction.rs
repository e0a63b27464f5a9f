//! Entries on their way from memory to the spill.
//!
//! Between a family, which says which entries go, and its spill, which writes them.
//!
//! Rule of its life: entries go in portions, each a file, so that what is on the way takes little memory. An entry that
//! the spill has as it is is let go and not written. After a failure nothing more is taken, and what was not written is
//! given back.

use super::spill::{Place, Row, Spill};
use super::table::Entry;
use std::cell::Cell;
use std::io;
use std::path::Path;

/// An entry on its way.
pub(super) struct Evicted {
    pub(super) place: Place,
    pub(super) entry: Entry,
    /// It says that its key is gone.
    pub(super) is_gone: bool,
}

impl Evicted {
    fn row(&self) -> Row<'_> {
        let value = (!self.is_gone).then(|| self.entry.value());
        Row { place: self.place, key: self.entry.key(), value }
    }
}

/// Takes entries and writes them.
pub(super) struct Eviction<'a> {
    spill: &'a mut Spill,
    folder: &'a Path,
    most: usize,
    rows: Vec<Evicted>,
    is_failed: &'a Cell<bool>,
    error: Option<io::Error>,
}

impl<'a> Eviction<'a> {
    /// Writes files of `most` rows to a folder; says in `is_failed` that no more must come.
    pub(super) fn new(spill: &'a mut Spill, (folder, most): (&'a Path, usize), is_failed: &'a Cell<bool>) -> Self {
        Self { spill, folder, most, rows: Vec::new(), is_failed, error: None }
    }

    /// Takes an entry.
    pub(super) fn take(&mut self, place: Place, entry: Entry) {
        if !entry.is_clean() {
            self.add(Evicted { place, entry, is_gone: false });
        }
    }

    /// Takes an entry that says that its key is gone.
    pub(super) fn take_gone(&mut self, place: Place, entry: Entry) {
        self.add(Evicted { place, entry, is_gone: true });
    }

    fn add(&mut self, row: Evicted) {
        self.rows.push(row);
        if self.rows.len() >= self.most && self.error.is_none() {
            self.write();
        }
    }

    fn write(&mut self) {
        let rows = &mut self.rows;
        rows.sort_unstable_by(|a, b| (a.place, a.entry.key()).cmp(&(b.place, b.entry.key())));
        let added = rows.iter().filter(|row| !row.is_gone && !row.entry.shadows()).count() as u64;
        let gone = rows.iter().filter(|row| row.is_gone).count() as u64;
        match self.spill.add(self.folder, rows.iter().map(Evicted::row), (added, gone)) {
            Ok(()) => rows.clear(),
            Err(error) => {
                self.error = Some(error);
                self.is_failed.set(true);
            }
        }
    }

    /// Writes the rest; answers what could not be written, and why.
    pub(super) fn end(mut self) -> (Vec<Evicted>, io::Result<()>) {
        if !self.rows.is_empty() && self.error.is_none() {
            self.write();
        }
        (self.rows, self.error.map_or(Ok(()), Err))
    }
}
