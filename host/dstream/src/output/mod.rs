//! Output operations: what makes a batch run.
//!
//! Each is one job per batch, in the order in which the program asked for them.
//!
//! Rule of its life: at least once. A batch that a crash cut short is run again as a whole.

mod print;
mod show;
mod text_files;

pub use show::Show;

use crate::lock::locked;
use crate::rdd::{Rdd, guarded};
use crate::stream::{AnyStream, DStream};
use crate::{DStreamError, Data, JobError, Time};
use std::sync::{Arc, Mutex, MutexGuard};

type Run = dyn Fn(Time) -> Result<bool, DStreamError> + Send + Sync;

/// One output operation.
#[derive(Clone)]
pub(crate) struct Output {
    /// What it is, for listeners and errors.
    pub(crate) description: String,
    pub(crate) stream: Arc<dyn AnyStream>,
    /// Does the job of a batch; `false` when the stream has nothing then.
    pub(crate) run: Arc<Run>,
}

/// The output operations of a context.
#[derive(Default)]
pub(crate) struct Outputs(Mutex<Vec<Output>>);

impl Outputs {
    pub(crate) fn all(&self) -> MutexGuard<'_, Vec<Output>> {
        locked(&self.0)
    }
}

impl<T: Data> DStream<T> {
    /// Calls a function with the rows of each batch and its time.
    ///
    /// # Errors
    /// When this stream, or one that it is made of, may not be; or the context has been started.
    pub fn foreach_rdd(
        &self,
        f: impl Fn(&Rdd<T>, Time) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Result<(), DStreamError> {
        self.output("foreach_rdd", move |rows, time| guarded(|| f(rows, time).map_err(JobError::failed)))
    }

    pub(crate) fn output(
        &self,
        operation: &str,
        f: impl Fn(&Rdd<T>, Time) -> Result<(), JobError> + Send + Sync + 'static,
    ) -> Result<(), DStreamError> {
        if let Some(refusal) = self.core.refusal() {
            return Err(refusal.clone().into());
        }
        if let Some(refusal) = self.core.frame.too_late("an output operation") {
            return Err(refusal.into());
        }
        let mut all = self.outputs.all();
        let (core, number) = (Arc::clone(&self.core), all.len());
        let place = format!("output operation {number}, `{operation}`");
        let description = format!("{operation} {number}");
        let run = move |time| {
            let Some(rows) = core.rows(time)? else { return Ok(false) };
            f(&rows, time).map_err(|source| DStreamError::Job { time, place: place.clone(), source })?;
            Ok(true)
        };
        all.push(Output { description, stream: self.any(), run: Arc::new(run) });
        Ok(())
    }
}
