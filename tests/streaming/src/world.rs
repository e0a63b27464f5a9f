//! A session in memory whose files can crash.

use crate::Recorder;
use anyhow::{Result, bail};
use millstream_checkpoint::faulty::{Counted, FaultyFiles, Moment};
use millstream_checkpoint::{Checkpoint, CheckpointError, LEASE_MS, open_files};
use millstream_common::{BatchId, Clock, DurableFiles, ManualClock, ScopedFiles};
use millstream_runtime::Session;
use millstream_sink::SinkRegistry;
use millstream_sink::connectors::file::{FileFormat, FileSinkFactory};
use millstream_source::SourceRegistry;
use millstream_source::connectors::memory::MemoryStreams;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The name of the checkpoint in a query's spec.
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// The name of the file sink's folder.
pub(crate) const OUTPUT: &str = "output";

/// A session with memory streams, a recorder as sink, and a checkpoint and a file sink over files that can crash.
///
/// Both folders are on the same files, so that writes are counted together.
pub struct World {
    /// The session.
    pub session: Session,
    /// The streams.
    pub streams: MemoryStreams,
    /// The sink `recorder`.
    pub recorder: Recorder,
    /// The time, which stands still between lives.
    pub clock: Arc<ManualClock>,
    disk: Arc<dyn DurableFiles>,
    files: Arc<Mutex<Arc<FaultyFiles>>>,
}

impl World {
    /// A world with an empty disk in memory and nothing that crashes.
    ///
    /// # Errors
    /// When there is no disk in memory.
    pub fn new() -> Result<Self> {
        Ok(Self::on(open_files("memory:///", &[])?))
    }

    /// A world on a disk.
    pub fn on(disk: Arc<dyn DurableFiles>) -> Self {
        let clock = Arc::new(ManualClock::at(1_700_000_000_000));
        let time: Arc<dyn Clock> = Arc::clone(&clock) as _;
        Self::with_clock(disk, clock, time)
    }

    /// A world on a disk, whose session asks `time`.
    pub fn with_clock(disk: Arc<dyn DurableFiles>, clock: Arc<ManualClock>, time: Arc<dyn Clock>) -> Self {
        let files = Arc::new(Mutex::new(Arc::new(FaultyFiles::new(Arc::clone(&disk), Counted::ALL))));
        let (streams, recorder) = (MemoryStreams::new(), Recorder::default());
        let mut sources = SourceRegistry::with_builtins();
        sources.register("memory", Arc::new(streams.clone()));
        let mut sinks = SinkRegistry::with_builtins();
        sinks.register("recorder", Arc::new(recorder.clone()));
        let of_sink = Arc::clone(&files);
        let open_output = move |place: &str| {
            let files: Arc<dyn DurableFiles> = Arc::new(ScopedFiles::new(current(&of_sink), place));
            Ok(files)
        };
        sinks.register("json", Arc::new(FileSinkFactory::opening(Some(FileFormat::Json), Arc::new(open_output))));
        let of_checkpoint = Arc::clone(&files);
        let open_checkpoint = move |place: &str, _: &[(String, String)]| {
            let files: Arc<dyn DurableFiles> = Arc::new(ScopedFiles::new(current(&of_checkpoint), place));
            Ok(files)
        };
        let session = Session::builder().clock(time).sources(sources).sinks(sinks);
        let session = session.open_checkpoint(Arc::new(open_checkpoint)).build();
        Self { session, streams, recorder, clock, disk, files }
    }

    /// From now on the `write`-th durable write crashes.
    pub fn crash_at(&self, write: usize, moment: Moment) {
        let files = FaultyFiles::new(Arc::clone(&self.disk), Counted::ALL).crash_at(write, moment);
        *lock(&self.files) = Arc::new(files);
    }

    /// Whether the crash has happened since the last [`revive`](Self::revive).
    pub fn crashed(&self) -> bool {
        lock(&self.files).crashed()
    }

    /// The machine comes up again, long enough after the crash for every lease to have ended.
    pub fn revive(&self) {
        self.pass_lease();
        *lock(&self.files) = Arc::new(FaultyFiles::new(Arc::clone(&self.disk), Counted::ALL));
    }

    /// So much time passes that the lease of a run that was dropped ends.
    pub fn pass_lease(&self) {
        self.clock.advance(Duration::from_millis(LEASE_MS as u64 + 1));
    }

    /// The writes since the last crash was planned or the last revival.
    pub fn history(&self) -> Vec<String> {
        lock(&self.files).history()
    }

    /// The files of the checkpoint, which do not crash.
    pub fn checkpoint_files(&self) -> Arc<dyn DurableFiles> {
        Arc::new(ScopedFiles::new(Arc::clone(&self.disk), CHECKPOINT))
    }

    /// The files of the file sink, which do not crash.
    pub fn output_files(&self) -> Arc<dyn DurableFiles> {
        Arc::new(ScopedFiles::new(Arc::clone(&self.disk), OUTPUT))
    }

    /// The checkpoint, if there is one.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        match Checkpoint::open(self.checkpoint_files()) {
            Ok(checkpoint) => Ok(Some(checkpoint)),
            Err(CheckpointError::Absent { .. }) => Ok(None),
            Err(error) => bail!(millstream_common::describe_chain(&error)),
        }
    }

    /// Whether a batch is in the commit log.
    ///
    /// # Errors
    /// When the checkpoint is damaged.
    pub fn is_committed(&self, batch: u64) -> Result<bool> {
        let Some(checkpoint) = self.checkpoint()? else { return Ok(false) };
        Ok(checkpoint.commit_log().get(BatchId(batch))?.is_some())
    }

    /// Whether a batch is in the offset log.
    ///
    /// # Errors
    /// When the checkpoint is damaged.
    pub fn is_defined(&self, batch: u64) -> Result<bool> {
        let Some(checkpoint) = self.checkpoint()? else { return Ok(false) };
        Ok(checkpoint.offset_log().get(BatchId(batch))?.is_some())
    }

    /// The rows per batch that the manifests of the file sink name, as lines of JSON.
    ///
    /// # Errors
    /// When the output is damaged.
    pub fn output(&self) -> Result<std::collections::BTreeMap<u64, Vec<String>>> {
        let files = self.output_files();
        let mut batches = std::collections::BTreeMap::new();
        for committed in millstream_sink::connectors::file::read_committed_in(files.as_ref())? {
            let mut rows = Vec::new();
            for file in &committed.files {
                let bytes = files.get(&file.name)?;
                rows.extend(String::from_utf8(bytes.to_vec())?.lines().map(str::to_owned));
            }
            anyhow::ensure!(rows.len() as u64 == committed.rows, "batch {} has other rows", committed.batch);
            batches.insert(committed.batch.0, rows);
        }
        Ok(batches)
    }
}

fn current(files: &Mutex<Arc<FaultyFiles>>) -> Arc<dyn DurableFiles> {
    Arc::clone(&lock(files)) as _
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
