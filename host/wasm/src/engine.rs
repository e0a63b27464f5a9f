//! The one engine of the process, and the components it has compiled.
//!
//! Made once by whoever owns the process; `plan` loads components through it, slots take instances from it.
//!
//! Rule of its life: there is one constructor, so all components run under the same settings. A thread ticks every
//! millisecond for the deadlines and ends when the last user of the engine is gone.
//!
//! It grants a guest nothing but `log`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use millstream_common::Digest;
use wasmtime::component::{Linker, WasmStr};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, StoreContextMut};

use crate::component::{Component, load};
use crate::error::WasmError;
use crate::limits::HostState;
use crate::wire;

/// Compiled components that are kept for the next `load` of the same bytes.
const KEPT_COMPONENTS: usize = 64;
/// How often the deadlines are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(1);
/// Characters of one line of a guest's log.
const LOG_LINE: usize = 4 << 10;

/// Compiles and links components; shared by all queries of the process.
pub struct PluginHost {
    engine: Engine,
    linker: Linker<HostState>,
    compiled: Mutex<VecDeque<Arc<Component>>>,
}

impl std::fmt::Debug for PluginHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginHost").finish_non_exhaustive()
    }
}

impl PluginHost {
    /// Starts an engine and its ticking thread.
    ///
    /// # Errors
    ///
    /// [`WasmError::Engine`] when the machine cannot run one.
    pub fn new() -> Result<Arc<Self>, WasmError> {
        let engine = engine()?;
        let mut linker = Linker::new(&engine);
        link_log(&mut linker).map_err(|e| engine_error(&e))?;
        tick(&engine)?;
        Ok(Arc::new(Self { engine, linker, compiled: Mutex::default() }))
    }

    /// Compiles a component, checks that it is one of ours, and asks it for its functions. The same bytes are
    /// compiled once. `name` is the plugin's name in errors.
    ///
    /// # Errors
    ///
    /// [`WasmError::NotAComponent`], [`WasmError::ForeignWorld`], [`WasmError::BadDescription`]; or what a call can
    /// end in, when `describe` does.
    pub fn load(&self, name: &str, bytes: &[u8]) -> Result<Arc<Component>, WasmError> {
        let digest = Digest::of(bytes);
        if let Some(found) = self.compiled().iter().find(|component| component.digest() == digest) {
            return Ok(Arc::clone(found));
        }
        let component = Arc::new(load(self, name, bytes, digest)?);
        let mut compiled = self.compiled();
        if let Some(found) = compiled.iter().find(|component| component.digest() == digest) {
            return Ok(Arc::clone(found));
        }
        if compiled.len() == KEPT_COMPONENTS {
            compiled.pop_front();
        }
        compiled.push_back(Arc::clone(&component));
        Ok(component)
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn linker(&self) -> &Linker<HostState> {
        &self.linker
    }

    fn compiled(&self) -> std::sync::MutexGuard<'_, VecDeque<Arc<Component>>> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn engine_error(error: &wasmtime::Error) -> WasmError {
    WasmError::Engine { reason: format!("{error:#}") }
}

fn engine() -> Result<Engine, WasmError> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(2_000)
        .total_core_instances(8_000)
        .total_memories(2_000)
        .total_tables(8_000)
        .max_memories_per_component(4)
        .max_tables_per_component(16)
        .max_tables_per_module(8)
        .table_elements(50_000);
    match Engine::new(config().allocation_strategy(InstanceAllocationStrategy::Pooling(pool))) {
        Ok(engine) => Ok(engine),
        Err(error) => {
            tracing::warn!("no pool of instances, each is allocated on demand: {error:#}");
            Engine::new(&config()).map_err(|e| engine_error(&e))
        }
    }
}

fn config() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .concurrency_support(false)
        .cranelift_opt_level(OptLevel::Speed)
        .epoch_interruption(true)
        .parallel_compilation(true)
        .relaxed_simd_deterministic(true)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(12));
    config
}

/// Advances the engine's clock by one per [`TICK`] of wall time, also when this thread was late.
fn tick(engine: &Engine) -> Result<(), WasmError> {
    let engine = engine.weak();
    let run = move || {
        let start = Instant::now();
        let mut ticks: u128 = 0;
        loop {
            std::thread::sleep(TICK);
            let Some(engine) = engine.upgrade() else { return };
            let due = start.elapsed().as_millis();
            while ticks < due {
                engine.increment_epoch();
                ticks += 1;
            }
        }
    };
    std::thread::Builder::new()
        .name("millstream-deadlines".into())
        .spawn(run)
        .map(drop)
        .map_err(|e| WasmError::Engine { reason: format!("cannot start the thread for deadlines: {e}") })
}

fn link_log(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    for version in wire::VERSIONS {
        linker.instance(&wire::interface(wire::TYPES, version))?;
        linker.instance(&wire::interface(wire::LOG, version))?.func_wrap("log", log)?;
    }
    Ok(())
}

fn log(mut store: StoreContextMut<'_, HostState>, (level, message): (wire::Level, WasmStr)) -> wasmtime::Result<()> {
    let line: String = {
        let text = message.to_str(&store)?;
        text.chars().take(LOG_LINE).collect()
    };
    let state = store.data_mut();
    if level == wire::Level::Error {
        state.last_error = Some(line.clone());
    }
    if !state.admit_log(line.len()) {
        return Ok(());
    }
    let plugin = state.plugin.as_str();
    match level {
        wire::Level::Error => tracing::error!(target: "millstream::plugin", plugin, "{line}"),
        wire::Level::Warn => tracing::warn!(target: "millstream::plugin", plugin, "{line}"),
        wire::Level::Info => tracing::info!(target: "millstream::plugin", plugin, "{line}"),
        wire::Level::Debug => tracing::debug!(target: "millstream::plugin", plugin, "{line}"),
        wire::Level::Trace => tracing::trace!(target: "millstream::plugin", plugin, "{line}"),
    }
    Ok(())
}
