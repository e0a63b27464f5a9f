//! Clocks of the empty world: they stand at the time of the batch, and go on only when the guest sleeps.
//!
//! A reading of the monotonic clock moves it by a microsecond, so that loops that wait for it end and no two readings
//! are equal.
//!
//! Rule of its life: a call begins at the time of its batch; what earlier calls slept is forgotten.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock::{self, Duration, Instant};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::{self, Datetime};
use wasmtime_wasi::p2::bindings::sync::io::poll;

use super::{Denied, HANDLES};
use crate::limits::HostState;

/// How far a reading moves the monotonic clock, and what both clocks say about themselves.
const READING_NS: u64 = 1_000;
const RESOLUTION_NS: u32 = 1_000_000;

/// The time that passed for the guest, and what it waits for.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    slept_ns: u64,
    readings_ns: u64,
    /// By handle: when it is ready on the monotonic clock.
    waits: Vec<Option<u64>>,
    free: Vec<u32>,
}

impl Clocks {
    pub(super) fn begin_call(&mut self) {
        self.slept_ns = 0;
        self.readings_ns = 0;
    }

    fn passed_ns(&self) -> u64 {
        self.slept_ns.saturating_add(self.readings_ns)
    }

    /// A handle that is ready at `due` on the monotonic clock.
    pub(super) fn wait(&mut self, due: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let handle = match self.free.pop() {
            Some(handle) => handle,
            None => {
                let handle = u32::try_from(self.waits.len()).ok().filter(|_| self.waits.len() < HANDLES);
                self.waits.push(None);
                handle.ok_or(Denied("it holds more pollables than it may"))?
            }
        };
        if let Some(place) = self.waits.get_mut(handle as usize) {
            *place = Some(due);
        }
        Ok(Resource::new_own(handle))
    }

    fn due(&self, pollable: &Resource<DynPollable>) -> wasmtime::Result<u64> {
        let due = self.waits.get(pollable.rep() as usize).copied().flatten();
        Ok(due.ok_or(Denied("it waits for a pollable that is not there"))?)
    }

    fn end_wait(&mut self, pollable: &Resource<DynPollable>) {
        let place = self.waits.get_mut(pollable.rep() as usize).and_then(Option::take);
        if place.is_some() {
            self.free.push(pollable.rep());
        }
    }
}

impl HostState {
    fn monotonic_ns(&mut self) -> u64 {
        self.stamp.time_ns().saturating_add(self.world().clocks.passed_ns())
    }

    /// Sleeps until `due`, which takes no time.
    fn sleep_until(&mut self, due: u64) {
        let more = due.saturating_sub(self.monotonic_ns());
        let clocks = &mut self.world().clocks;
        clocks.slept_ns = clocks.slept_ns.saturating_add(more);
    }
}

impl wall_clock::Host for HostState {
    fn now(&mut self) -> wasmtime::Result<Datetime> {
        let ns = self.stamp.time_ns().saturating_add(self.world().clocks.slept_ns);
        let nanoseconds = u32::try_from(ns % 1_000_000_000).unwrap_or(0);
        Ok(Datetime { seconds: ns / 1_000_000_000, nanoseconds })
    }

    fn resolution(&mut self) -> wasmtime::Result<Datetime> {
        Ok(Datetime { seconds: 0, nanoseconds: RESOLUTION_NS })
    }
}

impl monotonic_clock::Host for HostState {
    fn now(&mut self) -> wasmtime::Result<Instant> {
        let clocks = &mut self.world().clocks;
        clocks.readings_ns = clocks.readings_ns.saturating_add(READING_NS);
        Ok(self.monotonic_ns())
    }

    fn resolution(&mut self) -> wasmtime::Result<Instant> {
        Ok(READING_NS)
    }

    fn subscribe_instant(&mut self, when: Instant) -> wasmtime::Result<Resource<DynPollable>> {
        self.world().clocks.wait(when)
    }

    fn subscribe_duration(&mut self, duration: Duration) -> wasmtime::Result<Resource<DynPollable>> {
        let due = self.monotonic_ns().saturating_add(duration);
        self.world().clocks.wait(due)
    }
}

impl poll::Host for HostState {
    fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        let clocks = &self.world().clocks;
        let dues = pollables.iter().map(|pollable| clocks.due(pollable)).collect::<wasmtime::Result<Vec<_>>>()?;
        let first = dues.iter().copied().min().ok_or(Denied("it polls an empty list"))?;
        self.sleep_until(first);
        let now = self.monotonic_ns();
        Ok((0..).zip(dues).filter_map(|(place, due)| (due <= now).then_some(place)).collect())
    }
}

impl poll::HostPollable for HostState {
    fn ready(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<bool> {
        let due = self.world().clocks.due(&pollable)?;
        Ok(due <= self.monotonic_ns())
    }

    fn block(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        let due = self.world().clocks.due(&pollable)?;
        self.sleep_until(due);
        Ok(())
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.world().clocks.end_wait(&pollable);
        Ok(())
    }
}
