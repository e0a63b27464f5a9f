//! The session's planner of frames, made when it is first needed.

use super::{Session, lock};
use crate::RuntimeError;
use millstream_common::{BatchTime, SqlSettings};
use millstream_plan::frame::Operation;
use millstream_plan::{Frame, FramePlanner, PlanError};
use millstream_wasm::PluginSlot;
use std::sync::Arc;

impl Session {
    /// The frame of an operation.
    pub(super) fn frame(&self, operation: Operation, inputs: Vec<Frame>) -> Result<Frame, RuntimeError> {
        self.with_planner(|planner| planner.frame(operation, inputs))
    }

    /// A stream as it was declared, under another name.
    pub(super) fn renamed_stream(&self, frame: &Frame, name: &str) -> Result<Option<Frame>, RuntimeError> {
        self.with_planner(|planner| planner.renamed_stream(frame, name))
    }

    fn with_planner<T>(&self, ask: impl FnOnce(&mut FramePlanner) -> Result<T, PlanError>) -> Result<T, RuntimeError> {
        let mut planner = lock(&self.inner.planner);
        let planner = match planner.as_mut() {
            Some(planner) => planner,
            None => planner.insert(self.new_planner()?),
        };
        Ok(ask(planner)?)
    }

    /// The functions of plugins are known by their signatures; a query loads the components again for itself.
    fn new_planner(&self) -> Result<FramePlanner, RuntimeError> {
        let settings = SqlSettings { ansi: self.settings().ansi, batch_time: BatchTime::default() };
        Ok(FramePlanner::new(self.registered_slots()?, settings)?)
    }

    /// The plugins of the session, for what they say of themselves.
    pub(super) fn registered_slots(&self) -> Result<Vec<Arc<PluginSlot>>, RuntimeError> {
        let mut slots = Vec::new();
        for plugin in self.plugins() {
            let host = self.plugin_host()?;
            let component = host.load(&plugin.name, &plugin.component)?;
            slots.push(PluginSlot::new(&plugin.name, host, component, plugin.limits.clone(), plugin.on_fault));
        }
        Ok(slots)
    }
}
