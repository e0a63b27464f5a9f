//! What all streams of a context share: interval, settings, clock, and in which phase of its life the context is.

use crate::context::settings::Settings;
use crate::lock::locked;
use crate::time::Time;
use crate::{Refusal, time};
use millstream_common::Clock;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// The life of a context goes one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    Built,
    Active,
    Stopped,
}

/// What all streams of a context share.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) interval_ms: i64,
    pub(crate) settings: Mutex<Settings>,
    pub(crate) clock: Arc<dyn Clock>,
    /// For how long the rows of every stream are kept beyond their batch.
    pub(crate) remember_ms: AtomicU64,
    zero: OnceLock<Time>,
    phase: AtomicU8,
    numbers: AtomicUsize,
}

impl Frame {
    pub(crate) fn new(interval_ms: i64, clock: Arc<dyn Clock>) -> Self {
        Self {
            interval_ms,
            settings: Mutex::default(),
            clock,
            remember_ms: AtomicU64::new(0),
            zero: OnceLock::new(),
            phase: AtomicU8::new(Phase::Built as u8),
            numbers: AtomicUsize::new(0),
        }
    }

    pub(crate) fn settings(&self) -> MutexGuard<'_, Settings> {
        locked(&self.settings)
    }

    /// The number of partitions of operations that the program gave none.
    pub(crate) fn parallelism(&self) -> usize {
        self.settings().parallelism
    }

    pub(crate) fn next_number(&self) -> usize {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::SeqCst) {
            0 => Phase::Built,
            1 => Phase::Active,
            _ => Phase::Stopped,
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::SeqCst);
    }

    /// Why nothing can be added any more, if so.
    pub(crate) fn too_late(&self, what: &'static str) -> Option<Refusal> {
        match self.phase() {
            Phase::Built => None,
            Phase::Active => Some(Refusal::AfterStart { what }),
            Phase::Stopped => Some(Refusal::AfterStop { what }),
        }
    }

    /// Fixes the time that all slides count from.
    pub(crate) fn begin_at(&self, zero: Time) {
        self.zero.get_or_init(|| zero);
    }

    /// The zero time; none before the start.
    pub(crate) fn zero(&self) -> Option<Time> {
        self.zero.get().copied()
    }

    pub(crate) fn is_valid(&self, slide_ms: i64, at: Time) -> bool {
        self.zero().is_some_and(|zero| time::is_valid(zero, slide_ms, at))
    }
}
