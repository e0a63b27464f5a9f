//! The lease: one run at a time on one checkpoint.
//!
//! Taken before the logs are read, renewed with every batch, given back at the end.
//!
//! ```text
//!                 folder of this machine                  object store
//!   start         lock on `.lock`, then file `lease`      file `lease`, unless another's is still running
//!   each batch    lock is held, `lease` still ours        `lease` still ours; its end is moved on
//!   kill -9       the system frees the lock at once       another run waits until the end
//! ```
//!
//! Rule of its life: the lease is courtesy, it keeps two runs from starting into each other. What makes a second
//! writer harmless is put-if-absent on `offsets/N` and `commits/N`: it fails for the one that comes second.

use crate::CheckpointError;
use crate::document::DocumentKind;
use crate::lock::take_lock;
use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles, RunId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File};
use std::sync::Arc;

/// The file.
pub(crate) const LEASE: &str = "lease";
/// How long a lease lasts without renewal.
pub const LEASE_MS: i64 = 60_000;

pub(crate) const KIND: DocumentKind = DocumentKind { word: "lease", version: 1, oldest: 1 };

/// Who holds a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseHolder {
    /// The run.
    pub run: RunId,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
}

impl LeaseHolder {
    /// A run in this process.
    pub fn this_process(run: RunId) -> Self {
        let host = fs::read_to_string("/proc/sys/kernel/hostname")
            .or_else(|_| fs::read_to_string("/etc/hostname"))
            .map(|name| name.trim().to_owned())
            .ok()
            .filter(|name| !name.is_empty())
            .or_else(|| std::env::var("HOSTNAME").ok())
            .unwrap_or_else(|| "unknown".into());
        Self { run, host, pid: std::process::id() }
    }
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {} (process {} on `{}`)", self.run, self.pid, self.host)
    }
}

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseRecord {
    /// Who holds it.
    pub holder: LeaseHolder,
    /// How often the lease changed hands.
    pub sequence: u64,
    /// When the holder took it.
    pub acquired_ms: i64,
    /// When it ends unless it is renewed.
    pub expires_ms: i64,
    /// Whether the holder has given it back.
    pub released: bool,
}

impl LeaseRecord {
    /// The lease of a checkpoint as it stands; `None` when nobody ever took it.
    ///
    /// # Errors
    /// When the file is torn, foreign or of another release.
    pub fn read(files: &dyn DurableFiles) -> Result<Option<Self>, CheckpointError> {
        KIND.read(files, LEASE)
    }
}

/// A lease that this run holds. Dropping it frees the lock but not an object store's lease: `release` does both.
#[derive(Debug)]
pub struct Lease {
    files: Arc<dyn DurableFiles>,
    record: LeaseRecord,
    /// The file as this run wrote it last.
    bytes: Bytes,
    /// Kept open for its lock.
    lock: Option<File>,
}

impl Lease {
    /// Takes the lease.
    ///
    /// # Errors
    /// [`CheckpointError::InUse`] when another run has it.
    pub fn acquire(files: Arc<dyn DurableFiles>, holder: LeaseHolder, now_ms: i64) -> Result<Self, CheckpointError> {
        let lock = take_lock(&*files, &holder.host)?;
        let place = files.location();
        let present = match LeaseRecord::read(&*files) {
            // A lease that cannot be read binds nobody when the lock shows that nobody holds it.
            Err(CheckpointError::Damaged { .. }) if lock.is_some() => None,
            present => present?,
        };
        if let Some(present) = present.as_ref().filter(|present| !present.released) {
            // The lock of this machine speaks only for this machine: the folder may be a network's.
            let dead = lock.is_some() && present.holder.host == holder.host;
            let runs = present.expires_ms > now_ms && present.holder.run != holder.run;
            if runs && !dead {
                return Err(in_use(place, Some(present), now_ms));
            }
        }
        let record = LeaseRecord {
            holder,
            sequence: present.as_ref().map_or(1, |present| present.sequence.saturating_add(1)),
            acquired_ms: now_ms,
            expires_ms: now_ms.saturating_add(LEASE_MS),
            released: false,
        };
        let bytes = encode(&*files, &record)?;
        if present.is_none() && lock.is_none() {
            match files.put_new(LEASE, bytes.clone()) {
                Err(DurableError::Exists { .. }) => {
                    return Err(in_use(place, LeaseRecord::read(&*files)?.as_ref(), now_ms));
                }
                result => result.map_err(|source| CheckpointError::files(place, source))?,
            }
        } else {
            files.put_over(LEASE, bytes.clone()).map_err(|source| CheckpointError::files(place, source))?;
        }
        let lease = Self { files, record, bytes, lock };
        // Of two runs that took an ended lease over at the same moment, the first one sees here that it lost.
        lease.check()?;
        Ok(lease)
    }

    /// What the file says.
    pub fn record(&self) -> &LeaseRecord {
        &self.record
    }

    /// Looks whether the lease is still this run's and moves its end on. The runtime calls it with every batch,
    /// before it writes `commits/N`, and stops when it fails.
    ///
    /// # Errors
    /// [`CheckpointError::LeaseLost`] when another run has taken it.
    pub fn renew(&mut self, now_ms: i64) -> Result<(), CheckpointError> {
        self.check()?;
        // Writing is dear; half of the time is left when it is done.
        if self.record.expires_ms.saturating_sub(now_ms) > LEASE_MS / 2 {
            return Ok(());
        }
        let record = LeaseRecord { expires_ms: now_ms.saturating_add(LEASE_MS), ..self.record.clone() };
        self.write(record)
    }

    /// Gives the lease back.
    ///
    /// # Errors
    /// When the file cannot be written; the lease then ends by itself.
    pub fn release(mut self) -> Result<(), CheckpointError> {
        self.check()?;
        let record = LeaseRecord { released: true, ..self.record.clone() };
        self.write(record)
    }

    fn write(&mut self, record: LeaseRecord) -> Result<(), CheckpointError> {
        let bytes = encode(&*self.files, &record)?;
        let written = self.files.put_over(LEASE, bytes.clone());
        written.map_err(|source| CheckpointError::files(self.files.location(), source))?;
        (self.record, self.bytes) = (record, bytes);
        Ok(())
    }

    fn check(&self) -> Result<(), CheckpointError> {
        // Nearly always the file is as it was left, and need not be understood.
        if self.files.get(LEASE).is_ok_and(|bytes| bytes == self.bytes) {
            return Ok(());
        }
        let lost = |reason| CheckpointError::LeaseLost { place: self.files.location(), reason };
        match LeaseRecord::read(&*self.files)? {
            Some(found) if found.holder == self.record.holder && found.sequence == self.record.sequence => Ok(()),
            Some(found) => Err(lost(format!("{} has it", found.holder))),
            // Somebody deleted the file; with the lock no other run can have started.
            None if self.lock.is_some() => Ok(()),
            None => Err(lost("the file `lease` was deleted".into())),
        }
    }
}

fn encode(files: &dyn DurableFiles, record: &LeaseRecord) -> Result<Bytes, CheckpointError> {
    KIND.encode(&files.location(), LEASE, record)
}

fn in_use(place: String, present: Option<&LeaseRecord>, now_ms: i64) -> CheckpointError {
    CheckpointError::InUse {
        place,
        holder: present.map_or_else(|| "another run".into(), |present| present.holder.to_string()),
        free_in_ms: present.map(|present| present.expires_ms.saturating_sub(now_ms)),
    }
}
