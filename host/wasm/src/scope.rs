//! Where in a query a thread is when it calls plugins: the partition, and whether the keys are those of a canary.
//!
//! Stateful operators enter a scope around the work on a partition, or on the keys of a canary's slice. Slots look at it
//! when they are called: accumulators and expressions stand between, and those have no place for it.
//!
//! Rule of its life: a scope ends with the function it was entered for, however that ends. A thread begins without one;
//! whoever shares work out among threads hands the scope on.

use std::cell::Cell;

/// Where a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scope {
    /// The partition; 0 where rows are not partitioned.
    pub partition: u32,
    /// Whether the keys are of the slice that a canary runs.
    pub is_slice: bool,
}

thread_local! {
    static CURRENT: Cell<Scope> = const { Cell::new(Scope { partition: 0, is_slice: false }) };
}

/// Puts back what was there.
struct Leave(Scope);

impl Drop for Leave {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

impl Scope {
    /// Where this thread is.
    pub fn current() -> Self {
        CURRENT.get()
    }

    /// The same place in another partition.
    pub fn partition(self, partition: u32) -> Self {
        Self { partition, ..self }
    }

    /// The same place, with the keys of a canary's slice or with the others.
    pub fn slice(self, is_slice: bool) -> Self {
        Self { is_slice, ..self }
    }

    /// Does something there.
    pub fn enter<T>(self, work: impl FnOnce() -> T) -> T {
        let _leave = Leave(CURRENT.replace(self));
        work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_ends_with_its_work_also_when_that_panics() {
        let before = Scope::current();
        let inner = before.partition(3).enter(|| Scope::current().slice(true).enter(Scope::current));
        assert_eq!(inner, Scope { partition: 3, is_slice: true });
        assert!(
            std::panic::catch_unwind(|| before.partition(9).enter(|| std::panic::resume_unwind(Box::new(0)))).is_err()
        );
        assert_eq!(Scope::current(), before);
    }
}
