//! Reads several runs as one: the rows in order, of each key the newest.
//!
//! Scans read this way, and runs become one run this way.
//!
//! Rule of its life: hidden rows are skipped where they stand. A row that says that its key is gone is answered like
//! any other: the reader knows whether older files matter.

use super::run::{FIRST_ROW, Place, Row, Run, row_at};
use std::io;
use std::ops::Range;

#[derive(Debug)]
struct Standing {
    place: Place,
    key: Range<usize>,
    value: Option<Range<usize>>,
}

/// A place in one run.
#[derive(Debug)]
struct Cursor<'a> {
    run: &'a Run,
    through: u64,
    next_block: usize,
    bytes: Vec<u8>,
    at: usize,
    row: Option<Standing>,
}

impl<'a> Cursor<'a> {
    fn new(run: &'a Run, through: u64) -> Self {
        Self { run, through, next_block: run.first_block(), bytes: Vec::new(), at: 0, row: None }
    }

    fn advance(&mut self) -> io::Result<()> {
        self.row = None;
        loop {
            if self.at >= self.bytes.len() {
                if self.next_block == self.run.blocks() || self.run.first_prefix(self.next_block) > self.through {
                    return Ok(());
                }
                self.run.read_block(self.next_block, &mut self.bytes)?;
                self.next_block += 1;
                self.at = FIRST_ROW;
            }
            let (row, next) = row_at(&self.bytes, self.at)?;
            if row.place.prefix > self.through {
                self.next_block = self.run.blocks();
                self.bytes.clear();
                return Ok(());
            }
            if !self.run.hides(row.place.prefix) {
                let value_start = next - row.value.map_or(0, <[u8]>::len);
                self.row = Some(Standing {
                    place: row.place,
                    key: value_start - row.key.len()..value_start,
                    value: row.value.map(|_| value_start..next),
                });
                self.at = next;
                return Ok(());
            }
            self.at = next;
        }
    }

    fn order(&self) -> Option<(Place, &[u8])> {
        self.row.as_ref().map(|row| (row.place, &self.bytes[row.key.clone()]))
    }
}

/// Several runs as one.
#[derive(Debug)]
pub(super) struct Merge<'a> {
    /// The newest run first.
    cursors: Vec<Cursor<'a>>,
    /// Which of them stand on a row that was answered.
    due: Vec<bool>,
}

impl<'a> Merge<'a> {
    /// The rows of prefix `through` and below of runs that are given the oldest first.
    pub(super) fn new(runs: &'a [Run], through: u64) -> Self {
        let cursors: Vec<Cursor<'a>> = runs.iter().rev().map(|run| Cursor::new(run, through)).collect();
        Self { due: vec![true; cursors.len()], cursors }
    }

    /// The next row.
    pub(super) fn next(&mut self) -> io::Result<Option<Row<'_>>> {
        for (cursor, due) in self.cursors.iter_mut().zip(&mut self.due) {
            if std::mem::take(due) {
                cursor.advance()?;
            }
        }
        let mut least: Option<(usize, (Place, &[u8]))> = None;
        for (index, cursor) in self.cursors.iter().enumerate() {
            let Some(order) = cursor.order() else { continue };
            match &least {
                Some((_, found)) if *found < order => {}
                Some((_, found)) if *found == order => self.due[index] = true,
                _ => {
                    self.due[..index].fill(false);
                    self.due[index] = true;
                    least = Some((index, order));
                }
            }
        }
        let Some((index, (place, key))) = least else { return Ok(None) };
        let cursor = &self.cursors[index];
        let value = cursor.row.as_ref().and_then(|row| row.value.clone()).map(|range| &cursor.bytes[range]);
        Ok(Some(Row { place, key, value }))
    }
}
