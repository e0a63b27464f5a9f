//! The candidate and the question that is asked about it.

use super::declaration;
use super::dry_run::Trial;
use super::permissions;
use super::{Check, Verdict, VerdictFinding, VerdictReport, gravest};
use crate::inspect::CheckpointPlace;
use crate::migration::{Beside, Forms, Migration, OpenStore, is_needed, losses};
use crate::query::{PlannedWith, plan_with, state_changes};
use crate::{QuerySpec, RuntimeError, Session};
use millstream_checkpoint::{
    Checkpoint, CheckpointError, CommitEntry, CommitLog, ForkedFiles, OffsetEntry, ResumePoint,
};
use millstream_common::{Digest, DurableFiles, describe_chain};
use millstream_wasm::{AskedAnew, Component, DifferenceKind, FaultPolicy, PluginLimits, PluginSlot, differences};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

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
    let question =
        Question { session, checkpoint: &checkpoint, spec, plugin: &plugin, batches: request.batches, restores: false };
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
    /// Whether the state is made again by the candidate, from before it last stopped: then it is no matter what is stored.
    pub(crate) restores: bool,
}

/// The answer to a question.
pub(crate) fn judge(question: &Question<'_>, component: &[u8]) -> Result<VerdictReport, RuntimeError> {
    question.ask(component)
}

/// Where a run would begin. A running query moves on between two looks at its logs; then it is after the newest batch that
/// is done.
pub(crate) fn resume_point(checkpoint: &Checkpoint) -> Result<ResumePoint, RuntimeError> {
    let mut look = 0;
    loop {
        look += 1;
        match checkpoint.resume() {
            Err(CheckpointError::CommitAhead { .. } | CheckpointError::Gap { .. }) if look < LOOKS => {}
            point => return Ok(point?),
        }
        // Entries stay as they are, so the newest batch that is done can be read whatever comes after it.
        let Some(newest) = checkpoint.commit_log().batches()?.last().copied() else { continue };
        if let (Some(last), Some(commit)) = (checkpoint.offset_log().get(newest)?, checkpoint.commit_log().get(newest)?)
        {
            return Ok(ResumePoint::Next { last, commit });
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
            permissions: None,
            findings: Vec::new(),
            migration: Vec::new(),
            restores: self.restores,
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
        let plugin = self.spec.and_then(|spec| spec.plugins.iter().find(|plugin| plugin.name == self.plugin));
        let granted = plugin.map(|plugin| &*plugin.limits.permissions);
        report.permissions = Some(permissions::compare(None, new, granted));
        let Some((entry, from)) = entry.zip(from) else {
            report.notes.push("no batch has run yet: there is nothing to compare with".to_owned());
            return Ok(());
        };
        let old_bytes = self.checkpoint.plugins().get(&from)?;
        let old = self.session.plugin_host()?.load(self.plugin, &old_bytes)?;
        report.permissions = Some(permissions::compare(Some(&*old), new, granted));
        let planned = self.spec.map(|spec| self.plan(spec, entry, &old_bytes)).transpose()?;
        let used = planned.as_ref().map(|planned| &planned.functions);
        let names = old.functions().iter().map(|function| &function.name);
        let names = names.chain(old.aggregates().iter().map(|function| &function.name));
        let sinks: Vec<&String> = old
            .sinks()
            .iter()
            .map(|sink| &sink.name)
            .filter(|name| used.is_some_and(|used| used.contains(*name)))
            .collect();
        if let Some(sink) = sinks.first() {
            report.notes.push(format!("sink `{sink}` is not called: what it writes is not compared"));
        }
        let names = names.chain(sinks);
        let names = names.chain(old.sources().iter().map(|source| &source.name));
        report.used = names.filter(|name| used.is_none_or(|used| used.contains(*name))).cloned().collect();
        if old.sources().iter().any(|source| report.used.contains(&source.name)) {
            let note = "its sources are tried by the dry run only: a shadow gets the rows that the running code reads";
            report.notes.push(note.to_owned());
        }
        if planned.is_none() {
            report
                .notes
                .push("the query was not named: every function counts as called, and nothing was run".to_owned());
        }
        for difference in differences(&old, new, used) {
            let verdict = match difference.kind {
                DifferenceKind::Signature => Verdict::Reject,
                // With the query known, what is stored decides.
                DifferenceKind::State if planned.is_some() => continue,
                DifferenceKind::State => Verdict::Reject,
                DifferenceKind::Permission => match granted.map(|granted| granted.anew) {
                    None | Some(AskedAnew::NeedsApproval) => Verdict::NeedsApproval,
                    Some(AskedAnew::Ok) => Verdict::Ok,
                    Some(AskedAnew::Reject) => Verdict::Reject,
                },
            };
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
        let (mut wanted, mut is_migrated) = (BTreeMap::new(), false);
        match self.plan(spec, entry, bytes) {
            Ok(after) => {
                wanted = after.state.clone();
                let declared = declaration::compare(self.plugin, &entry.state_schemas, &wanted);
                let is_same = declared.findings.is_empty() && declared.changes.is_empty();
                if self.restores && !is_same {
                    report.notes.push("no dry run: what is stored is not its state, which is restored".to_owned());
                    return Ok(());
                }
                report.findings.extend(declared.findings);
                is_migrated = !self.restores && is_needed((&entry.state_schemas, &wanted));
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
        if gravest(&report.findings) == Verdict::Reject {
            return Ok(());
        }
        let migration = self.migration(spec, new, &old)?;
        let forms: Forms<'_> = (&entry.state_schemas, &wanted);
        let mut migrated = None;
        if is_migrated {
            match migration.ways(forms) {
                Ok(ways) => {
                    report.migration = ways;
                    let losses = losses(forms).into_iter();
                    report.findings.extend(losses.map(|what| declared(Verdict::NeedsApproval, what)));
                }
                Err(no_way) => {
                    report.findings.push(declared(Verdict::Reject, no_way));
                    return Ok(());
                }
            }
            migrated = self.rehearse(&migration, forms, report)?;
            if gravest(&report.findings) == Verdict::Reject {
                return Ok(());
            }
        }
        if self.batches == 0 || report.from.as_ref() == Some(&report.to) {
            return Ok(());
        }
        // Other code may have written the state before those batches: its own entry tells of that.
        let migrate = |commit: &CommitEntry, own: &Arc<dyn DurableFiles>| {
            let told = self.checkpoint.offset_log().get(commit.batch)?;
            let stored = told.as_ref().map_or(&entry.state_schemas, |told| &told.state_schemas);
            self.migrate(&migration, (stored, &wanted), commit, own)
        };
        let trial = Trial {
            session: self.session,
            spec,
            checkpoint: self.checkpoint,
            plugin: self.plugin,
            old: (from, &old_bytes),
            new: bytes,
            batches: self.batches,
            migrate: if is_migrated { Some(&migrate) } else { None },
        };
        let outcome = trial.run()?;
        report.findings.extend(outcome.findings);
        report.notes.extend(outcome.notes);
        report.dry_run = outcome.dry_run;
        if let (Some(dry_run), Some((keys, pause_ms))) = (&mut report.dry_run, migrated) {
            (dry_run.migrated_keys, dry_run.pause_ms) = (keys, pause_ms);
        }
        Ok(())
    }

    /// Migrates the state of a commit into files of a fork, where the commit then names it.
    fn migrate(
        &self,
        migration: &Migration,
        forms: Forms<'_>,
        commit: &CommitEntry,
        own: &Arc<dyn DurableFiles>,
    ) -> Result<(), RuntimeError> {
        let base = Arc::clone(self.checkpoint.files());
        let fork = Checkpoint::open(Arc::new(ForkedFiles::after(base, Arc::clone(own), commit.batch)))?;
        let state = migration.run(&fork, forms, commit)?.state;
        Ok(CommitLog::new(Arc::clone(own)).add(&CommitEntry { state, ..commit.clone() })?)
    }

    /// Migrates the state before a batch for a candidate that is to run that batch on a fork.
    pub(crate) fn migrate_before(
        &self,
        entry: &OffsetEntry,
        component: &[u8],
        own: &Arc<dyn DurableFiles>,
    ) -> Result<(), RuntimeError> {
        let (Some(spec), Some(pin), Some(before)) = (self.spec, entry.plugins.get(self.plugin), entry.batch.previous())
        else {
            return Ok(());
        };
        let Some(commit) = self.checkpoint.commit_log().get(before)? else { return Ok(()) };
        let host = self.session.plugin_host()?;
        let new = host.load(self.plugin, component)?;
        let old = host.load(self.plugin, &self.checkpoint.plugins().get(&pin.digest)?)?;
        let wanted = self.plan(spec, entry, component)?.state;
        self.migrate(&self.migration(spec, &new, &old)?, (&entry.state_schemas, &wanted), &commit, own)
    }

    /// Migrates the state of the newest batch for a candidate that is to take over, and what batches change meanwhile.
    pub(crate) fn migrate_beside(
        &self,
        new: &Arc<Component>,
        bytes: &[u8],
        open: &OpenStore<'_>,
    ) -> Result<Beside, RuntimeError> {
        let invalid = |reason: &str| RuntimeError::Invalid { reason: reason.to_owned(), hint: None };
        let point = resume_point(self.checkpoint)?;
        let (entry, commit) = match point {
            ResumePoint::Next { commit, last } => (last, commit),
            ResumePoint::Rerun { base: Some(commit), previous: Some(previous), .. } => (previous, commit),
            _ => return Err(invalid("no batch has been done: there is no state to migrate")),
        };
        let pin = entry.plugins.get(self.plugin).ok_or_else(|| invalid("the last batch did not run that plugin"))?;
        let spec = self.spec.ok_or_else(|| invalid("the query is not known"))?;
        let old = self.session.plugin_host()?.load(self.plugin, &self.checkpoint.plugins().get(&pin.digest)?)?;
        let wanted = self.plan(spec, &entry, bytes)?.state;
        let migration = self.migration(spec, new, &old)?;
        Beside::begin(migration, (&entry.state_schemas, &wanted), self.checkpoint, &commit, open)
    }

    /// Steps of the candidate and of the code that runs.
    fn migration(
        &self,
        spec: &QuerySpec,
        new: &Arc<Component>,
        old: &Arc<Component>,
    ) -> Result<Migration, RuntimeError> {
        let named = spec.plugins.iter().find(|plugin| plugin.name == self.plugin);
        let limits = named.map_or_else(PluginLimits::default, |plugin| plugin.limits.clone());
        let host = self.session.plugin_host()?;
        let slot = PluginSlot::new(self.plugin, host, Arc::clone(new), limits, FaultPolicy::Fail);
        Ok(Migration::new(slot, vec![Arc::clone(new), Arc::clone(old)], "verdict".to_owned()))
    }

    /// Migrates all of the newest state on a fork: whether every key can be, how many there are, and how long it takes.
    fn rehearse(
        &self,
        migration: &Migration,
        forms: Forms<'_>,
        report: &mut VerdictReport,
    ) -> Result<Option<(u64, u64)>, RuntimeError> {
        let (commit, batch) = match resume_point(self.checkpoint)? {
            ResumePoint::Next { commit, last } => (commit, last.batch),
            ResumePoint::Rerun { base: Some(base), .. } => (base.clone(), base.batch),
            _ => return Ok(None),
        };
        let own = millstream_checkpoint::open_files("memory:///", &[])?;
        let fork = ForkedFiles::after(Arc::clone(self.checkpoint.files()), own, batch);
        let fork = Checkpoint::open(Arc::new(fork))?;
        let begin = Instant::now();
        match migration.run(&fork, forms, &commit) {
            Ok(migrated) => {
                let pause = begin.elapsed().as_millis() as u64;
                let keys = migrated.keys;
                let what = format!("{keys} keys of state are migrated beside the query, which takes about {pause} ms");
                report.findings.push(declared(Verdict::OkAfterMigration, what));
                Ok(Some((migrated.keys, pause)))
            }
            Err(error) => {
                report.findings.push(declared(Verdict::Reject, describe_chain(&error)));
                Ok(None)
            }
        }
    }

    /// The query as it is planned with a component; with the one that runs it must fit the checkpoint.
    fn plan(&self, spec: &QuerySpec, entry: &OffsetEntry, component: &[u8]) -> Result<PlannedWith, RuntimeError> {
        let components = BTreeMap::from([(self.plugin.to_owned(), component.to_vec())]);
        plan_with(self.session, spec, self.checkpoint, entry, components)
    }
}

fn declared(verdict: Verdict, what: String) -> VerdictFinding {
    VerdictFinding { verdict, check: Check::Declaration, what }
}

fn structure(verdict: Verdict, what: String) -> VerdictFinding {
    VerdictFinding { verdict, check: Check::Structure, what }
}
