use super::{local, memory};
use crate::{CheckpointError, LEASE_MS, Lease, LeaseHolder, LeaseRecord};
use millstream_common::{DurableFiles, Hint, RunId};
use std::sync::{Arc, Barrier};
use uuid::Uuid;

fn holder(run: u128) -> LeaseHolder {
    LeaseHolder { run: RunId(Uuid::from_u128(run)), host: "here".into(), pid: run as u32 }
}

fn acquire(files: &Arc<dyn DurableFiles>, run: u128, now_ms: i64) -> Result<Lease, CheckpointError> {
    Lease::acquire(Arc::clone(files), holder(run), now_ms)
}

#[test]
fn on_a_folder_the_second_run_is_refused_until_the_first_is_gone() {
    let (_folder, files) = local();
    let first = acquire(&files, 1, 0).unwrap();
    let error = acquire(&files, 2, LEASE_MS * 10).unwrap_err();
    assert!(matches!(error, CheckpointError::InUse { free_in_ms: None, .. }));
    assert!(error.to_string().contains("(process 1 on `here`)"), "{error}");
    assert_eq!(error.hint().unwrap(), "stop that process first");
    // As if it had been killed: no release, and the lease has not ended.
    drop(first);
    let second = acquire(&files, 2, 1).unwrap();
    assert_eq!(second.record().sequence, 2);
}

#[test]
fn the_lock_of_one_machine_does_not_break_the_lease_of_another() {
    let (_folder, files) = local();
    drop(acquire(&files, 1, 0).unwrap());
    let elsewhere = LeaseHolder { host: "elsewhere".into(), ..holder(2) };
    let error = Lease::acquire(Arc::clone(&files), elsewhere.clone(), 1).unwrap_err();
    assert!(matches!(error, CheckpointError::InUse { free_in_ms: Some(_), .. }));
    Lease::acquire(files, elsewhere, LEASE_MS).unwrap();
}

#[test]
fn on_an_object_store_the_second_run_waits_for_the_end_or_the_release() {
    let files = memory();
    let mut first = acquire(&files, 1, 0).unwrap();
    let error = acquire(&files, 2, LEASE_MS - 1).unwrap_err();
    assert!(matches!(error, CheckpointError::InUse { free_in_ms: Some(1), .. }));
    assert!(error.hint().unwrap().contains("wait 1 s"));
    first.renew(LEASE_MS - 1).unwrap();
    acquire(&files, 2, LEASE_MS + 1).unwrap_err();
    first.release().unwrap();
    let second = acquire(&files, 2, LEASE_MS + 1).unwrap();
    drop(second);
    acquire(&files, 3, LEASE_MS + 2).unwrap_err();
    acquire(&files, 3, LEASE_MS * 2 + 1).unwrap();
}

#[test]
fn a_run_whose_lease_was_taken_over_is_told_before_it_commits() {
    let files = memory();
    let mut first = acquire(&files, 1, 0).unwrap();
    let mut second = acquire(&files, 2, LEASE_MS).unwrap();
    let error = first.renew(LEASE_MS + 1).unwrap_err();
    assert!(matches!(&error, CheckpointError::LeaseLost { reason, .. } if reason.contains("process 2")), "{error}");
    assert!(matches!(first.release(), Err(CheckpointError::LeaseLost { .. })));
    second.renew(LEASE_MS + 2).unwrap();
    files.delete("lease").unwrap();
    assert!(matches!(second.renew(LEASE_MS + 3), Err(CheckpointError::LeaseLost { .. })));
}

#[test]
fn renewal_writes_only_when_half_of_the_time_is_over() {
    let (_folder, files) = local();
    let mut lease = acquire(&files, 1, 0).unwrap();
    let before = files.get("lease").unwrap();
    lease.renew(LEASE_MS / 2 - 1).unwrap();
    assert_eq!(files.get("lease").unwrap(), before);
    lease.renew(LEASE_MS / 2).unwrap();
    let record = LeaseRecord::read(&*files).unwrap().unwrap();
    assert_eq!((record.expires_ms, record.acquired_ms), (LEASE_MS / 2 + LEASE_MS, 0));
}

#[test]
fn of_many_runs_that_start_at_once_one_gets_the_lease() {
    let (_folder, folder_files) = local();
    for files in [memory(), folder_files] {
        let start = Barrier::new(6);
        let got: Vec<Lease> = std::thread::scope(|scope| {
            let race = |run: u128| {
                let (files, start) = (&files, &start);
                scope.spawn(move || {
                    start.wait();
                    acquire(files, run, 0).ok()
                })
            };
            let threads: Vec<_> = (1..=6).map(race).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(got.len(), 1);
    }
}

#[test]
fn a_torn_lease_is_refused_on_an_object_store_and_replaced_under_a_lock() {
    let files = memory();
    files.put_new("lease", "millstream lease 1 crc32=".into()).unwrap();
    assert!(matches!(acquire(&files, 1, 0), Err(CheckpointError::Damaged { .. })));
    let (_folder, files) = local();
    files.put_new("lease", "millstream lease 1 crc32=".into()).unwrap();
    acquire(&files, 1, 0).unwrap().renew(1).unwrap();
}

#[test]
fn this_process_names_itself() {
    let holder = LeaseHolder::this_process(RunId(Uuid::from_u128(1)));
    assert_eq!(holder.pid, std::process::id());
    assert!(!holder.host.is_empty() && !holder.host.contains('\n'));
}
