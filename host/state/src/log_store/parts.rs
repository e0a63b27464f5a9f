//! A snapshot in several files, made with little memory.
//!
//! ```text
//!   old snapshot, changelogs ──record by record──► scratch: one heap of records per part, by the hash of the key
//!                                                      │ part by part
//!                                                      ▼
//!                                           the last value of each key ──► 57-w.snapshot, 57-w-2.snapshot, …
//! ```
//!
//! In the place of the merge in memory, when memory is limited and the inputs are larger than a part.
//!
//! Rule of its life: as much is in memory as one input file, or one part, whichever is larger. The scratch file has no
//! name and ends with the snapshot. Nothing depends on how keys are spread over parts: a reader takes them all.

use super::chain::Chain;
use super::family::prefix_of;
use super::frame::{Frame, FrameFamily};
use super::record::{Reader, Record};
use super::snapshot::{Order, each_record};
use crate::{Layout, StateError, StateFile};
use hashbrown::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// The least bytes of inputs for one part.
const LEAST_PART: u64 = 1 << 10;
/// The most bytes of inputs for one part, as long as there are not too many.
const MOST_PART: u64 = 4 << 20;
const MOST_PARTS: u64 = 1024;
/// A part's records go to the scratch file when they are this many bytes.
const PIECE: usize = 16 << 10;

/// How many parts a snapshot of so many bytes of inputs gets under a limit of memory.
pub(super) fn parts(inputs: u64, limit: u64) -> usize {
    let part = (limit / 64).clamp(LEAST_PART, MOST_PART);
    inputs.div_ceil(part).clamp(1, MOST_PARTS) as usize
}

/// The records of one part: pieces of the scratch file, and what is not written yet.
#[derive(Default)]
struct Heap {
    pieces: Vec<(u64, usize)>,
    open: Vec<u8>,
}

struct Scratch {
    file: File,
    end: u64,
    heaps: Vec<Heap>,
}

impl Scratch {
    fn add(&mut self, record: &Record<'_>) -> io::Result<()> {
        match record.key() {
            Some(key) => {
                let part = crc32fast::hash(key) as usize % self.heaps.len();
                self.add_to(part, record)
            }
            None => (0..self.heaps.len()).try_for_each(|part| self.add_to(part, record)),
        }
    }

    fn add_to(&mut self, part: usize, record: &Record<'_>) -> io::Result<()> {
        let heap = &mut self.heaps[part];
        record.write(&mut heap.open);
        if heap.open.len() < PIECE {
            return Ok(());
        }
        self.file.write_all(&heap.open)?;
        heap.pieces.push((self.end, heap.open.len()));
        self.end += heap.open.len() as u64;
        heap.open.clear();
        Ok(())
    }

    /// All records of a part, in order. It has none then.
    fn take(&mut self, part: usize) -> io::Result<Vec<u8>> {
        let heap = std::mem::take(&mut self.heaps[part]);
        let written: usize = heap.pieces.iter().map(|(_, len)| len).sum();
        let mut bytes = vec![0; written];
        let mut at = 0;
        for (offset, len) in heap.pieces {
            self.file.read_exact_at(&mut bytes[at..at + len], offset)?;
            at += len;
        }
        bytes.extend_from_slice(&heap.open);
        Ok(bytes)
    }
}

/// A family within one part.
#[derive(Default)]
struct Rows<'a> {
    /// Per key its last value, and how many ranges had been deleted before it was written.
    keys: HashMap<&'a [u8], (usize, &'a [u8])>,
    deleted: Vec<u64>,
}

impl<'a> Rows<'a> {
    fn apply(&mut self, record: Record<'a>) {
        match record {
            Record::Put { key, value, .. } => {
                self.keys.insert(key, (self.deleted.len(), value));
            }
            Record::Delete { key, .. } => {
                self.keys.remove(key);
            }
            Record::DeleteThrough { through, .. } => self.deleted.push(through),
        }
    }

    /// Writes what is left; answers how many rows.
    fn write(mut self, family: usize, out: &mut Vec<u8>) -> u64 {
        // At each index the furthest range that was deleted from there on.
        let mut furthest = None;
        for through in self.deleted.iter_mut().rev() {
            furthest = furthest.max(Some(*through));
            *through = furthest.unwrap_or(0);
        }
        let mut count = 0;
        for (key, (before, value)) in self.keys {
            if self.deleted.get(before).is_none_or(|through| prefix_of(key) > *through) {
                Record::Put { family, key, value }.write(out);
                count += 1;
            }
        }
        count
    }
}

/// A family under its own name: it outlives the file that named it.
struct Named {
    name: String,
    schema_id: String,
    layout: Layout,
}

impl Order {
    /// Makes the snapshot with one file for each name.
    pub(super) fn make_parts(&self) -> Result<Vec<StateFile>, StateError> {
        let failed = |source| StateError::Spill {
            place: self.files.location(),
            folder: self.scratch.display().to_string(),
            source,
        };
        let heaps = (0..self.names.len()).map(|_| Heap::default()).collect();
        let file = tempfile::tempfile_in(&self.scratch).map_err(failed)?;
        let mut scratch = Scratch { file, end: 0, heaps };
        let mut chain = Chain::new(&*self.files);
        let mut named: Vec<Named> = Vec::new();
        for file in &self.inputs {
            let bytes = chain.get(file)?;
            let frame = chain.next(file, &bytes)?;
            let damaged = |reason| chain.damaged(&file.name, reason);
            let numbers = number_all(&mut named, &frame).map_err(damaged)?;
            let mut failure = None;
            each_record(&frame, |record| {
                if failure.is_none() {
                    failure = scratch.add(&record.of_family(numbers[record.family()])).err();
                }
                Ok::<(), String>(())
            })
            .map_err(damaged)?;
            if let Some(error) = failure {
                return Err(failed(error));
            }
        }
        let mut files = Vec::with_capacity(self.names.len());
        for (part, name) in self.names.iter().enumerate() {
            let records = scratch.take(part).map_err(failed)?;
            let content = merged(&records, named.len()).map_err(|reason| {
                failed(io::Error::new(io::ErrorKind::InvalidData, format!("its scratch file is damaged: {reason}")))
            })?;
            drop(records);
            let families = named.iter().map(Named::of_frame).collect();
            files.push(self.write(name, families, chain.lineage(), content)?);
        }
        Ok(files)
    }
}

impl Named {
    fn of_frame(&self) -> FrameFamily<'_> {
        FrameFamily { name: &self.name, schema_id: &self.schema_id, layout: self.layout }
    }
}

/// The numbers of a file's families among those of all files.
fn number_all(named: &mut Vec<Named>, frame: &Frame<'_>) -> Result<Vec<usize>, String> {
    let mut numbers = Vec::with_capacity(frame.families.len());
    for family in &frame.families {
        let known = named.iter().position(|known| known.name == family.name);
        let number = known.unwrap_or(named.len());
        match named.get_mut(number) {
            Some(known) if known.schema_id != family.schema_id => {
                return Err(format!("family `{}` changes its schema between files", family.name));
            }
            Some(known) => known.layout = family.layout,
            None => named.push(Named {
                name: family.name.to_owned(),
                schema_id: family.schema_id.to_owned(),
                layout: family.layout,
            }),
        }
        numbers.push(number);
    }
    Ok(numbers)
}

/// The rows that the records of a part leave, as records, and their number.
fn merged(records: &[u8], families: usize) -> Result<(Vec<u8>, u64), String> {
    let mut rows: Vec<Rows<'_>> = (0..families).map(|_| Rows::default()).collect();
    let mut reader = Reader(records);
    while let Some(record) = reader.record(families)? {
        rows[record.family()].apply(record);
    }
    let mut body = Vec::new();
    let counts = rows.into_iter().enumerate().map(|(family, rows)| rows.write(family, &mut body));
    let count = counts.sum();
    Ok((body, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_range_takes_what_was_written_before_it_and_nothing_after() {
        let key = |prefix: u64| prefix.to_be_bytes();
        let records = [
            Record::Put { family: 0, key: &key(1), value: b"old" },
            Record::Put { family: 0, key: &key(5), value: b"old" },
            Record::DeleteThrough { family: 0, through: 5 },
            Record::Put { family: 0, key: &key(5), value: b"new" },
            Record::Put { family: 0, key: &key(2), value: b"new" },
            Record::DeleteThrough { family: 0, through: 2 },
            Record::Put { family: 0, key: &key(1), value: b"newer" },
            Record::Put { family: 1, key: &key(1), value: b"other" },
            Record::Delete { family: 1, key: &key(9) },
        ];
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.write(&mut bytes));
        let (body, count) = merged(&bytes, 2).unwrap();
        assert_eq!(count, 3);
        let mut left = Vec::new();
        let mut reader = Reader(&body);
        while let Some(Record::Put { family, key, value }) = reader.record(2).unwrap() {
            left.push((family, prefix_of(key), value.to_vec()));
        }
        left.sort();
        assert_eq!(left, [(0, 1, b"newer".to_vec()), (0, 5, b"new".to_vec()), (1, 1, b"other".to_vec())]);
    }

    #[test]
    fn a_part_is_a_fraction_of_the_limit() {
        assert_eq!(parts(0, 1 << 30), 1);
        assert_eq!(parts(4 << 20, 1 << 30), 1);
        assert_eq!(parts(600 << 20, 1 << 30), 150);
        assert_eq!(parts(100 << 10, 1 << 20), 7);
        assert_eq!(parts(1 << 50, 1), 1024);
    }
}
