//! Which code a query ran since when, and what was said of it before.

use super::CheckpointPlace;
use crate::query::percent;
use crate::query::progress::iso_ms;
use crate::verdict::resume_point;
use crate::{RuntimeError, Session};
use millstream_checkpoint::{CanaryEvent, Checkpoint, OffsetEntry, ResumePoint, SwapEntry};
use millstream_common::Digest;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The components of one plugin, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeHistory {
    /// The plugin's name in the query.
    pub plugin: String,
    /// The components that it ran.
    pub components: Vec<CodeSpan>,
    /// The candidates that computed a share of the keys, oldest first.
    pub canaries: Vec<CanarySpan>,
}

/// A canary, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CanarySpan {
    /// The candidate.
    pub digest: String,
    /// Its share of the keys, such as `10 %`.
    pub share: String,
    /// Its first batch.
    pub from_batch: u64,
    /// Its last batch; `None` while it runs.
    pub to_batch: Option<u64>,
    /// The verdict on it.
    pub verdict: String,
    /// `running`, `promoted`, `rolled back`.
    pub outcome: String,
    /// Why it ended, and what it had shown; `None` while it runs.
    pub why: Option<String>,
}

/// A component, and the batches that it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeSpan {
    /// The component.
    pub digest: String,
    /// Its first batch.
    pub from_batch: u64,
    /// Its last batch; `None` for the one that runs.
    pub to_batch: Option<u64>,
    /// When its first batch was defined; `None` for the component of the first start.
    pub time: Option<String>,
    /// Who wanted it: `start`, `swap`, `rollback`, `restart`.
    pub by: String,
    /// The verdict on it; `None` for the component of the first start.
    pub verdict: Option<String>,
    /// Whether a person approved of what the verdict held against it.
    pub approved: bool,
    /// What the verdict held against it.
    pub findings: Vec<String>,
    /// What became of the state: `migrated`, `restored`; `None` when it simply stayed.
    pub state: Option<String>,
    /// Whether the checkpoint still has it, so that a rollback can go back to it.
    pub is_kept: bool,
}

/// Reads the history of a query's code, plugin by plugin.
///
/// # Errors
/// When there is no such checkpoint, or its logs cannot be read.
pub fn history(session: &Session, place: &CheckpointPlace) -> Result<Vec<CodeHistory>, RuntimeError> {
    let checkpoint = place.open(session)?;
    let last = match resume_point(&checkpoint)? {
        ResumePoint::Fresh => return Ok(Vec::new()),
        ResumePoint::Rerun { entry, .. } => entry,
        ResumePoint::Next { last, .. } => last,
    };
    let kept: BTreeSet<Digest> = checkpoint.plugins().list()?.into_iter().collect();
    let swaps: Vec<SwapEntry> =
        checkpoint.swap_log().all()?.into_iter().filter(|entry| has_happened(entry, &last)).collect();
    let first = first_batches(&checkpoint)?;
    let mut histories = Vec::new();
    for (plugin, pin) in &last.plugins {
        let mut components: Vec<CodeSpan> = Vec::new();
        let span = |digest: Digest, from_batch: u64, by: &str| CodeSpan {
            digest: digest.to_string(),
            from_batch,
            to_batch: None,
            time: None,
            by: by.to_owned(),
            verdict: None,
            approved: false,
            findings: Vec::new(),
            state: None,
            is_kept: kept.contains(&digest),
        };
        for entry in &swaps {
            let Some(record) = entry.swaps.get(plugin) else { continue };
            if components.is_empty() {
                components.push(span(record.from, first.get(plugin).copied().unwrap_or(0), "start"));
            }
            if let Some(before) = components.last_mut() {
                before.to_batch = Some(entry.batch.0.saturating_sub(1));
            }
            components.push(CodeSpan {
                time: Some(iso_ms(entry.time_ms)),
                verdict: Some(record.verdict.clone()),
                approved: record.approved,
                findings: record.findings.clone(),
                state: record.state.clone(),
                ..span(record.to, entry.batch.0, &record.by)
            });
        }
        if components.is_empty() {
            components.push(span(pin.digest, first.get(plugin).copied().unwrap_or(0), "start"));
        }
        histories.push(CodeHistory { plugin: plugin.clone(), components, canaries: canaries(plugin, &swaps) });
    }
    Ok(histories)
}

/// Whether a swap was defined; one that a crash undid was not.
fn has_happened(entry: &SwapEntry, last: &OffsetEntry) -> bool {
    entry.batch < last.batch || entry.batch == last.batch && entry.is_of(last)
}

/// The canaries of a plugin.
fn canaries(plugin: &str, swaps: &[SwapEntry]) -> Vec<CanarySpan> {
    let mut spans: Vec<CanarySpan> = Vec::new();
    for entry in swaps {
        let Some(record) = entry.canaries.get(plugin) else { continue };
        let outcome = match record.event {
            CanaryEvent::Begun => {
                spans.push(CanarySpan {
                    digest: record.candidate.to_string(),
                    share: percent(record.share),
                    from_batch: entry.batch.0,
                    to_batch: None,
                    verdict: record.why.clone(),
                    outcome: "running".to_owned(),
                    why: None,
                });
                continue;
            }
            CanaryEvent::Promoted => "promoted",
            CanaryEvent::RolledBack => "rolled back",
        };
        if let Some(span) = spans.last_mut().filter(|span| span.to_batch.is_none()) {
            span.to_batch = Some(entry.batch.0.saturating_sub(1));
            span.outcome = outcome.to_owned();
            span.why = Some(record.why.clone());
        }
    }
    spans
}

/// The batch in which a plugin came, where the offset log still knows that it was not there before.
fn first_batches(checkpoint: &Checkpoint) -> Result<BTreeMap<String, u64>, RuntimeError> {
    let mut first = BTreeMap::new();
    let mut before: Option<OffsetEntry> = None;
    for batch in checkpoint.offset_log().batches()? {
        let Some(entry) = checkpoint.offset_log().get(batch)? else { continue };
        if let Some(before) = &before {
            let new = entry.plugins.keys().filter(|plugin| !before.plugins.contains_key(*plugin));
            for plugin in new {
                first.entry(plugin.clone()).or_insert(batch.0);
            }
        }
        before = Some(entry);
    }
    Ok(first)
}
