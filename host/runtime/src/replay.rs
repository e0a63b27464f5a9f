//! Runs a batch again that was run before, with the code, the state and the input that it had, and compares.
//!
//! ```text
//!   offsets/N  ranges, time, watermark, settings, digests ─┐
//!   commits/N-1  state before ─────────────────────────────┼─► batch N on a fork ─► rows, state after
//!   plugins/<digest>.wasm  code ───────────────────────────┘          │
//!                                     commits/N  digest of the output, state after  ── compare
//! ```
//!
//! Beside the loop. The query file gives the SQL and says where the sources are; everything else is taken from the
//! checkpoint, whatever the file says by now.
//!
//! Rule of its life: the checkpoint is only read; what the replay writes is in a folder of its own.

use crate::inspect::{CheckpointPlace, manifests};
use crate::query::{EntriesDigest, Fork, ForkOptions, Ran, output_digest};
use crate::{QuerySpec, RuntimeError, Session, offline_store};
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use millstream_checkpoint::{Checkpoint, CommitEntry, OffsetEntry};
use millstream_common::{BatchId, OperatorUid};
use millstream_state::{FamilySpec, StateManifest, StateStore};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a replay found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replay {
    /// The batch.
    pub batch: u64,
    /// The components that it ran, by plugin.
    pub plugins: BTreeMap<String, String>,
    /// Rows that it read.
    pub input_rows: u64,
    /// What it read of sources of plugins, which are to give the same rows again, by stream.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, ReplayedOutput>,
    /// What came out.
    pub output: ReplayedOutput,
    /// The state after it, operator by operator.
    pub state: Vec<ReplayedState>,
    /// Whether everything that could be compared is the same.
    pub is_same: bool,
    /// Where the rows and the fork lie, when they were to be kept.
    pub folder: Option<PathBuf>,
    /// The rows.
    #[serde(skip)]
    pub rows: Vec<RecordBatch>,
    /// Their columns.
    #[serde(skip)]
    pub schema: SchemaRef,
}

/// Rows that came out of a replay, or that it read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayedOutput {
    /// Rows.
    pub rows: u64,
    /// Their digest.
    pub digest: String,
    /// The digest of the first time; `None` when none was kept.
    pub was: Option<String>,
}

/// The state of one operator after a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayedState {
    /// The operator.
    pub uid: String,
    /// Keys, over all partitions and families.
    pub keys: u64,
    /// A digest of keys and values.
    pub digest: String,
    /// The digest of what the first time left; `None` when that batch is not done.
    pub was: Option<String>,
}

/// Runs a batch again. `folder` keeps what it wrote, and its rows as `output.jsonl`; it must be empty or not be there.
///
/// # Errors
/// When the checkpoint no longer has the batch, its input is no longer there, or it fails again as it failed before.
pub fn replay(session: &Session, spec: &QuerySpec, batch: u64, folder: Option<&Path>) -> Result<Replay, RuntimeError> {
    let place = CheckpointPlace::of_query(spec.clone())?;
    let checkpoint = place.open(session)?;
    let entry = entry(&checkpoint, BatchId(batch))?;
    let mut options = ForkOptions::in_memory()?;
    if let Some(folder) = folder {
        options.own = own_folder(folder)?;
    }
    let mut fork = Fork::before(session, spec, Arc::clone(checkpoint.files()), entry.batch, options)?;
    let Ran { output, progress } = fork.run(&entry)?;
    let schema = output.schema.unwrap_or_else(|| Arc::new(Schema::empty()));
    let pin = output_digest(&schema, &output.rows).map_err(|error| RuntimeError::Invalid {
        reason: format!("there is no digest of the rows of batch {batch}: {error}"),
        hint: None,
    })?;
    let done = checkpoint.commit_log().get(entry.batch)?;
    let was = done.as_ref().and_then(|done| done.output.as_ref()).map(|output| output.digest.clone());
    let inputs: BTreeMap<String, ReplayedOutput> = fork
        .inputs()
        .into_iter()
        .map(|(stream, pin)| {
            let was = done.as_ref().and_then(|done| done.inputs.get(&stream)).map(|was| was.digest.clone());
            (stream, ReplayedOutput { rows: pin.rows, digest: pin.digest, was })
        })
        .collect();
    let state = state(&fork, &checkpoint, done.as_ref())?;
    let is_same = was.as_ref().is_none_or(|was| *was == pin.digest)
        && inputs.values().all(|input| input.was.as_ref().is_none_or(|was| *was == input.digest))
        && state.iter().all(|state| state.was.as_ref().is_none_or(|was| *was == state.digest));
    if let Some(folder) = folder {
        let file = folder.join("output.jsonl");
        let rows = millstream_sink::Export::Json.bytes(&schema, &output.rows)?;
        std::fs::write(&file, rows).map_err(|error| RuntimeError::Invalid {
            reason: format!("cannot write `{}`: {error}", file.display()),
            hint: None,
        })?;
    }
    Ok(Replay {
        batch,
        plugins: progress.plugins.into_iter().map(|plugin| (plugin.name, plugin.digest)).collect(),
        input_rows: progress.num_input_rows,
        inputs,
        output: ReplayedOutput { rows: pin.rows, digest: pin.digest, was },
        state,
        is_same,
        folder: folder.map(Path::to_owned),
        rows: output.rows,
        schema,
    })
}

/// The definition of a batch that can be run again.
pub(crate) fn entry(checkpoint: &Checkpoint, batch: BatchId) -> Result<OffsetEntry, RuntimeError> {
    let batches = checkpoint.offset_log().batches()?;
    let kept = match (batches.iter().find(|first| **first == BatchId::FIRST).or(batches.get(1)), batches.last()) {
        (Some(first), Some(last)) => format!("batches {first} to {last} can be run again"),
        _ => "no batch was ever defined".to_owned(),
    };
    let missing = |reason: String| RuntimeError::Invalid { reason, hint: Some(kept.clone()) };
    let entry = checkpoint.offset_log().get(batch)?;
    let entry =
        entry.ok_or_else(|| missing(format!("batch {batch} cannot be run again: it is not in the checkpoint")))?;
    if entry.is_of_state_only() {
        let what = entry.border.as_ref().map_or("spread it over other partitions", |border| border.what.as_str());
        return Err(missing(format!("batch {batch} read nothing: it only made state anew ({what})")));
    }
    if let Some(before) = batch.previous()
        && checkpoint.commit_log().get(before)?.is_none()
    {
        return Err(missing(format!("batch {batch} cannot be run again: the state before it is no longer kept")));
    }
    Ok(entry)
}

/// An empty folder for a fork.
fn own_folder(folder: &Path) -> Result<Arc<dyn millstream_common::DurableFiles>, RuntimeError> {
    let unusable = |reason: String| RuntimeError::Invalid {
        reason: format!("the folder `{}` cannot be used: {reason}", folder.display()),
        hint: Some("name one that is empty or not there yet".into()),
    };
    std::fs::create_dir_all(folder).map_err(|error| unusable(error.to_string()))?;
    let mut names = std::fs::read_dir(folder).map_err(|error| unusable(error.to_string()))?;
    if names.next().is_some() {
        return Err(unusable("it is not empty".into()));
    }
    let absolute = std::path::absolute(folder).map_err(|error| unusable(error.to_string()))?;
    Ok(millstream_checkpoint::open_files(&absolute.join("checkpoint").display().to_string(), &[])?)
}

/// The state after the replayed batch beside the state that the first time left.
fn state(fork: &Fork, checkpoint: &Checkpoint, done: Option<&CommitEntry>) -> Result<Vec<ReplayedState>, RuntimeError> {
    let mut compared = Vec::new();
    for (uid, files) in fork.state() {
        let (keys, digest) = digest(fork.checkpoint(), &uid, &files)?;
        let was = match done {
            Some(done) => {
                let values = done.state.get(uid.as_str()).map(Vec::as_slice).unwrap_or_default();
                Some(self::digest(checkpoint, &uid, &manifests(done.batch, uid.as_str(), values)?)?.1)
            }
            None => None,
        };
        compared.push(ReplayedState { uid: uid.to_string(), keys, digest, was });
    }
    Ok(compared)
}

/// How many keys there are, and a digest of keys and values in the order of partitions, families and keys.
fn digest(checkpoint: &Checkpoint, uid: &OperatorUid, files: &[StateManifest]) -> Result<(u64, String), RuntimeError> {
    let mut digest = EntriesDigest::new();
    for_each_entry(checkpoint, uid, files, &mut |key, value| digest.add(key, value))?;
    Ok(digest.end())
}

/// Visits all keys and values of an operator: partition by partition, family by family, keys ascending.
pub(crate) fn for_each_entry(
    checkpoint: &Checkpoint,
    uid: &OperatorUid,
    files: &[StateManifest],
    visit: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<(), RuntimeError> {
    for (partition, manifest) in (0..).zip(files) {
        let mut store =
            offline_store::open(checkpoint, uid, partition, manifest, ("reader", &offline_store::budget()))?;
        let mut families: Vec<FamilySpec> = store.families();
        families.sort_by(|one, other| one.name.cmp(&other.name));
        for family in families {
            let id = store.family(&family)?;
            let mut entries: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            store.scan(id, &mut |key, value| entries.push((key.to_vec(), value.to_vec())))?;
            entries.sort_unstable();
            entries.iter().for_each(|(key, value)| visit(key, value));
        }
    }
    Ok(())
}

/// The keys of an operator whose value differs between two states, or that only one of them has.
pub(crate) fn changed_keys(
    (one, of_one): (&Checkpoint, &[StateManifest]),
    (other, of_other): (&Checkpoint, &[StateManifest]),
    uid: &OperatorUid,
) -> Result<u64, RuntimeError> {
    let mut left: BTreeSet<(Vec<u8>, Vec<u8>)> = BTreeSet::new();
    for_each_entry(one, uid, of_one, &mut |key, value| {
        left.insert((key.to_vec(), value.to_vec()));
    })?;
    let mut others: BTreeSet<Vec<u8>> = BTreeSet::new();
    for_each_entry(other, uid, of_other, &mut |key, value| {
        if !left.remove(&(key.to_vec(), value.to_vec())) {
            others.insert(key.to_vec());
        }
    })?;
    others.extend(left.into_iter().map(|(key, _)| key));
    Ok(others.len() as u64)
}
