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

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use arrow::array::{ArrayRef, UInt32Array};
use arrow::datatypes::Field;
use millstream_common::Digest;

pub use compare::{Difference, differences};
pub use outcome::{DeadLetter, FaultPolicy, PluginMetrics, RowFault, ScalarOutcome, TableOutcome};

use crate::call::Instance;
use crate::component::Component;
use crate::engine::PluginHost;
use crate::error::WasmError;
use crate::layout::encode;
use crate::limits::PluginLimits;
use crate::signature::{FunctionKind, FunctionSignature};
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
    /// The functions that the query calls; all of them until that is known.
    used: RwLock<Option<BTreeSet<String>>>,
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
            used: RwLock::default(),
        })
    }

    /// Takes note of the functions that the query calls: only they are compared before a swap. Names of other functions
    /// than this plugin's do no harm.
    pub fn use_functions(&self, names: &BTreeSet<String>) {
        *self.used.write().unwrap_or_else(PoisonError::into_inner) = Some(names.clone());
    }

    /// The functions of the running component that the query calls; all of them when that is not known.
    pub fn used_functions(&self) -> BTreeSet<String> {
        let names = self.component().functions().iter().map(|function| function.name.clone()).collect::<BTreeSet<_>>();
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
    /// [`WasmError::SwapRefused`] with every difference that a running plan would notice: functions that it calls and
    /// that are gone, of other kinds, argument or result types, names, assumptions. New functions are no difference, and
    /// a new permission is somebody else's question.
    pub fn check_swap(&self, next: &Component) -> Result<(), WasmError> {
        let used = self.used_functions();
        let differences = differences(&self.component(), next, Some(&used));
        let fatal: Vec<String> = differences.into_iter().filter(|found| found.is_fatal).map(|found| found.what).collect();
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
        let mut current = self.component.write().unwrap_or_else(PoisonError::into_inner);
        *current = next;
        locked(&self.idle).clear();
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
        std::mem::take(&mut *locked(&self.metrics))
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
