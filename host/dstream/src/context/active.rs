//! One context of a process runs at a time; and how a program goes on with what it was.

use super::{Inner, StreamingContext};
use crate::lock::locked;
use crate::{DStreamError, Refusal};
use std::sync::{Arc, Mutex, Weak};

/// The context that runs.
static ACTIVE: Mutex<Option<Weak<Inner>>> = Mutex::new(None);

impl StreamingContext {
    /// Takes the place of the one context that runs.
    pub(super) fn claim(&self) -> Result<(), DStreamError> {
        let mut active = locked(&ACTIVE);
        if active.as_ref().and_then(Weak::upgrade).is_some() {
            return Err(Refusal::OtherActive.into());
        }
        *active = Some(Arc::downgrade(&self.inner));
        Ok(())
    }

    /// Leaves the place.
    pub(super) fn unclaim(&self) {
        let mut active = locked(&ACTIVE);
        if active.as_ref().is_some_and(|active| std::ptr::eq(active.as_ptr(), Arc::as_ptr(&self.inner))) {
            *active = None;
        }
    }

    /// The context of this process that runs, if there is one.
    pub fn get_active() -> Option<Self> {
        locked(&ACTIVE).as_ref().and_then(Weak::upgrade).map(|inner| Self { inner })
    }

    /// The context that runs, or the one that `setup` makes.
    ///
    /// # Errors
    /// When `setup` fails.
    pub fn get_active_or_create(setup: impl FnOnce() -> Result<Self, DStreamError>) -> Result<Self, DStreamError> {
        Self::get_active().map_or_else(setup, Ok)
    }

    /// The context that runs, or that of [`get_or_create`](Self::get_or_create).
    ///
    /// # Errors
    /// As `get_or_create`.
    pub fn get_active_or_create_in(
        place: &str,
        setup: impl FnOnce() -> Result<Self, DStreamError>,
    ) -> Result<Self, DStreamError> {
        Self::get_active().map_or_else(|| Self::get_or_create(place, setup), Ok)
    }

    /// A context that goes on with the checkpoint in `place`, or begins one there.
    ///
    /// `setup` makes the program, each time: functions are code, and are not in the checkpoint. What is there, which is
    /// where the inputs are and all state, is held against the program when it starts, by names; see
    /// [`DStream::named`](crate::DStream::named). So a program may be compiled anew and changed, as long as no state is
    /// lost.
    ///
    /// # Errors
    /// When `setup` fails, or `place` is no place for a checkpoint.
    pub fn get_or_create(
        place: &str,
        setup: impl FnOnce() -> Result<Self, DStreamError>,
    ) -> Result<Self, DStreamError> {
        let context = setup()?;
        if locked(&context.inner.build).checkpoint.is_none() {
            context.checkpoint(place)?;
        }
        context.resuming()
    }

    /// As `get_or_create`, for a context whose checkpoint is set: it goes on with what is there.
    ///
    /// # Errors
    /// When it has been started.
    pub fn resuming(self) -> Result<Self, DStreamError> {
        self.before_start("a checkpoint")?;
        locked(&self.inner.build).may_resume = true;
        Ok(self)
    }
}
