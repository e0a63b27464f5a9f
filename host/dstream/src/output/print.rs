//! The first rows of each batch on standard output, under the time of the batch.
//!
//! ```text
//! -------------------------------------------
//! Time: 1357008430000 ms
//! -------------------------------------------
//! (hello,1)
//! (world,1)
//! ...
//!
//! ```

use crate::lock::locked;
use crate::output::Show;
use crate::rdd::{Rdd, guarded};
use crate::stream::DStream;
use crate::{DStreamError, Data, JobError, Time};
use std::io::Write;
use std::sync::Mutex;

const RULE: &str = "-------------------------------------------";

/// The text of a batch.
fn text<T: Data + Show>(rows: &Rdd<T>, time: Time, count: usize) -> Result<String, JobError> {
    let mut taken = rows.take(count.saturating_add(1))?;
    let more = taken.len() > count;
    taken.truncate(count);
    let mut text = format!("{RULE}\nTime: {time}\n{RULE}\n");
    for row in taken {
        text.push_str(&row.show());
        text.push('\n');
    }
    if more {
        text.push_str("...\n");
    }
    text.push('\n');
    Ok(text)
}

impl<T: Data + Show> DStream<T> {
    /// Prints the first ten rows of each batch.
    ///
    /// # Errors
    /// As [`foreach_rdd`](Self::foreach_rdd).
    pub fn print(&self) -> Result<(), DStreamError> {
        self.pprint(10)
    }

    /// Prints the first `count` rows of each batch.
    ///
    /// # Errors
    /// As [`foreach_rdd`](Self::foreach_rdd).
    pub fn pprint(&self, count: usize) -> Result<(), DStreamError> {
        self.print_to(count, std::io::stdout())
    }

    /// Writes the first `count` rows of each batch to `writer`, in the form of [`print`](Self::print).
    ///
    /// # Errors
    /// As [`foreach_rdd`](Self::foreach_rdd).
    pub fn print_to(&self, count: usize, writer: impl Write + Send + 'static) -> Result<(), DStreamError> {
        let writer = Mutex::new(writer);
        self.output("print", move |rows, time| {
            guarded(|| {
                let text = text(rows, time, count)?;
                let mut writer = locked(&writer);
                writer.write_all(text.as_bytes()).and_then(|()| writer.flush()).map_err(JobError::failed)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rows_stand_under_the_time() {
        let rows = Rdd::parallelize(vec![("a", 1), ("b", 2), ("c", 3)], 2);
        let rule = "-".repeat(43);
        let wanted = format!("{rule}\nTime: 1357008430000 ms\n{rule}\n(a,1)\n(b,2)\n...\n\n");
        assert_eq!(text(&rows, Time(1_357_008_430_000), 2).unwrap(), wanted);
        assert!(!text(&rows, Time(0), 3).unwrap().contains("..."));
    }
}
