//! What one plugin may use: memory, time, size of results, lines of log.
//!
//! Set by the operator per plugin; every call into a guest is made under them. [`HostState`] sits in the store of each
//! instance, refuses growth and remembers that it did, because a guest that was refused memory ends in a bare
//! `unreachable`.
//!
//! Rule of its life: a limit is per instance and per call, never shared between calls.
//!
//! It does not decide what happens to the rows of a call that broke a limit; the fault policy does.

use std::sync::Arc;
use std::time::{Duration, Instant};
use wasmtime::ResourceLimiter;

use crate::account::{AccountLimits, CpuClock, Held, Overdrawn, Tenant};
use crate::dice::Dice;
use crate::permissions::Permissions;
use crate::stamp::CallStamp;
use crate::wasi::Wasi;

/// What one call into a plugin may use.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginLimits {
    /// Linear memory of one instance, in bytes.
    pub memory_bytes: u64,
    /// Wall time of one call.
    pub deadline: Duration,
    /// CPU time of one call; as much as there is within the deadline when left out.
    pub cpu_per_call: Option<Duration>,
    /// Size of one result, in bytes.
    pub result_bytes: u64,
    /// Bytes of log that one call may write; the rest is dropped and counted.
    pub log_bytes_per_call: u64,
    /// Instances kept for the next call. More than this many concurrent callers get instances of their own that are
    /// dropped after the call.
    pub idle_instances: usize,
    /// Rows passed in one call; larger batches are split.
    pub rows_per_call: usize,
    /// Bytes of arguments passed in one call; larger batches are split, single rows are not.
    pub argument_bytes_per_call: usize,
    /// Failed calls that may be spent per batch on finding the rows at fault.
    pub isolation_calls: u32,
    /// Time that may be spent per batch on finding the rows at fault.
    pub isolation_time: Duration,
    /// What all calls and instances of the plugin may spend together.
    pub account: AccountLimits,
    /// Whose plugin it is.
    pub tenant: Option<Tenant>,
    /// What it may have beyond computing; nothing by default.
    pub permissions: Arc<Permissions>,
    /// Take a fresh instance for every call. Output never depends on it; a guest's memory is only a cache.
    pub recycle_every_call: bool,
}

impl Default for PluginLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            deadline: Duration::from_secs(1),
            cpu_per_call: None,
            result_bytes: 64 << 20,
            log_bytes_per_call: 64 << 10,
            idle_instances: 4,
            rows_per_call: 16 << 10,
            argument_bytes_per_call: 8 << 20,
            isolation_calls: 256,
            isolation_time: Duration::from_secs(30),
            account: AccountLimits::default(),
            tenant: None,
            permissions: Arc::default(),
            recycle_every_call: false,
        }
    }
}

/// Elements that the tables of one instance may have together.
const TABLE_ELEMENTS: usize = 50_000;
/// Core instances of one component: an interpreter is linked of many.
const INSTANCES: usize = 128;

/// The moment `time` from now; years from now when there is no such moment.
fn after(time: Duration) -> Instant {
    const YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
    let now = Instant::now();
    now.checked_add(time).unwrap_or(now + YEARS)
}

/// Why a call was stopped before it was back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// The deadline passed.
    Deadline,
    /// It has taken its CPU time.
    Cpu,
}

/// The data of one store: limits, and what happened during the current call.
#[derive(Debug)]
pub(crate) struct HostState {
    pub(crate) plugin: String,
    memory_limit: usize,
    log_limit: u64,
    memory_used: usize,
    table_elements: usize,
    /// The limiter said no to more memory during this call.
    pub(crate) memory_refused: bool,
    /// An account did not pay for more memory during this call.
    pub(crate) overdrawn: Option<Overdrawn>,
    held: Held,
    /// When the current call must be back.
    pub(crate) deadline: Instant,
    /// CPU time that one call may take, and what this one has taken.
    cpu_limit: Option<Duration>,
    cpu: Option<CpuClock>,
    /// What the current call has used up, when it was stopped for that.
    pub(crate) late: Option<Late>,
    /// The last line logged as an error during this call: a panic's text.
    pub(crate) last_error: Option<String>,
    /// The batch and the place in it that the current call has.
    pub(crate) stamp: CallStamp,
    pub(crate) permissions: Arc<Permissions>,
    /// Random numbers of the current call, once it asked for some.
    dice: Option<Dice>,
    /// What the guest has of the empty world, once it has asked for any of it.
    pub(crate) wasi: Option<Box<Wasi>>,
    logged: u64,
    dropped_lines: u64,
}

impl HostState {
    pub(crate) fn new(plugin: &str, limits: &PluginLimits, held: Held) -> Self {
        Self {
            plugin: plugin.to_owned(),
            memory_limit: usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX),
            log_limit: limits.log_bytes_per_call,
            memory_used: 0,
            table_elements: 0,
            memory_refused: false,
            overdrawn: None,
            held,
            deadline: after(limits.deadline),
            cpu_limit: limits.cpu_per_call,
            cpu: None,
            late: None,
            last_error: None,
            stamp: CallStamp::default(),
            permissions: Arc::clone(&limits.permissions),
            dice: None,
            wasi: None,
            logged: 0,
            dropped_lines: 0,
        }
    }

    /// Bytes that the guest may have.
    pub(crate) fn memory_limit(&self) -> usize {
        self.memory_limit
    }

    /// Forgets what happened during the call before and sets the time for the next.
    pub(crate) fn begin_call(&mut self, deadline: Duration, stamp: CallStamp) {
        self.memory_refused = false;
        self.overdrawn = None;
        self.late = None;
        self.cpu = self.cpu_limit.map(|_| CpuClock::start());
        self.last_error = None;
        self.logged = 0;
        self.deadline = after(deadline);
        self.stamp = stamp;
        self.dice = None;
        if let Some(wasi) = &mut self.wasi {
            wasi.begin_call();
        }
    }

    /// How long the current call may go on without another look; `None` when it must stop. CPU time passes no faster than
    /// the clock, so looking when the rest of it can have been taken is soon enough.
    pub(crate) fn time_left(&mut self) -> Option<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            self.late = Some(Late::Deadline);
            return None;
        }
        let Some((limit, clock)) = self.cpu_limit.zip(self.cpu) else { return Some(left) };
        let cpu_left = limit.saturating_sub(clock.passed());
        if cpu_left.is_zero() {
            self.late = Some(Late::Cpu);
            return None;
        }
        Some(left.min(cpu_left))
    }

    /// Whether a line of `bytes` may still be written during this call.
    pub(crate) fn admit_log(&mut self, bytes: usize) -> bool {
        self.logged = self.logged.saturating_add(bytes as u64 + 1);
        let admitted = self.logged <= self.log_limit;
        if !admitted {
            self.dropped_lines += 1;
        }
        admitted
    }

    /// Random numbers of the current call.
    pub(crate) fn dice(&mut self) -> &mut Dice {
        self.dice.get_or_insert_with(|| Dice::new(self.stamp.seed(&self.plugin)))
    }

    /// Whether nothing more can be written during this call.
    pub(crate) fn is_log_full(&self) -> bool {
        self.logged >= self.log_limit
    }

    /// How many lines were dropped since the last question.
    pub(crate) fn take_dropped_lines(&mut self) -> u64 {
        std::mem::take(&mut self.dropped_lines)
    }
}

impl ResourceLimiter for HostState {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let used = self.memory_used.saturating_add(desired.saturating_sub(current));
        if used > self.memory_limit {
            self.memory_refused = true;
            return Ok(false);
        }
        if let Err(overdrawn) = self.held.take_memory((used - self.memory_used) as u64) {
            self.overdrawn = Some(overdrawn);
            return Ok(false);
        }
        self.memory_used = used;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let elements = self.table_elements.saturating_add(desired.saturating_sub(current));
        if elements > TABLE_ELEMENTS {
            return Ok(false);
        }
        self.table_elements = elements;
        Ok(true)
    }

    fn instances(&self) -> usize {
        INSTANCES
    }

    fn tables(&self) -> usize {
        64
    }

    fn memories(&self) -> usize {
        8
    }
}
