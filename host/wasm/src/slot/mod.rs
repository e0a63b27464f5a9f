//! The place of one plugin in a running query: a component, its instances, its limits and its fault policy.
//!
//! `plan` puts a slot behind each plugin function; operators call it with the argument columns of a batch, from any
//! thread; the runtime asks for dead letters and metrics after each batch and swaps the component between batches.
//!
//! Rule of its life: a call runs against one component from start to end; what a component leaves in the memory of
//! an instance never shows in the output; after a fault the slot is as good as new.
//!
//! It knows no batch numbers and writes nothing durable.

mod aggregate;
mod answer;
mod caller;
mod canary;
mod code;
mod columns;
mod compare;
mod faults;
mod function;
mod isolation;
mod migration;
mod outcome;
mod processor;
mod sink;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use millstream_common::Digest;

pub use canary::CanaryFigures;
pub use compare::{Difference, DifferenceKind, differences};
pub use migration::MigratedRows;
pub use outcome::{DeadLetter, FaultPolicy, PluginMetrics, RowFault, ScalarOutcome, StatesOutcome, TableOutcome};
pub use sink::{SinkOutcome, SinkTarget, sink_fields};
pub use source::{SourceCalls, SourcePage};

use crate::account::{Account, CpuClock, Held, Spent};
use crate::call::Instance;
use crate::component::Component;
use crate::engine::PluginHost;
use crate::error::WasmError;
use crate::limits::PluginLimits;
use crate::scope::Scope;
use crate::stamp::{BatchStamp, CallStamp};
use canary::Canary;
use code::{Code, Request, Role};

/// One plugin of a query.
pub struct PluginSlot {
    name: String,
    host: Arc<PluginHost>,
    limits: PluginLimits,
    policy: FaultPolicy,
    code: RwLock<Arc<Code>>,
    /// The candidate that computes a slice of the keys, while there is one.
    canary: RwLock<Option<Arc<Canary>>>,
    dead_letters: Mutex<Vec<DeadLetter>>,
    metrics: Mutex<PluginMetrics>,
    stamps: Mutex<Stamps>,
    /// Who pays: the plugin, and its tenant.
    accounts: Vec<Arc<Account>>,
    /// The functions that the query calls; all of them until that is known.
    used: RwLock<Option<BTreeSet<String>>>,
}

impl std::fmt::Debug for PluginSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginSlot").field("name", &self.name).field("digest", &self.digest()).finish_non_exhaustive()
    }
}

/// What the stamps of the next requests are made of.
#[derive(Debug, Default)]
struct Stamps {
    batch: BatchStamp,
    /// How many requests each partition has made of the batch: they do not depend on how many threads share the partitions.
    requests: BTreeMap<u32, u64>,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PluginSlot {
    /// A slot named `name` in the query.
    pub fn new(
        name: &str,
        host: Arc<PluginHost>,
        component: Arc<Component>,
        limits: PluginLimits,
        policy: FaultPolicy,
    ) -> Arc<Self> {
        let mut accounts = vec![Account::new("the plugin", &limits.account)];
        accounts.extend(limits.tenant.as_ref().map(|tenant| host.account_of(tenant)));
        Arc::new(Self {
            name: name.to_owned(),
            host,
            limits,
            policy,
            code: RwLock::new(Code::new(component)),
            canary: RwLock::default(),
            dead_letters: Mutex::default(),
            metrics: Mutex::default(),
            stamps: Mutex::default(),
            accounts,
            used: RwLock::default(),
        })
    }

    /// Takes note of the functions that the query calls, of sources that it reads and sinks that it writes to: only they are
    /// compared before a swap. Names of other functions than this plugin's do no harm.
    pub fn use_functions(&self, names: &BTreeSet<String>) {
        *self.used.write().unwrap_or_else(PoisonError::into_inner) = Some(names.clone());
    }

    /// The functions, sources and sinks of the running component that the query uses; all of them when that is not known.
    pub fn used_functions(&self) -> BTreeSet<String> {
        let component = self.component();
        let mut names = component.names();
        names.extend(component.sources().iter().map(|source| source.name.clone()));
        names.extend(component.sinks().iter().map(|sink| sink.name.clone()));
        match &*self.used.read().unwrap_or_else(PoisonError::into_inner) {
            Some(used) => names.intersection(used).cloned().collect(),
            None => names,
        }
    }

    /// The plugin's name in the query.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The component that calls run in now.
    pub fn component(&self) -> Arc<Component> {
        Arc::clone(&self.code().component)
    }

    /// The digest of [`Self::component`].
    pub fn digest(&self) -> Digest {
        self.component().digest()
    }

    /// What happens to rows that cannot be computed.
    pub fn policy(&self) -> FaultPolicy {
        self.policy
    }

    /// The limits of each call.
    pub fn limits(&self) -> &PluginLimits {
        &self.limits
    }

    /// What the plugin has spent since the slot was made.
    pub fn spent(&self) -> Spent {
        self.accounts[0].spent()
    }

    /// The tenant that pays for the plugin, and what all its plugins have spent in this process.
    pub fn tenant_spent(&self) -> Option<(String, Spent)> {
        let tenant = self.limits.tenant.as_ref()?;
        Some((tenant.name.clone(), self.accounts.get(1)?.spent()))
    }

    /// Begins a request: waits or fails when an account is overdrawn.
    fn admit(&self) -> Result<CpuClock, WasmError> {
        let now = Instant::now();
        let mut wait = Duration::ZERO;
        for account in &self.accounts {
            let needed = account.admit(now).map_err(|overdrawn| overdrawn.into_error(self.name.clone()))?;
            wait = wait.max(needed);
        }
        if !wait.is_zero() {
            locked(&self.metrics).throttled_us += micros(wait);
            std::thread::sleep(wait);
        }
        Ok(CpuClock::start())
    }

    /// Ends a request: the accounts pay for it. The CPU time it took, in microseconds.
    fn settle(&self, clock: CpuClock) -> u64 {
        let took = clock.passed();
        self.accounts.iter().for_each(|account| account.pay(took));
        micros(took)
    }

    /// Whether the plugin may have all that `component` asks for.
    ///
    /// # Errors
    ///
    /// [`WasmError::NotGranted`] if not.
    pub fn check_granted(&self, component: &Component) -> Result<(), WasmError> {
        let permissions = &self.limits.permissions;
        match component.asks_for().into_iter().find(|permission| !permissions.grants(*permission)) {
            None => Ok(()),
            Some(permission) => Err(WasmError::NotGranted { plugin: self.name.clone(), permission }),
        }
    }

    /// Says which batch the calls to come belong to. What guests see of time and random numbers follows from it.
    pub fn begin_batch(&self, batch: BatchStamp) {
        *locked(&self.stamps) = Stamps { batch, requests: BTreeMap::new() };
    }

    /// The stamp of a request; the next one has another.
    fn take_stamp(&self) -> CallStamp {
        let partition = Scope::current().partition;
        let mut stamps = locked(&self.stamps);
        let next = stamps.requests.entry(partition).or_default();
        let invocation = *next;
        *next += 1;
        CallStamp { batch: stamps.batch, partition, invocation, row: 0 }
    }

    fn code(&self) -> Arc<Code> {
        Arc::clone(&self.code.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A request of the running code, whose answer counts.
    fn request(&self) -> Request {
        Request { code: self.code(), stamp: self.take_stamp(), role: Role::Answer, canary: None }
    }

    /// A partition that is written to a sink; such work may run in any order. No other request has its stamp. A sink
    /// has no keys: a canary has no say in it.
    fn request_of_sink(&self, partition: u32) -> Request {
        let stamp = CallStamp { batch: locked(&self.stamps).batch, partition, invocation: u64::MAX, row: 0 };
        Request { code: self.code(), stamp, role: Role::Answer, canary: None }
    }

    /// Whether `next` may take the place of the running component.
    ///
    /// # Errors
    ///
    /// [`WasmError::NotGranted`] when it asks for more than the plugin may have; [`WasmError::SwapRefused`] with every
    /// difference that a running plan would notice: functions that it calls and that are gone, of other kinds, argument
    /// or result types, names, assumptions. New functions are no difference, and a new permission that is granted is
    /// somebody else's question.
    pub fn check_swap(&self, next: &Component) -> Result<(), WasmError> {
        self.check_granted(next)?;
        let used = self.used_functions();
        let differences = differences(&self.component(), next, Some(&used));
        let fatal: Vec<String> = differences
            .into_iter()
            .filter(|found| found.kind != DifferenceKind::Permission)
            .map(|found| found.what)
            .collect();
        if fatal.is_empty() {
            return Ok(());
        }
        Err(WasmError::SwapRefused { plugin: self.name.clone(), reason: fatal.join("; ") })
    }

    /// Puts `next` in the place of the running component. Calls under way end in the old one.
    ///
    /// # Errors
    ///
    /// As [`Self::check_swap`]; then nothing has changed.
    pub fn swap(&self, next: Arc<Component>) -> Result<(), WasmError> {
        self.check_swap(&next)?;
        self.replace(next);
        Ok(())
    }

    /// Puts `next` in the place of the running component without a look: whoever plans the query anew has looked.
    pub fn replace(&self, next: Arc<Component>) {
        *self.code.write().unwrap_or_else(PoisonError::into_inner) = Code::new(next);
    }

    /// The dead letters since the last question; empty unless the policy is [`FaultPolicy::DeadLetter`].
    pub fn take_dead_letters(&self) -> Vec<DeadLetter> {
        std::mem::take(&mut *locked(&self.dead_letters))
    }

    /// What was counted since the last question.
    pub fn take_metrics(&self) -> PluginMetrics {
        let memory_bytes = self.accounts[0].spent().memory_high_bytes;
        PluginMetrics { memory_bytes, ..std::mem::take(&mut *locked(&self.metrics)) }
    }

    fn bad_call(&self, function: &str, reason: String) -> WasmError {
        WasmError::BadCall { plugin: self.name.clone(), function: function.to_owned(), reason }
    }

    /// An instance of that code, and whether it has been called before: an idle one if there is one.
    fn take_instance(&self, code: &Code) -> Result<(Instance, bool), WasmError> {
        if let Some(instance) = code.take_idle() {
            return Ok((instance, true));
        }
        Ok((self.make_instance(&code.component)?, false))
    }

    /// A fresh instance of `component`.
    fn make_instance(&self, component: &Component) -> Result<Instance, WasmError> {
        locked(&self.metrics).instances += 1;
        let held = Held::new(&self.accounts).map_err(|overdrawn| overdrawn.into_error(self.name.clone()))?;
        Instance::new(self.host.engine(), &component.entry, &self.name, &self.limits, held)
    }
}
