//! Admission control: how much a source may take into one batch (Spark's `ReadLimit`).

/// How much of what is available a batch may take from one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLimit {
    /// Everything.
    AllAvailable,
    /// At most that many rows, about.
    MaxRows(u64),
    /// At most that many files.
    MaxFiles(u64),
    /// At most that many bytes, but at least one file.
    MaxBytes(u64),
}
