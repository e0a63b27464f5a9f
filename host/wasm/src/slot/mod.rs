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
mod caller;
mod columns;
mod compare;
mod faults;
mod function;
mod isolation;
mod outcome;
mod processor;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use millstream_common::Digest;

pub use outcome::{DeadLetter, FaultPolicy, PluginMetrics, RowFault, ScalarOutcome, StatesOutcome, TableOutcome};

use crate::call::Instance;
use crate::component::Component;
use crate::engine::PluginHost;
use crate::error::WasmError;
use crate::limits::PluginLimits;

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
}

impl std::fmt::Debug for PluginSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginSlot").field("name", &self.name).field("digest", &self.digest()).finish_non_exhaustive()
    }
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
        Arc::new(Self {
            name: name.to_owned(),
            host,
            limits,
            policy,
            component: RwLock::new(component),
            idle: Mutex::default(),
            dead_letters: Mutex::default(),
            metrics: Mutex::default(),
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

    /// Whether `next` may take the place of the running component.
    ///
    /// # Errors
    ///
    /// [`WasmError::SwapRefused`] with every difference that a running plan would notice: functions that are gone,
    /// other kinds, argument or result types, names, assumptions, or new imports. New functions are no difference.
    pub fn check_swap(&self, next: &Component) -> Result<(), WasmError> {
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

    /// The dead letters since the last question; empty unless the policy is [`FaultPolicy::DeadLetter`].
    pub fn take_dead_letters(&self) -> Vec<DeadLetter> {
        std::mem::take(&mut *locked(&self.dead_letters))
    }

    /// What was counted since the last question.
    pub fn take_metrics(&self) -> PluginMetrics {
        std::mem::take(&mut *locked(&self.metrics))
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
        Ok((Instance::new(self.host.engine(), &component.entry, &self.name, &self.limits)?, false))
    }

    fn give_back(&self, component: &Arc<Component>, instance: Instance) {
        let current = self.component.read().unwrap_or_else(PoisonError::into_inner);
        let mut idle = locked(&self.idle);
        if Arc::ptr_eq(component, &current) && idle.len() < self.limits.idle_instances {
            idle.push(instance);
        }
    }
}
