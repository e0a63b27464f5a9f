//! The rows of each batch as a folder of text files: `prefix-TIME_IN_MS[.suffix]/part-00000, …, _SUCCESS`.
//!
//! A part is written beside its name and then renamed, and `_SUCCESS` comes last, so a folder that has it is whole. A batch
//! that is run again writes the same names over.

use crate::output::Show;
use crate::rdd::guarded;
use crate::stream::DStream;
use crate::{DStreamError, Data, JobError, Time};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The folder of a batch.
fn folder(prefix: &str, suffix: &str, time: Time) -> PathBuf {
    let prefix = prefix.strip_prefix("file://").or_else(|| prefix.strip_prefix("file:")).unwrap_or(prefix);
    let ending = if suffix.is_empty() { String::new() } else { format!(".{}", suffix.trim_start_matches('.')) };
    PathBuf::from(format!("{prefix}-{}{ending}", time.0))
}

fn write_part<T: Show>(folder: &Path, number: usize, rows: &[T]) -> io::Result<()> {
    let (unfinished, name) = (folder.join(format!("_part-{number:05}")), folder.join(format!("part-{number:05}")));
    let mut file = BufWriter::new(std::fs::File::create(&unfinished)?);
    for row in rows {
        file.write_all(row.show().as_bytes())?;
        file.write_all(b"\n")?;
    }
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    std::fs::rename(unfinished, name)
}

/// Makes the folder, without what an earlier attempt left that is not written again.
fn prepare(folder: &Path, parts: usize) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let beyond =
            name.strip_prefix("part-").and_then(|number| number.parse::<usize>().ok()).is_some_and(|n| n >= parts);
        if beyond || name == "_SUCCESS" {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

impl<T: Data + Show> DStream<T> {
    /// Writes each batch to the folder `prefix-TIME_IN_MS`, or `prefix-TIME_IN_MS.suffix`, a file per partition.
    ///
    /// # Errors
    /// As [`foreach_rdd`](Self::foreach_rdd).
    pub fn save_as_text_files(&self, prefix: &str, suffix: &str) -> Result<(), DStreamError> {
        let (prefix, suffix) = (prefix.to_owned(), suffix.to_owned());
        self.output("save_as_text_files", move |rows, time| {
            guarded(|| {
                let folder = folder(&prefix, &suffix, time);
                let parts = rows.partitions()?;
                let failed = |error: io::Error| {
                    JobError::failed(format!("the folder `{}` cannot be written: {error}", folder.display()))
                };
                prepare(&folder, parts.len()).map_err(failed)?;
                let write =
                    |number: usize, rows: &[T]| write_part(&folder, number, rows).map_err(|error| failed(error).into());
                rows.foreach_partition(write)?;
                std::fs::write(folder.join("_SUCCESS"), b"").map_err(failed)
            })
        })
    }
}
