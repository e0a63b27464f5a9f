//! The query that is swapped under, and the place it writes to.

use crate::editions::Edition;
use anyhow::Result;
use millstream_checkpoint::open_files;
use millstream_common::{Clock, DurableFiles, ManualClock, Options, SystemClock};
use millstream_plan::EventTime;
use millstream_runtime::{PluginSpec, QuerySpec, Settings, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::sync::Arc;
use std::time::Duration;
use streaming_stories::World;

/// Rows per batch of the source; the plugin makes two of each.
pub(crate) const ROWS_PER_BATCH: i64 = 50;
/// The plugin's name in the query.
pub(crate) const PLUGIN: &str = "edition";

/// The machine's time plus what a manual clock was moved by; sleeping is short, so that a dead query dies quickly.
#[derive(Debug)]
struct ImpatientClock {
    machine: SystemClock,
    moved: Arc<ManualClock>,
}

impl Clock for ImpatientClock {
    fn now_ms(&self) -> i64 {
        self.machine.now_ms() + self.moved.now_ms()
    }

    fn sleep(&self, duration: Duration) {
        self.machine.sleep(duration.min(Duration::from_millis(1)));
    }
}

/// A world in memory whose time runs.
pub(crate) fn world() -> Result<World> {
    Ok(world_on(open_files("memory:///", &[])?))
}

/// A world on a disk whose time runs.
pub(crate) fn world_on(disk: Arc<dyn DurableFiles>) -> World {
    let moved = Arc::new(ManualClock::at(0));
    let clock = ImpatientClock { machine: SystemClock::default(), moved: Arc::clone(&moved) };
    World::with_clock(disk, moved, Arc::new(clock))
}

/// The query, naming an edition.
pub(crate) fn spec(edition: &Edition) -> QuerySpec {
    let options = Options::new().with("rowsPerBatch", ROWS_PER_BATCH.to_string()).with("numPartitions", "1");
    let source = SourceSpec { name: "numbers".into(), format: "rate-micro-batch".into(), schema: None, options };
    let settings = Settings {
        // Every entry of the offset log is read in the end.
        batches_retained: 1_000_000,
        ..Settings::default()
    };
    let limits = PluginLimits { deadline: Duration::from_secs(10), ..PluginLimits::default() };
    QuerySpec {
        // A killed query is gone with its process; here its last retries may outlive it, and would hold its name.
        name: None,
        plugins: vec![PluginSpec {
            name: PLUGIN.into(),
            component: edition.bytes.clone(),
            limits,
            on_fault: FaultPolicy::Fail,
        }],
        checkpoint: Some("checkpoint".into()),
        settings,
        ..QuerySpec::new(
            "WITH seen AS (
                SELECT timestamp, version(half) AS read_by FROM numbers LATERAL VIEW halves(value) h AS half
              ), counted AS (
                SELECT window(timestamp, '1 second') AS w, read_by, count(*) AS n
                FROM seen GROUP BY window(timestamp, '1 second'), read_by
              )
              SELECT unix_seconds(w.start) AS second, read_by, n, version(n) AS written_by FROM counted",
            vec![StreamSpec {
                source,
                event_time: Some(EventTime { column: "timestamp".into(), delay_us: 0 }),
                drop_duplicates: None,
            }],
            SinkSpec { format: "json".into(), options: Options::new().with("path", "output") },
        )
    }
}
