//! Canaries, held against a model that knows which key runs which code in which batch: through restarts after every batch, a
//! crash before and after every durable write, and several numbers of partitions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::row::{RowConverter, SortField};
use millstream_checkpoint::faulty::Moment;
use millstream_common::{Digest, Options, OutputMode, StopSignal};
use millstream_runtime::inspect::{CheckpointPlace, checkpoint, history};
use millstream_runtime::replay::replay;
use millstream_runtime::{CanaryTerms, PluginSpec, Progress, QueryRun, QuerySpec, Settings, StreamSpec, SwapGrounds};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_wasm::{FaultPolicy, PluginLimits, Slice, WHOLE};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use streaming_stories::{World, component};

const ROWS: i64 = 10;
const BATCHES: u64 = 8;
/// The first batch of every canary.
const BEGINS: u64 = 3;
/// So much CPU time that no noise reaches it, in percent of the running code's.
const ANY_COST: u32 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Query {
    Scalar,
    Aggregate,
    Processor,
}

/// A component with another edition's name in its data.
fn edition(file: &str, name: &str) -> Vec<u8> {
    const MARK: &[u8] = b"upgrade-edition:";
    let mut bytes = component(file).unwrap();
    let at = bytes.windows(MARK.len()).position(|window| window == MARK).unwrap();
    let place = &mut bytes[at + MARK.len()..at + MARK.len() + 24];
    place.fill(b'.');
    place[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

impl Query {
    fn sql(self) -> &'static str {
        match self {
            Self::Scalar => "SELECT value, price(value % 50) AS price FROM numbers",
            Self::Aggregate => "SELECT value % 20 AS k, tally(value) AS total FROM numbers GROUP BY value % 20",
            Self::Processor => {
                "SELECT k, total FROM totals(TABLE(SELECT CAST(value % 20 AS STRING) AS k, value + 100 AS v FROM numbers)
                 PARTITION BY k) AS t"
            }
        }
    }

    fn base(self) -> Vec<u8> {
        match self {
            Self::Scalar => component("upgrade").unwrap(),
            Self::Aggregate => component("tally_one").unwrap(),
            Self::Processor => component("processors").unwrap(),
        }
    }

    /// A candidate that answers otherwise.
    fn other(self) -> Vec<u8> {
        match self {
            Self::Scalar => edition("upgrade", "doubles"),
            Self::Aggregate => edition("tally_one", "lies"),
            Self::Processor => component("totals_tenfold").unwrap(),
        }
    }

    /// The key by which a row is of a slice or not.
    fn key(self, value: i64) -> ArrayRef {
        match self {
            Self::Scalar => Arc::new(Int64Array::from(vec![value % 50])),
            Self::Aggregate => Arc::new(Int64Array::from(vec![value % 20])),
            Self::Processor => Arc::new(StringArray::from(vec![(value % 20).to_string()])),
        }
    }

    fn is_in(self, slice: Slice, value: i64) -> bool {
        let key = self.key(value);
        let converter = RowConverter::new(vec![SortField::new(key.data_type().clone())]).unwrap();
        slice.has(converter.convert_columns(&[key]).unwrap().row(0).data())
    }

    fn spec(self, partitions: u32) -> QuerySpec {
        let options = Options::new().with("rowsPerBatch", ROWS.to_string()).with("numPartitions", "1");
        let source = SourceSpec { name: "numbers".into(), format: "rate-micro-batch".into(), schema: None, options };
        let plugin = PluginSpec {
            name: "code".into(),
            component: self.base(),
            limits: PluginLimits { deadline: Duration::from_secs(20), ..PluginLimits::default() },
            on_fault: FaultPolicy::Fail,
        };
        let mode = if self == Self::Scalar { OutputMode::Append } else { OutputMode::Update };
        let sink = SinkSpec { format: "recorder".into(), options: Options::new() };
        QuerySpec {
            plugins: vec![plugin],
            mode,
            checkpoint: Some("checkpoint".into()),
            // The thread that writes snapshots would make the order of writes vary.
            settings: Settings { partitions, changelogs_before_snapshot: usize::MAX, ..Settings::default() },
            ..QuerySpec::new(self.sql(), vec![StreamSpec { source, event_time: None, drop_duplicates: None }], sink)
        }
    }

    /// The rows of every batch, when `is_other` says which batches and values run in the other code.
    fn rows(self, is_other: impl Fn(u64, i64) -> bool) -> BTreeMap<u64, Vec<String>> {
        let mut totals: BTreeMap<i64, i64> = BTreeMap::new();
        let of_batch = |batch: u64| {
            let values = batch as i64 * ROWS..(batch as i64 + 1) * ROWS;
            let mut rows = BTreeMap::new();
            for value in values {
                let other = is_other(batch, value);
                let key = value % 20;
                let (key, shown) = match self {
                    Self::Scalar => {
                        let price = value % 50 + value % 50 / 10;
                        (value, if other { 2 * price } else { price })
                    }
                    Self::Aggregate => {
                        let total = totals.entry(key).or_default();
                        *total += if other { value * value } else { value };
                        (key, *total)
                    }
                    Self::Processor => {
                        let total = totals.entry(key).or_default();
                        *total += value + 100;
                        (key, if other { 10 * *total } else { *total })
                    }
                };
                rows.insert(key, format!("{key} | {shown}"));
            }
            let mut rows: Vec<String> = rows.into_values().collect();
            rows.sort();
            (batch, rows)
        };
        (0..BATCHES).map(of_batch).collect()
    }
}

/// What is tried.
struct Trial {
    query: Query,
    partitions: u32,
    candidate: Vec<u8>,
    terms: CanaryTerms,
    /// Whether a new run begins after every batch, in turns after an orderly end and after none.
    restarts: bool,
}

impl Trial {
    fn of(query: Query, candidate: Vec<u8>, terms: CanaryTerms) -> Self {
        Self { query, partitions: 2, candidate, terms, restarts: false }
    }

    /// Drives the query to its end through whatever the world does to it; answers with what it told.
    fn drive(&self, world: &World) -> Vec<Progress> {
        let mut told = Vec::new();
        for _ in 0..200 {
            match self.life(world, &mut told) {
                Ok(true) => return told,
                Ok(false) => world.pass_lease(),
                Err(error) if !world.crashed() => panic!("{error}"),
                Err(_) => world.revive(),
            }
        }
        panic!("it dies again and again");
    }

    fn life(&self, world: &World, told: &mut Vec<Progress>) -> Result<bool, String> {
        let text = |error: millstream_runtime::RuntimeError| millstream_common::describe_chain(&error);
        let spec = self.query.spec(self.partitions);
        let mut run = QueryRun::open(&world.session, spec, StopSignal::new()).map_err(text)?;
        let orderly = told.len().is_multiple_of(2);
        while run.next_batch().0 < BATCHES {
            world.clock.advance(Duration::from_secs(1));
            let swaps = world.checkpoint().unwrap().unwrap().swap_log().all().map_err(|error| error.to_string())?;
            let has_begun = swaps.iter().any(|entry| !entry.canaries.is_empty());
            let mut answer = None;
            if run.next_batch().0 >= BEGINS && !run.has_unfinished() && !has_begun {
                let grounds = SwapGrounds::unasked("swap");
                let asked = run.canary("code", self.candidate.clone(), grounds, self.terms.clone());
                answer = Some(asked.map_err(text)?);
            }
            told.extend(run.run_next().map_err(text)?);
            if let Some(answer) = answer {
                answer
                    .try_recv()
                    .unwrap()
                    .map_err(|reason| if world.crashed() { reason } else { panic!("{reason}") })?;
            }
            if self.restarts {
                if orderly {
                    run.close();
                }
                return Ok(false);
            }
        }
        run.close();
        Ok(true)
    }

    fn slice(&self) -> Slice {
        Slice::new(Digest::of(&self.candidate), self.terms.share)
    }

    /// What comes out when the candidate has its slice from the first batch of the canary to the last before `ends`, and then
    /// all keys or none.
    fn expected(&self, ends: u64, is_promoted: bool) -> BTreeMap<u64, Vec<String>> {
        let slice = self.slice();
        self.query.rows(|batch, value| match batch {
            ..BEGINS => false,
            batch if batch < ends => self.query.is_in(slice, value),
            _ => is_promoted,
        })
    }

    fn outcome(&self, world: &World) -> (String, String) {
        let place = CheckpointPlace::of_query(self.query.spec(self.partitions)).unwrap();
        let canaries = history(&world.session, &place).unwrap().remove(0).canaries;
        assert_eq!(canaries.len(), 1, "{canaries:?}");
        (canaries[0].outcome.clone(), canaries[0].why.clone().unwrap_or_default())
    }

    fn replays(&self, world: &World) {
        for batch in 0..BATCHES {
            let again = replay(&world.session, &self.query.spec(self.partitions), batch, None).unwrap();
            assert!(again.is_same && again.output.was.is_some(), "{again:?}");
        }
    }

    /// With a crash before and after every durable write the same comes out.
    fn crashes_everywhere(&self, expected: &BTreeMap<u64, Vec<String>>) {
        let world = World::new().unwrap();
        self.drive(&world);
        let writes = world.history().len();
        assert!(writes > 20, "{writes}");
        for write in 1..=writes {
            for moment in [Moment::Before, Moment::After] {
                let world = World::new().unwrap();
                world.crash_at(write, moment);
                self.drive(&world);
                assert_eq!(&sorted(&world), expected, "crash {moment:?} write {write}");
            }
        }
    }
}

fn sorted(world: &World) -> BTreeMap<u64, Vec<String>> {
    let mut batches = world.recorder.batches();
    batches.values_mut().for_each(|rows| rows.sort());
    batches
}

fn terms(share: u32) -> CanaryTerms {
    CanaryTerms { share, batches: 3, expect_same: false, cost_percent: ANY_COST }
}

#[test]
fn a_canary_computes_its_slice_and_then_all_keys_whatever_the_partitions() {
    for query in [Query::Scalar, Query::Aggregate, Query::Processor] {
        for partitions in [1, 2, 5] {
            let trial = Trial { partitions, ..Trial::of(query, query.other(), terms(6_000)) };
            let world = World::new().unwrap();
            let told = trial.drive(&world);
            let expected = trial.expected(BEGINS + 3, true);
            assert_eq!(sorted(&world), expected, "{query:?}, {partitions} partitions");
            let of_code = |batch: u64| told[batch as usize].plugins[0].clone();
            let canary = of_code(BEGINS + 1).canary.unwrap();
            assert_eq!((canary.batches, canary.of_batches, canary.first_batch), (2, 3, BEGINS));
            assert!(canary.rows > 0 && canary.rows < 20 && canary.differing > 0, "{canary:?}");
            assert_eq!(canary.candidate, Digest::of(&trial.candidate).to_string());
            assert!(of_code(BEGINS - 1).canary.is_none() && of_code(BEGINS + 3).canary.is_none());
            assert_eq!(of_code(BEGINS + 3).digest, Digest::of(&trial.candidate).to_string());
            let (outcome, why) = trial.outcome(&world);
            assert_eq!(outcome, "promoted");
            assert!(why.contains("answers came out otherwise, such as "), "{why}");
            trial.replays(&world);
        }
    }
}

#[test]
fn a_restart_after_every_batch_changes_nothing() {
    for query in [Query::Scalar, Query::Aggregate, Query::Processor] {
        let trial = Trial { restarts: true, ..Trial::of(query, query.other(), terms(6_000)) };
        let world = World::new().unwrap();
        trial.drive(&world);
        assert_eq!(sorted(&world), trial.expected(BEGINS + 3, true), "{query:?}");
        assert_eq!(trial.outcome(&world).0, "promoted");
    }
}

#[test]
fn a_crash_at_any_durable_write_changes_nothing() {
    let trial = Trial::of(Query::Aggregate, Query::Aggregate.other(), terms(6_000));
    trial.crashes_everywhere(&trial.expected(BEGINS + 3, true));
}

#[test]
fn a_candidate_that_fails_is_given_up_and_its_batch_is_that_of_the_running_code() {
    let candidate = edition("upgrade", "traps-on-an-old-value");
    let trial = Trial::of(Query::Scalar, candidate, CanaryTerms { batches: 50, ..terms(WHOLE) });
    let world = World::new().unwrap();
    let told = trial.drive(&world);
    // Value 57 is the seventh of the fifties; it is in batch 5.
    let expected = trial.query.rows(|_, _| false);
    assert_eq!(sorted(&world), expected);
    let plugin = told[5].plugins[0].clone();
    let failed = plugin.canary.unwrap().failed.unwrap();
    assert!(failed.contains("no price for 7"), "{failed}");
    assert_eq!((plugin.rows, plugin.faults), (10, 0), "the batch is told of once");
    let after = &told[6].plugins[0];
    assert!(after.canary.is_none());
    assert!(after.swap_refused.as_ref().unwrap().contains("no price for 7"), "{after:?}");
    let (outcome, why) = trial.outcome(&world);
    assert_eq!(outcome, "rolled back");
    assert!(why.contains("no price for 7") && why.contains("20 rows in 2 batches"), "{why}");
    trial.replays(&world);
    trial.crashes_everywhere(&expected);
}

#[test]
fn with_the_same_expected_nothing_else_ever_goes_out() {
    let candidate = edition("upgrade", "rounds-one-value");
    let trial = Trial::of(Query::Scalar, candidate, CanaryTerms { expect_same: true, batches: 50, ..terms(WHOLE) });
    let world = World::new().unwrap();
    trial.drive(&world);
    let expected = trial.query.rows(|_, _| false);
    assert_eq!(sorted(&world), expected);
    let (outcome, why) = trial.outcome(&world);
    assert_eq!(outcome, "rolled back");
    assert!(why.contains("differ from the running code's, such as 7 -> 10"), "{why}");
    trial.replays(&world);
    for query in [Query::Aggregate, Query::Processor] {
        let trial = Trial::of(query, query.other(), CanaryTerms { expect_same: true, ..terms(6_000) });
        let world = World::new().unwrap();
        trial.drive(&world);
        assert_eq!(sorted(&world), trial.query.rows(|_, _| false), "{query:?}");
        assert_eq!(trial.outcome(&world).0, "rolled back", "{query:?}");
    }
}

#[test]
fn a_candidate_that_costs_too_much_is_given_up() {
    let candidate = edition("upgrade", "slow");
    let trial = Trial::of(Query::Scalar, candidate, CanaryTerms { cost_percent: 300, batches: 50, ..terms(WHOLE) });
    let world = World::new().unwrap();
    trial.drive(&world);
    assert_eq!(sorted(&world), trial.query.rows(|_, _| false));
    let (outcome, why) = trial.outcome(&world);
    assert_eq!(outcome, "rolled back");
    assert!(why.contains("times the CPU time of the running code, and 3 times is the limit"), "{why}");
}

#[test]
fn a_canary_is_seen_can_be_ended_and_lets_no_other_swap_in() {
    let trial = Trial::of(Query::Aggregate, Query::Aggregate.other(), CanaryTerms { batches: 50, ..terms(6_000) });
    let world = World::new().unwrap();
    let spec = trial.query.spec(2);
    let mut run = QueryRun::open(&world.session, spec.clone(), StopSignal::new()).unwrap();
    let grounds = || SwapGrounds::unasked("swap");
    run.run_next().unwrap().unwrap();
    let begun = run.canary("code", trial.candidate.clone(), grounds(), trial.terms.clone()).unwrap();
    run.run_next().unwrap().unwrap();
    assert_eq!(begun.try_recv().unwrap().unwrap().batch.0, 1);
    let refused = run.swap("code", trial.candidate.clone(), grounds(), None).unwrap();
    run.run_next().unwrap().unwrap();
    let why = refused.try_recv().unwrap().unwrap_err();
    assert!(why.contains("has a canary"), "{why}");
    let seen = checkpoint(&world.session, &CheckpointPlace::of_query(spec.clone()).unwrap(), false).unwrap();
    let canary = seen.last.unwrap().plugins["code"].canary.clone().unwrap();
    assert_eq!((canary.share.as_str(), canary.first_batch, canary.batches, canary.of_batches), ("60 %", 1, 2, 50));
    // Orderly, and in the middle of it.
    run.close();
    let mut run = QueryRun::open(&world.session, spec.clone(), StopSignal::new()).unwrap();
    assert_eq!(run.candidate("code"), Some(Digest::of(&trial.candidate)));
    let ended = run.end_canary("code");
    run.run_next().unwrap().unwrap();
    let ended = ended.try_recv().unwrap().unwrap();
    assert_eq!((ended.batch.0, ended.to), (3, Digest::of(&trial.query.base())));
    assert_eq!(run.candidate("code"), None);
    assert_eq!(trial.outcome(&world).0, "rolled back");
    // What needs other state is no canary.
    let lost = run.canary("code", component("tally_lost").unwrap(), grounds(), trial.terms.clone()).unwrap();
    run.run_next().unwrap().unwrap();
    assert!(lost.try_recv().unwrap().unwrap_err().contains("state"), "it is refused for its state");
}

#[test]
fn an_edit_of_the_query_file_ends_a_canary() {
    let trial = Trial::of(Query::Scalar, Query::Scalar.other(), CanaryTerms { batches: 50, ..terms(WHOLE) });
    let world = World::new().unwrap();
    let mut run = QueryRun::open(&world.session, trial.query.spec(2), StopSignal::new()).unwrap();
    run.run_next().unwrap().unwrap();
    run.canary("code", trial.candidate.clone(), SwapGrounds::unasked("swap"), trial.terms.clone()).unwrap();
    run.run_next().unwrap().unwrap();
    run.close();
    let mut edited = trial.query.spec(2);
    edited.plugins[0].component = edition("upgrade", "same-by-other-means");
    let mut run = QueryRun::open(&world.session, edited, StopSignal::new()).unwrap();
    assert_eq!(run.candidate("code"), None);
    run.run_next().unwrap().unwrap();
    let (outcome, why) = trial.outcome(&world);
    assert_eq!((outcome.as_str(), why.as_str()), ("rolled back", "the query file names another component"));
}
