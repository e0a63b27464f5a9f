//! The one engine of the process, and the components it has compiled.
//!
//! Made once by whoever owns the process; `plan` loads components through it, slots take instances from it.
//!
//! Rule of its life: there is one constructor, so all components run under the same settings. A thread ticks every
//! millisecond for the deadlines and ends when the last user of the engine is gone.
//!
//! It grants a guest nothing but `log`; what components import of WASI leads into an empty world.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use millstream_common::Digest;
use wasmtime::component::Linker;
use wasmtime::{Config, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig};

use crate::account::{Account, AccountLimits, Tenant};
use crate::admission::Gate;
use crate::compile::{CacheOptions, Compilations, CompileLimits, Compiler, CompilerProgram};
use crate::component::{Component, load};
use crate::error::WasmError;
use crate::limits::HostState;
use crate::{log, permissions, wasi};

/// Compiled components that are kept for the next `load` of the same bytes.
const KEPT_COMPONENTS: usize = 64;
/// How often the deadlines are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Compiles and links components; shared by all queries of the process.
pub struct PluginHost {
    engine: Engine,
    linker: Linker<HostState>,
    /// With the empty world, once a component asked for it.
    wasi_linker: OnceLock<Linker<HostState>>,
    compiler: Compiler,
    admission: Option<Gate>,
    compiled: Mutex<VecDeque<Arc<Component>>>,
    /// Components that are being loaded; whoever loads one holds its lock.
    loading: Mutex<HashMap<Digest, Arc<Mutex<()>>>>,
    tenants: Mutex<HashMap<String, (AccountLimits, Arc<Account>)>>,
}

/// How a [`PluginHost`] compiles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginHostOptions {
    /// Where compiled components are kept for the next start; nowhere by default.
    pub cache: Option<CacheOptions>,
    /// What compiling one component may cost.
    pub compile: CompileLimits,
    /// The program that compiles in a process of its own; in this process by default, where nothing can stop it.
    pub compiler: Option<CompilerProgram>,
    /// Which components may be loaded; all by default.
    pub admission: Option<Gate>,
}

impl std::fmt::Debug for PluginHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginHost").finish_non_exhaustive()
    }
}

impl PluginHost {
    /// Starts an engine and its ticking thread. Components are compiled in this process and kept in memory only.
    ///
    /// # Errors
    ///
    /// [`WasmError::Engine`] when the machine cannot run one.
    pub fn new() -> Result<Arc<Self>, WasmError> {
        Self::with(&PluginHostOptions::default())
    }

    /// Starts an engine that compiles as `options` say. A cache that cannot be used is left out with a warning.
    ///
    /// # Errors
    ///
    /// [`WasmError::Engine`] when the machine cannot run one.
    pub fn with(options: &PluginHostOptions) -> Result<Arc<Self>, WasmError> {
        let engine = engine()?;
        let mut linker = Linker::new(&engine);
        log::link(&mut linker).and_then(|()| permissions::link(&mut linker)).map_err(|e| engine_error(&e))?;
        tick(&engine)?;
        let compiler =
            Compiler::new(&engine, options.compiler.clone(), options.compile.clone(), options.cache.as_ref());
        Ok(Arc::new(Self {
            engine,
            linker,
            wasi_linker: OnceLock::new(),
            compiler,
            admission: options.admission.clone(),
            compiled: Mutex::default(),
            loading: Mutex::default(),
            tenants: Mutex::default(),
        }))
    }

    /// Compiles a component, checks that it is one of ours, and asks it for its functions. The same bytes are
    /// compiled once. `name` is the plugin's name in errors.
    ///
    /// # Errors
    ///
    /// [`WasmError::NotAdmitted`], [`WasmError::NotAComponent`], [`WasmError::ForeignWorld`],
    /// [`WasmError::BadDescription`]; or what a call can end in, when `describe` does.
    pub fn load(&self, name: &str, bytes: &[u8]) -> Result<Arc<Component>, WasmError> {
        let digest = Digest::of(bytes);
        if let Some(admission) = &self.admission {
            admission.admit(name, bytes, digest).map_err(|refusal| WasmError::NotAdmitted {
                plugin: name.to_owned(),
                reason: refusal.reason,
                hint: refusal.hint,
            })?;
        }
        if let Some(found) = self.known(digest) {
            return Ok(found);
        }
        // Whoever comes while it is compiled waits for that, and finds it then.
        let turn = Arc::clone(self.loading().entry(digest).or_default());
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = self.known(digest) {
            return Ok(found);
        }
        let loaded = load(self, name, bytes, digest).map(Arc::new);
        self.loading().remove(&digest);
        let component = loaded?;
        let mut compiled = self.compiled();
        if compiled.len() == KEPT_COMPONENTS {
            compiled.pop_front();
        }
        compiled.push_back(Arc::clone(&component));
        Ok(component)
    }

    fn known(&self, digest: Digest) -> Option<Arc<Component>> {
        self.compiled().iter().find(|component| component.digest() == digest).map(Arc::clone)
    }

    fn loading(&self) -> MutexGuard<'_, HashMap<Digest, Arc<Mutex<()>>>> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The account that all plugins of a tenant share. When its limits have changed, plugins to come share another one.
    pub fn account_of(&self, tenant: &Tenant) -> Arc<Account> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((limits, account)) = tenants.get(&tenant.name)
            && *limits == tenant.limits
        {
            return Arc::clone(account);
        }
        let account = Account::new(&format!("tenant `{}`", tenant.name), &tenant.limits);
        tenants.insert(tenant.name.clone(), (tenant.limits.clone(), Arc::clone(&account)));
        account
    }

    /// What was compiled so far, and what the cache had. Components that were loaded before are neither.
    pub fn compilations(&self) -> Compilations {
        self.compiler.compilations()
    }

    pub(crate) fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    /// The linker for a component with these imports.
    pub(crate) fn linker(&self, imports: &[String]) -> Result<&Linker<HostState>, WasmError> {
        if !imports.iter().any(|import| wasi::is_known(import)) {
            return Ok(&self.linker);
        }
        if let Some(linker) = self.wasi_linker.get() {
            return Ok(linker);
        }
        let mut linker = self.linker.clone();
        wasi::link(&mut linker).map_err(|e| engine_error(&e))?;
        Ok(self.wasi_linker.get_or_init(|| linker))
    }

    fn compiled(&self) -> MutexGuard<'_, VecDeque<Arc<Component>>> {
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
        .max_tables_per_component(64)
        .max_tables_per_module(8)
        .table_elements(50_000);
    match Engine::new(config().allocation_strategy(InstanceAllocationStrategy::Pooling(pool))) {
        Ok(engine) => Ok(engine),
        Err(error) => {
            tracing::warn!("no pool of instances, each is allocated on demand: {error:#}");
            without_pool()
        }
    }
}

/// An engine that compiles, and runs nothing: its code fits those with a pool.
pub(crate) fn without_pool() -> Result<Engine, WasmError> {
    Engine::new(&config()).map_err(|e| engine_error(&e))
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
