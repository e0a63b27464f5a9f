//! Accounts: what the calls of a plugin spend over time, and what all plugins of a tenant spend together.
//!
//! A slot has an account of its own and shares its tenant's. A request of an operator is let in if no account is
//! overdrawn, and pays afterwards with the CPU time it took; instances pay with their memory while they live.
//!
//! Rule of its life: CPU time comes back with wall time, at most a second's worth. Memory and instances come back when
//! an instance is dropped, however it ends.
//!
//! It does not stop a call that runs; the deadline does.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::WasmError;

/// What happens to requests when an account has no CPU time left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Beyond {
    /// They wait.
    #[default]
    Throttle,
    /// They fail; later ones may succeed.
    Reject,
    /// They fail, and all after them.
    Terminate,
}

/// What may be spent from an account. `None`: as much as there is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountLimits {
    /// CPU time per second of wall time.
    pub cpu_per_second: Option<Duration>,
    /// What happens beyond.
    pub beyond: Beyond,
    /// Memory of all instances together.
    pub memory_bytes: Option<u64>,
    /// Instances at a time.
    pub instances: Option<u64>,
}

/// A tenant of the host: a name, and what its plugins may spend together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// The name.
    pub name: String,
    /// What may be spent.
    pub limits: AccountLimits,
}

/// What has been spent from an account so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// CPU time of all calls.
    pub cpu: Duration,
    /// Memory of the instances that live.
    pub memory_bytes: u64,
    /// The instances that live.
    pub instances: u64,
    /// The most memory that there was at a time.
    pub memory_high_bytes: u64,
    /// Time that requests have waited.
    pub throttled: Duration,
    /// Calls into guests.
    pub calls: u64,
    /// Rows handed over.
    pub rows: u64,
    /// Calls that ended in a trap, at a limit, or in nonsense.
    pub traps: u64,
}

/// Why an account does not pay.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{owner} has spent its {what}, {limit}")]
pub(crate) struct Overdrawn {
    /// `plugin` or a tenant's name.
    owner: String,
    what: &'static str,
    limit: String,
    /// Whether it never pays again.
    for_ever: bool,
}

impl Overdrawn {
    pub(crate) fn into_error(self, plugin: String) -> WasmError {
        WasmError::Overdrawn { plugin, reason: self.to_string(), for_ever: self.for_ever }
    }
}

/// One account.
pub struct Account {
    owner: String,
    limits: AccountLimits,
    memory: AtomicU64,
    memory_high: AtomicU64,
    instances: AtomicU64,
    calls: AtomicU64,
    rows: AtomicU64,
    traps: AtomicU64,
    cpu: Mutex<Cpu>,
}

struct Cpu {
    /// What is left, below zero when a request took more than there was.
    left_ns: i128,
    at: Instant,
    spent: Duration,
    throttled: Duration,
    terminated: bool,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("owner", &self.owner).field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Account {
    pub(crate) fn new(owner: &str, limits: &AccountLimits) -> Arc<Self> {
        let left_ns = limits.cpu_per_second.map_or(0, ns);
        let cpu =
            Cpu { left_ns, at: Instant::now(), spent: Duration::ZERO, throttled: Duration::ZERO, terminated: false };
        Arc::new(Self {
            owner: owner.to_owned(),
            limits: limits.clone(),
            memory: AtomicU64::new(0),
            memory_high: AtomicU64::new(0),
            instances: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            traps: AtomicU64::new(0),
            cpu: Mutex::new(cpu),
        })
    }

    /// What has been spent.
    pub fn spent(&self) -> Spent {
        let cpu = self.cpu();
        Spent {
            cpu: cpu.spent,
            memory_bytes: self.memory.load(Ordering::Relaxed),
            instances: self.instances.load(Ordering::Relaxed),
            memory_high_bytes: self.memory_high.load(Ordering::Relaxed),
            throttled: cpu.throttled,
            calls: self.calls.load(Ordering::Relaxed),
            rows: self.rows.load(Ordering::Relaxed),
            traps: self.traps.load(Ordering::Relaxed),
        }
    }

    /// Takes note of calls, the rows in them, and how many of them ended badly.
    pub(crate) fn count(&self, calls: u64, rows: u64, traps: u64) {
        self.calls.fetch_add(calls, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.traps.fetch_add(traps, Ordering::Relaxed);
    }

    /// How long a request must wait before it begins.
    pub(crate) fn admit(&self, now: Instant) -> Result<Duration, Overdrawn> {
        let Some(rate) = self.limits.cpu_per_second else { return Ok(Duration::ZERO) };
        let mut cpu = self.cpu();
        let per_second = ns(rate);
        let passed = ns(now.saturating_duration_since(cpu.at));
        cpu.left_ns = (cpu.left_ns + passed * per_second / NS_PER_SECOND).min(per_second);
        cpu.at = cpu.at.max(now);
        if cpu.left_ns >= 0 && !cpu.terminated {
            return Ok(Duration::ZERO);
        }
        cpu.terminated |= self.limits.beyond == Beyond::Terminate;
        if self.limits.beyond == Beyond::Throttle {
            let wait = -cpu.left_ns * NS_PER_SECOND / per_second.max(1);
            let wait = Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX));
            cpu.throttled = cpu.throttled.saturating_add(wait);
            return Ok(wait);
        }
        Err(self.overdrawn("CPU time", format!("{rate:?} per second"), cpu.terminated))
    }

    /// A request took so much.
    pub(crate) fn pay(&self, time: Duration) {
        let mut cpu = self.cpu();
        cpu.spent = cpu.spent.saturating_add(time);
        if self.limits.cpu_per_second.is_some() {
            cpu.left_ns -= ns(time);
        }
    }

    fn take_memory(&self, bytes: u64) -> Result<(), Overdrawn> {
        let limit = self.limits.memory_bytes.unwrap_or(u64::MAX);
        if take(&self.memory, bytes, limit) {
            return Ok(());
        }
        Err(self.overdrawn("memory", format!("{limit} bytes"), false))
    }

    fn take_instance(&self) -> Result<(), Overdrawn> {
        let limit = self.limits.instances.unwrap_or(u64::MAX);
        if take(&self.instances, 1, limit) {
            return Ok(());
        }
        Err(self.overdrawn("instances", limit.to_string(), false))
    }

    fn overdrawn(&self, what: &'static str, limit: String, for_ever: bool) -> Overdrawn {
        Overdrawn { owner: self.owner.clone(), what, limit, for_ever }
    }

    fn cpu(&self) -> std::sync::MutexGuard<'_, Cpu> {
        self.cpu.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const NS_PER_SECOND: i128 = 1_000_000_000;

fn ns(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX / NS_PER_SECOND / 4).min(i128::MAX / NS_PER_SECOND / 4)
}

/// Adds, unless that goes beyond the limit.
fn take(count: &AtomicU64, more: u64, limit: u64) -> bool {
    let fits = |before: u64| before.checked_add(more).filter(|after| *after <= limit);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
}

/// What one instance holds of its accounts; dropped with it.
#[derive(Debug, Default)]
pub(crate) struct Held {
    accounts: Vec<Arc<Account>>,
    memory: u64,
}

impl Held {
    /// One more instance.
    pub(crate) fn new(accounts: &[Arc<Account>]) -> Result<Self, Overdrawn> {
        let mut held = Self::default();
        for account in accounts {
            account.take_instance()?;
            held.accounts.push(Arc::clone(account));
        }
        Ok(held)
    }

    /// More memory, from all accounts or from none.
    pub(crate) fn take_memory(&mut self, bytes: u64) -> Result<(), Overdrawn> {
        for (place, account) in self.accounts.iter().enumerate() {
            if let Err(overdrawn) = account.take_memory(bytes) {
                self.accounts[..place].iter().for_each(|account| {
                    account.memory.fetch_sub(bytes, Ordering::Relaxed);
                });
                return Err(overdrawn);
            }
        }
        for account in &self.accounts {
            account.memory_high.fetch_max(account.memory.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.memory += bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for account in &self.accounts {
            account.memory.fetch_sub(self.memory, Ordering::Relaxed);
            account.instances.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// CPU time of this thread since another moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuClock(Duration);

impl CpuClock {
    pub(crate) fn start() -> Self {
        Self(Self::now())
    }

    pub(crate) fn passed(self) -> Duration {
        Self::now().saturating_sub(self.0)
    }

    fn now() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(beyond: Beyond) -> Arc<Account> {
        let limits =
            AccountLimits { cpu_per_second: Some(Duration::from_millis(100)), beyond, ..AccountLimits::default() };
        Account::new("plugin", &limits)
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn an_overdrawn_account_waits_as_long_as_it_takes_to_earn_what_was_spent() {
        let account = limited(Beyond::Throttle);
        let start = Instant::now();
        account.pay(150 * MS);
        let waits = account.admit(start).unwrap();
        assert!(waits > 490 * MS && waits <= 500 * MS, "{waits:?}");
        assert!(account.admit(start + 300 * MS).unwrap() <= 200 * MS);
        assert_eq!(account.admit(start + 501 * MS).unwrap(), Duration::ZERO);
        // Not more than a second's worth is saved up.
        assert_eq!(account.admit(start + 3_600_000 * MS).unwrap(), Duration::ZERO);
        account.pay(101 * MS);
        assert!(account.admit(start + 3_600_000 * MS).unwrap() > Duration::ZERO);
        assert_eq!(account.spent().cpu, 251 * MS);
    }

    #[test]
    fn a_rejection_passes_and_a_termination_does_not() {
        let (rejects, terminates) = (limited(Beyond::Reject), limited(Beyond::Terminate));
        let start = Instant::now();
        for account in [&rejects, &terminates] {
            assert_eq!(account.admit(start).unwrap(), Duration::ZERO);
            account.pay(200 * MS);
        }
        let told = rejects.admit(start).unwrap_err();
        assert_eq!(
            (told.to_string().as_str(), told.for_ever),
            ("plugin has spent its CPU time, 100ms per second", false)
        );
        assert!(rejects.admit(start + 2000 * MS).is_ok());
        assert!(terminates.admit(start).unwrap_err().for_ever);
        assert!(terminates.admit(start + 3_600_000 * MS).is_err());
    }

    #[test]
    fn memory_and_instances_come_back_when_an_instance_goes() {
        let tenant = AccountLimits { memory_bytes: Some(100), instances: Some(2), ..AccountLimits::default() };
        let (own, tenant) = (Account::new("plugin", &AccountLimits::default()), Account::new("tenant `t`", &tenant));
        let accounts = [Arc::clone(&own), Arc::clone(&tenant)];
        let mut first = Held::new(&accounts).unwrap();
        let mut second = Held::new(&accounts).unwrap();
        assert_eq!(Held::new(&accounts).unwrap_err().to_string(), "tenant `t` has spent its instances, 2");
        assert_eq!(own.spent().instances, 2, "what was refused is not counted anywhere");
        first.take_memory(60).unwrap();
        second.take_memory(40).unwrap();
        assert_eq!(second.take_memory(1).unwrap_err().to_string(), "tenant `t` has spent its memory, 100 bytes");
        assert_eq!((own.spent().memory_bytes, tenant.spent().memory_bytes), (100, 100));
        drop(first);
        second.take_memory(60).unwrap();
        drop(second);
        assert_eq!((own.spent().memory_bytes, own.spent().instances, own.spent().memory_high_bytes), (0, 0, 100));
        assert_eq!((tenant.spent().memory_bytes, tenant.spent().instances), (0, 0));
    }
}
