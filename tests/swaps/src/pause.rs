//! How long a query with much state stands still for a swap, and for what.
//!
//! ```text
//!   … batch of the old code ─┤ border: code, state, opening, logs ├─ batch of the new code …
//!                            └──────────── the pause ─────────────┘
//! ```
//! The state is that of an aggregate function over so many keys, on a disk; while it is swapped, small batches keep coming.

use crate::migrating::{EDITION_FILES, LEDGER};
use anyhow::{Context, Result, anyhow, ensure};
use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use millstream_checkpoint::open_files;
use millstream_common::{Options, OutputMode, StopSignal, describe_chain};
use millstream_runtime::{
    PluginSpec, Progress, QueryRun, QuerySpec, Remake, Settings, StreamSpec, StreamingQuery, SwapGrounds, Swapped,
};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_source::connectors::memory::MemoryStream;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use streaming_stories::{World, component};

/// Rows of a batch while the state is filled, and afterwards.
const FILL: u64 = 50_000;
const LOAD: u64 = 1_000;
/// The time between two batches of the load.
const PACE: Duration = Duration::from_millis(100);
/// Anything takes too long after that.
const PATIENCE: Duration = Duration::from_secs(600);

type Ends = Arc<Mutex<Vec<(u64, Instant)>>>;

/// Measures and tells, line by line.
///
/// # Errors
/// When a swap is refused or the query fails.
pub fn report(keys: u64, tell: &mut dyn FnMut(String)) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let world = World::on(open_files(folder.path().to_str().context("a path is no UTF-8")?, &[])?);
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, true)]));
    let stream = world.streams.create("numbers", Arc::clone(&schema));
    let ends = Ends::default();
    let listened = Arc::clone(&ends);
    let listener = move |progress: &Progress| {
        listened.lock().unwrap_or_else(PoisonError::into_inner).push((progress.batch_id, Instant::now()));
    };
    let spec = spec(keys, component(EDITION_FILES[0])?);
    let query = StreamingQuery::start(&world.session, spec.clone(), Some(Box::new(listener)));
    let query = query.map_err(|error| anyhow!(describe_chain(&error)))?;
    let began = Instant::now();
    let mut feed = Feed { stream, schema, next: 0 };
    while feed.next < keys {
        feed.add(FILL.min(keys - feed.next))?;
    }
    query.process_all_available().map_err(|error| anyhow!(describe_chain(&*error)))?;
    tell(format!("{keys} keys of state made in {:.1} s", began.elapsed().as_secs_f64()));
    // Two and four have the same state, the others have not.
    for (to, what) in [
        (1, "migrated beside the query, one step"),
        (3, "the same state"),
        (1, "the same state"),
        (2, "migrated beside the query, one step"),
        (0, "migrated beside the query, two steps back"),
    ] {
        let bytes = component(EDITION_FILES[to])?;
        let migrates = !what.starts_with("the same");
        let asked_at = Instant::now();
        let remake = migrates.then_some(Remake::Migrate);
        let asked = query.swap_on(LEDGER, bytes, SwapGrounds::unasked("swap"), remake);
        let asked = asked.map_err(|error| anyhow!(describe_chain(&error)))?;
        let swapped = loop {
            feed.add(LOAD)?;
            match asked.recv_timeout(PACE) {
                Ok(answer) => break answer.map_err(|reason| anyhow!(reason))?,
                Err(_) => ensure!(asked_at.elapsed() < PATIENCE, "a swap gets no answer"),
            }
        };
        let waited = asked_at.elapsed();
        for _ in 0..5 {
            feed.add(LOAD)?;
        }
        query.process_all_available().map_err(|error| anyhow!(describe_chain(&*error)))?;
        tell(format!("{what}: {}, {:.1} s after it was asked for", shown(&swapped, &ends)?, waited.as_secs_f64()));
    }
    query.stop().map_err(|error| anyhow!(describe_chain(&*error)))?;
    let mut run =
        QueryRun::open(&world.session, spec, StopSignal::new()).map_err(|error| anyhow!(describe_chain(&error)))?;
    feed.add(LOAD)?;
    let asked = run.swap(LEDGER, component(EDITION_FILES[1])?, SwapGrounds::unasked("swap"), Some(Remake::Migrate));
    let asked = asked.map_err(|error| anyhow!(describe_chain(&error)))?;
    run.run_next().map_err(|error| anyhow!(describe_chain(&error)))?;
    let swapped = asked.try_recv()?.map_err(|reason| anyhow!(reason))?;
    run.close();
    tell(format!("migrated while the query waits, one step: {}", parts(&swapped)));
    Ok(())
}

/// What stood still, and what somebody saw who waits for batches.
fn shown(swapped: &Swapped, ends: &Ends) -> Result<String> {
    let ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
    let first = ends.iter().position(|(batch, _)| *batch >= swapped.batch.0).context("the first batch has no end")?;
    let gap = |at: usize| ends[at].1 - ends[at - 1].1;
    ensure!(first > 0, "there is no batch before the swap");
    Ok(format!("{}; {:.1} ms from the end of a batch to the end of the next", parts(swapped), ms(gap(first))))
}

fn parts(swapped: &Swapped) -> String {
    let pause = swapped.pause;
    format!(
        "pause {:.1} ms (code {:.1}, state {:.1}, opening {:.1}, logs {:.1})",
        ms(pause.whole()),
        ms(pause.code),
        ms(pause.state),
        ms(pause.open),
        ms(pause.log)
    )
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Numbers, one after the other.
struct Feed {
    stream: MemoryStream,
    schema: SchemaRef,
    next: u64,
}

impl Feed {
    fn add(&mut self, count: u64) -> Result<()> {
        let numbers = Int64Array::from_iter_values((self.next..self.next + count).map(|n| n as i64));
        self.next += count;
        self.stream.add_data(RecordBatch::try_new(Arc::clone(&self.schema), vec![Arc::new(numbers)])?)?;
        Ok(())
    }
}

fn spec(keys: u64, component: Vec<u8>) -> QuerySpec {
    let options = Options::new().with("maxBatchesPerTrigger", "1");
    let source = SourceSpec { name: "numbers".into(), format: "memory".into(), schema: None, options };
    let limits = PluginLimits { deadline: Duration::from_secs(60), ..PluginLimits::default() };
    QuerySpec {
        name: Some("pause".into()),
        plugins: vec![PluginSpec { name: LEDGER.into(), component, limits, on_fault: FaultPolicy::Fail }],
        mode: OutputMode::Update,
        checkpoint: Some("checkpoint".into()),
        settings: Settings { dry_run_batches: 0, ..Settings::default() },
        ..QuerySpec::new(
            format!("SELECT v % {keys} AS k, ledger(v) AS total FROM numbers GROUP BY v % {keys}"),
            vec![StreamSpec { source, event_time: None, drop_duplicates: None }],
            SinkSpec { format: "noop".into(), options: Options::new() },
        )
    }
}
