//! The place of one plugin in a running query: a component, its instances, its limits and its fault policy.
//!
//! `plan` puts a slot behind each plugin function; operators call it with the argument columns of a batch, from any
//! thread; the runtime asks for dead letters and metrics after each batch and swaps the component between batches.
//!
//! Rule of its life: a call runs against one component from start to end; what a component leaves in the memory of
//! an instance never shows in the output; after a fault the slot is as good as new.
//!
//! It knows no batch numbers and writes nothing durable.

mod compare;
mod invocation;
mod outcome;
mod piece;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, UInt32Array};
use arrow::datatypes::Field;
use millstream_common::Digest;

pub use outcome::{DeadLetter, FaultPolicy, PluginMetrics, RowFault, ScalarOutcome, TableOutcome};

use crate::account::{Account, CpuClock, Held, Spent};
use crate::call::Instance;
use crate::component::Component;
use crate::engine::PluginHost;
use crate::error::WasmError;
use crate::layout::encode;
use crate::limits::PluginLimits;
use crate::signature::{FunctionKind, FunctionSignature};
use crate::stamp::{BatchStamp, CallStamp};
use invocation::Invocation;
use piece::Piece;

/// One plugin of a query.
pub struct PluginSlot {
    name: String,
    host: Arc<PluginHost>,
    limits: PluginLimits,
    policy: FaultPolicy,
    component: RwLock<Arc<Component>>,
    idle: Mutex<Vec<Instance>>,
    dead_letters: Mutex<Vec<DeadLetter>>,
    metrics: Mutex<PluginMetrics>,
    /// The stamp of the next invocation.
    stamp: Mutex<CallStamp>,
    /// Who pays: the plugin, and its tenant.
    accounts: Vec<Arc<Account>>,
}

impl std::fmt::Debug for PluginSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginSlot").field("name", &self.name).field("digest", &self.digest()).finish_non_exhaustive()
    }
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
            component: RwLock::new(component),
            idle: Mutex::default(),
            dead_letters: Mutex::default(),
            metrics: Mutex::default(),
            stamp: Mutex::default(),
            accounts,
        })
    }

    /// The plugin's name in the query.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The component that calls run in now.
    pub fn component(&self) -> Arc<Component> {
        Arc::clone(&self.component.read().unwrap_or_else(PoisonError::into_inner))
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
        *locked(&self.stamp) = CallStamp { batch, ..CallStamp::default() };
    }

    /// The stamp of an invocation; the next one has another.
    fn take_stamp(&self) -> CallStamp {
        let mut next = locked(&self.stamp);
        let stamp = *next;
        next.invocation += 1;
        stamp
    }

    /// Whether `next` may take the place of the running component.
    ///
    /// # Errors
    ///
    /// [`WasmError::NotGranted`] when it asks for more than the plugin may have; [`WasmError::SwapRefused`] with every
    /// difference that a running plan would notice: functions that are gone, other kinds, argument or result types,
    /// names, assumptions. New functions are no difference.
    pub fn check_swap(&self, next: &Component) -> Result<(), WasmError> {
        self.check_granted(next)?;
        let differences = compare::differences(&self.component(), next);
        if differences.is_empty() {
            return Ok(());
        }
        Err(WasmError::SwapRefused { plugin: self.name.clone(), reason: differences.join("; ") })
    }

    /// Puts `next` in the place of the running component. Calls under way end in the old one.
    ///
    /// # Errors
    ///
    /// As [`Self::check_swap`]; then nothing has changed.
    pub fn swap(&self, next: Arc<Component>) -> Result<(), WasmError> {
        self.check_swap(&next)?;
        let mut current = self.component.write().unwrap_or_else(PoisonError::into_inner);
        *current = next;
        locked(&self.idle).clear();
        Ok(())
    }

    /// Computes a scalar function over `rows` rows.
    ///
    /// # Errors
    ///
    /// Under [`FaultPolicy::Fail`] the first fault. Under the other policies only what is not the rows' fault:
    /// [`WasmError::BadCall`], [`WasmError::Unavailable`], [`WasmError::Engine`].
    pub fn call_scalar(&self, function: &str, rows: usize, arguments: &[ArrayRef]) -> Result<ScalarOutcome, WasmError> {
        let (pieces, faults, signature) = self.run(function, FunctionKind::Scalar, rows, arguments)?;
        let values = self.values(&signature, &pieces)?;
        Ok(ScalarOutcome { values, faults })
    }

    /// Computes a table function over `rows` rows.
    ///
    /// # Errors
    ///
    /// As [`Self::call_scalar`].
    pub fn call_table(&self, function: &str, rows: usize, arguments: &[ArrayRef]) -> Result<TableOutcome, WasmError> {
        let (pieces, faults, signature) = self.run(function, FunctionKind::Table, rows, arguments)?;
        let input_rows =
            UInt32Array::from_iter_values(pieces.iter().flat_map(|piece| piece.input_rows.iter().copied()));
        let columns = signature
            .results
            .iter()
            .enumerate()
            .map(|(i, field)| {
                let parts: Vec<&ArrayRef> = pieces.iter().filter_map(|piece| piece.columns.get(i)).collect();
                self.joined(&signature, field, &parts)
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(TableOutcome { input_rows, columns, faults })
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

    fn run(
        &self,
        function: &str,
        kind: FunctionKind,
        rows: usize,
        arguments: &[ArrayRef],
    ) -> Result<(Vec<Piece>, Vec<RowFault>, FunctionSignature), WasmError> {
        let component = self.component();
        let bad = |reason: String| self.bad_call(function, reason);
        let (index, signature) =
            component.function(function).ok_or_else(|| bad("the component has no such function".into()))?;
        if signature.kind != kind {
            return Err(bad(format!("it is `{signature}`")));
        }
        if arguments.len() != signature.arguments.len() {
            return Err(bad(format!("{} arguments instead of {}", arguments.len(), signature.arguments.len())));
        }
        if u32::try_from(rows).is_err() {
            return Err(bad(format!("{rows} rows in one batch")));
        }
        if let Some(column) = arguments.iter().find(|column| column.len() != rows) {
            return Err(bad(format!("an argument of {} rows in a batch of {rows}", column.len())));
        }
        let columns = arguments.iter().zip(&signature.arguments);
        let columns = columns.map(|(column, field)| encode::normalise(column, field)).collect::<Result<Vec<_>, _>>();
        let invocation = Invocation::new(self, &component, index, signature, columns.map_err(bad)?);
        let (pieces, faults) = invocation.run(rows)?;
        Ok((pieces, faults, signature.clone()))
    }

    fn values(&self, signature: &FunctionSignature, pieces: &[Piece]) -> Result<ArrayRef, WasmError> {
        let Some(field) = signature.results.first() else {
            return Err(self.bad_call(&signature.name, "it has no result".into()));
        };
        let parts: Vec<&ArrayRef> = pieces.iter().filter_map(|piece| piece.columns.first()).collect();
        self.joined(signature, field, &parts)
    }

    fn joined(&self, signature: &FunctionSignature, field: &Field, parts: &[&ArrayRef]) -> Result<ArrayRef, WasmError> {
        match parts {
            [] => Ok(encode::nulls(field.data_type(), 0)),
            [one] => Ok(ArrayRef::clone(one)),
            many => {
                let many: Vec<&dyn arrow::array::Array> = many.iter().map(|part| part.as_ref()).collect();
                arrow::compute::concat(&many).map_err(|e| self.bad_call(&signature.name, e.to_string()))
            }
        }
    }

    fn bad_call(&self, function: &str, reason: String) -> WasmError {
        WasmError::BadCall { plugin: self.name.clone(), function: function.to_owned(), reason }
    }

    /// An instance of `component`, and whether it has been called before: an idle one if there is one.
    fn take_instance(&self, component: &Arc<Component>) -> Result<(Instance, bool), WasmError> {
        {
            let current = self.component.read().unwrap_or_else(PoisonError::into_inner);
            if Arc::ptr_eq(component, &current)
                && let Some(instance) = locked(&self.idle).pop()
            {
                return Ok((instance, true));
            }
        }
        locked(&self.metrics).instances += 1;
        let held = Held::new(&self.accounts).map_err(|overdrawn| overdrawn.into_error(self.name.clone()))?;
        Ok((Instance::new(self.host.engine(), &component.entry, &self.name, &self.limits, held)?, false))
    }

    fn give_back(&self, component: &Arc<Component>, instance: Instance) {
        let current = self.component.read().unwrap_or_else(PoisonError::into_inner);
        let mut idle = locked(&self.idle);
        if Arc::ptr_eq(component, &current) && idle.len() < self.limits.idle_instances {
            idle.push(instance);
        }
    }
}
