//! The way to what a mutex guards.
//!
//! A thread that panicked while it held the lock left nothing half done that matters: functions of the program run outside of
//! locks, or what they work on is dropped with the batch. So the lock is taken all the same.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
