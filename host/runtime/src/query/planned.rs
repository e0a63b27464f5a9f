//! A query that is planned and has touched nothing yet: with the code of its checkpoint, of its file, or of a candidate.
//!
//! Before a run opens anything, before a border, and before a verdict.

use super::open::{self, RunningPlugin};
use super::recovery::{self, Recovered};
use crate::{QuerySpec, RuntimeError, Session};
use arrow::datatypes::SchemaRef;
use millstream_checkpoint::{Checkpoint, OffsetEntry, ResumePoint, StatePin};
use millstream_common::{BatchTime, StopSignal};
use millstream_plan::{StaticTable, StreamingPlan};
use millstream_wasm::PluginHost;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Components by plugin.
pub(super) type Components = BTreeMap<String, Vec<u8>>;

/// A query that is planned and has touched nothing yet.
pub(super) struct Planned {
    /// With the sources of its plugins.
    pub(super) session: Session,
    pub(super) host: Arc<PluginHost>,
    pub(super) plugins: Vec<RunningPlugin>,
    pub(super) plan: StreamingPlan,
    pub(super) batch_time: BatchTime,
    pub(super) tables: Vec<StaticTable>,
}

impl Planned {
    /// Plans a query; `components` run in place of those that the checkpoint or the file names.
    ///
    /// # Errors
    /// When the query, a plugin or a table does not fit, or the query does not fit its checkpoint.
    pub(super) fn new(
        session: &Session,
        spec: &QuerySpec,
        (recovered, components): (&Recovered, Option<&Components>),
        checkpoint: Option<&Checkpoint>,
        stop: &StopSignal,
    ) -> Result<Self, RuntimeError> {
        open::check_sink(session, spec)?;
        let host = session.plugin_host()?;
        let plugins = open::plugins(&host, &spec.plugins, (recovered, components), checkpoint)?;
        let slots: Vec<_> = plugins.iter().map(|plugin| Arc::clone(&plugin.slot)).collect();
        let session = session.with_plugin_sources(&slots);
        let tables = open::tables(&session, &spec.tables, stop)?;
        let batch_time = BatchTime::default();
        let mut plan = open::plan(&session, spec, tables.clone(), slots, &batch_time)?;
        plugins.iter().for_each(|plugin| plugin.slot.use_functions(&plan.functions));
        // Other code than the log's was compared before it was put here.
        if components.is_none_or(BTreeMap::is_empty) {
            recovered.check_query(&session, spec, &mut plan)?;
        }
        Ok(Self { session, host, plugins, plan, batch_time, tables })
    }
}

/// What a query is with given components: what a candidate is compared by.
pub(crate) struct PlannedWith {
    /// The functions that it calls.
    pub(crate) functions: BTreeSet<String>,
    /// What its operators keep.
    pub(crate) state: BTreeMap<String, StatePin>,
    /// The columns of its result.
    pub(crate) schema: SchemaRef,
}

/// Plans a query with given components, under the settings of an entry; the components of other plugins are those of the
/// entry.
pub(crate) fn plan_with(
    session: &Session,
    spec: &QuerySpec,
    checkpoint: &Checkpoint,
    entry: &OffsetEntry,
    mut components: Components,
) -> Result<PlannedWith, RuntimeError> {
    for (plugin, pin) in &entry.plugins {
        if !components.contains_key(plugin) {
            components.insert(plugin.clone(), checkpoint.plugins().get(&pin.digest)?.to_vec());
        }
    }
    let mut spec = spec.clone();
    for (name, asked, logged) in spec.settings.restore(&entry.settings)? {
        tracing::debug!("setting {name} is {asked}, the checkpoint has {logged}");
    }
    let recovered = Recovered { point: ResumePoint::Fresh };
    let planned = Planned::new(session, &spec, (&recovered, Some(&components)), None, &StopSignal::new())?;
    let mut plan = planned.plan;
    let state = recovery::state_schemas(&mut plan.pipeline);
    Ok(PlannedWith { functions: plan.functions, state, schema: plan.schema })
}
