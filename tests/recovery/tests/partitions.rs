//! State spread over another number of partitions, and state read: refusals, retention, entries of an older release.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::util::display::array_value_to_string;
use millstream_checkpoint::LeaseHolder;
use millstream_checkpoint::faulty::Moment;
use millstream_common::{BatchId, Clock, Hint, Options, OutputMode, RunId, StopSignal};
use millstream_runtime::inspect::{CheckpointPlace, StateRequest, StateTable, checkpoint, state, verify};
use millstream_runtime::repartition::{Repartitioned, repartition};
use millstream_runtime::{QueryRun, QuerySpec, RuntimeError, Settings, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use millstream_source::connectors::memory::MemoryStream;
use std::sync::Arc;
use streaming_stories::{World, unit};

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8, true)]))
}

fn spec(sql: &str) -> QuerySpec {
    let options = Options::new().with("maxBatchesPerTrigger", "1");
    let source = SourceSpec { name: "s".into(), format: "memory".into(), schema: None, options };
    QuerySpec {
        name: Some("partitions".into()),
        mode: OutputMode::Update,
        checkpoint: Some("checkpoint".into()),
        settings: Settings { partitions: 2, batches_retained: 10, ..Settings::default() },
        ..QuerySpec::new(
            sql,
            vec![StreamSpec { source, event_time: None, drop_duplicates: None }],
            SinkSpec { format: "recorder".into(), options: Options::new() },
        )
    }
}

const COUNT: &str = "SELECT k, count(*) AS n FROM s GROUP BY k";

fn world() -> (World, MemoryStream) {
    let world = World::new().unwrap();
    let stream = world.streams.create("s", schema());
    (world, stream)
}

fn add(stream: &MemoryStream, keys: &[&str]) {
    let rows: Vec<_> = keys.iter().map(|key| vec![Some((*key).to_owned())]).collect();
    stream.add_data(unit(&schema(), &rows).unwrap()).unwrap();
}

/// Runs every batch that there is.
fn catch_up(world: &World, spec: &QuerySpec) {
    let mut run = QueryRun::open(&world.session, spec.clone(), StopSignal::new()).unwrap();
    while run.run_next().unwrap().is_some() {}
    run.close();
}

fn place(query: Option<QuerySpec>) -> CheckpointPlace {
    CheckpointPlace { place: "checkpoint".into(), options: Vec::new(), query }
}

fn spread(world: &World, partitions: u32) -> Result<Repartitioned, RuntimeError> {
    let done = repartition(&world.session, &place(None), partitions);
    if let Ok(Repartitioned { batch: Some(batch), .. }) = &done {
        world.recorder.skip(*batch);
    }
    done
}

fn read(world: &World, request: &StateRequest) -> Result<Vec<StateTable>, RuntimeError> {
    state(&world.session, &place(None), request)
}

/// The rows of a table as text.
fn texts(table: &StateTable) -> Vec<String> {
    let (_, batches) = table.flat();
    let text = |batch: &arrow::array::RecordBatch, row| {
        let cells = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
        cells.collect::<Vec<_>>().join(" ")
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| text(batch, row))).collect()
}

fn rows_after(world: &World, batch: u64) -> Vec<String> {
    let tables = read(world, &StateRequest { batch: Some(batch), ..StateRequest::default() }).unwrap();
    let mut rows = tables.iter().flat_map(texts).collect::<Vec<_>>();
    rows.sort();
    rows
}

fn keys_of(rows: &[String]) -> Vec<String> {
    rows.iter().map(|row| row.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

#[test]
fn state_goes_from_two_to_five_to_one_and_every_batch_stays_readable() {
    let (world, stream) = world();
    let spec = spec(COUNT);
    add(&stream, &["a", "b", "c", "d", "e"]);
    catch_up(&world, &spec);
    let before = rows_after(&world, 0);
    let done = spread(&world, 5).unwrap();
    assert_eq!((done.batch, done.from, done.to, done.operators[0].keys), (Some(1), 2, 5, 5));
    assert_eq!(keys_of(&rows_after(&world, 1)), keys_of(&before));
    add(&stream, &["a", "f"]);
    catch_up(&world, &spec);
    assert_eq!(world.recorder.batches()[&2].len(), 2);
    assert_eq!(spread(&world, 1).unwrap().batch, Some(3));
    add(&stream, &["a"]);
    catch_up(&world, &spec);
    assert_eq!(world.recorder.batches()[&4], ["a | 3"]);
    assert_eq!(rows_after(&world, 0), before);
    let partitions =
        |batch| rows_after(&world, batch).iter().map(|row| row.rsplit(' ').next().unwrap().to_owned()).max();
    assert_eq!((partitions(0).unwrap(), partitions(4).unwrap()), ("1".into(), "0".into()));
    assert!(partitions(2).unwrap().as_str() > "1");
    let report = verify(&world.session, &place(None)).unwrap();
    assert!(report.findings.is_empty() && report.stores == 5, "{report:?}");
    let summary = checkpoint(&world.session, &place(None), true).unwrap();
    assert_eq!((summary.state[0].partitions, summary.state[0].keys), (1, Some(6)));
}

#[test]
fn the_same_number_again_changes_nothing() {
    let (world, stream) = world();
    add(&stream, &["a"]);
    catch_up(&world, &spec(COUNT));
    let done = spread(&world, 2).unwrap();
    assert_eq!((done.batch, done.operators), (None, Vec::new()));
    assert!(!world.is_defined(1).unwrap());
}

#[test]
fn a_global_operator_keeps_its_one_partition() {
    let (world, stream) = world();
    let spec = spec("SELECT count(*) AS n, sum(c) AS s FROM (SELECT k, 1 AS c FROM s)");
    add(&stream, &["a", "b"]);
    catch_up(&world, &spec);
    let done = spread(&world, 4).unwrap();
    assert_eq!((done.operators[0].from, done.operators[0].to), (1, 1));
    add(&stream, &["c"]);
    catch_up(&world, &spec);
    assert_eq!(world.recorder.batches()[&2], ["3 | 3"]);
}

#[test]
fn what_cannot_be_spread_is_refused_and_the_checkpoint_is_free_afterwards() {
    let (world, stream) = world();
    let refused = |partitions| {
        let error = spread(&world, partitions).unwrap_err();
        assert!(error.hint().is_some() || matches!(error, RuntimeError::Setting(_)), "{error:?}");
        error.to_string()
    };
    assert!(refused(5).contains("there is no checkpoint"));
    let mut run = QueryRun::open(&world.session, spec(COUNT), StopSignal::new()).unwrap();
    assert!(refused(5).contains("is in use by"));
    run.close();
    assert!(refused(5).contains("no batch is done"));
    assert!(refused(0).contains("a number from 1 to 1024"));

    // A batch that is defined and not done.
    run =
        QueryRun::open(&world.session, spec("SELECT k, sum(CAST(k AS INT)) AS n FROM s GROUP BY k"), StopSignal::new())
            .unwrap();
    add(&stream, &["1"]);
    run.run_next().unwrap().unwrap();
    add(&stream, &["x"]);
    run.run_next().unwrap_err();
    run.close();
    assert!(refused(5).contains("batch 1 is defined and not done"));
    let checkpoint = world.checkpoint().unwrap().unwrap();
    let holder = LeaseHolder::this_process(RunId(Default::default()));
    checkpoint.lease(holder, world.clock.now_ms()).unwrap().release().unwrap();
}

#[test]
fn a_repartition_that_died_between_its_entries_is_ended_by_the_next_start() {
    for by_command in [false, true] {
        let (world, stream) = world();
        add(&stream, &["a", "b", "c"]);
        catch_up(&world, &spec(COUNT));
        // The lease, five or fewer files of state, then the two entries.
        let mut write = 2;
        loop {
            world.crash_at(write, Moment::Before);
            let error = spread(&world, 5).unwrap_err();
            assert!(world.crashed(), "{error}");
            let history = world.history();
            world.revive();
            if history.last().unwrap().contains("commits/1") {
                break;
            }
            write += 1;
        }
        let shown = checkpoint(&world.session, &place(None), false).unwrap();
        assert!(shown.next.contains("spreads the state over 5 partitions and is not done"), "{}", shown.next);
        millstream_runtime::inspect::check(&world.session, &QuerySpec { sink: noop(), ..spec(COUNT) }).unwrap();
        world.recorder.skip(1);
        if by_command {
            assert_eq!(spread(&world, 5).unwrap().batch, None);
        }
        add(&stream, &["a"]);
        catch_up(&world, &spec(COUNT));
        assert_eq!(world.recorder.batches()[&2], ["a | 2"]);
        let report = verify(&world.session, &place(None)).unwrap();
        assert!(report.findings.is_empty(), "{report:?}");
    }
}

fn noop() -> SinkSpec {
    SinkSpec { format: "noop".into(), options: Options::new() }
}

#[test]
fn files_of_former_partitions_go_when_no_batch_needs_them() {
    let (world, stream) = world();
    let spec = QuerySpec { settings: Settings { partitions: 4, ..spec(COUNT).settings }, ..spec(COUNT) };
    let keys: Vec<String> = (0..20).map(|key| format!("k{key}")).collect();
    add(&stream, &keys.iter().map(String::as_str).collect::<Vec<_>>());
    catch_up(&world, &spec);
    spread(&world, 1).unwrap();
    let files = world.checkpoint_files();
    let of = |partition: u32| files.list(&format!("state/query-aggregate/{partition}")).unwrap().len();
    assert!((0..4).all(|partition| of(partition) > 0));
    for batch in 0..40 {
        add(&stream, &[&format!("n{batch}")]);
        catch_up(&world, &spec);
    }
    assert_eq!((1..4).map(of).collect::<Vec<_>>(), [0, 0, 0]);
    assert!(of(0) > 0);
    assert!(verify(&world.session, &place(None)).unwrap().findings.is_empty());
}

/// Makes the entries of the offset log those of the first format version.
fn as_old_release(world: &World) {
    let files = world.checkpoint_files();
    for name in files.list("offsets").unwrap() {
        let path = format!("offsets/{name}");
        let text = String::from_utf8(files.get(&path).unwrap().to_vec()).unwrap();
        let (_, json) = text.split_once('\n').unwrap();
        let mut entry: serde_json::Value = serde_json::from_str(json).unwrap();
        let fields = entry.as_object_mut().unwrap();
        for added in ["connectors", "output_mode", "repartition"] {
            fields.remove(added).unwrap();
        }
        for pin in fields["state_schemas"].as_object_mut().unwrap().values_mut() {
            pin.as_object_mut().unwrap().remove("families").unwrap();
        }
        let body = entry.to_string();
        let head = format!("millstream offset-log 1 crc32={:08x}\n", crc32fast::hash(body.as_bytes()));
        files.put_over(&path, (head + &body).into()).unwrap();
    }
}

#[test]
fn a_checkpoint_of_an_older_release_goes_on_and_is_read_with_the_help_of_its_query() {
    let (world, stream) = world();
    let query = spec(COUNT);
    add(&stream, &["a", "b"]);
    catch_up(&world, &query);
    let before = rows_after(&world, 0);
    as_old_release(&world);
    for error in [read(&world, &StateRequest::default()).unwrap_err(), spread(&world, 5).unwrap_err()] {
        assert!(error.to_string().contains("an older release wrote it"), "{error}");
        assert!(error.hint().unwrap().contains("query file"));
    }
    let with_query = place(Some(QuerySpec { sink: noop(), ..query.clone() }));
    let tables = state(&world.session, &with_query, &StateRequest::default()).unwrap();
    let mut rows = texts(&tables[0]);
    rows.sort();
    assert_eq!(rows, before);
    let other = place(Some(QuerySpec { sink: noop(), ..spec("SELECT k, max(k) AS m FROM s GROUP BY k") }));
    let error = state(&world.session, &other, &StateRequest::default()).unwrap_err();
    assert!(matches!(error, RuntimeError::Changed { .. }), "{error:?}");
    assert!(error.to_string().contains("(key: s.k Utf8 | value: count("), "{error}");
    let done = repartition(&world.session, &with_query, 3).unwrap();
    assert_eq!(done.batch, Some(1));
    world.recorder.skip(1);
    add(&stream, &["a"]);
    catch_up(&world, &query);
    assert_eq!(world.recorder.batches()[&2], ["a | 2"]);
    let entry = world.checkpoint().unwrap().unwrap().offset_log().get(BatchId(1)).unwrap().unwrap();
    assert!(entry.state_schemas["query-aggregate"].families.is_array());
}
