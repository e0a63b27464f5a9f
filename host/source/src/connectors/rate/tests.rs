use super::*;
use crate::contract::{Subject, source, text};
use crate::{Source, SourceContext, SourceFactory, SourceSpec};
use millstream_common::{ManualClock, MemoryFiles, Options, ReadLimit, StopSignal};
use std::sync::Arc;
use std::time::Duration;

fn spec(options: Options) -> SourceSpec {
    SourceSpec { name: "r".into(), format: "rate".into(), schema: None, options }
}

fn open(files: &Arc<MemoryFiles>, clock: &Arc<ManualClock>, options: Options) -> Box<dyn Source> {
    let context = SourceContext {
        files: Arc::clone(files) as _,
        clock: Arc::clone(clock) as _,
        stop: StopSignal::new(),
        default_parallelism: 1,
    };
    RateSourceFactory.open(&spec(options), context).unwrap()
}

#[test]
fn rate_keeps_the_contract() {
    let clock = Arc::new(ManualClock::at(1_000_000));
    let theirs = Arc::clone(&clock);
    source(&mut Subject {
        factory: Arc::new(RateSourceFactory),
        spec: spec(Options::new().with("rowsPerSecond", "10")),
        feed: &mut || theirs.advance(Duration::from_millis(2500)),
        clock,
        replays_after_restart: true,
    });
}

#[test]
fn values_are_dealt_to_partitions_and_times_spread_evenly() {
    let (files, clock) = (Arc::new(MemoryFiles::default()), Arc::new(ManualClock::at(0)));
    let mut source = open(&files, &clock, Options::new().with("rowsPerSecond", "4").with("numPartitions", "3"));
    clock.advance(Duration::from_secs(2));
    let end = source.latest_offset(None, ReadLimit::AllAvailable).unwrap().unwrap();
    let lists = source.read(Some(&1.into()), &end, &[0, 1]).unwrap();
    let parts: Vec<Vec<String>> = lists.into_iter().map(|list| text(&[list])).collect();
    assert_eq!(
        parts,
        [
            vec!["1970-01-01T00:00:01.750|7", "1970-01-01T00:00:01|4"],
            vec!["1970-01-01T00:00:01.250|5"],
            vec!["1970-01-01T00:00:01.500|6"],
        ]
    );
}

#[test]
fn the_ramp_begins_slowly_and_ends_at_the_full_rate() {
    let rows = |seconds| {
        let spec = spec(Options::new().with("rowsPerSecond", "8").with("rampUpTime", "3s"));
        config::RateConfig::new(&spec).unwrap().rows_until(seconds)
    };
    assert_eq!([0, 1, 2, 3, 4, 5].map(rows), [0, 2, 6, 12, 20, 28]);
    assert_eq!(rows(i64::MAX), i64::MAX);
}

#[test]
fn creation_outlives_a_restart_and_a_clock_set_back_stands_still() {
    let files = Arc::new(MemoryFiles::default());
    let clock = Arc::new(ManualClock::at(100_000));
    let mut source = open(&files, &clock, Options::new());
    assert_eq!(source.latest_offset(None, ReadLimit::AllAvailable).unwrap(), None);
    clock.advance(Duration::from_secs(5));
    let five = source.latest_offset(None, ReadLimit::AllAvailable).unwrap().unwrap();
    assert_eq!(five, 5.into());
    drop(source);
    let earlier = Arc::new(ManualClock::at(50_000));
    let mut source = open(&files, &earlier, Options::new());
    assert_eq!(source.latest_offset(Some(&five), ReadLimit::AllAvailable).unwrap(), Some(five));
    earlier.advance(Duration::from_secs(57));
    assert_eq!(source.latest_offset(None, ReadLimit::AllAvailable).unwrap(), Some(7.into()));
}

#[test]
fn a_damaged_log_and_bad_options_are_refused() {
    use millstream_common::DurableFiles;
    let files = Arc::new(MemoryFiles::default());
    files.put_new("0", "garbage".into()).unwrap();
    let context =
        SourceContext { files, clock: Arc::new(ManualClock::at(0)), stop: StopSignal::new(), default_parallelism: 1 };
    let error = RateSourceFactory.open(&spec(Options::new()), context).err().unwrap();
    assert_eq!(error.to_string(), "source `r` cannot trust `memory:/0`: its checksum does not match");
    for (name, value) in [("rowsPerSecond", "0"), ("numPartitions", "0"), ("rampUpTime", "soon"), ("rows", "1")] {
        let error = RateSourceFactory.schema(&spec(Options::new().with(name, value))).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}
