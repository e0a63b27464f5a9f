//! The candidate and the question that is asked about it.

use super::declaration::{self, Declared};
use super::dry_run::Trial;
use super::{Check, Verdict, VerdictFinding, VerdictReport, gravest};
use crate::inspect::CheckpointPlace;
use crate::query::{PlannedWith, plan_with, state_changes};
use crate::{QuerySpec, RuntimeError, Session};
use millstream_checkpoint::{Checkpoint, CheckpointError, OffsetEntry, ResumePoint};
use millstream_common::{Digest, describe_chain};
use millstream_wasm::{Component, differences};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often the logs of a running query are read before they are taken for what they seem to be.
const LOOKS: u32 = 5;

/// What is to be checked, and how.
#[derive(Debug, Clone)]
pub struct VerdictRequest {
    /// The plugin's name in the query; may be left out when there is only one.
    pub plugin: Option<String>,
    /// How many of the last batches are run again; none with 0.
    pub batches: u64,
}

/// May `component` take the place of a plugin in the query that has this checkpoint? Nothing is changed; the query may
/// run meanwhile. Without a query file only structure and declarations of the component are looked at.
///
/// # Errors
/// When there is no such checkpoint or plugin, the query does not fit its checkpoint, or files cannot be read. That the
/// component does not fit is no error but the verdict.
pub fn check_component(
    session: &Session,
    place: &CheckpointPlace,
    request: &VerdictRequest,
    component: &[u8],
) -> Result<VerdictReport, RuntimeError> {
    let checkpoint = place.open(session)?;
    let entry = newest_entry(&checkpoint)?;
    let known: Vec<&String> = match (&entry, &place.query) {
        (Some(entry), _) => entry.plugins.keys().collect(),
        (None, Some(query)) => query.plugins.iter().map(|plugin| &plugin.name).collect(),
        (None, None) => Vec::new(),
    };
    let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let invalid = |reason: String, hint: String| RuntimeError::Invalid { reason, hint: Some(hint) };
    let plugin = match (&request.plugin, &*known) {
        (_, []) => {
            let reason = format!("no plugin has run in `{}`", checkpoint.location());
            return Err(invalid(reason, "run the query with a plugin first".into()));
        }
        (Some(name), known) if known.contains(&name) => name.clone(),
        (Some(name), _) => return Err(invalid(format!("the query has no plugin `{name}`"), format!("it has {list}"))),
        (None, [only]) => (*only).clone(),
        (None, _) => {
            let reason = "the query has several plugins".to_owned();
            return Err(invalid(reason, format!("say which with `--plugin`: {list}")));
        }
    };
    let spec = place.query.as_ref();
    let question = Question { session, checkpoint: &checkpoint, spec, plugin: &plugin, batches: request.batches };
    question.ask(component)
}

/// What is known before a candidate comes.
pub(crate) struct Question<'a> {
    pub(crate) session: &'a Session,
    pub(crate) checkpoint: &'a Checkpoint,
    /// The query, when it is known.
    pub(crate) spec: Option<&'a QuerySpec>,
    /// The plugin whose place is to be taken.
    pub(crate) plugin: &'a str,
    /// How many of the last batches are run again.
    pub(crate) batches: u64,
}

/// The answer to a question.
pub(crate) fn judge(question: &Question<'_>, component: &[u8]) -> Result<VerdictReport, RuntimeError> {
    question.ask(component)
}

/// Where a run would begin. A running query moves on between two looks at its logs.
pub(crate) fn resume_point(checkpoint: &Checkpoint) -> Result<ResumePoint, RuntimeError> {
    let mut look = 0;
    loop {
        look += 1;
        match checkpoint.resume() {
            Err(CheckpointError::CommitAhead { .. } | CheckpointError::Gap { .. }) if look < LOOKS => {}
            point => return Ok(point?),
        }
    }
}

fn newest_entry(checkpoint: &Checkpoint) -> Result<Option<OffsetEntry>, RuntimeError> {
    Ok(match resume_point(checkpoint)? {
        ResumePoint::Fresh => None,
        ResumePoint::Rerun { entry, .. } => Some(entry),
        ResumePoint::Next { last, .. } => Some(last),
    })
}

impl Question<'_> {
    fn ask(&self, bytes: &[u8]) -> Result<VerdictReport, RuntimeError> {
        let entry = newest_entry(self.checkpoint)?;
        let from = entry.as_ref().and_then(|entry| entry.plugins.get(self.plugin)).map(|pin| pin.digest);
        let to = Digest::of(bytes);
        let mut report = VerdictReport {
            verdict: Verdict::Ok,
            plugin: self.plugin.to_owned(),
            from: from.map(|digest| digest.to_string()),
            to: to.to_string(),
            used: Vec::new(),
            findings: Vec::new(),
            migration: Vec::new(),
            dry_run: None,
            shadow: None,
            notes: Vec::new(),
        };
        if from == Some(to) {
            report.notes.push("it is the component that runs".to_owned());
        }
        let host = self.session.plugin_host()?;
        match host.load(self.plugin, bytes) {
            Ok(new) => self.look_at(&new, bytes, (entry.as_ref(), from), &mut report)?,
            Err(error) => report.findings.push(structure(Verdict::Reject, describe_chain(&error))),
        }
        report.settle();
        Ok(report)
    }

    fn look_at(
        &self,
        new: &Arc<Component>,
        bytes: &[u8],
        (entry, from): (Option<&OffsetEntry>, Option<Digest>),
        report: &mut VerdictReport,
    ) -> Result<(), RuntimeError> {
        let Some((entry, from)) = entry.zip(from) else {
            report.notes.push("no batch has run yet: there is nothing to compare with".to_owned());
            return Ok(());
        };
        let old_bytes = self.checkpoint.plugins().get(&from)?;
        let old = self.session.plugin_host()?.load(self.plugin, &old_bytes)?;
        let planned = self.spec.map(|spec| self.plan(spec, entry, &old_bytes)).transpose()?;
        let used = planned.as_ref().map(|planned| &planned.functions);
        let names = old.functions().iter().map(|function| &function.name);
        report.used = names.filter(|name| used.is_none_or(|used| used.contains(*name))).cloned().collect();
        if planned.is_none() {
            report
                .notes
                .push("the query was not named: every function counts as called, and nothing was run".to_owned());
        }
        // What state it has is compared below, as the query is planned with it.
        for difference in differences(&old, new, used).into_iter().filter(|found| !found.is_of_state) {
            let verdict = if difference.is_fatal { Verdict::Reject } else { Verdict::NeedsApproval };
            report.findings.push(structure(verdict, difference.what));
        }
        let (Some(spec), Some(before)) = (self.spec, planned) else { return Ok(()) };
        let edited = state_changes(&entry.state_schemas, &before.state);
        if !edited.is_empty() {
            return Err(RuntimeError::Changed { changes: edited });
        }
        if gravest(&report.findings) == Verdict::Reject {
            return Ok(());
        }
        match self.plan(spec, entry, bytes) {
            Ok(after) => {
                let declared = declaration::compare(self.plugin, &entry.state_schemas, &after.state);
                self.declare(declared, report);
                if before.schema != after.schema {
                    let columns = |planned: &PlannedWith| {
                        planned.schema.fields().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
                    };
                    let what = format!("the result was ({}) and is ({})", columns(&before), columns(&after));
                    report.findings.push(structure(Verdict::Reject, what));
                }
            }
            Err(error) => {
                let what = format!("the query cannot be planned with it: {}", describe_chain(&error));
                report.findings.push(structure(Verdict::Reject, what));
            }
        }
        if gravest(&report.findings) == Verdict::Reject || self.batches == 0 || report.from.as_ref() == Some(&report.to)
        {
            return Ok(());
        }
        let trial = Trial {
            session: self.session,
            spec,
            checkpoint: self.checkpoint,
            plugin: self.plugin,
            old: (from, &old_bytes),
            new: bytes,
            batches: self.batches,
            migrate: None,
        };
        let outcome = trial.run()?;
        report.findings.extend(outcome.findings);
        report.notes.extend(outcome.notes);
        report.dry_run = outcome.dry_run;
        Ok(())
    }

    /// The query as it is planned with a component; with the one that runs it must fit the checkpoint.
    fn plan(&self, spec: &QuerySpec, entry: &OffsetEntry, component: &[u8]) -> Result<PlannedWith, RuntimeError> {
        let components = BTreeMap::from([(self.plugin.to_owned(), component.to_vec())]);
        plan_with(self.session, spec, self.checkpoint, entry, components)
    }

    fn declare(&self, declared: Declared, report: &mut VerdictReport) {
        report.findings.extend(declared.findings);
        for change in declared.changes {
            let what = format!(
                "the state `{}` of `{}` is stored as `{}` and wanted as `{}`, and there is no migration",
                change.was.state, change.uid, change.was.state_id, change.is.state_id
            );
            report.findings.push(VerdictFinding { verdict: Verdict::Reject, check: Check::Declaration, what });
        }
    }
}

fn structure(verdict: Verdict, what: String) -> VerdictFinding {
    VerdictFinding { verdict, check: Check::Structure, what }
}
