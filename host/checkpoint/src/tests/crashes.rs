//! A small query without operators, crashed at every durable write and started again.

use super::{commit, local, memory, offset};
use crate::faulty::{Counted, FaultyFiles, Moment};
use crate::{Checkpoint, CheckpointError, LEASE_MS, LeaseHolder, ResumePoint, verify};
use millstream_common::{BatchId, Digest, DurableFiles, RunId};
use std::sync::Arc;
use uuid::Uuid;

const BATCHES: u64 = 7;

/// Runs from where the checkpoint is to the last batch, as the runtime would; answers the batches that it ran.
fn run(files: Arc<dyn DurableFiles>, run: u128) -> Result<Vec<u64>, CheckpointError> {
    let now_ms = LEASE_MS * run as i64 * 2;
    let holder = LeaseHolder { run: RunId(Uuid::from_u128(run)), host: "here".into(), pid: 1 };
    let checkpoint = Checkpoint::open_or_create(files, Some("query"), now_ms)?.retaining(3);
    let mut lease = checkpoint.lease(holder, now_ms)?;
    let component = |batch: u64| format!("component {}", batch / 3);
    let mut ran = Vec::new();
    let (mut batch, mut defined) = match checkpoint.resume()? {
        ResumePoint::Fresh => (0, false),
        ResumePoint::Rerun { entry, previous, base } => {
            let digest = entry.plugins["clean"].digest;
            assert_eq!(checkpoint.plugins().get(&digest)?, component(entry.batch.0));
            assert_eq!(previous.map(|entry| entry.batch), entry.batch.previous());
            assert_eq!(base.map(|entry| entry.batch), entry.batch.previous());
            (entry.batch.0, true)
        }
        ResumePoint::Next { last, commit } => {
            assert_eq!(last.batch, commit.batch);
            (last.batch.next().0, false)
        }
    };
    while batch < BATCHES {
        let bytes = component(batch);
        let digest = Digest::of(bytes.as_bytes());
        if !defined {
            checkpoint.plugins().put(&digest, bytes.into())?;
            checkpoint.offset_log().add(&offset(batch, Some(digest)))?;
        }
        lease.renew(now_ms + LEASE_MS / 2)?;
        checkpoint.commit_log().add(&commit(batch))?;
        checkpoint.purge(BatchId(u64::MAX), &[digest])?;
        ran.push(batch);
        (batch, defined) = (batch + 1, false);
    }
    lease.release()?;
    Ok(ran)
}

fn every_crash_is_survived(new: impl Fn() -> Arc<dyn DurableFiles>) {
    let whole = Arc::new(FaultyFiles::new(new(), Counted::ALL));
    assert_eq!(run(Arc::clone(&whole) as Arc<dyn DurableFiles>, 1).unwrap(), (0..BATCHES).collect::<Vec<_>>());
    let writes = whole.writes();
    assert!(writes > 30, "{:?}", whole.history());
    for (write, moment) in (1..=writes).flat_map(|write| [(write, Moment::Before), (write, Moment::After)]) {
        let inner = new();
        let faulty = Arc::new(FaultyFiles::new(Arc::clone(&inner), Counted::ALL).crash_at(write, moment));
        let at = format!("crash {moment:?} write {write}, {}", whole.history()[write - 1]);
        run(Arc::clone(&faulty) as Arc<dyn DurableFiles>, 1).unwrap_err();
        assert!(faulty.crashed(), "{at}");
        // A component that no entry names yet, or no checkpoint at all, is no damage.
        let findings = verify(&inner).unwrap().findings;
        assert!(findings.iter().all(|finding| finding.path == "metadata" && write == 1), "{at}: {findings:?}");
        let ran = run(Arc::clone(&inner), 2).unwrap_or_else(|error| panic!("{at}: {error:?}"));
        assert!(ran.last().is_none_or(|last| *last == BATCHES - 1), "{at}: {ran:?}");
        let report = verify(&inner).unwrap();
        assert!(report.is_clean(), "{at}: {:?}", report.findings);
        let ids: Vec<BatchId> = (BATCHES - 3..BATCHES).map(BatchId).collect();
        // When the crash came after the last commit, no purge followed.
        assert!(report.commits.ends_with(&ids) && report.offsets.ends_with(&ids), "{at}");
    }
}

#[test]
fn every_crash_is_survived_in_memory() {
    every_crash_is_survived(memory);
}

#[test]
fn every_crash_is_survived_on_a_folder() {
    let folders = std::cell::RefCell::new(Vec::new());
    every_crash_is_survived(|| {
        let (folder, files) = local();
        folders.borrow_mut().push(folder);
        files
    });
}
