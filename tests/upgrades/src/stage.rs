//! Queries that have run some batches over the base edition.

use crate::corpus::aged;
use anyhow::{Context, Result, anyhow};
use arrow::datatypes::{DataType, Field, Schema};
use millstream_common::{Options, OutputMode, StopSignal, Trigger, describe_chain};
use millstream_runtime::inspect::CheckpointPlace;
use millstream_runtime::verdict::{VerdictReport, VerdictRequest, check_component};
use millstream_runtime::{PluginSpec, QueryRun, QuerySpec, Settings, StateLimits, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_wasm::{FaultPolicy, PluginLimits};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use streaming_stories::{World, component, unit};

/// Batches that each query has run.
const BATCHES: i64 = 4;
/// Rows of each batch.
const ROWS: i64 = 200;

/// A query of the corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Query {
    /// Scalar functions in the key and in an argument of a built-in aggregation.
    Totals,
    /// A table function.
    Parts,
    /// An aggregate function.
    Tally,
    /// A processor.
    Sums,
    /// As `Totals`, over a component that was built for the interface before.
    Aged,
}

impl Query {
    const ALL: [Self; 5] = [Self::Totals, Self::Parts, Self::Tally, Self::Sums, Self::Aged];

    fn sql(self) -> &'static str {
        match self {
            Self::Sums => "SELECT * FROM totals(TABLE(orders) PARTITION BY k)",
            Self::Totals | Self::Aged => {
                "SELECT label(k) AS label, sum(price(v)) AS total, count(*) AS n FROM orders GROUP BY label(k)"
            }
            Self::Tally => "SELECT k, tally(v) AS total FROM orders GROUP BY k",
            Self::Parts => "SELECT p.word, p.place, v FROM orders LATERAL VIEW parts(k) p AS word, place",
        }
    }
}

/// The queries, each with a checkpoint of its own.
pub struct Stage {
    worlds: Vec<(Query, World, QuerySpec)>,
}

impl Stage {
    /// Runs the queries.
    ///
    /// # Errors
    /// When a component does not compile, or a query fails.
    pub fn new() -> Result<Self> {
        let mut worlds = Vec::new();
        for query in Query::ALL {
            let world = World::new()?;
            let fields = vec![Field::new("k", DataType::Utf8, true), Field::new("v", DataType::Int64, true)];
            let stream = world.streams.create("orders", Arc::new(Schema::new(fields)));
            let base = match query {
                Query::Tally => component("tally_one")?,
                Query::Sums => component("processors")?,
                Query::Totals | Query::Parts => component("upgrade")?,
                Query::Aged => aged(&component("upgrade")?),
            };
            let spec = spec(query, base);
            let run = QueryRun::open(&world.session, spec.clone(), StopSignal::new());
            let mut run = run.map_err(|error| anyhow!(describe_chain(&error)))?;
            for batch in 0..BATCHES {
                let row = |row: i64| {
                    // Some numbers are unlucky to the processor.
                    let (first, keys) = if query == Query::Sums { (1000, 1) } else { (0, 2) };
                    let key = format!("Key {} of {}", row % 7, batch % keys);
                    vec![Some(key), Some((first + batch * ROWS + row).to_string())]
                };
                let rows: Vec<Vec<Option<String>>> = (0..ROWS).map(row).collect();
                stream.add_data(unit(stream.schema(), &rows)?)?;
                run.run_next().map_err(|error| anyhow!(describe_chain(&error)))?.context("there are rows")?;
            }
            run.close();
            worlds.push((query, world, spec));
        }
        Ok(Self { worlds })
    }

    /// The verdict on a component in a query, over all batches.
    ///
    /// # Errors
    /// When there is none.
    pub fn verdict(&self, query: Query, component: &[u8]) -> Result<VerdictReport> {
        let found = self.worlds.iter().find(|(known, ..)| *known == query);
        let (_, world, spec) = found.context("there is no such query")?;
        let place = CheckpointPlace::of_query(spec.clone())?;
        // What is migrated must have been there before the batches that are run again.
        let migrates = matches!(query, Query::Tally | Query::Sums);
        let batches = if migrates { BATCHES / 2 } else { BATCHES };
        let request = VerdictRequest { plugin: None, batches: batches as u64 };
        check_component(&world.session, &place, &request, component).map_err(|error| anyhow!(describe_chain(&error)))
    }
}

fn spec(query: Query, component: Vec<u8>) -> QuerySpec {
    let source = SourceSpec { name: "orders".into(), format: "memory".into(), schema: None, options: Options::new() };
    let limits = PluginLimits { deadline: Duration::from_millis(300), ..PluginLimits::default() };
    QuerySpec {
        name: Some("upgraded".into()),
        streams: vec![StreamSpec { source, event_time: None, drop_duplicates: None }],
        tables: Vec::new(),
        plugins: vec![PluginSpec { name: "shop".into(), component, limits, on_fault: FaultPolicy::Fail }],
        query: query.sql().into(),
        mode: if query == Query::Parts { OutputMode::Append } else { OutputMode::Update },
        trigger: Trigger::Default,
        sink: SinkSpec { format: "recorder".into(), options: Options::new() },
        checkpoint: Some("checkpoint".into()),
        checkpoint_options: Vec::new(),
        settings: Settings { partitions: 2, ..Settings::default() },
        uids: BTreeMap::new(),
        state: StateLimits::default(),
        late_rows: None,
    }
}
