//! Calls into one component, one after the other, in one instance as long as it is sound.
//!
//! Made for one request of an operator, whatever kind of plugin it is about, and ended with it: then the instance goes
//! back to the slot and what was counted is added to the slot's counts.
//!
//! Rule of its life: an instance that did not answer as it should is dropped. A failure in a used instance counts only
//! when a fresh one fails too (except a passed deadline), so output does not depend on what ran before.
//!
//! It knows no rows and no policies.

use std::time::{Duration, Instant};

use super::code::{Request, Role};
use super::outcome::PluginMetrics;
use super::{PluginSlot, locked};
use crate::account::CpuClock;
use crate::call::{Failure, Instance};
use crate::error::WasmError;
use crate::export::Export;
use crate::stamp::CallStamp;

pub(super) struct Caller<'a> {
    slot: &'a PluginSlot,
    request: &'a Request,
    /// The instance, and whether it has been called before.
    instance: Option<(Instance, bool)>,
    metrics: PluginMetrics,
    start: Instant,
    /// Runs from the first call on.
    clock: Option<CpuClock>,
    /// CPU time for making instances: no canary is judged by it.
    start_cpu: Duration,
    stamp: CallStamp,
}

impl<'a> Caller<'a> {
    pub(super) fn new(slot: &'a PluginSlot, request: &'a Request) -> Self {
        Self {
            slot,
            request,
            instance: None,
            metrics: PluginMetrics::default(),
            start: Instant::now(),
            clock: None,
            start_cpu: Duration::ZERO,
            stamp: request.stamp,
        }
    }

    /// Says which row of the request the next call begins with.
    pub(super) fn begin_at(&mut self, row: usize) {
        self.stamp.row = row as u64;
    }

    /// One call; a second one in a fresh instance when a used one may be to blame. What `check` refuses is garbage.
    pub(super) fn call<E: Export, T>(
        &mut self,
        params: E::Params<'_>,
        check: impl Fn(E::Output) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let start = |error| Failure::Start(Box::new(error));
        if self.clock.is_none() {
            self.clock = Some(self.slot.admit().map_err(start)?);
        }
        let used = self.ensure_instance().map_err(start)?;
        match self.enter::<E, T>(params, &check) {
            Err(failure) if used && failure.may_be_stale() => {
                self.ensure_instance().map_err(start)?;
                self.enter::<E, T>(params, &check)
            }
            result => result,
        }
    }

    /// Makes sure there is an instance; answers whether it has been called before.
    fn ensure_instance(&mut self) -> Result<bool, WasmError> {
        if let Some((_, used)) = &self.instance {
            return Ok(*used);
        }
        let clock = self.request.canary.as_ref().map(|_| CpuClock::start());
        let (instance, used) = self.slot.take_instance(&self.request.code)?;
        self.start_cpu += clock.map_or(Duration::ZERO, CpuClock::passed);
        self.instance = Some((instance, used));
        Ok(used)
    }

    fn enter<E: Export, T>(
        &mut self,
        params: E::Params<'_>,
        check: &impl Fn(E::Output) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let Some((mut instance, _)) = self.instance.take() else {
            return Err(Failure::Engine("a call without an instance".into()));
        };
        self.metrics.calls += 1;
        instance.stamp(self.stamp);
        let limits = &self.slot.limits;
        let result = instance.call::<E>(limits, params).and_then(|output| check(output).map_err(Failure::Garbage));
        let sound = matches!(result, Ok(_) | Err(Failure::Refused(_) | Failure::Unavailable(_)));
        if !sound {
            self.metrics.traps += 1;
        } else if !limits.recycle_every_call {
            self.instance = Some((instance, true));
        }
        result
    }

    /// Gives the instance back and counts.
    pub(super) fn end(self, rows: usize, output_rows: usize, faults: usize) {
        if let Some((instance, _)) = self.instance {
            self.request.code.keep(instance, self.slot.limits.idle_instances);
        }
        let cpu_us = self.clock.map_or(0, |clock| self.slot.settle(clock));
        if let Some(canary) = &self.request.canary {
            canary.count(self.request.role, cpu_us.saturating_sub(super::micros(self.start_cpu)));
        }
        let total = &mut *locked(&self.slot.metrics);
        total.cpu_us += cpu_us;
        let counted = if self.request.role == Role::Answer { rows as u64 } else { 0 };
        for account in &self.slot.accounts {
            account.count(self.metrics.calls, counted, self.metrics.traps);
        }
        total.calls += self.metrics.calls;
        total.traps += self.metrics.traps;
        if self.request.role == Role::Answer {
            total.rows += rows as u64;
            total.output_rows += output_rows as u64;
            total.faults += faults as u64;
        }
        total.time_us += u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
    }
}
