//! A start whose query file names other code than the last batch ran: the same verdict as before a swap.
//!
//! To name a component in the query file was to approve of it; so `needs approval` is said and goes on, and only what is
//! rejected is refused. Where the new code needs other state, the run begins with the old code and migrates at its first
//! border.

use super::QueryChange;
use super::border::Remake;
use super::open::{self, RunningPlugin};
use super::planned::{Components, Planned};
use super::recovery::Recovered;
use super::swap::{SwapGrounds, Unlogged};
use crate::spec::PluginSpec;
use crate::verdict::{Question, Verdict, VerdictReport, judge};
use crate::{QuerySpec, RuntimeError, Session};
use millstream_checkpoint::{Checkpoint, OffsetEntry};
use millstream_common::StopSignal;

/// A swap that waits for the first border of a run.
pub(super) struct Later {
    /// The plugin as the query file has it.
    pub(super) plugin: PluginSpec,
    /// What was said of it.
    pub(super) grounds: SwapGrounds,
    /// What is made of the state.
    pub(super) remake: Option<Remake>,
}

/// Plans a query. When the state that it wants is stored otherwise, and code of its file can migrate it, the plan is that of
/// the old code, and the new code waits for the first border.
pub(super) fn planned(
    session: &Session,
    spec: &QuerySpec,
    (recovered, components): (&Recovered, Option<&Components>),
    checkpoint: &Checkpoint,
    stop: &StopSignal,
) -> Result<(Planned, Vec<Later>), RuntimeError> {
    let changed = match Planned::new(session, spec, (recovered, components), Some(checkpoint), stop) {
        Err(RuntimeError::Changed { changes }) if components.is_none() => changes,
        planned => return Ok((planned?, Vec::new())),
    };
    let is_state =
        |change: &QueryChange| matches!(change, QueryChange::State { .. } | QueryChange::StateMeaning { .. });
    let Some(entry) = recovered.last_entry().filter(|_| changed.iter().all(is_state)) else {
        return Err(RuntimeError::Changed { changes: changed });
    };
    let mut old = Components::new();
    let mut later = Vec::new();
    for plugin in &spec.plugins {
        let Some(pin) = entry.plugins.get(&plugin.name) else { continue };
        old.insert(plugin.name.clone(), checkpoint.plugins().get(&pin.digest)?.to_vec());
        if pin.digest != plugin.digest() {
            later.extend(waiting(session, spec, checkpoint, plugin)?);
        }
    }
    if later.iter().all(|later| later.remake.is_none()) {
        return Err(RuntimeError::Changed { changes: changed });
    }
    let mut planned = Planned::new(session, spec, (recovered, Some(&old)), Some(checkpoint), stop)?;
    recovered.check_query(&planned.session, spec, &mut planned.plan)?;
    Ok((planned, later))
}

/// The plugins that were changed while a batch was unfinished: that batch runs the old component.
pub(super) fn edited(
    session: &Session,
    spec: &QuerySpec,
    recovered: &Recovered,
    checkpoint: &Checkpoint,
) -> Result<Vec<Later>, RuntimeError> {
    let mut later = Vec::new();
    for plugin in open::edited_plugins(&spec.plugins, recovered) {
        later.extend(waiting(session, spec, checkpoint, plugin)?);
    }
    Ok(later)
}

/// A plugin of the query file that waits for a border.
fn waiting(
    session: &Session,
    spec: &QuerySpec,
    checkpoint: &Checkpoint,
    plugin: &PluginSpec,
) -> Result<Option<Later>, RuntimeError> {
    let question = question(session, spec, checkpoint, &plugin.name);
    let report = answer(judge(&question, &plugin.component), &plugin.name)?;
    let remake = report.as_ref().is_some_and(|report| !report.migration.is_empty()).then_some(Remake::Migrate);
    Ok(Some(Later { plugin: plugin.clone(), grounds: grounds(report.as_ref()), remake }))
}

fn question<'a>(
    session: &'a Session,
    spec: &'a QuerySpec,
    checkpoint: &'a Checkpoint,
    plugin: &'a str,
) -> Question<'a> {
    let batches = spec.settings.dry_run_batches;
    Question { session, checkpoint, spec: Some(spec), plugin, batches, restores: false }
}

/// The verdict, if there is one; a rejection is an error.
fn answer(answer: Result<VerdictReport, RuntimeError>, plugin: &str) -> Result<Option<VerdictReport>, RuntimeError> {
    match answer {
        Ok(report) if report.verdict == Verdict::Reject => Err(RuntimeError::Refused { report: Box::new(report) }),
        Ok(report) => {
            if report.verdict != Verdict::Ok {
                tracing::warn!(plugin, "{}: {}", report.verdict, report.reasons());
            }
            Ok(Some(report))
        }
        // The query was edited with it; what must fit then is the plan, and that is made anew.
        Err(error) => {
            tracing::debug!(plugin, "no verdict: {}", millstream_common::describe_chain(&error));
            Ok(None)
        }
    }
}

fn grounds(report: Option<&VerdictReport>) -> SwapGrounds {
    match report {
        Some(report) => SwapGrounds::of("restart", report, report.verdict == Verdict::NeedsApproval),
        None => SwapGrounds::unasked("restart"),
    }
}

/// The components that take another's place with the first batch because the query file names them, each after a verdict.
pub(super) fn swaps(
    session: &Session,
    spec: &QuerySpec,
    checkpoint: &Checkpoint,
    entry: &OffsetEntry,
    plugins: &[RunningPlugin],
) -> Result<Vec<Unlogged>, RuntimeError> {
    let mut swaps = Vec::new();
    for plugin in plugins {
        let (name, to) = (plugin.slot.name(), plugin.slot.digest());
        let Some(from) = entry.plugins.get(name).map(|pin| pin.digest).filter(|from| *from != to) else { continue };
        let report = answer(judge(&question(session, spec, checkpoint, name), &plugin.bytes), name)?;
        swaps.push(Unlogged::by_restart(name, from, to, grounds(report.as_ref())));
    }
    Ok(swaps)
}
