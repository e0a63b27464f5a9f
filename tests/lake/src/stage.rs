//! A query on a folder of this machine whose writes can crash.

use anyhow::Result;
use millstream_checkpoint::faulty::{Counted, FaultyFiles, Moment};
use millstream_checkpoint::{LEASE_MS, open_files};
use millstream_common::{DurableFiles, ManualClock, Options, OutputMode, ScopedFiles, StopSignal};
use millstream_runtime::{QueryRun, QuerySpec, Session, Settings, StreamSpec};
use millstream_sink::connectors::file::{FileFormat, FileSinkFactory};
use millstream_sink::{SinkRegistry, SinkSpec};
use millstream_source::SourceSpec;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Rows per batch of the stream `numbers`.
const ROWS: u64 = 6;

/// A folder with the checkpoint and the output of one query over the stream `numbers` (column `value`, from 0).
pub struct Stage {
    folder: PathBuf,
    clock: Arc<ManualClock>,
    sql: String,
    sink: SinkSpec,
    mode: OutputMode,
}

impl Stage {
    /// A query that nobody has started yet, of `format` into `folder/output`.
    pub fn new(folder: &Path, sql: &str, format: &str, options: &[(&str, &str)]) -> Self {
        let mut all = Options::new().with("path", folder.join("output").display().to_string());
        options.iter().for_each(|(name, value)| all.set(*name, *value));
        Self {
            folder: folder.to_owned(),
            clock: Arc::new(ManualClock::at(1_700_000_000_000)),
            sql: sql.to_owned(),
            sink: SinkSpec { format: format.to_owned(), options: all },
            mode: OutputMode::Append,
        }
    }

    /// The same in another output mode.
    #[must_use]
    pub fn mode(mut self, mode: OutputMode) -> Self {
        self.mode = mode;
        self
    }

    /// Where the rows go.
    pub fn output(&self) -> PathBuf {
        self.folder.join("output")
    }

    /// The files of the folder, which do not crash.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn files(&self) -> Result<Arc<dyn DurableFiles>> {
        Ok(open_files(&self.folder.display().to_string(), &[])?)
    }

    fn session(&self, files: &Arc<FaultyFiles>) -> Session {
        let scoped = |name: &'static str| {
            let files = Arc::clone(files);
            move || Arc::new(ScopedFiles::new(Arc::clone(&files) as _, name)) as Arc<dyn DurableFiles>
        };
        let mut sinks = SinkRegistry::with_builtins();
        for format in FileFormat::ALL {
            let output = scoped("output");
            let factory = FileSinkFactory::opening(Some(format), Arc::new(move |_: &str| Ok(output())));
            sinks.register(format.name(), Arc::new(factory));
        }
        let checkpoint = scoped("checkpoint");
        let open = move |_: &str, _: &[(String, String)]| Ok(checkpoint());
        let session = Session::builder().clock(Arc::clone(&self.clock) as _).sinks(sinks);
        session.open_checkpoint(Arc::new(open)).build()
    }

    /// Runs the query until `batches` batches are done, or until the `crash`. Answers the writes, in order.
    ///
    /// # Errors
    /// When it ends for another reason.
    pub fn run(&self, batches: u64, crash: Option<(usize, Moment)>) -> Result<Vec<String>> {
        self.clock.advance(Duration::from_millis(LEASE_MS as u64 + 1));
        let mut files = FaultyFiles::new(self.files()?, Counted::ALL);
        if let Some((write, moment)) = crash {
            files = files.crash_at(write, moment);
        }
        let files = Arc::new(files);
        match self.live(&files, batches) {
            Err(error) if !files.crashed() => Err(error),
            _ => Ok(files.history()),
        }
    }

    fn live(&self, files: &Arc<FaultyFiles>, batches: u64) -> Result<()> {
        let options = Options::new().with("rowsPerBatch", ROWS.to_string());
        let source = SourceSpec { name: "numbers".into(), format: "rate-micro-batch".into(), schema: None, options };
        let stream = StreamSpec { source, event_time: None, drop_duplicates: None };
        let spec = QuerySpec {
            mode: self.mode,
            checkpoint: Some("checkpoint".into()),
            settings: Settings { partitions: 2, ..Settings::default() },
            ..QuerySpec::new(self.sql.as_str(), vec![stream], self.sink.clone())
        };
        let mut run = QueryRun::open(&self.session(files), spec, StopSignal::new())?;
        while run.next_batch().0 < batches {
            if run.run_next()?.is_none() {
                break;
            }
        }
        run.close();
        Ok(())
    }
}
