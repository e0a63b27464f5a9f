//! A checkpoint as people want to see it.

use super::CheckpointPlace;
use crate::query::progress::iso_ms;
use crate::query::{families_of, percent};
use crate::{QuerySpec, RuntimeError, Session, offline_store};
use millstream_checkpoint::{
    CanaryPin, Checkpoint, CheckpointError, CommitEntry, LeaseRecord, OffsetEntry, OffsetRange, ResumePoint,
};
use millstream_common::{BatchId, OperatorUid};
use millstream_state::{StateManifest, StateStore};
use serde::Serialize;
use std::collections::BTreeMap;

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckpointSummary {
    /// Where it is.
    pub place: String,
    /// The query's identity.
    pub query: String,
    /// What the query was called when it was made.
    pub name: Option<String>,
    /// When it was made.
    pub created: String,
    /// The layout of the folder.
    pub format_version: u32,
    /// Who runs on it.
    pub lease: Option<LeaseSummary>,
    /// The first and last batch that are defined.
    pub defined: Option<(u64, u64)>,
    /// The first and last batch that are done and can be returned to.
    pub done: Option<(u64, u64)>,
    /// What a restart would do.
    pub next: String,
    /// The last batch.
    pub last: Option<BatchSummary>,
    /// The state after the last batch that is done.
    pub state: Vec<StateSummary>,
}

/// The lease of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeaseSummary {
    /// Run, process and machine.
    pub holder: String,
    /// Whether it was given back.
    pub released: bool,
    /// Until when it lasts unless it is renewed.
    pub expires: String,
}

/// The definition of one batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchSummary {
    /// The batch.
    pub batch: u64,
    /// Its time.
    pub time: String,
    /// The watermark that it evicts with.
    pub watermark: Option<String>,
    /// What it reads.
    pub sources: BTreeMap<String, OffsetRange>,
    /// Its code.
    pub plugins: BTreeMap<String, PluginSummary>,
    /// The settings that are frozen with the state.
    pub settings: BTreeMap<String, String>,
    /// The numbers of partitions before and after, when the batch only spread the state anew.
    pub repartition: Option<(u32, u32)>,
}

/// The code of one plugin in one batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PluginSummary {
    /// The component that it ran.
    pub digest: String,
    /// The component that the query file named: another one after a swap.
    pub declared: String,
    /// The world that it speaks.
    pub wit: String,
    /// The candidate that computed a slice of the keys, and what it had shown before the batch; `None` without one.
    pub canary: Option<CanarySummary>,
}

/// A canary in one batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CanarySummary {
    /// The candidate.
    pub candidate: String,
    /// Its share of the keys, such as `10 %`.
    pub share: String,
    /// Its first batch.
    pub first_batch: u64,
    /// Batches that had keys of the slice, of those that are done.
    pub batches: u64,
    /// After so many of them it takes over.
    pub of_batches: u64,
    /// Rows of the slice.
    pub rows: u64,
    /// Rows, groups and keys at which it answered otherwise than the running code.
    pub differing: u64,
    /// Why it was given up, if it was.
    pub failed: Option<String>,
}

/// The state of one operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StateSummary {
    /// The operator.
    pub uid: String,
    /// Partitions.
    pub partitions: usize,
    /// The version: batch N makes version N+1.
    pub version: u64,
    /// Files of that version, over all partitions.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Keys over all families; `None` when they were not counted.
    pub keys: Option<u64>,
    /// Key and value in words.
    pub schema: Option<String>,
    /// The families, when the checkpoint tells of them.
    pub families: Vec<String>,
    /// Partition by partition.
    pub by_partition: Vec<PartitionSummary>,
}

/// The state of one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionSummary {
    /// Its number.
    pub partition: u32,
    /// The version.
    pub version: u64,
    /// Files of that version.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Keys over all families; `None` when they were not counted.
    pub keys: Option<u64>,
}

/// Reads a checkpoint; with `count_keys` also its state, to count keys.
///
/// # Errors
/// When there is none, or its newest entries cannot be read, or its state cannot.
pub fn checkpoint(
    session: &Session,
    place: &CheckpointPlace,
    count_keys: bool,
) -> Result<CheckpointSummary, RuntimeError> {
    let checkpoint = place.open(session)?;
    let lease = LeaseRecord::read(&**checkpoint.files())?;
    let (offsets, commits) = (checkpoint.offset_log().batches()?, checkpoint.commit_log().batches()?);
    let point = checkpoint.resume()?;
    let (last, commit) = newest(&point);
    let metadata = checkpoint.metadata();
    Ok(CheckpointSummary {
        place: checkpoint.location(),
        query: metadata.query.to_string(),
        name: metadata.name.clone(),
        created: iso_ms(metadata.created_ms),
        format_version: metadata.format_version,
        lease: lease.map(|lease| LeaseSummary {
            holder: lease.holder.to_string(),
            released: lease.released,
            expires: iso_ms(lease.expires_ms),
        }),
        defined: ends(&offsets),
        done: ends(&commits),
        next: next(&point),
        last: last.map(|last| batch(last, commit)),
        state: commit.map_or_else(|| Ok(Vec::new()), |commit| state(&checkpoint, commit, last, count_keys))?,
    })
}

fn next(point: &ResumePoint) -> String {
    match point {
        ResumePoint::Fresh => "batch 0 is the first".into(),
        ResumePoint::Rerun { entry, .. } => match entry.repartition {
            Some(pin) => {
                format!(
                    "batch {} spreads the state over {} partitions and is not done: it is ended",
                    entry.batch, pin.to
                )
            }
            None => format!("batch {} is defined and not done: it runs again", entry.batch),
        },
        ResumePoint::Next { last, .. } => format!("batch {} is next", last.batch.next()),
    }
}

fn newest(point: &ResumePoint) -> (Option<&OffsetEntry>, Option<&CommitEntry>) {
    match point {
        ResumePoint::Fresh => (None, None),
        ResumePoint::Rerun { entry, base, .. } => (Some(entry), base.as_ref()),
        ResumePoint::Next { last, commit } => (Some(last), Some(commit)),
    }
}

fn ends(batches: &[BatchId]) -> Option<(u64, u64)> {
    Some((batches.first()?.0, batches.last()?.0))
}

fn canary(pin: &CanaryPin, commit: Option<&CommitEntry>) -> CanarySummary {
    let told = commit.filter(|commit| commit.batch >= pin.first).and_then(|commit| commit.canary.clone());
    let tally = told.unwrap_or_default();
    CanarySummary {
        candidate: pin.candidate.to_string(),
        share: percent(pin.share),
        first_batch: pin.first.0,
        batches: tally.batches,
        of_batches: pin.batches,
        rows: tally.rows,
        differing: tally.differing,
        failed: tally.failed,
    }
}

fn batch(entry: &OffsetEntry, commit: Option<&CommitEntry>) -> BatchSummary {
    let plugins = entry.plugins.iter().map(|(name, pin)| {
        let plugin = PluginSummary {
            digest: pin.digest.to_string(),
            declared: pin.declared.to_string(),
            wit: pin.wit.clone(),
            canary: pin.canary.as_ref().map(|pin| canary(pin, commit)),
        };
        (name.clone(), plugin)
    });
    BatchSummary {
        batch: entry.batch.0,
        time: iso_ms(entry.batch_time_ms),
        watermark: entry.watermark_ms.map(iso_ms),
        sources: entry.sources.clone(),
        plugins: plugins.collect(),
        settings: entry.settings.clone(),
        repartition: entry.repartition.map(|pin| (pin.from, pin.to)),
    }
}

fn state(
    checkpoint: &Checkpoint,
    commit: &CommitEntry,
    last: Option<&OffsetEntry>,
    count_keys: bool,
) -> Result<Vec<StateSummary>, RuntimeError> {
    let mut all = Vec::new();
    for (uid, values) in &commit.state {
        let mut by_partition = Vec::new();
        for (partition, manifest) in (0..).zip(manifests(commit.batch, uid, values)?) {
            by_partition.push(PartitionSummary {
                partition,
                version: manifest.version,
                files: manifest.files.len(),
                bytes: manifest.files.iter().map(|file| file.bytes).sum(),
                keys: if count_keys { Some(keys(checkpoint, uid, partition, &manifest)?) } else { None },
            });
        }
        let pin = last.and_then(|entry| entry.state_schemas.get(uid));
        let families = pin.map(families_of).transpose().unwrap_or_default().unwrap_or_default();
        all.push(StateSummary {
            uid: uid.clone(),
            partitions: by_partition.len(),
            version: by_partition.iter().map(|partition| partition.version).max().unwrap_or(0),
            files: by_partition.iter().map(|partition| partition.files).sum(),
            bytes: by_partition.iter().map(|partition| partition.bytes).sum(),
            keys: by_partition.iter().map(|partition| partition.keys).sum(),
            schema: pin.map(|pin| pin.schema_text.clone()),
            families: families.into_iter().map(|family| family.name).collect(),
            by_partition,
        });
    }
    Ok(all)
}

/// Reads the state of a partition and counts its keys.
fn keys(checkpoint: &Checkpoint, uid: &str, partition: u32, manifest: &StateManifest) -> Result<u64, RuntimeError> {
    let uid = OperatorUid::new(uid).map_err(|error| RuntimeError::ForeignQuery {
        reason: format!("an operator has a wrong name: {error}"),
        hint: "see with `millstream checkpoint verify` what is wrong".into(),
    })?;
    Ok(offline_store::open(checkpoint, &uid, partition, manifest, ("reader", &offline_store::budget()))?.metrics().keys)
}

/// The files of one operator, partition by partition.
pub(crate) fn manifests(
    batch: BatchId,
    uid: &str,
    values: &[serde_json::Value],
) -> Result<Vec<StateManifest>, RuntimeError> {
    let parsed = values.iter().map(|value| serde_json::from_value(value.clone())).collect::<Result<_, _>>();
    parsed.map_err(|error| RuntimeError::ForeignQuery {
        reason: format!("commit entry {batch} names unreadable state of `{uid}`: {error}"),
        hint: "use the release that wrote the checkpoint".into(),
    })
}

/// What a start of the query would do with its checkpoint, in words.
///
/// # Errors
/// When the logs cannot be read, contradict each other.
pub fn resumes(session: &Session, place: &str, spec: &QuerySpec) -> Result<String, RuntimeError> {
    let files = session.open_checkpoint(place, &spec.checkpoint_options)?;
    let checkpoint = match Checkpoint::open(files) {
        Err(CheckpointError::Absent { .. }) => return Ok("new, batch 0 is the first".into()),
        checkpoint => checkpoint?,
    };
    Ok(next(&checkpoint.resume()?))
}
