//! The log of a file sink: which files of a folder or bucket are output, and which of them stand for others.
//!
//! ```text
//!   <path>/_millstream/<batch>.manifest      the files of a batch          } one of the two forms
//!   <path>/_spark_metadata/<batch>           the same in Spark's own form  }
//! ```
//!
//! [`CommittedBatches`] reads the first form from batch to batch, [`read_spark_log`] the second; [`live_files`] answers what
//! a reader of the whole output reads. Small files that were put together are replaced by one ([`MergedFile`]): both are
//! there for a while, and only the one counts. Whoever has read some of the small ones goes on with the others
//! ([`ReplacedFile`]).
//!
//! Rule of its life: what is in the log does not change. A file of the log that goes away below a reader has been merged into
//! a wider one, and the reader looks again.
//!
//! It writes nothing; the sink does.

mod entry;
mod error;
mod segments;
mod spark;

pub use entry::{
    CommittedBatch, CommittedFile, FOLDER, MergedFile, OWNER, ReplacedFile, live_files, read_sealed, read_sealed_text,
    seal, seal_text,
};
pub use error::FileLogError;
pub use segments::{CommittedBatches, Segment, read_segment, segments};
pub use spark::{
    SPARK_FOLDER, SparkFile, parse_spark_line, read_spark_log, spark_entries, spark_entry_path, spark_lines,
    spark_lines_up_to, unquote,
};
