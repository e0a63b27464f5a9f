//! One file of the spill: rows in order, written once.
//!
//! ```text
//!   block   block   block …            rows in the order of (first eight bytes of the key, hash, key)
//!   └ checksum, rows up to 4 KiB       a row: hash, length of the key, 0 or length of the value + 1, key, value
//!
//!   in memory: place of each block's first row, and a filter over the hashes: about 1.6 bytes a key
//! ```
//!
//! A row without a value says that the key is gone, whatever older files have.
//!
//! Rule of its life: the file has no name, so that it ends with the process however that ends. It is never read by
//! another run, and it is no truth: what it holds can be read from the state files again. Rows of equal place never
//! stand in two blocks.

use super::filter::Filter;
use crate::log_store::family::prefix_of;
use crate::log_store::record::{Reader, write_number};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A block ends with the row that makes it this long.
const BLOCK: usize = 4096;
/// So much is written at once.
const WRITE: usize = 256 << 10;
const CHECKSUM: usize = 4;

/// Where a row stands in the order of a run. The hash is that of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::log_store) struct Place {
    pub(in crate::log_store) prefix: u64,
    pub(in crate::log_store) hash: u64,
}

impl Place {
    pub(in crate::log_store) fn of(key: &[u8], hash: u64) -> Self {
        Self { prefix: prefix_of(key), hash }
    }
}

/// A row of a run.
#[derive(Debug, Clone, Copy)]
pub(in crate::log_store) struct Row<'a> {
    pub(in crate::log_store) place: Place,
    pub(in crate::log_store) key: &'a [u8],
    /// `None` says that the key is gone.
    pub(in crate::log_store) value: Option<&'a [u8]>,
}

#[derive(Debug)]
struct Fence {
    first: Place,
    offset: u64,
}

/// One file of the spill.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: u64,
    file: File,
    fences: Vec<Fence>,
    end: u64,
    last: Place,
    filter: Filter,
    pub(super) rows: u64,
    /// Rows of this prefix and below are gone.
    pub(super) gone_through: Option<u64>,
}

fn damaged(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

impl Run {
    pub(super) fn may_hold(&self, hash: u64) -> bool {
        self.filter.may_hold(hash)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.end
    }

    pub(super) fn memory(&self) -> u64 {
        self.filter.bytes() + (self.fences.capacity() * size_of::<Fence>() + size_of::<Self>()) as u64
    }

    pub(super) fn hides(&self, prefix: u64) -> bool {
        self.gone_through.is_some_and(|through| prefix <= through)
    }

    /// Whether every row is hidden.
    pub(super) fn is_gone(&self) -> bool {
        self.hides(self.last.prefix)
    }

    pub(super) fn blocks(&self) -> usize {
        self.fences.len()
    }

    /// The first prefix in a block.
    pub(super) fn first_prefix(&self, block: usize) -> u64 {
        self.fences[block].first.prefix
    }

    /// The first block that may have a row that is not hidden.
    pub(super) fn first_block(&self) -> usize {
        let Some(through) = self.gone_through else { return 0 };
        self.fences.partition_point(|fence| fence.first.prefix <= through).saturating_sub(1)
    }

    /// Reads a block's rows, checksum verified; they begin at [`FIRST_ROW`].
    pub(super) fn read_block(&self, block: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        let start = self.fences[block].offset;
        let end = self.fences.get(block + 1).map_or(self.end, |next| next.offset);
        bytes.resize((end - start) as usize, 0);
        self.file.read_exact_at(bytes, start)?;
        let wanted: [u8; CHECKSUM] = bytes[..CHECKSUM].try_into().map_err(|_| damaged("a block is cut"))?;
        if crc32fast::hash(&bytes[CHECKSUM..]) != u32::from_le_bytes(wanted) {
            return Err(damaged(format!("the block at offset {start} is not what was written: its checksum is wrong")));
        }
        Ok(())
    }

    /// Damages the file, or mends it.
    #[cfg(test)]
    pub(super) fn flip(&self, offset: u64) {
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, offset).unwrap();
        self.file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
    }

    /// Finds the row of a key; `read` is kept from call to call, so that places in order read each block once.
    pub(super) fn find<'b>(&self, place: Place, key: &[u8], read: &'b mut ReadBlock) -> io::Result<Option<Row<'b>>> {
        if self.hides(place.prefix) {
            return Ok(None);
        }
        let Some(block) = self.fences.partition_point(|fence| fence.first <= place).checked_sub(1) else {
            return Ok(None);
        };
        if read.block != Some(block) {
            read.block = None;
            self.read_block(block, &mut read.bytes)?;
            read.block = Some(block);
            read.at = FIRST_ROW;
        }
        let mut at = read.at;
        while at < read.bytes.len() {
            let (row, next) = row_at(&read.bytes, at)?;
            if row.place > place {
                break;
            }
            if row.place == place && row.key == key {
                return Ok(Some(row));
            }
            if row.place < place {
                read.at = next;
            }
            at = next;
        }
        Ok(None)
    }
}

/// Where the rows of a block begin.
pub(super) const FIRST_ROW: usize = CHECKSUM;

/// The block of a run that was read last. Places must come in order.
#[derive(Debug, Default)]
pub(super) struct ReadBlock {
    block: Option<usize>,
    bytes: Vec<u8>,
    /// Rows before it are before every place that is still to come.
    at: usize,
}

/// The row at an offset of a block, and the offset of the next.
pub(super) fn row_at(block: &[u8], at: usize) -> io::Result<(Row<'_>, usize)> {
    let mut reader = Reader(&block[at..]);
    let mut parse = || {
        let hash = u64::from_le_bytes(reader.array("hash")?);
        let key_len = reader.number("key length")?;
        let value_len = reader.number("value length")?;
        let key = reader.bytes(key_len, "key")?;
        let value = match value_len.checked_sub(1) {
            Some(len) => Some(reader.bytes(len, "value")?),
            None => None,
        };
        Ok(Row { place: Place::of(key, hash), key, value })
    };
    let row = parse().map_err(|reason: String| damaged(reason))?;
    let next = block.len() - reader.0.len();
    Ok((row, next))
}

/// Writes a run.
#[derive(Debug)]
pub(super) struct RunWriter {
    file: File,
    out: Vec<u8>,
    block: Vec<u8>,
    fences: Vec<Fence>,
    written: u64,
    last: Option<Place>,
    filter: Filter,
    rows: u64,
}

impl RunWriter {
    /// Begins a file for at most so many rows.
    pub(super) fn new(folder: &Path, most_rows: usize) -> io::Result<Self> {
        Ok(Self {
            file: tempfile::tempfile_in(folder)?,
            out: Vec::with_capacity(WRITE + 2 * BLOCK),
            block: vec![0; CHECKSUM],
            fences: Vec::new(),
            written: 0,
            last: None,
            filter: Filter::new(most_rows),
            rows: 0,
        })
    }

    /// Adds a row; rows come in order.
    pub(super) fn push(&mut self, row: &Row<'_>) -> io::Result<()> {
        if self.block.len() >= BLOCK && self.last != Some(row.place) {
            self.end_block()?;
        }
        if self.block.len() == CHECKSUM {
            self.fences.push(Fence { first: row.place, offset: self.written + self.out.len() as u64 });
        }
        self.block.extend_from_slice(&row.place.hash.to_le_bytes());
        write_number(&mut self.block, row.key.len() as u64);
        write_number(&mut self.block, row.value.map_or(0, |value| value.len() as u64 + 1));
        self.block.extend_from_slice(row.key);
        self.block.extend_from_slice(row.value.unwrap_or_default());
        self.filter.add(row.place.hash);
        self.last = Some(row.place);
        self.rows += 1;
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        let checksum = crc32fast::hash(&self.block[CHECKSUM..]);
        self.block[..CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        self.out.extend_from_slice(&self.block);
        self.block.truncate(CHECKSUM);
        if self.out.len() >= WRITE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.out)?;
        self.written += self.out.len() as u64;
        self.out.clear();
        Ok(())
    }

    /// The run; `None` when there was no row.
    pub(super) fn finish(mut self, id: u64) -> io::Result<Option<Run>> {
        let Some(last) = self.last else { return Ok(None) };
        self.end_block()?;
        self.flush()?;
        self.fences.shrink_to_fit();
        let Self { file, fences, written, filter, rows, .. } = self;
        Ok(Some(Run { id, file, fences, end: written, last, filter, rows, gone_through: None }))
    }
}
