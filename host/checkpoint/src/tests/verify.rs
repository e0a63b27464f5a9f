use super::{commit, memory, offset};
use crate::{Checkpoint, CheckpointError, PreparedEntry, verify};
use millstream_common::{BatchId, Digest, DurableFiles};
use std::sync::Arc;

/// Four batches, of which the last is not done.
fn sample() -> (Arc<dyn DurableFiles>, Digest) {
    let files = memory();
    let checkpoint = Checkpoint::create(Arc::clone(&files), Some("q"), 0).unwrap();
    let digest = Digest::of(b"component");
    checkpoint.plugins().put(&digest, "component".into()).unwrap();
    for batch in 0..4 {
        checkpoint.offset_log().add(&offset(batch, Some(digest))).unwrap();
        if batch < 3 {
            checkpoint.commit_log().add(&commit(batch)).unwrap();
        }
    }
    (files, digest)
}

fn paths(files: &Arc<dyn DurableFiles>) -> Vec<String> {
    let report = verify(files).unwrap();
    assert!(report.findings.iter().all(|finding| finding.way_out.is_some()), "{report:?}");
    report.findings.into_iter().map(|finding| finding.path).collect()
}

#[test]
fn a_whole_checkpoint_is_clean() {
    let (files, digest) = sample();
    let report = verify(&files).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!((report.offsets.len(), report.commits.len(), report.plugins), (4, 3, vec![digest]));
    assert_eq!(report.metadata.unwrap().name.as_deref(), Some("q"));
}

#[test]
fn everything_that_is_wrong_is_found_at_once() {
    let (files, digest) = sample();
    files.put_over("metadata", "".into()).unwrap();
    files.put_over("offsets/1", "millstream offset-log 9 crc32=00000000\n".into()).unwrap();
    files.put_over("commits/2", "torn".into()).unwrap();
    files.delete("commits/1").unwrap();
    files.put_new("offsets/x", "".into()).unwrap();
    files.put_new("plugins/readme", "".into()).unwrap();
    files.delete(&format!("plugins/{digest}.wasm")).unwrap();
    files.put_new("notes.txt", "".into()).unwrap();
    files.put_new("backup/metadata", "".into()).unwrap();
    files.put_new("lease", "?".into()).unwrap();
    let mut found = paths(&files);
    found.sort();
    let component = format!("plugins/{digest}.wasm");
    let mut wanted = [
        "metadata",
        "offsets/1",
        "commits/2",
        "commits/1",
        "offsets/x",
        "plugins/readme",
        &component,
        "notes.txt",
        "backup",
        "lease",
    ];
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
fn single_faults_are_named() {
    let wrong = |break_it: &dyn Fn(&Arc<dyn DurableFiles>, Digest)| {
        let (files, digest) = sample();
        break_it(&files, digest);
        paths(&files)
    };
    let component = |digest: Digest| format!("plugins/{digest}.wasm");
    let digest = Digest::of(b"component");
    assert_eq!(wrong(&|files, _| files.delete("offsets/2").unwrap()), ["offsets/2"]);
    assert_eq!(wrong(&|files, _| files.delete("commits/2").unwrap()), ["offsets"]);
    assert_eq!(wrong(&|files, digest| files.put_over(&component(digest), "x".into()).unwrap()), [component(digest)]);
    assert_eq!(wrong(&|files, _| files.delete("metadata").unwrap()), ["metadata"]);
    let ahead = |files: &Arc<dyn DurableFiles>, _| {
        Checkpoint::open(Arc::clone(files)).unwrap().commit_log().add(&commit(3)).unwrap();
        files.delete("offsets/3").unwrap();
    };
    assert_eq!(wrong(&ahead), ["commits"]);
}

#[test]
fn an_empty_folder_is_no_checkpoint_and_state_alone_is_lost_state() {
    let files = memory();
    assert_eq!(paths(&files), ["metadata"]);
    files.put_new("state/counts/0/1-w.changelog", "x".into()).unwrap();
    assert_eq!(paths(&files), ["metadata", "state"]);
    assert!(matches!(Checkpoint::open(files), Err(CheckpointError::NoMetadata { .. })));
}

#[test]
fn a_damaged_batch_does_not_hide_the_others() {
    let (files, _) = sample();
    files.put_over("offsets/3", "".into()).unwrap();
    let report = verify(&files).unwrap();
    assert_eq!(report.offsets, (0..3).map(BatchId).collect::<Vec<_>>());
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
}

#[test]
fn what_a_sink_holds_ready_is_part_of_a_checkpoint_and_read_like_everything_else() {
    let (files, _) = sample();
    let prepared = Checkpoint::open(Arc::clone(&files)).unwrap().prepared();
    let entry = |token: &str| PreparedEntry { batch: BatchId(3), sink: serde_json::json!({ "token": token }) };
    prepared.put(&entry("first attempt")).unwrap();
    prepared.put(&entry("second attempt")).unwrap();
    assert_eq!(prepared.all().unwrap(), [entry("second attempt")]);
    assert!(paths(&files).is_empty());
    files.put_over("prepared/3", "torn".into()).unwrap();
    files.put_new("prepared/x", "".into()).unwrap();
    assert_eq!(paths(&files), ["prepared/3", "prepared/x"]);
    assert!(matches!(prepared.get(BatchId(3)), Err(CheckpointError::Foreign { .. })));
    prepared.remove(BatchId(3)).unwrap();
    prepared.remove(BatchId(3)).unwrap();
    assert_eq!(prepared.get(BatchId(3)).unwrap(), None);
}
