//! `millstream run`: a query from start to end.

use super::query_arguments::QueryArguments;
use crate::environment;
use crate::failure::{Failure, INTERRUPTED};
use crate::output::{self, LiveLine};
use crate::session;
use clap::Args;
use millstream_common::Hint;
use millstream_runtime::batch_query::run_batch_query;
use millstream_runtime::control::{ControlServer, RunDir};
use millstream_runtime::query_file::LoadedQuery;
use millstream_runtime::{Progress, RuntimeError, Session, StopSignal, StreamingQuery, inspect};
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// Runs a query until its trigger is done, it fails, or it is told to stop. Ctrl-C or SIGTERM stops it after the batch that
/// is running; the second time it stops at once, and the next start runs that batch again.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    millstream run query.toml\n  \
    millstream run query.toml --trigger 'available now' --checkpoint /data/checkpoints/words\n  \
    millstream run query.toml --set spark.sql.shuffle.partitions=8 --progress progress.jsonl --quiet\n  \
    millstream run query.toml --batch\n\n\
    The console sink writes to standard output, everything else to standard error.")]
pub(crate) struct RunArguments {
    #[command(flatten)]
    query: QueryArguments,
    /// Runs the query once over all that its sources hold now, as a batch query: no trigger, no checkpoint, no watermark,
    /// and what may not stream (ORDER BY, OVER, …) may be in it. The result is written when it is complete.
    #[arg(long, conflicts_with_all = ["progress", "trigger", "checkpoint"])]
    batch: bool,
    /// Appends the progress of each batch to a file, as a line of JSON.
    #[arg(long, value_name = "FILE")]
    progress: Option<PathBuf>,
    /// Says nothing but errors.
    #[arg(long)]
    quiet: bool,
}

/// Does it.
pub(crate) fn run(arguments: RunArguments) -> Result<(), Failure> {
    let signals = Signals::listen(arguments.quiet)?;
    let loaded = arguments.query.load()?;
    let session = session::of_query(&loaded);
    if arguments.batch {
        return run_batch(&session, &loaded, &signals, arguments.quiet);
    }
    // Before anything is made: what is wrong with the query itself leaves no trace.
    let checked = inspect::check(&session, &loaded.spec)?;
    let report = Arc::new(Mutex::new(Report::open(&arguments)?));
    let listening = Arc::clone(&report);
    let listener = Box::new(move |progress: &Progress| lock(&listening).batch(progress));

    let began = Instant::now();
    let query = Arc::new(StreamingQuery::start(&session, loaded.spec.clone(), Some(listener))?);
    let control = start_control(&query, &loaded);
    if !arguments.quiet {
        announce(&query, &loaded, &checked, control.as_ref());
    }
    signals.stop_query(&query);

    let outcome = query.await_termination();
    drop(control);
    let mut report = lock(&report);
    report.line.end();
    outcome.map_err(|error| failure(&error))?;
    if !arguments.quiet {
        let word = if signals.is_stopping() { "stopped" } else { "done" };
        output::note(&format!("{word:<11} {} in {:.1} s", report.summary(), began.elapsed().as_secs_f64()));
    }
    Ok(())
}

fn run_batch(session: &Session, loaded: &LoadedQuery, signals: &Signals, quiet: bool) -> Result<(), Failure> {
    let stop = StopSignal::new();
    signals.stop_batch_query(&stop);
    let began = Instant::now();
    let Some(summary) = run_batch_query(session, &loaded.spec, &stop)? else {
        return Err(Failure::interrupted("stopped before the result was complete; nothing was written"));
    };
    if !quiet {
        let read = summary.rows_in.iter().map(|(stream, rows)| format!("{rows} rows of {stream}")).collect::<Vec<_>>();
        let (read, seconds) = (read.join(", "), began.elapsed().as_secs_f64());
        output::note(&format!(
            "done        {read} in, {} rows out to {} in {seconds:.1} s",
            summary.rows_out, summary.sink
        ));
    }
    Ok(())
}

fn failure(error: &Arc<RuntimeError>) -> Failure {
    Failure::of(error.as_ref())
}

/// A query that cannot be reached runs all the same.
fn start_control(query: &Arc<StreamingQuery>, loaded: &LoadedQuery) -> Option<ControlServer> {
    let started = RunDir::locate(&environment::variables(), loaded.run_dir.as_deref())
        .and_then(|dir| ControlServer::start(Arc::clone(query), &dir, Some(&loaded.file)));
    started
        .inspect_err(|error| {
            output::note(&format!("warning: the query cannot be reached for swaps: {error}"));
            if let Some(hint) = error.hint() {
                output::note(&format!("hint: {hint}"));
            }
        })
        .ok()
}

fn announce(
    query: &StreamingQuery,
    loaded: &LoadedQuery,
    checked: &inspect::CheckedQuery,
    control: Option<&ControlServer>,
) {
    let spec = &loaded.spec;
    let name = spec.name.as_deref().unwrap_or("unnamed");
    output::note(&format!("query       {name} {}", query.id()));
    let sources = checked.sources.iter().map(|(name, format)| format!("{name} ({format})")).collect::<Vec<_>>();
    output::note(&format!("plan ok     {} -> {} in mode {}", sources.join(", "), spec.sink.format, spec.mode));
    for state in &checked.state {
        output::note(&format!("state       {} in {} partitions", state.uid, state.partitions));
    }
    for (name, digest) in &checked.plugins {
        output::note(&format!("plugin      {name} {}", digest.short()));
    }
    match &spec.checkpoint {
        Some(place) => output::note(&format!("checkpoint  {place}")),
        None => output::note("checkpoint  none: state is lost when the query stops"),
    }
    if let Some(control) = control {
        output::note(&format!("control     {}", control.socket().display()));
    }
    output::note(&format!("trigger     {}", spec.trigger));
}

/// What is told while the query runs, and at its end.
struct Report {
    line: LiveLine,
    progress: Option<(PathBuf, File)>,
    batches: u64,
    rows_in: u64,
    rows_out: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Report {
    fn open(arguments: &RunArguments) -> Result<Self, Failure> {
        let progress = match &arguments.progress {
            Some(path) => Some((path.clone(), open_progress(path)?)),
            None => None,
        };
        Ok(Self { line: LiveLine::new(!arguments.quiet), progress, batches: 0, rows_in: 0, rows_out: 0 })
    }

    fn batch(&mut self, progress: &Progress) {
        self.batches += 1;
        self.rows_in += progress.num_input_rows;
        self.rows_out += u64::try_from(progress.sink.num_output_rows).unwrap_or(0);
        self.line.show(&live(progress));
        self.append(progress);
    }

    /// A progress file that cannot be written is given up: the query is worth more.
    fn append(&mut self, progress: &Progress) {
        let Some((path, file)) = &mut self.progress else { return };
        let line = serde_json::to_string(progress).map_err(std::io::Error::other);
        // One write per line: a reader never sees half of one.
        let written = line.and_then(|line| file.write_all(format!("{line}\n").as_bytes()));
        if let Err(error) = written {
            self.line.end();
            output::note(&format!("warning: no more progress is written to `{}`: {error}", path.display()));
            self.progress = None;
        }
    }

    fn summary(&self) -> String {
        let plural = if self.batches == 1 { "" } else { "es" };
        format!("{} batch{plural}, {} rows in, {} rows out", self.batches, self.rows_in, self.rows_out)
    }
}

fn open_progress(path: &Path) -> Result<File, Failure> {
    OpenOptions::new().append(true).create(true).open(path).map_err(|error| {
        Failure::outside(format!("cannot write progress to `{}`: {error}", path.display()), Some("check the path"))
    })
}

/// `batch 17 | 1203.4 rows/s | watermark … | state 512 rows`.
fn live(progress: &Progress) -> String {
    let mut parts = vec![format!("batch {}", progress.batch_id)];
    if let Some(rate) = progress.processed_rows_per_second {
        parts.push(format!("{rate:.1} rows/s"));
    }
    if let Some(watermark) = progress.event_time.get("watermark") {
        parts.push(format!("watermark {watermark}"));
    }
    if !progress.state_operators.is_empty() {
        let rows: u64 = progress.state_operators.iter().map(|operator| operator.num_rows_total).sum();
        parts.push(format!("state {rows} rows"));
    }
    parts.join(" | ")
}

/// Ctrl-C, SIGTERM and SIGHUP.
struct Signals {
    seen: Arc<AtomicUsize>,
    query: Arc<OnceLock<Stopping>>,
}

/// What a first signal stops.
enum Stopping {
    Stream(Arc<StreamingQuery>),
    Batch(StopSignal),
}

impl Signals {
    fn listen(quiet: bool) -> Result<Self, Failure> {
        let signals = Self { seen: Arc::default(), query: Arc::default() };
        let (seen, query) = (Arc::clone(&signals.seen), Arc::clone(&signals.query));
        let handler = move || match (seen.fetch_add(1, Ordering::SeqCst), query.get()) {
            (0, Some(Stopping::Batch(stop))) => stop.set(),
            (0, Some(Stopping::Stream(query))) => {
                query.ask_to_stop();
                if !quiet {
                    // Below the live line and the terminal's own `^C`.
                    let below = if std::io::stderr().is_terminal() { "\n" } else { "" };
                    output::note(&format!("{below}stopping{}; again to stop at once", after_batch(query)));
                }
            }
            // Nothing runs yet, or the user insists.
            _ => std::process::exit(i32::from(INTERRUPTED)),
        };
        ctrlc::set_handler(handler)
            .map_err(|error| Failure::outside(format!("cannot listen for signals: {error}"), None))?;
        Ok(signals)
    }

    /// From now on the first signal stops this query.
    fn stop_query(&self, query: &Arc<StreamingQuery>) {
        // It is set once per process.
        let _ = self.query.set(Stopping::Stream(Arc::clone(query)));
    }

    /// From now on the first signal ends this batch query.
    fn stop_batch_query(&self, stop: &StopSignal) {
        let _ = self.query.set(Stopping::Batch(stop.clone()));
    }

    fn is_stopping(&self) -> bool {
        self.seen.load(Ordering::SeqCst) > 0
    }
}

fn after_batch(query: &StreamingQuery) -> String {
    let last = query.last_progress().map(|progress| progress.batch_id);
    match (query.status().is_trigger_active, last) {
        (true, last) => format!(" after batch {}", last.map_or(0, |last| last + 1)),
        (false, Some(last)) => format!(" after batch {last}"),
        (false, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_runtime::SinkProgress;

    #[test]
    fn the_live_line_shows_what_there_is() {
        let id = "\"3f0c2a5e-8f2b-4c39-9d1f-2d9f1f6f9e11\"";
        let mut progress = Progress {
            id: serde_json::from_str(id).unwrap(),
            run_id: serde_json::from_str(id).unwrap(),
            name: None,
            timestamp: String::new(),
            batch_id: 17,
            batch_duration: 5,
            num_input_rows: 6,
            input_rows_per_second: None,
            processed_rows_per_second: Some(1203.44),
            duration_ms: std::collections::BTreeMap::new(),
            event_time: std::collections::BTreeMap::new(),
            state_operators: Vec::new(),
            sources: Vec::new(),
            sink: SinkProgress { description: String::new(), num_output_rows: -1 },
            plugins: Vec::new(),
            tenant: None,
        };
        assert_eq!(live(&progress), "batch 17 | 1203.4 rows/s");
        progress.event_time.insert("watermark".into(), "1970-01-01T00:00:00.000Z".into());
        assert_eq!(live(&progress), "batch 17 | 1203.4 rows/s | watermark 1970-01-01T00:00:00.000Z");
    }
}
