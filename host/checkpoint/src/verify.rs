//! Looks through a checkpoint and says everything that is wrong with it.
//!
//! Behind `millstream checkpoint verify`. Unlike opening, which stops at the first fault, it walks on.
//!
//! Rule of its life: it reads only. State files are the state store's to verify; here it only counts as wrong that
//! there is state and nothing that names it.

use crate::batch_log::batch_of;
use crate::resume::{LogContents, hole, resume};
use crate::{
    CheckpointError, CommitEntry, CommitLog, FallbackLog, LeaseRecord, Metadata, OffsetEntry, OffsetLog, PluginStore,
    PreparedStore, SwapLog, canary, lease, metadata, plugin_store, swap_log,
};
use millstream_common::{BatchId, Digest, DurableFiles, Hint};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file or folder.
    pub path: String,
    /// What is wrong with it.
    pub what: String,
    /// What to do.
    pub way_out: Option<String>,
}

/// What was looked at and what was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The query, when its metadata can be read.
    pub metadata: Option<Metadata>,
    /// The batches whose definition is whole.
    pub offsets: Vec<BatchId>,
    /// The batches that are done and whose entry is whole.
    pub commits: Vec<BatchId>,
    /// The components that are whole.
    pub plugins: Vec<Digest>,
    /// The lease, when there is one.
    pub lease: Option<LeaseRecord>,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    fn add(&mut self, path: impl Into<String>, what: impl Into<String>, way_out: Option<String>) {
        self.findings.push(Finding { path: path.into(), what: what.into(), way_out });
    }

    /// Takes an error about one file as a finding; passes on that the files themselves fail.
    fn take<T>(&mut self, path: &str, result: Result<T, CheckpointError>) -> Result<Option<T>, CheckpointError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error @ CheckpointError::Files { .. }) => Err(error),
            Err(error) => {
                self.add(path, error.to_string(), error.hint());
                Ok(None)
            }
        }
    }
}

/// Looks through the checkpoint in `files`.
///
/// # Errors
/// When the files cannot be listed or read at all; everything else is a finding.
pub fn verify(files: &Arc<dyn DurableFiles>) -> Result<Report, CheckpointError> {
    let mut report = Report::default();
    let (offset_log, commit_log) = (OffsetLog::new(Arc::clone(files)), CommitLog::new(Arc::clone(files)));

    let found = report.take(metadata::METADATA, Metadata::read(&**files))?;
    match found {
        Some(None) => {
            let absent = CheckpointError::Absent { place: files.location() };
            report.add(metadata::METADATA, absent.to_string(), absent.hint());
        }
        found => report.metadata = found.flatten(),
    }
    report.lease = report.take(lease::LEASE, LeaseRecord::read(&**files))?.flatten();
    foreign_names(files, &mut report)?;

    let (names, get) = (offset_log.names()?, |batch| offset_log.get(batch));
    let offsets = entries(&mut report, "offsets", names, get)?;
    let (names, get) = (commit_log.names()?, |batch| commit_log.get(batch));
    let commits = entries(&mut report, "commits", names, get)?;
    let swap_log = SwapLog::new(Arc::clone(files));
    for name in swap_log.names()? {
        let path = format!("{}/{name}", swap_log::FOLDER);
        match batch_of(&name) {
            Some(batch) => drop(report.take(&path, swap_log.get(batch))?),
            None => report.add(path, "its name is no batch number", None),
        }
    }
    let prepared = PreparedStore::new(Arc::clone(files));
    for name in prepared.names()? {
        let path = format!("{}/{name}", PreparedStore::FOLDER);
        match batch_of(&name) {
            Some(batch) => drop(report.take(&path, prepared.get(batch))?),
            None => {
                let way_out = Some(format!("move `{path}` out of the checkpoint"));
                report.add(path, "its name is no batch number", way_out);
            }
        }
    }
    let fallbacks = FallbackLog::new(Arc::clone(files));
    for name in fallbacks.names()? {
        let path = format!("{}/{name}", canary::FOLDER);
        match batch_of(&name) {
            Some(batch) => drop(report.take(&path, fallbacks.get(batch))?),
            None => report.add(path, "its name is no batch number", None),
        }
    }
    components(files, &mut report, &offsets)?;
    logs_fit(files, &mut report, &offsets, &commits)?;
    report.offsets = offsets.into_keys().collect();
    report.commits = commits.into_keys().collect();
    Ok(report)
}

/// Files and folders at the top that are none of a checkpoint.
fn foreign_names(files: &Arc<dyn DurableFiles>, report: &mut Report) -> Result<(), CheckpointError> {
    let failed = |source| CheckpointError::files(files.location(), source);
    let known_files = [metadata::METADATA, lease::LEASE];
    let known_folders = [
        "offsets",
        "commits",
        "sources",
        "state",
        "dead-letters",
        swap_log::FOLDER,
        canary::FOLDER,
        plugin_store::FOLDER,
        PreparedStore::FOLDER,
    ];
    let names = files.list("").map_err(failed)?.into_iter().filter(|name| !known_files.contains(&&**name));
    let folders = files.list_folders("").map_err(failed)?;
    let folders = folders.into_iter().filter(|name| !known_folders.contains(&&**name));
    for name in names.chain(folders) {
        let way_out = Some(format!("move `{name}` out of the checkpoint"));
        report.add(name, "no part of a checkpoint has this name", way_out);
    }
    Ok(())
}

/// The entries of one log that are whole.
fn entries<E>(
    report: &mut Report,
    folder: &str,
    names: Vec<String>,
    get: impl Fn(BatchId) -> Result<Option<E>, CheckpointError>,
) -> Result<BTreeMap<BatchId, E>, CheckpointError> {
    let mut whole = BTreeMap::new();
    let mut present = Vec::new();
    for name in names {
        let path = format!("{folder}/{name}");
        let Some(batch) = batch_of(&name) else {
            let way_out = Some(format!("move `{path}` out of the checkpoint"));
            report.add(path, "its name is no batch number", way_out);
            continue;
        };
        present.push(batch);
        if let Some(entry) = report.take(&path, get(batch))?.flatten() {
            whole.insert(batch, entry);
        }
    }
    present.sort_unstable();
    let mut rest = &*present;
    while let Some((missing, shown)) = hole(rest) {
        let way_out = Some("bring it back from a backup, or return to the batch before it".to_owned());
        report.add(format!("{folder}/{missing}"), format!("it is missing, `{folder}/{shown}` is there"), way_out);
        rest = &rest[rest.partition_point(|batch| *batch < shown)..];
    }
    Ok(whole)
}

/// Components: whole, and there when an entry names them.
fn components(
    files: &Arc<dyn DurableFiles>,
    report: &mut Report,
    offsets: &BTreeMap<BatchId, OffsetEntry>,
) -> Result<(), CheckpointError> {
    let store = PluginStore::new(Arc::clone(files));
    let names = files.list(plugin_store::FOLDER);
    let mut seen = BTreeSet::new();
    for name in names.map_err(|source| CheckpointError::files(files.location(), source))? {
        let path = format!("{}/{name}", plugin_store::FOLDER);
        let Some(digest) = plugin_store::digest_of(&name) else {
            let way_out = Some(format!("move `{path}` out of the checkpoint"));
            report.add(path, "its name is no digest", way_out);
            continue;
        };
        seen.insert(digest);
        if report.take(&path, store.get(&digest))?.is_some() {
            report.plugins.push(digest);
        }
    }
    let mut missing: BTreeMap<Digest, (&str, BatchId)> = BTreeMap::new();
    for (batch, entry) in offsets {
        for (name, pin) in &entry.plugins {
            let candidate = pin.canary.as_ref().map(|canary| canary.candidate);
            for digest in [Some(pin.digest), candidate].into_iter().flatten().filter(|digest| !seen.contains(digest)) {
                missing.insert(digest, (name, *batch));
            }
        }
    }
    for (digest, (name, batch)) in missing {
        let error = CheckpointError::NoComponent { place: files.location(), digest: digest.to_string() };
        let what = format!("it is missing; plugin `{name}` of batch {batch} is this component");
        report.add(PluginStore::file(&digest), what, error.hint());
    }
    Ok(())
}

/// Whether a run could begin here.
fn logs_fit(
    files: &Arc<dyn DurableFiles>,
    report: &mut Report,
    offsets: &BTreeMap<BatchId, OffsetEntry>,
    commits: &BTreeMap<BatchId, CommitEntry>,
) -> Result<(), CheckpointError> {
    let last = offsets.last_key_value();
    let before = last.and_then(|(batch, _)| batch.previous());
    let logs = LogContents {
        offsets: offsets.keys().copied().collect(),
        commits: commits.keys().copied().collect(),
        latest: last.map(|(_, entry)| entry.clone()),
        previous: before.and_then(|before| offsets.get(&before).cloned()),
        commit: commits.last_key_value().map(|(_, entry)| entry.clone()),
    };
    // When single entries are damaged or missing, that has been said; the rest would only repeat it.
    let said = report
        .findings
        .iter()
        .any(|finding| finding.path.starts_with("offsets/") || finding.path.starts_with("commits/"));
    if !said && let Err(error) = resume(&files.location(), logs) {
        let path = if matches!(error, CheckpointError::CommitAhead { .. }) { "commits" } else { "offsets" };
        report.add(path, error.to_string(), error.hint());
    }
    let state = files.list_folders("state").map_err(|source| CheckpointError::files(files.location(), source))?;
    if commits.is_empty() && offsets.is_empty() && !said && !state.is_empty() {
        let way_out = Some("bring `offsets` and `commits` back from a backup, or start a new checkpoint".to_owned());
        report.add("state", "there is state, and no batch that made it", way_out);
    }
    Ok(())
}
