//! The sessions of a key as ranges on its time line, and how ranges become sessions.
//!
//! ```text
//!   stored    [──────)        [────)
//!   rows           [──)  [──)          [──)
//!   runs      [───────)  [──)[─────)   [──)       ranges that overlap or touch are one run
//! ```
//!
//! Pure: it knows neither columns nor stores, only numbers and the bytes of a list of ranges.

use crate::event_order::ordered;
use millstream_state::ByteRows;

/// From the start, which is in it, to the end, which is not; in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: i64,
    pub(super) end: i64,
}

/// A range of a key: of a stored session, or of a row of the batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// The number of the key.
    pub(super) key: usize,
    pub(super) range: Range,
    /// The row of the batch; `None` for a stored session.
    pub(super) row: Option<usize>,
}

/// Pieces that make one session.
#[derive(Debug)]
pub(super) struct Run {
    /// The number of the key.
    pub(super) key: usize,
    pub(super) range: Range,
    /// Where the pieces are.
    pub(super) pieces: std::ops::Range<usize>,
}

/// Puts the pieces in the order in which they are merged, and answers the sessions that they make: by key, by start.
///
/// Pieces are in the order of their starts, of equal starts the stored session first: what depends on the order of its
/// rows sees them in that order.
pub(super) fn runs(pieces: &mut [Piece]) -> Vec<Run> {
    pieces
        .sort_unstable_by_key(|piece| (piece.key, piece.range.start, piece.row.is_some(), piece.range.end, piece.row));
    let mut runs: Vec<Run> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if run.key == piece.key && piece.range.start <= run.range.end => {
                run.range.end = run.range.end.max(piece.range.end);
                run.pieces.end = at + 1;
            }
            _ => runs.push(Run { key: piece.key, range: piece.range, pieces: at..at + 1 }),
        }
    }
    runs
}

/// Bytes of one range in a list.
const RANGE: usize = 16;

/// Appends ranges as one row: for each the start and the end, as big-endian numbers that order like the times.
pub(super) fn push_ranges(ranges: &[Range], rows: &mut ByteRows) {
    let mut bytes = Vec::with_capacity(ranges.len() * RANGE);
    for range in ranges {
        bytes.extend_from_slice(&ordered(range.start).to_be_bytes());
        bytes.extend_from_slice(&ordered(range.end).to_be_bytes());
    }
    rows.push(&bytes);
}

/// The ranges of a row; `None` when the bytes are no list of ranges.
pub(super) fn read_ranges(bytes: &[u8]) -> Option<Vec<Range>> {
    let (ranges, rest) = bytes.as_chunks::<RANGE>();
    let time = |half: &[u8]| half.try_into().ok().map(|half| (u64::from_be_bytes(half) ^ (1 << 63)) as i64);
    let read = |range: &[u8; RANGE]| Some(Range { start: time(&range[..8])?, end: time(&range[8..])? });
    rest.is_empty().then(|| ranges.iter().map(read).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(key: usize, start: i64, end: i64, row: Option<usize>) -> Piece {
        Piece { key, range: Range { start, end }, row }
    }

    #[test]
    fn ranges_that_overlap_or_touch_are_one_session() {
        let mut pieces = [
            piece(0, 20, 25, Some(0)),
            piece(0, 0, 8, None),
            piece(0, 8, 10, Some(1)),
            piece(1, 9, 12, Some(2)),
            piece(0, 11, 19, Some(3)),
            piece(0, 2, 3, Some(4)),
        ];
        let runs = runs(&mut pieces);
        let found: Vec<_> = runs.iter().map(|run| (run.key, run.range.start, run.range.end)).collect();
        assert_eq!(found, [(0, 0, 10), (0, 11, 19), (0, 20, 25), (1, 9, 12)]);
        let first: Vec<_> = pieces[runs[0].pieces.clone()].iter().map(|piece| piece.row).collect();
        assert_eq!(first, [None, Some(4), Some(1)]);
    }

    #[test]
    fn of_equal_starts_the_stored_session_comes_first_and_then_the_earlier_end() {
        let mut pieces = [piece(0, 5, 9, Some(0)), piece(0, 5, 7, Some(1)), piece(0, 5, 20, None)];
        assert_eq!(runs(&mut pieces).len(), 1);
        assert_eq!(pieces.map(|piece| piece.row), [None, Some(1), Some(0)]);
    }

    #[test]
    fn lists_of_ranges_keep_their_bytes_and_come_back() {
        let ranges = [Range { start: -3, end: 5 }, Range { start: i64::MIN, end: i64::MAX }];
        let mut rows = ByteRows::new();
        push_ranges(&ranges, &mut rows);
        assert_eq!(rows.row(0)[..16], [0x7f, 255, 255, 255, 255, 255, 255, 253, 0x80, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(read_ranges(rows.row(0)), Some(ranges.to_vec()));
        assert_eq!(read_ranges(b""), Some(Vec::new()));
        assert_eq!(read_ranges(b"0123456789"), None);
    }
}
