//! Received rows in the checkpoint: a file per batch, written before the batch is defined, deleted when it is done.
//!
//! ```text
//!   sources/<input>/received-<time>      CRC-32 of what follows, four bytes; then the partitions in postcard
//! ```

use crate::item::{decode, encode};
use crate::{DStreamError, Item, Time};
use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles};
use std::sync::Arc;

/// Received rows in the checkpoint.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    input: String,
    files: Arc<dyn DurableFiles>,
}

fn path(time: Time) -> String {
    format!("received-{}", time.0)
}

impl Kept {
    pub(crate) fn new(input: &str, files: Arc<dyn DurableFiles>) -> Self {
        Self { input: input.to_owned(), files }
    }

    fn failed(&self, source: DurableError) -> DStreamError {
        DStreamError::Received { input: self.input.clone(), source }
    }

    /// The rows that were kept for a batch, if there are any.
    pub(crate) fn read<T: Item>(&self, time: Time) -> Result<Option<Vec<Vec<T>>>, DStreamError> {
        let bytes = match self.files.get(&path(time)) {
            Ok(bytes) => bytes,
            Err(DurableError::Missing { .. }) => return Ok(None),
            Err(source) => return Err(self.failed(source)),
        };
        let damaged =
            |reason: &str| DStreamError::ReceivedDamaged { input: self.input.clone(), time, reason: reason.to_owned() };
        let (crc, body) = bytes.split_at_checked(4).ok_or_else(|| damaged("the file ends early"))?;
        if crc != crc32fast::hash(body).to_le_bytes() {
            return Err(damaged("its checksum is another"));
        }
        decode(&format!("what input `{}` received", self.input), body).map(Some)
    }

    /// Keeps the rows of a batch, in the place of what was kept for it.
    pub(crate) fn write<T: Item>(&self, time: Time, rows: &[Vec<T>]) -> Result<(), DStreamError> {
        let body = encode(&format!("what input `{}` received", self.input), &rows)?;
        let mut bytes = crc32fast::hash(&body).to_le_bytes().to_vec();
        bytes.extend_from_slice(&body);
        self.files.put_over(&path(time), Bytes::from(bytes)).map_err(|source| self.failed(source))
    }

    /// Deletes what was kept for a batch. One that stays is in nobody's way.
    pub(crate) fn delete(&self, time: Time) {
        if let Err(error) = self.files.delete(&path(time)) {
            tracing::warn!(input = self.input, %time, %error, "received rows of a batch that is done were not deleted");
        }
    }
}

/// The rows of a batch of a received input: what an earlier run kept for its time, and `new`; kept before they are used.
pub(crate) fn with_kept<T: Item>(
    kept: Option<&Kept>,
    time: Time,
    new: Vec<Vec<T>>,
) -> Result<Vec<Vec<T>>, DStreamError> {
    let Some(kept) = kept else { return Ok(new) };
    let before = kept.read(time)?;
    let is_new = new.iter().any(|rows| !rows.is_empty());
    let rows: Vec<Vec<T>> = before.into_iter().flatten().chain(new).collect();
    if is_new {
        kept.write(time, &rows)?;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_common::MemoryFiles;

    #[test]
    fn what_a_crash_left_comes_before_what_is_new() {
        let files: Arc<dyn DurableFiles> = Arc::new(MemoryFiles::default());
        let kept = Kept::new("lines", Arc::clone(&files));
        assert_eq!(with_kept(Some(&kept), Time(1000), vec![vec![1_u8]]).unwrap(), [[1]]);
        assert_eq!(with_kept(Some(&kept), Time(1000), vec![vec![2_u8]]).unwrap(), [[1], [2]]);
        assert_eq!(kept.read::<u8>(Time(1000)).unwrap().unwrap(), [[1], [2]]);
        files.put_over("received-1000", Bytes::from_static(b"xxxxx")).unwrap();
        assert!(matches!(kept.read::<u8>(Time(1000)), Err(DStreamError::ReceivedDamaged { .. })));
        kept.delete(Time(1000));
        assert_eq!(kept.read::<u8>(Time(1000)).unwrap(), None);
    }
}
