use super::{commit, local, memory, offset};
use crate::{Checkpoint, CheckpointError, ResumePoint};
use bytes::Bytes;
use millstream_common::{BatchId, Digest, DurableFiles, Hint, OperatorUid};
use std::sync::Arc;

fn new(files: &Arc<dyn DurableFiles>) -> Checkpoint {
    Checkpoint::create(Arc::clone(files), Some("clicks"), 7).unwrap()
}

fn run_batches(checkpoint: &Checkpoint, batches: std::ops::Range<u64>) {
    for batch in batches {
        checkpoint.offset_log().add(&offset(batch, None)).unwrap();
        checkpoint.commit_log().add(&commit(batch)).unwrap();
    }
}

#[test]
fn a_checkpoint_keeps_its_identity() {
    let (_folder, files) = local();
    let absent = Checkpoint::open(Arc::clone(&files)).unwrap_err();
    assert!(matches!(absent, CheckpointError::Absent { .. }));
    let made = Checkpoint::open_or_create(Arc::clone(&files), Some("clicks"), 7).unwrap();
    let opened = Checkpoint::open_or_create(Arc::clone(&files), Some("renamed"), 8).unwrap();
    assert_eq!(made.metadata(), opened.metadata());
    assert_eq!(opened.metadata().name.as_deref(), Some("clicks"));
    assert!(matches!(Checkpoint::create(files, None, 9), Err(CheckpointError::Present { .. })));
}

#[test]
fn lost_metadata_is_refused_as_long_as_anything_is_there() {
    for remains in ["offsets/0", "commits/0", "state/counts/0/1-w.changelog", "sources/clicks/0"] {
        let files = memory();
        files.put_new(remains, "x".into()).unwrap();
        for result in [Checkpoint::open(Arc::clone(&files)), Checkpoint::open_or_create(Arc::clone(&files), None, 0)] {
            let error = result.unwrap_err();
            assert!(matches!(error, CheckpointError::NoMetadata { .. }), "{remains}: {error}");
            assert!(error.hint().unwrap().contains("backup"));
        }
    }
}

#[test]
fn a_run_resumes_where_the_logs_end() {
    let files = memory();
    let checkpoint = new(&files);
    assert_eq!(checkpoint.resume().unwrap(), ResumePoint::Fresh);
    for batch in 0..12 {
        checkpoint.offset_log().add(&offset(batch, None)).unwrap();
        let before = batch.checked_sub(1);
        let rerun = ResumePoint::Rerun {
            entry: offset(batch, None),
            previous: before.map(|before| offset(before, None)),
            base: before.map(commit),
        };
        assert_eq!(checkpoint.resume().unwrap(), rerun);
        checkpoint.commit_log().add(&commit(batch)).unwrap();
        let next = ResumePoint::Next { last: offset(batch, None), commit: commit(batch) };
        assert_eq!(checkpoint.resume().unwrap(), next);
    }
    let ids: Vec<BatchId> = (0..12).map(BatchId).collect();
    assert_eq!(checkpoint.offset_log().batches().unwrap(), ids, "numbers, not words, are sorted");
}

#[test]
fn the_second_writer_of_an_entry_is_fenced() {
    let (_folder, files) = local();
    let checkpoint = new(&files);
    checkpoint.offset_log().add(&offset(0, None)).unwrap();
    let error = checkpoint.offset_log().add(&offset(0, None)).unwrap_err();
    assert!(matches!(&error, CheckpointError::Fenced { file, .. } if file == "offsets/0"));
    assert!(error.to_string().starts_with("another process writes the checkpoint"), "{error}");
    checkpoint.commit_log().add(&commit(0)).unwrap();
    assert!(matches!(checkpoint.commit_log().add(&commit(0)), Err(CheckpointError::Fenced { .. })));
}

#[test]
fn torn_foreign_misnamed_and_newer_entries_are_named() {
    let files = memory();
    let checkpoint = new(&files);
    run_batches(&checkpoint, 0..2);
    let (offsets, commits) = (files.get("offsets/1").unwrap(), files.get("commits/1").unwrap());
    let newer = String::from_utf8(offsets.to_vec()).unwrap().replace("offset-log 3", "offset-log 4");
    let refused = |bytes: Bytes| {
        files.put_over("offsets/1", bytes).unwrap();
        checkpoint.resume().unwrap_err()
    };
    for torn in [Bytes::new(), offsets.slice(..1), offsets.slice(..30), offsets.slice(..offsets.len() - 1)] {
        let error = refused(torn);
        assert!(matches!(&error, CheckpointError::Damaged { file, .. } if file == "offsets/1"), "{error}");
    }
    assert!(matches!(refused("v1\n{}".into()), CheckpointError::Foreign { .. }));
    assert!(matches!(refused(commits), CheckpointError::Foreign { .. }));
    assert!(matches!(refused(newer.into()), CheckpointError::Version { found: 4, known: 3, .. }));
    let other = files.get("offsets/0").unwrap();
    assert!(matches!(refused(other), CheckpointError::WrongNumber { found: BatchId(0), .. }));
    files.put_over("offsets/1", offsets).unwrap();
    assert!(checkpoint.resume().is_ok());
    for name in ["offsets/01", "offsets/+2", "offsets/readme", "commits/1.bak"] {
        files.put_new(name, "x".into()).unwrap();
        let error = checkpoint.resume().unwrap_err();
        assert!(matches!(&error, CheckpointError::Foreign { file, .. } if file == name), "{error}");
        files.delete(name).unwrap();
    }
}

#[test]
fn components_are_stored_once_verified_and_healed() {
    let files = memory();
    let store = new(&files).plugins();
    let (bytes, digest) = (Bytes::from_static(b"\0asm"), Digest::of(b"\0asm"));
    assert!(matches!(store.get(&digest), Err(CheckpointError::NoComponent { .. })));
    assert!(matches!(store.put(&digest, "other".into()), Err(CheckpointError::Damaged { .. })));
    store.put(&digest, bytes.clone()).unwrap();
    store.put(&digest, bytes.clone()).unwrap();
    assert_eq!((store.get(&digest).unwrap(), store.list().unwrap()), (bytes.clone(), vec![digest]));
    files.put_over(&format!("plugins/{digest}.wasm"), "torn".into()).unwrap();
    assert!(matches!(store.get(&digest), Err(CheckpointError::Damaged { .. })));
    store.put(&digest, bytes.clone()).unwrap();
    assert_eq!(store.get(&digest).unwrap(), bytes);
}

#[test]
fn purge_keeps_the_retained_batches_and_the_components_that_they_name() {
    let files = memory();
    let checkpoint = new(&files).retaining(3);
    let component = |text: &'static str| {
        let digest = Digest::of(text.as_bytes());
        checkpoint.plugins().put(&digest, text.into()).unwrap();
        digest
    };
    let (old, named, coming) = (component("old"), component("named"), component("coming"));
    for batch in 0..10 {
        let plugin = if batch < 7 { old } else { named };
        checkpoint.offset_log().add(&offset(batch, Some(plugin))).unwrap();
        checkpoint.commit_log().add(&commit(batch)).unwrap();
    }
    let purged = checkpoint.purge(BatchId(4), &[coming]).unwrap();
    assert_eq!((purged.offsets, purged.commits, purged.plugins, purged.oldest), (4, 4, 0, BatchId(4)));
    let purged = checkpoint.purge(BatchId(100), &[coming]).unwrap();
    assert_eq!((purged.offsets, purged.commits, purged.plugins, purged.oldest), (3, 3, 1, BatchId(7)));
    let mut left = vec![named, coming];
    left.sort();
    assert_eq!(checkpoint.plugins().list().unwrap(), left);
    let ids: Vec<BatchId> = (7..10).map(BatchId).collect();
    assert_eq!(checkpoint.offset_log().batches().unwrap(), ids);
    assert_eq!(checkpoint.commit_log().batches().unwrap(), ids);
    assert!(matches!(checkpoint.resume().unwrap(), ResumePoint::Next { .. }));
}

#[test]
fn by_default_a_hundred_batches_stay() {
    let files = memory();
    let checkpoint = new(&files);
    assert_eq!(checkpoint.purge(BatchId(5), &[]).unwrap().offsets, 0);
    run_batches(&checkpoint, 0..103);
    assert_eq!(checkpoint.purge(BatchId(u64::MAX), &[]).unwrap().oldest, BatchId(3));
    assert_eq!(checkpoint.commit_log().batches().unwrap().len(), 100);
}

#[test]
fn folders_of_sources_and_state_are_where_the_format_says() {
    let files = memory();
    let checkpoint = new(&files);
    checkpoint.source_files("my clicks").put_new("0", "x".into()).unwrap();
    let uid = OperatorUid::new("counts").unwrap();
    checkpoint.state_files(&uid, 3).put_new("1-w.changelog", "x".into()).unwrap();
    assert_eq!(files.list("sources/my=20clicks").unwrap(), ["0"]);
    assert_eq!(files.list("state/counts/3").unwrap(), ["1-w.changelog"]);
}
