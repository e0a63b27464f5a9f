//! What can go wrong when bytes become rows.

/// Bytes could not be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A column has a type that the format cannot give.
    #[error("column `{column}` cannot be decoded as {data_type}")]
    Type {
        /// The column.
        column: String,
        /// Its declared type.
        data_type: String,
    },
    /// The projection names a column that is not there.
    #[error("there is no column {index} in a schema of {columns} columns")]
    Projection {
        /// What was asked for.
        index: usize,
        /// How many there are.
        columns: usize,
    },
    /// A record is malformed and the mode is fail-fast.
    #[error("record {record} of the input is malformed: `{text}`")]
    Malformed {
        /// The record's number in the input given to the decoder, from 1.
        record: u64,
        /// The record, cut to what fits a screen.
        text: String,
    },
    /// More bytes at once than 32-bit offsets can hold.
    #[error("cannot decode {bytes} bytes at once; the limit is {limit}")]
    TooLarge {
        /// What was given.
        bytes: usize,
        /// What fits.
        limit: usize,
    },
    /// The decoded columns do not make a batch.
    #[error("cannot build a batch of the decoded columns")]
    Batch {
        /// What Arrow said.
        #[source]
        source: arrow::error::ArrowError,
    },
}

/// The most bytes that one call may decode: even if every byte is replaced by three, 32-bit offsets hold.
pub(crate) const MAX_INPUT: usize = 512 << 20;

/// A record as it is shown in an error.
pub(crate) fn excerpt(record: &[u8]) -> String {
    let text = String::from_utf8_lossy(&record[..record.len().min(400)]);
    let cut: String = text.chars().take(120).collect();
    if cut.len() < record.len() { format!("{cut}…") } else { cut }
}

/// Refuses more input than offsets can hold.
pub(crate) fn check_size(input: &[u8]) -> Result<(), DecodeError> {
    if input.len() > MAX_INPUT {
        return Err(DecodeError::TooLarge { bytes: input.len(), limit: MAX_INPUT });
    }
    Ok(())
}
