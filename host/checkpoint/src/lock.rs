//! The lock of a checkpoint in a folder of this machine: what tells a run that lives from one that was killed.
//!
//! The system frees it when the process ends, mostly at once. A process that was killed while it started another one leaves
//! it to that one for a moment, until the other has become the program it is to be. So a lock whose holder is no more is
//! waited for.
//!
//! Rule of its life: it is held as long as the [`Lease`](crate::Lease). It says nothing of other machines.

use crate::{CheckpointError, LeaseHolder, LeaseRecord};
use millstream_common::{DurableError, DurableFiles};
use std::fs::{self, File, TryLockError};
use std::time::{Duration, Instant};

/// The file that is locked; its name is hidden from the checkpoint.
const LOCK: &str = ".lock";
/// How long the lock of a process that is no more is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Takes the lock of a folder of this machine for a run on `host`; `None` on an object store.
pub(crate) fn take_lock(files: &dyn DurableFiles, host: &str) -> Result<Option<File>, CheckpointError> {
    let Some(folder) = files.local_folder() else {
        return Ok(None);
    };
    let place = files.location();
    let failed = |source: std::io::Error| {
        let source = DurableError::Storage { action: "lock", path: LOCK.into(), source: Box::new(source) };
        CheckpointError::files(place.clone(), source)
    };
    fs::create_dir_all(&folder).map_err(failed)?;
    let options = &mut File::options();
    let file = options.create(true).truncate(false).write(true).open(folder.join(LOCK)).map_err(failed)?;
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        let holder = LeaseRecord::read(files).ok().flatten().map(|present| present.holder);
        if begin.elapsed() < PATIENCE && holder.as_ref().is_some_and(|holder| is_over(holder, host)) {
            std::thread::sleep(PAUSE);
            continue;
        }
        let holder = holder.map_or_else(|| "another process".into(), |holder| holder.to_string());
        return Err(CheckpointError::InUse { place, holder, free_in_ms: None });
    }
}

/// Whether the process of a run on this machine has ended, as far as the system tells.
fn is_over(holder: &LeaseHolder, host: &str) -> bool {
    if holder.host != host || !fs::exists("/proc/self/stat").unwrap_or(false) {
        return false;
    }
    match fs::read_to_string(format!("/proc/{}/stat", holder.pid)) {
        // Behind the name, which may have brackets itself, stands the state: ended, and nobody has asked how.
        Ok(stat) => stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::{KIND, LEASE};
    use crate::open_files;
    use millstream_common::RunId;
    use std::process::{Command, Stdio};
    use uuid::Uuid;

    fn lease_of(pid: u32, files: &dyn DurableFiles) -> LeaseHolder {
        let holder = LeaseHolder { run: RunId(Uuid::from_u128(1)), host: "here".into(), pid };
        let record =
            LeaseRecord { holder: holder.clone(), sequence: 1, acquired_ms: 0, expires_ms: 1, released: false };
        files.put_over(LEASE, KIND.encode("here", LEASE, &record).unwrap()).unwrap();
        holder
    }

    #[test]
    fn a_killed_process_holds_up_the_next_run_only_until_what_it_started_is_on_its_way() {
        let folder = tempfile::tempdir().unwrap();
        let files = open_files(folder.path().to_str().unwrap(), &[]).unwrap();
        let lock = take_lock(&*files, "here").unwrap().unwrap();
        let mut process = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let holder = lease_of(process.id(), &*files);
        let begin = Instant::now();
        let refused = take_lock(&*files, "here").unwrap_err();
        assert!(matches!(refused, CheckpointError::InUse { .. }) && begin.elapsed() < PATIENCE / 2, "{refused}");

        process.kill().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert!(is_over(&holder, "here"), "nobody has asked how it ended");
        process.wait().unwrap();
        assert!(is_over(&holder, "here") && !is_over(&holder, "elsewhere"));
        let freed = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            drop(lock);
        });
        take_lock(&*files, "here").unwrap().unwrap();
        freed.join().unwrap();
    }
}
