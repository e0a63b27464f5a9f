//! Runs that become one run, on a thread of their own.
//!
//! Begun by the spill between two batches; the merged run takes its place between two later ones.
//!
//! Rule of its life: runs are never changed, so the thread needs nothing of the spill but them. It ends early when its
//! spill does. Whether a row still counts is judged by what was hidden when it began; the spill sees to the rest.

use super::merge::Merge;
use super::run::{Layer, Run, RunWriter};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A merge that is under way.
#[derive(Debug)]
pub(super) struct Merging {
    inputs: Vec<Layer>,
    thread: Option<JoinHandle<io::Result<Option<Run>>>>,
    is_unwanted: Arc<AtomicBool>,
}

impl Merging {
    /// Begins to merge `inputs`, the oldest first. With `is_oldest` nothing is older, so deletions need not be kept.
    pub(super) fn begin(folder: &Path, inputs: Vec<Layer>, is_oldest: bool, id: u64) -> io::Result<Self> {
        let is_unwanted = Arc::new(AtomicBool::new(false));
        let rows: u64 = inputs.iter().map(|layer| layer.run.rows).sum();
        let writer = RunWriter::new(folder, usize::try_from(rows).unwrap_or(usize::MAX))?;
        let (layers, stop) = (inputs.clone(), Arc::clone(&is_unwanted));
        let thread = std::thread::Builder::new().name("spill-merge".into());
        let thread = thread.spawn(move || merge(&layers, writer, is_oldest, id, &stop))?;
        Ok(Self { inputs, thread: Some(thread), is_unwanted })
    }

    pub(super) fn is_done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end: what went in, and what came out, if any row was left.
    pub(super) fn end(mut self) -> io::Result<(Vec<Layer>, Option<Run>)> {
        let inputs = std::mem::take(&mut self.inputs);
        let Some(thread) = self.thread.take() else { return Ok((inputs, None)) };
        let merged = thread.join().map_err(|_| io::Error::other("the thread of a merge panicked"))??;
        Ok((inputs, merged))
    }
}

impl Drop for Merging {
    fn drop(&mut self) {
        self.is_unwanted.store(true, Ordering::Relaxed);
        // What came out does not matter any more.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn merge(
    layers: &[Layer],
    mut writer: RunWriter,
    is_oldest: bool,
    id: u64,
    stop: &AtomicBool,
) -> io::Result<Option<Run>> {
    let mut merge = Merge::new(layers, u64::MAX);
    while let Some(row) = merge.next()? {
        if row.value.is_some() || !is_oldest {
            writer.push(&row)?;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
    writer.finish(id)
}
