//! What the operator calls: the code of a processor, wherever it runs.

use millstream_wasm::processor::{Invocation, Outcome, Step};
use millstream_wasm::{PluginSlot, Slice, WasmError};
use std::sync::Arc;

/// The code of a processor.
///
/// It answers an outcome that fits the processor's signature ([`Outcome::check`]); keys at fault are named in it, or the
/// call fails, as its policy says. It remembers nothing: all state comes with the call and goes with the outcome.
pub trait ProcessorCode: Send + Sync {
    /// Takes rows or timers of many keys.
    ///
    /// # Errors
    /// When the batch must fail.
    fn call(&self, step: &Step, invocation: &Invocation) -> Result<Outcome, WasmError>;

    /// The slice of the keys that other code computes: those come in calls of their own, in the scope of the slice.
    fn slice(&self) -> Option<Slice> {
        None
    }
}

/// A processor of a plugin; after a swap of the plugin it is the one of that name in the new component.
#[derive(Debug)]
pub struct PluginProcessor {
    slot: Arc<PluginSlot>,
    name: String,
}

impl PluginProcessor {
    /// The processor of that name.
    pub fn new(slot: Arc<PluginSlot>, name: &str) -> Self {
        Self { slot, name: name.to_owned() }
    }
}

impl ProcessorCode for PluginProcessor {
    fn call(&self, step: &Step, invocation: &Invocation) -> Result<Outcome, WasmError> {
        self.slot.call_processor(&self.name, step, invocation)
    }

    fn slice(&self) -> Option<Slice> {
        self.slot.slice()
    }
}
