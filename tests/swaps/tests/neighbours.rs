//! Fifty queries with hostile plugins run beside an honest one in the same process: its output is exact, and a row costs
//! it what it costs alone.
//!
//! The crowd is one tenant's, and its plugins may spend half a processor together, as an operator would let strangers. What
//! is compared is CPU time of the honest query's thread, not the time on the clock.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use arrow::array::{Int64Array, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use millstream_checkpoint::open_files;
use millstream_common::{DurableFiles, Options, ScopedFiles, StopSignal};
use millstream_plan::EventTime;
use millstream_runtime::{PluginSpec, QueryRun, QuerySpec, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_sink::connectors::file::read_committed_in;
use millstream_source::SourceSpec;
use millstream_wasm::{AccountLimits, FaultPolicy, PluginLimits, Tenant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use streaming_stories::{World, component};

const HOSTILE: usize = 50;
const BATCHES: i64 = 20;
const ROWS: i64 = 5_000;
/// Microseconds between two rows; a window of ten seconds has a fifth of a batch.
const STEP_US: i64 = 10_000;
/// How long fifty queries may take to start on a busy machine.
const START: Duration = Duration::from_secs(300);
/// What all hostile plugins may spend together, per second.
const ALLOWANCE: Duration = Duration::from_millis(500);
/// Rounds at most: other programs run on this machine too, so the best of some counts.
const ROUNDS: usize = 6;
/// By how much a row may be dearer beside hostile plugins.
const DEARER: f64 = 1.10;

/// What the hostile plugins do, each with a row.
const DEEDS: [&str; 8] = [
    "spins_on(value, value)",
    "panics_on(value, value)",
    "hoards(value)",
    "recurses(value)",
    "length(swells(value))",
    "chatters(value)",
    "leaks(value)",
    "dislikes_threes(value)",
];

fn schema() -> SchemaRef {
    let at = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![Field::new("at", at, true), Field::new("v", DataType::Int64, true)]))
}

fn rows(batch: i64) -> RecordBatch {
    let numbers = batch * ROWS..(batch + 1) * ROWS;
    let at = TimestampMicrosecondArray::from_iter_values(numbers.clone().map(|n| n * STEP_US)).with_timezone("UTC");
    RecordBatch::try_new(schema(), vec![Arc::new(at), Arc::new(Int64Array::from_iter_values(numbers))]).unwrap()
}

fn spec(name: &str, source: SourceSpec, plugins: Vec<PluginSpec>, query: &str, sink: SinkSpec) -> QuerySpec {
    let event_time = source.name.starts_with("clicks").then(|| EventTime { column: "at".into(), delay_us: 0 });
    QuerySpec {
        name: Some(name.into()),
        plugins,
        checkpoint: Some(format!("checkpoint-{name}")),
        ..QuerySpec::new(query, vec![StreamSpec { source, event_time, drop_duplicates: None }], sink)
    }
}

fn plugin(name: &str, limits: PluginLimits) -> PluginSpec {
    PluginSpec { name: name.into(), component: component(name).unwrap(), limits, on_fault: FaultPolicy::Skip }
}

/// CPU time that this thread has had.
fn cpu() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(told.split(' ').next().unwrap().parse().unwrap())
}

/// Runs the honest query to its end: the lower quartile of the CPU time of its batches, and its rows.
fn honest(world: &World, disk: &Arc<dyn DurableFiles>, name: &str) -> (Duration, Vec<String>) {
    let stream = world.streams.create(&format!("clicks_{name}"), schema());
    let source =
        SourceSpec { name: format!("clicks_{name}"), format: "memory".into(), schema: None, options: Options::new() };
    let query = format!(
        "SELECT unix_seconds(w.start) AS second, n FROM (
           SELECT window(at, '10 seconds') AS w, count(echo_i64(v)) AS n FROM clicks_{name} GROUP BY window(at, '10 seconds')
         ) c"
    );
    let sink = SinkSpec { format: "json".into(), options: Options::new().with("path", name) };
    let spec = spec(name, source, vec![plugin("echo", PluginLimits::default())], &query, sink);
    let mut run = QueryRun::open(&world.session, spec, StopSignal::new()).unwrap();
    let mut times = Vec::new();
    for batch in 0..BATCHES {
        stream.add_data(rows(batch)).unwrap();
        let before = cpu();
        run.run_next().unwrap().unwrap();
        times.push(cpu() - before);
    }
    // The windows that the last rows closed.
    while run.run_next().unwrap().is_some() {}
    times.sort_unstable();
    let files = ScopedFiles::new(Arc::clone(disk), name);
    let mut rows = Vec::new();
    for committed in read_committed_in(&files).unwrap() {
        for file in &committed.files {
            let text = String::from_utf8(files.get(&file.name).unwrap().to_vec()).unwrap();
            rows.extend(text.lines().map(str::to_owned));
        }
    }
    rows.sort_unstable();
    (times[times.len() / 4], rows)
}

/// What the crowd is told.
#[derive(Default)]
struct Orders {
    stop: AtomicBool,
    pause: AtomicBool,
    /// Queries that have done their first batch, and those that stand still.
    begun: AtomicUsize,
    paused: AtomicUsize,
    batches: AtomicUsize,
    failed: AtomicUsize,
}

impl Orders {
    /// Waits until so many of the crowd have done something.
    fn wait(&self, what: &AtomicUsize) {
        let start = Instant::now();
        while what.load(Ordering::SeqCst) < HOSTILE {
            assert!(start.elapsed() < START, "{what:?} of {HOSTILE} hostile queries are so far");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Tells the crowd to stop when it is dropped: however a test ends, the crowd ends with it.
struct Stopping<'a>(&'a Orders);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::SeqCst);
    }
}

/// One hostile query, until told to stop.
fn hostile(world: &World, orders: &Orders, number: usize) {
    let tenant = Tenant {
        name: "strangers".into(),
        limits: AccountLimits { cpu_per_second: Some(ALLOWANCE), ..AccountLimits::default() },
    };
    let limits = PluginLimits {
        deadline: Duration::from_millis(50),
        memory_bytes: 8 << 20,
        result_bytes: 64 << 10,
        log_bytes_per_call: 1000,
        tenant: Some(tenant),
        ..PluginLimits::default()
    };
    let options = Options::new().with("rowsPerBatch", "4").with("numPartitions", "1");
    let source = SourceSpec { name: "numbers".into(), format: "rate-micro-batch".into(), schema: None, options };
    let deed = DEEDS[number % DEEDS.len()];
    let sink = SinkSpec { format: "noop".into(), options: Options::new() };
    let query = format!("SELECT {deed} AS v FROM numbers");
    let spec = spec(&format!("hostile-{number}"), source, vec![plugin("hostile", limits)], &query, sink);
    let mut run = QueryRun::open(&world.session, spec, StopSignal::new()).unwrap();
    // That a batch of theirs fails, for a busy machine makes an instance too late, is theirs to bear: it is tried again.
    orders.failed.fetch_add(usize::from(run.run_next().is_err()), Ordering::SeqCst);
    orders.begun.fetch_add(1, Ordering::SeqCst);
    while !orders.stop.load(Ordering::SeqCst) {
        if orders.pause.load(Ordering::SeqCst) {
            orders.paused.fetch_add(1, Ordering::SeqCst);
            while orders.pause.load(Ordering::SeqCst) && !orders.stop.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(20));
            }
            orders.paused.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        orders.failed.fetch_add(usize::from(run.run_next().is_err()), Ordering::SeqCst);
        orders.batches.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
#[ignore = "compares CPU time and wants the machine for itself: ./x hostile"]
fn fifty_hostile_plugins_cost_an_honest_query_nothing() {
    let disk = open_files("memory:///", &[]).unwrap();
    let world = World::on(Arc::clone(&disk));
    let closed = (BATCHES * ROWS * STEP_US) / 10_000_000 - 1;
    let expected = |second: i64| format!("{{\"second\":{second},\"n\":1000}}");
    let mut expected: Vec<String> = (0..closed).map(|window| expected(window * 10)).collect();
    expected.sort_unstable();

    let orders = Orders::default();
    let mut ratios = Vec::new();
    std::thread::scope(|scope| {
        let _stopping = Stopping(&orders);
        for number in 0..HOSTILE {
            let (world, orders) = (&world, &orders);
            scope.spawn(move || hostile(world, orders, number));
        }
        orders.wait(&orders.begun);
        for round in 0..ROUNDS {
            orders.pause.store(true, Ordering::SeqCst);
            orders.wait(&orders.paused);
            let (alone, rows) = honest(&world, &disk, &format!("alone{round}"));
            assert_eq!(rows, expected, "alone");
            orders.pause.store(false, Ordering::SeqCst);
            let before = orders.batches.load(Ordering::SeqCst);
            while orders.batches.load(Ordering::SeqCst) == before {
                std::thread::sleep(Duration::from_millis(1));
            }
            let (beside, rows) = honest(&world, &disk, &format!("beside{round}"));
            assert_eq!(rows, expected, "beside hostile plugins");
            let done = orders.batches.load(Ordering::SeqCst) - before;
            ratios.push((beside.as_secs_f64() / alone.as_secs_f64(), done));
            let (ratio, failed) = (ratios[round].0, orders.failed.load(Ordering::SeqCst));
            println!("round {round}: {ratio:.3} times the CPU time, {done} hostile batches meanwhile, {failed} failed");
            if done >= 5 && ratios[round].0 <= DEARER {
                return;
            }
        }
        panic!("a row cost so much more beside hostile plugins: {ratios:?}");
    });
}
