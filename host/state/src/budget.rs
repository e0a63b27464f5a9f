//! The memory that all stores of a query share, and the folder that takes what does not fit into it.
//!
//! ```text
//!   store of partition 0 ──┐  bytes in memory                limit ─────────────────
//!   store of partition 1 ──┼───────────────► one sum         7/8   give up rows now
//!   store of an operator ──┘                                 3/4   give up rows after the batch
//!                                                            5/8   down to here
//! ```
//!
//! Made once per run from the host file and handed to every store in its options.
//!
//! Rule of its life: a store counts what it holds and gives up what is its own; nobody takes rows from another store.
//! A store that is large gives up more, and one that has next to nothing keeps it.
//!
//! It knows nothing of keys, and it does not count what a batch takes outside of the stores.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory that all stores of a query share.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: u64,
    folder: PathBuf,
    used: AtomicU64,
    stores: AtomicU64,
}

impl MemoryBudget {
    /// At most `limit` bytes in memory; what is beyond lies in files without a name in `folder`, which end with the run.
    pub fn new(limit: u64, folder: impl Into<PathBuf>) -> Self {
        Self { limit, folder: folder.into(), used: AtomicU64::new(0), stores: AtomicU64::new(0) }
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that the stores take now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Where the files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// One store's part in a budget; without a budget nothing is ever too much.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Option<Arc<MemoryBudget>>,
    reported: u64,
}

impl Share {
    pub(crate) fn new(budget: Option<Arc<MemoryBudget>>) -> Self {
        if let Some(budget) = &budget {
            budget.stores.fetch_add(1, Ordering::Relaxed);
        }
        Self { budget, reported: 0 }
    }

    pub(crate) fn budget(&self) -> Option<&MemoryBudget> {
        self.budget.as_deref()
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.budget.is_some()
    }

    /// Takes note of what the store holds; answers how many bytes it should give up now if `more` are to come.
    pub(crate) fn excess(&mut self, own: u64, more: u64) -> u64 {
        self.report(own);
        let Some(budget) = &self.budget else { return 0 };
        let wanted = budget.used().saturating_add(more);
        if wanted <= budget.limit - budget.limit / 8 || own <= self.least() {
            return 0;
        }
        (wanted - budget.limit / 8 * 5).min(own)
    }

    /// The same between two batches, when room is made for the next one: each store gives up its proportion.
    pub(crate) fn excess_at_rest(&mut self, own: u64) -> u64 {
        self.report(own);
        let Some(budget) = &self.budget else { return 0 };
        let used = budget.used();
        let (most, target) = (budget.limit - budget.limit / 4, budget.limit / 8 * 5);
        if used <= most || own <= self.least() {
            return 0;
        }
        (u128::from(own) * u128::from(used - target) / u128::from(used)) as u64
    }

    /// Takes note of what the store holds.
    pub(crate) fn report(&mut self, own: u64) {
        if let Some(budget) = &self.budget {
            budget.used.fetch_add(own, Ordering::Relaxed);
            budget.used.fetch_sub(self.reported, Ordering::Relaxed);
            self.reported = own;
        }
    }

    /// What a store may always have: all stores together an eighth.
    fn least(&self) -> u64 {
        let stores = |budget: &MemoryBudget| budget.stores.load(Ordering::Relaxed).max(1);
        self.budget.as_deref().map_or(u64::MAX, |budget| budget.limit / 8 / stores(budget))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.report(0);
        if let Some(budget) = &self.budget {
            budget.stores.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_give_up_their_own_and_never_what_is_little() {
        let budget = Arc::new(MemoryBudget::new(800, "/"));
        let mut large = Share::new(Some(Arc::clone(&budget)));
        let mut small = Share::new(Some(Arc::clone(&budget)));
        assert_eq!(large.excess(600, 0), 0);
        assert_eq!(small.excess(40, 100), 0, "a sixteenth of the limit each is always there");
        assert_eq!(small.excess(110, 0), 110, "the sum is 710, over 700; 500 is the aim, but it has no more");
        assert_eq!(large.excess_at_rest(600), 177, "600 of 710 are its proportion of the 210 over 500");
        drop(small);
        assert_eq!(budget.used(), 600);
        drop(large);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn without_a_budget_nothing_is_too_much() {
        let mut share = Share::new(None);
        assert_eq!((share.excess(u64::MAX, u64::MAX), share.excess_at_rest(u64::MAX)), (0, 0));
    }
}
