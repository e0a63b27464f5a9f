//! The frame of a state file: header, checksum, families, records.
//!
//! Both kinds of file, changelog and snapshot, have it. `FORMAT.md` draws it field by field.
//!
//! Rule of its life: a frame is written in one piece and read in one piece; [`Frame::read`] accepts exactly what
//! [`Frame::write`] writes.

use super::record::{Reader, write_number};
use crate::{Layout, StateFileKind};
use bytes::Bytes;
use crc32fast::Hasher;
use std::collections::HashSet;

const MAGIC: [u8; 8] = *b"MSTATE\r\n";
const FORMAT: u16 = 1;
/// Magic and checksum, which the checksum does not cover.
const UNCHECKED: usize = 12;

/// A point in the history of a store: the last changelog that leads to it. All zero is the empty store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lineage {
    pub(super) version: u64,
    pub(super) crc: u32,
}

/// A family as a file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameFamily<'a> {
    pub(super) name: &'a str,
    pub(super) schema_id: &'a str,
    /// How it lay in memory: lets a store load it without moving entries later. Nothing depends on it.
    pub(super) layout: Layout,
}

/// A state file.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) kind: StateFileKind,
    pub(super) version: u64,
    /// Changelog: what it changes. Snapshot: what it stands for.
    pub(super) lineage: Lineage,
    pub(super) writer: &'a str,
    pub(super) families: Vec<FrameFamily<'a>>,
    pub(super) records: u64,
    pub(super) body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The header of the frame, up to and without the body; length and checksum still open.
    fn header(&self, room: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(room + 256);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&FORMAT.to_le_bytes());
        out.push(match self.kind {
            StateFileKind::Changelog => 1,
            StateFileKind::Snapshot => 2,
        });
        out.push(0);
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.lineage.version.to_le_bytes());
        out.extend_from_slice(&self.lineage.crc.to_le_bytes());
        out.extend_from_slice(&self.records.to_le_bytes());
        let text = |out: &mut Vec<u8>, text: &str| {
            write_number(out, text.len() as u64);
            out.extend_from_slice(text.as_bytes());
        };
        text(&mut out, self.writer);
        write_number(&mut out, self.families.len() as u64);
        for family in &self.families {
            text(&mut out, family.name);
            text(&mut out, family.schema_id);
            out.push(match family.layout {
                Layout::Hash => 0,
                Layout::Windowed => 1,
            });
        }
        out
    }

    /// The whole file and the checksum of all its bytes. `parts` are the body, piece by piece; `body` is not looked at.
    pub(super) fn write<'p>(&self, parts: impl Iterator<Item = &'p [u8]>, room: usize) -> (Bytes, u32) {
        let mut out = self.header(room);
        parts.for_each(|part| out.extend_from_slice(part));
        let len = out.len() as u64;
        out[16..24].copy_from_slice(&len.to_le_bytes());
        let crc = crc32fast::hash(&out[UNCHECKED..]);
        out[8..12].copy_from_slice(&crc.to_le_bytes());
        let whole = whole_crc(&out, crc);
        (out.into(), whole)
    }

    /// Reads a file; also answers the checksum of all its bytes. The error is a reason in words.
    pub(super) fn read(file: &'a [u8]) -> Result<(Self, u32), String> {
        let mut reader = Reader(file);
        if reader.array("magic number")? != MAGIC {
            return Err("it does not begin like a state file".into());
        }
        let crc = u32::from_le_bytes(reader.array("checksum")?);
        if crc32fast::hash(reader.0) != crc {
            return Err("the checksum of header and body is wrong".into());
        }
        let format = u16::from_le_bytes(reader.array("format version")?);
        if format != FORMAT {
            return Err(format!("it has format version {format}, this program reads {FORMAT}"));
        }
        let kind = match reader.array("kind")? {
            [1, 0] => StateFileKind::Changelog,
            [2, 0] => StateFileKind::Snapshot,
            [kind, _] => return Err(format!("unknown kind {kind}")),
        };
        let len = u64::from_le_bytes(reader.array("length")?);
        if len != file.len() as u64 {
            return Err(format!("it has {} bytes, its header says {len}", file.len()));
        }
        let version = u64::from_le_bytes(reader.array("version")?);
        let lineage = Lineage {
            version: u64::from_le_bytes(reader.array("parent version")?),
            crc: u32::from_le_bytes(reader.array("parent checksum")?),
        };
        let records = u64::from_le_bytes(reader.array("record count")?);
        let writer = reader.text("writer")?;
        let mut families = Vec::new();
        let mut names = HashSet::new();
        for _ in 0..reader.number("family count")? {
            let (name, schema_id) = (reader.text("family name")?, reader.text("schema id")?);
            let layout = match reader.array("layout")? {
                [0] => Layout::Hash,
                [1] => Layout::Windowed,
                [other] => return Err(format!("unknown layout {other}")),
            };
            if !names.insert(name) {
                return Err(format!("family `{name}` is named twice"));
            }
            families.push(FrameFamily { name, schema_id, layout });
        }
        let frame = Self { kind, version, lineage, writer, families, records, body: reader.0 };
        Ok((frame, whole_crc(file, crc)))
    }
}

/// The checksum of a whole file from that of its checked part.
fn whole_crc(file: &[u8], checked: u32) -> u32 {
    let mut whole = Hasher::new();
    whole.update(&file[..UNCHECKED]);
    whole.combine(&Hasher::new_with_initial_len(checked, (file.len() - UNCHECKED) as u64));
    whole.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_round_trips_and_its_checksum_is_that_of_all_bytes() {
        let frame = Frame {
            kind: StateFileKind::Changelog,
            version: 7,
            lineage: Lineage { version: 6, crc: 99 },
            writer: "w",
            families: vec![FrameFamily { name: "a", schema_id: "s", layout: Layout::Windowed }],
            records: 2,
            body: &[],
        };
        let (bytes, crc) = frame.write([&b"xy"[..], b"z"].into_iter(), 3);
        assert_eq!(crc, crc32fast::hash(&bytes));
        let (read, read_crc) = Frame::read(&bytes).unwrap();
        assert_eq!(read_crc, crc);
        assert_eq!((read.kind, read.version, read.lineage, read.writer), (frame.kind, 7, frame.lineage, "w"));
        assert_eq!((read.families, read.records, read.body), (frame.families, 2, &b"xyz"[..]));
    }

    #[test]
    fn checksums_of_different_files_differ() {
        let crc = |version| {
            let families = Vec::new();
            let lineage = Lineage::default();
            Frame { kind: StateFileKind::Snapshot, version, lineage, writer: "", families, records: 0, body: &[] }
                .write(std::iter::empty(), 0)
                .1
        };
        assert_ne!(crc(1), crc(2), "a checksum over data and its own checksum would be the same for all files");
    }
}
