//! A checkpoint and its state, looked through to the last file.

use super::CheckpointPlace;
use super::checkpoint::manifests;
use crate::{RuntimeError, Session, offline_store};
use millstream_checkpoint::{Checkpoint, CheckpointError};
use millstream_common::{BatchId, Hint, OperatorUid, describe_chain};
use millstream_state::{StateError, StateManifest};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyFinding {
    /// The file or folder.
    pub path: String,
    /// What is wrong with it.
    pub what: String,
    /// What to do.
    pub way_out: Option<String>,
}

/// What was looked at and what is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// The checkpoint.
    pub place: String,
    /// Batches whose definition is whole.
    pub offsets: usize,
    /// Batches that are done and whose entry is whole.
    pub commits: usize,
    /// Components that are whole.
    pub plugins: usize,
    /// Partitions of operators whose state was read.
    pub stores: usize,
    /// What is wrong.
    pub findings: Vec<VerifyFinding>,
}

/// Reads every entry, every component, and the state of every batch that can be returned to.
///
/// # Errors
/// When there is no checkpoint, or its files cannot be listed or read at all.
pub fn verify(session: &Session, place: &CheckpointPlace) -> Result<VerifyReport, RuntimeError> {
    let files = session.open_checkpoint(&place.place, &place.options)?;
    // A place where nothing ever was is not a damaged checkpoint.
    if let Err(error @ CheckpointError::Absent { .. }) = Checkpoint::open(Arc::clone(&files)) {
        return Err(error.into());
    }
    let report = millstream_checkpoint::verify(&files)?;
    let findings = report.findings.into_iter();
    let mut verified = VerifyReport {
        place: files.location(),
        offsets: report.offsets.len(),
        commits: report.commits.len(),
        plugins: report.plugins.len(),
        stores: 0,
        findings: findings
            .map(|finding| VerifyFinding { path: finding.path, what: finding.what, way_out: finding.way_out })
            .collect(),
    };
    if report.metadata.is_some() {
        let checkpoint = Checkpoint::open(files)?;
        state(&checkpoint, &report.commits, &mut verified)?;
    }
    Ok(verified)
}

/// The versions of one store, by the batch that made them.
type Versions = Vec<(BatchId, StateManifest)>;

fn state(checkpoint: &Checkpoint, commits: &[BatchId], report: &mut VerifyReport) -> Result<(), RuntimeError> {
    let mut stores: BTreeMap<(OperatorUid, u32), Versions> = BTreeMap::new();
    for batch in commits {
        let Some(entry) = checkpoint.commit_log().get(*batch)? else { continue };
        for (uid, values) in &entry.state {
            let path = format!("commits/{batch}");
            let named = OperatorUid::new(uid.as_str()).map_err(|error| error.to_string());
            let parsed = named.and_then(|named| {
                let manifests = manifests(*batch, uid, values).map_err(|error| error.to_string())?;
                Ok((named, manifests))
            });
            match parsed {
                Ok((uid, manifests)) => {
                    for (manifest, partition) in manifests.into_iter().zip(0..) {
                        stores.entry((uid.clone(), partition)).or_default().push((*batch, manifest));
                    }
                }
                Err(what) => report.findings.push(VerifyFinding { path, what, way_out: None }),
            }
        }
    }
    report.stores = stores.len();
    for ((uid, partition), versions) in &stores {
        let broken = broken_versions(checkpoint, uid, *partition, versions)?;
        // One damaged file breaks every version that is built on it: one finding per cause.
        let mut by_cause: BTreeMap<String, (Vec<BatchId>, Option<String>)> = BTreeMap::new();
        for (batch, error) in broken {
            let known = by_cause.entry(describe_chain(&error)).or_insert_with(|| (Vec::new(), error.hint()));
            known.0.push(batch);
        }
        for (what, (batches, way_out)) in by_cause {
            let path = format!("state/{uid}/{partition}");
            let what = format!("{what}; {} cannot be returned to", span(&batches));
            report.findings.push(VerifyFinding { path, what, way_out });
        }
    }
    Ok(())
}

/// Opens every version of a store, but those that are only the beginning of a whole later one.
fn broken_versions(
    checkpoint: &Checkpoint,
    uid: &OperatorUid,
    partition: u32,
    versions: &Versions,
) -> Result<Vec<(BatchId, StateError)>, StateError> {
    let mut whole: Vec<&StateManifest> = Vec::new();
    let mut broken = Vec::new();
    for (batch, manifest) in versions.iter().rev() {
        if whole.iter().any(|later| later.files.starts_with(&manifest.files)) {
            continue;
        }
        match offline_store::open(checkpoint, uid, partition, manifest, ("verify", &offline_store::budget())) {
            Ok(_) => whole.push(manifest),
            // Nothing is wrong with the files.
            Err(error @ StateError::Spill { .. }) => return Err(error),
            Err(error) => broken.push((*batch, error)),
        }
    }
    broken.reverse();
    Ok(broken)
}

fn span(batches: &[BatchId]) -> String {
    match (batches.first(), batches.last()) {
        (Some(first), Some(last)) if first != last => format!("batches {first} to {last}"),
        (Some(only), _) => format!("batch {only}"),
        _ => "no batch".into(),
    }
}
