use crate::world::{World, counts, fill, json_sink, rows};
use hdfs_tests::Hdfs;
use millstream_checkpoint::LEASE_MS;
use millstream_checkpoint::faulty::{Counted, FaultyFiles, Moment};
use millstream_common::{Clock, DurableFiles, ManualClock, ScopedFiles, StopSignal};
use millstream_runtime::{QueryRun, Session};
use millstream_sink::SinkRegistry;
use millstream_sink::connectors::file::{FileFormat, FileSinkFactory};
use std::sync::Arc;
use std::time::{Duration, Instant};

const FILES: u64 = 4;
const PATIENCE: Duration = Duration::from_secs(120);

/// What there is to count: all windows but the last one are closed, at the latest by a batch without rows.
fn wanted(files: u64) -> Vec<String> {
    let window = |number: u64| {
        let start = format!("2024-01-01T00:{:02}:{:02}.000Z", number / 6, number % 6 * 10);
        ["a", "b"]
            .map(|key| format!("{{\"start\":\"{start}\",\"k\":\"{key}\",\"n\":{}}}", if key == "a" { 2 } else { 1 }))
    };
    (0..files - 1).flat_map(window).collect()
}

fn session(clock: &Arc<ManualClock>, files: &Arc<FaultyFiles>) -> Session {
    let scoped = |name: &'static str| {
        let files = Arc::clone(files);
        move || Arc::new(ScopedFiles::new(Arc::clone(&files) as _, name)) as Arc<dyn DurableFiles>
    };
    let mut sinks = SinkRegistry::with_builtins();
    let (output, checkpoint) = (scoped("out"), scoped("checkpoint"));
    let factory = FileSinkFactory::opening(Some(FileFormat::Json), Arc::new(move |_: &str| Ok(output())));
    sinks.register("json", Arc::new(factory));
    let open = move |_: &str, _: &[(String, String)]| Ok(checkpoint());
    Session::builder().clock(Arc::clone(clock) as Arc<dyn Clock>).sinks(sinks).open_checkpoint(Arc::new(open)).build()
}

/// The story of one query in a folder of its own, over input that all have in common.
struct Story {
    world: World,
    clock: Arc<ManualClock>,
    place: String,
}

impl Story {
    fn new(hdfs: &Hdfs, input: &str) -> Self {
        let place = hdfs.folder("story");
        let sink = json_sink(&format!("{place}/out"));
        let world = World::new(&counts(input, &format!("{place}/checkpoint"), &sink), "");
        Self { world, clock: Arc::new(ManualClock::at(1_700_000_000_000)), place }
    }

    /// Runs so many batches at most, or until the crash; answers the writes, and whether the input is at its end.
    fn run(&self, hdfs: &Hdfs, most: usize, crash: Option<(usize, Moment)>) -> (Vec<String>, bool) {
        self.clock.advance(Duration::from_millis(LEASE_MS as u64 + 1));
        let mut files = FaultyFiles::new(hdfs.files(&self.place).unwrap(), Counted::ALL);
        if let Some((write, moment)) = crash {
            files = files.crash_at(write, moment);
        }
        let files = Arc::new(files);
        let session = session(&self.clock, &files);
        let done = (|| {
            let mut run = QueryRun::open(&session, self.world.load().spec, StopSignal::new())?;
            let mut at_end = false;
            for _ in 0..most {
                at_end = run.run_next()?.is_none();
                if at_end {
                    break;
                }
            }
            run.close();
            Ok::<_, millstream_runtime::RuntimeError>(at_end)
        })();
        match done {
            Err(error) if !files.crashed() => panic!("{}", millstream_common::describe_chain(&error)),
            done => (files.history(), done.unwrap_or(false)),
        }
    }

    fn rows(&self, hdfs: &Hdfs) -> Vec<String> {
        rows(hdfs, &format!("{}/out", self.place))
    }
}

#[test]
fn a_windowed_count_on_hdfs_survives_restarts_after_every_batch_and_crashes() {
    let hdfs = Hdfs::shared();
    let input = hdfs.folder("input");
    fill(hdfs, &input, FILES);
    let whole = Story::new(hdfs, &input);
    let (history, at_end) = whole.run(hdfs, usize::MAX, None);
    assert!(at_end);
    assert_eq!(whole.rows(hdfs), wanted(FILES));

    let restarted = Story::new(hdfs, &input);
    let mut runs = 0;
    while !restarted.run(hdfs, 1, None).1 {
        runs += 1;
        assert!(runs < 50, "the query does not come to its end");
    }
    assert_eq!(restarted.rows(hdfs), wanted(FILES));

    // Every third write, before and after it in turns: that reaches each kind of file in different batches.
    for write in (1..=history.len()).step_by(3) {
        let moment = if write % 2 == 0 { Moment::Before } else { Moment::After };
        let crashed = Story::new(hdfs, &input);
        crashed.run(hdfs, usize::MAX, Some((write, moment)));
        assert!(crashed.run(hdfs, usize::MAX, None).1);
        assert_eq!(crashed.rows(hdfs), wanted(FILES), "{moment:?} of write {write} of {history:?}");
    }
}

#[test]
fn a_query_on_hdfs_survives_being_killed() {
    let hdfs = Hdfs::shared();
    let place = hdfs.folder("killed");
    fill(hdfs, &place, 12);
    let checkpoint = format!("{place}/checkpoint");
    let out = format!("{place}/out");
    let world = World::new(&counts(&place, &checkpoint, &json_sink(&out)), "");
    let files = hdfs.files(&checkpoint).unwrap();
    let commits = || files.list("commits").unwrap().len();
    for kill in 1..=3 {
        let mut child = world.spawn(None);
        let began = Instant::now();
        while commits() < kill * 2 && child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "the query does not get on");
            std::thread::sleep(Duration::from_millis(20));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // The lease of a process that was killed ends by itself; a person who knows that it is dead takes it away.
        files.delete("lease").unwrap();
    }
    let output = world.spawn(None).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(rows(hdfs, &out), wanted(12));
}

#[test]
fn a_second_writer_of_a_checkpoint_on_hdfs_is_kept_out_and_a_dead_ones_place_is_taken() {
    let hdfs = Hdfs::shared();
    let place = hdfs.folder("two-hosts");
    fill(hdfs, &place, FILES);
    let checkpoint = format!("{place}/checkpoint");
    let world = World::new(&counts(&place, &checkpoint, "format = \"noop\""), "");
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let session = || Session::builder().clock(Arc::clone(&clock) as Arc<dyn Clock>).build();
    let (one, other) = (session(), session());
    let mut first = QueryRun::open(&one, world.load().spec, StopSignal::new()).unwrap();
    first.run_next().unwrap().unwrap();
    let Err(error) = QueryRun::open(&other, world.load().spec, StopSignal::new()) else {
        panic!("two queries write one checkpoint")
    };
    let text = error.to_string();
    assert!(text.contains("in use by") && text.contains(&checkpoint), "{text}");

    // The first is taken for dead. What it does then is not done.
    clock.advance(Duration::from_millis(LEASE_MS as u64 + 1));
    let mut second = QueryRun::open(&other, world.load().spec, StopSignal::new()).unwrap();
    let progress = second.run_next().unwrap().unwrap();
    assert_eq!(progress.batch_id, 1);
    assert!(first.run_next().is_err(), "the first is fenced off");
    while second.run_next().unwrap().is_some() {}
}

#[test]
fn what_the_source_has_read_is_archived_on_hdfs_and_unfinished_files_are_not_read() {
    let hdfs = Hdfs::shared();
    let place = hdfs.folder("archive");
    fill(hdfs, &place, FILES);
    let input = hdfs.files(&format!("{place}/in")).unwrap();
    // What other programs write beside, until they rename it.
    input.put_new("part.json._COPYING_", "{\"k\":\"x\"}\n".into()).unwrap();
    input.put_new("_temporary/0/part.json", "{\"k\":\"x\"}\n".into()).unwrap();
    let more = format!("maxFilesPerTrigger = 1, cleanSource = \"archive\", sourceArchiveDir = \"{place}/old\"");
    let text = counts(&place, &format!("{place}/checkpoint"), &json_sink(&format!("{place}/out")));
    let world = World::new(&text.replace("maxFilesPerTrigger = 1", &more), "");
    let session = Session::new().unwrap();
    let mut run = QueryRun::open(&session, world.load().spec, StopSignal::new()).unwrap();
    while run.run_next().unwrap().is_some() {}
    run.close();
    assert_eq!(rows(hdfs, &format!("{place}/out")), wanted(FILES));
    let left = input.list("").unwrap();
    assert!(left.len() <= 2 && left.contains(&"part.json._COPYING_".to_owned()), "{left:?}");
    let old = crate::store::all_names(hdfs, &format!("{place}/old"));
    assert!(old.len() as u64 >= FILES - 1 && old.iter().all(|name| name.ends_with(".json")), "{old:?}");
}

#[test]
fn many_files_on_hdfs_are_listed_page_by_page() {
    let hdfs = Hdfs::shared();
    let place = hdfs.folder("many");
    let input = hdfs.files(&format!("{place}/in")).unwrap();
    // A page of a name node has 1000 names.
    std::thread::scope(|scope| {
        for part in 0..8 {
            let input = &input;
            scope.spawn(move || {
                for number in (0..1_200).filter(|number| number % 8 == part) {
                    let row = "{\"k\":\"a\",\"at\":\"2024-01-01T00:00:00Z\"}\n";
                    input.put_new(&format!("{number:05}.json"), row.into()).unwrap();
                }
            });
        }
    });
    let text = counts(&place, &format!("{place}/checkpoint"), "format = \"noop\"");
    let world = World::new(&text.replace("maxFilesPerTrigger = 1", "maxFilesPerTrigger = 700"), "");
    let session = Session::new().unwrap();
    let mut run = QueryRun::open(&session, world.load().spec, StopSignal::new()).unwrap();
    let rows: Vec<u64> =
        std::iter::from_fn(|| run.run_next().unwrap()).map(|progress| progress.num_input_rows).collect();
    assert_eq!(rows.iter().filter(|rows| **rows > 0).collect::<Vec<_>>(), [&700, &500]);
}
