//! Tables of Delta Lake.

use hdfs_tests::Hdfs;
use millstream_common::{ManualClock, MemoryFiles, Options, StopSignal};
use millstream_runtime::{QueryRun, QuerySpec, Session, Settings, StreamSpec};
use millstream_sink::SinkSpec;
use millstream_source::contract::lines;
use millstream_source::{Offset, Source, SourceContext, SourceRegistry, SourceSettings, SourceSpec};
use std::sync::Arc;

const ROWS: u64 = 6;

/// A query over `numbers` whose checkpoint and table lie on HDFS, until so many batches are done.
fn run(checkpoint: &str, table: &str, batches: u64) {
    let rows = Options::new().with("rowsPerBatch", ROWS.to_string());
    let source = SourceSpec { name: "numbers".into(), format: "rate-micro-batch".into(), schema: None, options: rows };
    let options = Options::new().with("path", table).with("partitionBy", "k").with("compactAfterFiles", "3");
    let options = options.with("checkpointInterval", "3").with("dfs.replication", "1");
    let sink = SinkSpec { format: "delta".into(), options };
    let spec = QuerySpec {
        checkpoint: Some(checkpoint.to_owned()),
        settings: Settings { partitions: 2, ..Settings::default() },
        ..QuerySpec::new(
            "SELECT value, CAST(value % 3 AS STRING) AS k FROM numbers",
            vec![StreamSpec { source, event_time: None, drop_duplicates: None }],
            sink,
        )
    };
    let mut run = QueryRun::open(&Session::new().unwrap(), spec, StopSignal::new()).unwrap();
    while run.next_batch().0 < batches {
        run.run_next().unwrap().unwrap();
    }
    run.close();
}

fn open(table: &str) -> Box<dyn Source> {
    let registry = SourceRegistry::with_builtins().with_settings(&SourceSettings::default());
    let options = Options::new().with("path", table);
    let spec = SourceSpec { name: "t".into(), format: "delta".into(), schema: None, options };
    let context = SourceContext {
        files: Arc::new(MemoryFiles::default()),
        clock: Arc::new(ManualClock::at(0)),
        stop: StopSignal::new(),
        default_parallelism: 2,
    };
    registry.factory(&spec).unwrap().open(&spec, context).unwrap()
}

/// The values that are new.
fn next(source: &mut dyn Source, at: &mut Option<Offset>) -> Vec<u64> {
    let end = source.latest_offset(at.as_ref(), source.read_limit()).unwrap();
    let Some(end) = end.filter(|end| Some(end) != at.as_ref()) else { return Vec::new() };
    let value = source.schema().index_of("value").unwrap();
    let rows = source.read(at.as_ref(), &end, &[value]).unwrap();
    let mut rows: Vec<u64> = rows.iter().flatten().flat_map(lines).map(|line| line.parse().unwrap()).collect();
    rows.sort_unstable();
    *at = Some(end);
    rows
}

fn values(batches: std::ops::Range<u64>) -> Vec<u64> {
    (batches.start * ROWS..batches.end * ROWS).collect()
}

#[test]
fn a_delta_table_on_hdfs_is_written_and_read_while_small_files_are_put_together() {
    let hdfs = Hdfs::shared();
    let place = hdfs.folder("lake");
    let (checkpoint, table) = (format!("{place}/checkpoint"), format!("{place}/table"));
    run(&checkpoint, &table, 2);
    let mut source = open(&table);
    let mut at = None;
    assert_eq!(next(source.as_mut(), &mut at), values(0..2));
    // Every start goes on where the one before has ended.
    for batches in 3..=5 {
        run(&checkpoint, &table, batches);
    }
    assert_eq!(next(source.as_mut(), &mut at), values(2..5));
    assert_eq!(next(open(&table).as_mut(), &mut None), values(0..5));
    let log = hdfs.files(&format!("{table}/_delta_log")).unwrap().list("").unwrap();
    assert!(log.iter().any(|name| name.ends_with(".checkpoint.parquet")), "{log:?}");
    assert!(log.iter().all(|name| !name.starts_with('.')), "{log:?}");
}
