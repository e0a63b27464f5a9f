//! One instance of a component, and one call into it.
//!
//! A slot takes an instance, calls it once or many times with buffers, and gives it back or drops it.
//!
//! Rule of its life: after a failure that is not the guest's own answer, the instance is poisoned and must be
//! dropped. Every way a call can end is one [`Failure`].
//!
//! It knows no arrays and no policies.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::{Engine, PoolConcurrencyLimitError, Store, Trap, UpdateDeadline};
use wasmtime_wasi::I32Exit;

use crate::account::{Held, Overdrawn};
use crate::component::Entry;
use crate::engine::TICK;
use crate::error::WasmError;
use crate::export::{Export, Exports};
use crate::limits::{HostState, Late, PluginLimits};
use crate::stamp::CallStamp;
use crate::wasi::Denied;
use crate::wire::CallError;

/// Characters of a guest's message that are kept.
const MESSAGE: usize = 2 << 10;
/// Bytes that Wasmtime counts beside the bytes of the buffers themselves.
const LIFT_OVERHEAD: usize = 64 << 10;

/// A running copy of a component.
pub(crate) struct Instance {
    store: Store<HostState>,
    instance: wasmtime::component::Instance,
    exports: Arc<Exports>,
    deadline: Duration,
    /// When the time of a call is looked at first.
    first_look: Duration,
    stamp: CallStamp,
}

/// Why a call gave nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    Trap(String),
    Deadline(Duration),
    Cpu(Duration),
    Memory(u64),
    ResultTooLarge(u64),
    Garbage(String),
    Refused(String),
    Unavailable(String),
    Overdrawn(Overdrawn),
    Engine(String),
    /// No instance could be made.
    Start(Box<WasmError>),
}

impl Failure {
    pub(crate) fn into_error(self, plugin: &str, function: &str) -> WasmError {
        let (plugin, function) = (plugin.to_owned(), function.to_owned());
        match self {
            Self::Trap(reason) => WasmError::Trap { plugin, function, reason },
            Self::Deadline(limit) => WasmError::Deadline { plugin, function, limit },
            Self::Cpu(limit) => WasmError::CpuTime { plugin, function, limit },
            Self::Memory(limit_bytes) => WasmError::Memory { plugin, function, limit_bytes },
            Self::ResultTooLarge(limit_bytes) => WasmError::ResultTooLarge { plugin, function, limit_bytes },
            Self::Garbage(reason) => WasmError::Garbage { plugin, function, reason },
            Self::Refused(message) => {
                WasmError::Refused { plugin, function, what: "the call".into(), message: cut(&message) }
            }
            Self::Unavailable(message) => WasmError::Unavailable { plugin, function, message: cut(&message) },
            Self::Overdrawn(overdrawn) => overdrawn.into_error(plugin),
            Self::Engine(reason) => WasmError::Engine { reason },
            Self::Start(error) => *error,
        }
    }

    /// Whether rows can be at fault; the world and the engine are not the rows'.
    pub(crate) fn is_of_rows(&self) -> bool {
        !matches!(self, Self::Unavailable(_) | Self::Overdrawn(_) | Self::Engine(_) | Self::Start(_))
    }

    /// Whether what an earlier call left in the guest's memory may be the cause.
    pub(crate) fn may_be_stale(&self) -> bool {
        matches!(self, Self::Trap(_) | Self::Memory(_) | Self::Garbage(_) | Self::ResultTooLarge(_))
    }
}

/// A guest's words, at most [`MESSAGE`] characters; nothing among them steers the terminal that shows them.
pub(crate) fn cut(message: &str) -> String {
    let is_harmless = |c: char| !c.is_control() || c == '\n' || c == '\t';
    let chars = message.chars().take(MESSAGE);
    let mut text: String = chars.map(|c| if is_harmless(c) { c } else { '\u{fffd}' }).collect();
    if message.chars().nth(MESSAGE).is_some() {
        text.push('…');
    }
    text
}

impl Instance {
    pub(crate) fn new(
        engine: &Engine,
        entry: &Entry,
        plugin: &str,
        limits: &PluginLimits,
        held: Held,
    ) -> Result<Self, WasmError> {
        let mut store = Store::new(engine, HostState::new(plugin, limits, held));
        store.limiter(|state| state);
        let fuel = usize::try_from(limits.result_bytes).unwrap_or(usize::MAX);
        store.set_hostcall_fuel(fuel.saturating_add(LIFT_OVERHEAD));
        store.epoch_deadline_callback(|mut store| match store.data_mut().time_left() {
            Some(left) => Ok(UpdateDeadline::Continue(ticks(left))),
            None => Err(Trap::Interrupt.into()),
        });
        let first_look = limits.cpu_per_call.map_or(limits.deadline, |cpu| cpu.min(limits.deadline));
        begin(&mut store, (limits.deadline, first_look), CallStamp::default());
        let instance = entry.pre.instantiate(&mut store);
        store.data_mut().flush_output();
        let instance = match instance {
            Ok(instance) => instance,
            Err(error) => {
                let failure = match error.downcast_ref::<PoolConcurrencyLimitError>() {
                    Some(full) => Failure::Engine(full.to_string()),
                    None => classify(&error, &store, limits),
                };
                return Err(failure.into_error(plugin, "instantiate"));
            }
        };
        let exports = Arc::clone(&entry.exports);
        Ok(Self { store, instance, exports, deadline: limits.deadline, first_look, stamp: CallStamp::default() })
    }

    /// Says which call of which batch comes next.
    pub(crate) fn stamp(&mut self, stamp: CallStamp) {
        self.stamp = stamp;
    }

    /// Whether the exports have the types of this host's WIT.
    pub(crate) fn check_types(&mut self) -> Result<(), String> {
        let instance = self.instance;
        self.exports.check_types(&mut self.store, |store, index| instance.get_func(store, index))
    }

    /// Calls an export.
    pub(crate) fn call<E: Export>(
        &mut self,
        limits: &PluginLimits,
        params: E::Params<'_>,
    ) -> Result<E::Output, Failure> {
        let gone = || Failure::Engine(format!("`{}` of `{}` is not exported", E::NAME, E::INTERFACE));
        let index = self.exports.index::<E>().ok_or_else(gone)?;
        let func = self.instance.get_func(&mut self.store, index).ok_or_else(gone)?;
        let results =
            self.enter(limits, |store| func.typed::<E::Params<'_>, E::Results>(&*store)?.call(store, params))?;
        E::output(results).map_err(|error| match error {
            CallError::InvalidInput(message) | CallError::Internal(message) => Failure::Refused(message),
            CallError::Unavailable(message) => Failure::Unavailable(message),
        })
    }

    fn enter<R>(
        &mut self,
        limits: &PluginLimits,
        call: impl FnOnce(&mut Store<HostState>) -> wasmtime::Result<R>,
    ) -> Result<R, Failure> {
        begin(&mut self.store, (self.deadline, self.first_look), self.stamp);
        let result = call(&mut self.store);
        self.store.data_mut().flush_output();
        let dropped = self.store.data_mut().take_dropped_lines();
        if dropped > 0 {
            let plugin = self.store.data().plugin.as_str();
            tracing::warn!(target: "millstream::plugin", plugin, dropped, "lines beyond the limit of one call were dropped");
        }
        result.map_err(|error| classify(&error, &self.store, limits))
    }
}

fn begin(store: &mut Store<HostState>, (deadline, first_look): (Duration, Duration), stamp: CallStamp) {
    store.data_mut().begin_call(deadline, stamp);
    store.set_epoch_deadline(ticks(first_look));
}

fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_millis() / TICK.as_millis()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4).saturating_add(1)
}

fn classify(error: &wasmtime::Error, store: &Store<HostState>, limits: &PluginLimits) -> Failure {
    let state = store.data();
    match state.late {
        Some(Late::Deadline) => return Failure::Deadline(limits.deadline),
        Some(Late::Cpu) => return Failure::Cpu(limits.cpu_per_call.unwrap_or_default()),
        None => {}
    }
    if let Some(overdrawn) = &state.overdrawn {
        return Failure::Overdrawn(overdrawn.clone());
    }
    if state.memory_refused {
        return Failure::Memory(limits.memory_bytes);
    }
    let printed = || state.wasi.as_ref().and_then(|wasi| wasi.last_lines());
    let said = state.last_error.as_deref().map(cut).or_else(printed);
    let chain = format!("{error:#}");
    let reason = if let Some(trap) = error.downcast_ref::<Trap>() {
        trap.to_string()
    } else if let Some(exit) = error.downcast_ref::<I32Exit>() {
        format!("it ended itself with status {}", exit.0)
    } else if let Some(denied) = error.downcast_ref::<Denied>() {
        denied.to_string()
    } else if chain.contains("fuel allocated for hostcalls has been exhausted") {
        return Failure::ResultTooLarge(limits.result_bytes);
    } else {
        return Failure::Garbage(first_line(&chain));
    };
    Failure::Trap(match said {
        Some(said) => format!("{said} ({reason})"),
        None => reason,
    })
}

/// Wasmtime's messages carry a backtrace; the cause is on the lines that are not part of it.
fn first_line(chain: &str) -> String {
    let cause = chain.rsplit(": ").next().unwrap_or(chain);
    cut(cause.lines().next().unwrap_or(cause).trim())
}
