//! Functions of plugins: a component called with whole partitions of a stream.
//!
//! The program says how rows become the columns of the arguments, and how the columns of the answer become rows. A
//! partition is one call. The policy of the slot decides what becomes of rows that the component cannot take.

use super::{DStream, NewStream, Role};
use crate::{Data, JobError};
use arrow::array::{Array, ArrayRef};
use millstream_wasm::{PluginSlot, Scope};
use std::sync::Arc;

/// That a stream calls a plugin.
pub(crate) struct PluginUse {
    pub(crate) slot: Arc<PluginSlot>,
}

type Arguments<T> = Arc<dyn Fn(&[T]) -> Vec<ArrayRef> + Send + Sync>;

impl<T: Data> DStream<T> {
    /// Each row by a scalar function of a plugin. `arguments` makes the columns of the arguments of the rows, `result` a
    /// row of a row and its value: the column of values and the number in it.
    pub fn map_plugin<U: Data>(
        &self,
        slot: &Arc<PluginSlot>,
        function: &str,
        arguments: impl Fn(&[T]) -> Vec<ArrayRef> + Send + Sync + 'static,
        result: impl Fn(&T, &dyn Array, usize) -> U + Send + Sync + 'static,
    ) -> DStream<U> {
        self.called(slot, function, Arc::new(arguments), move |slot, function, rows, columns| {
            let outcome = slot.call_scalar(function, rows.len(), columns).map_err(JobError::failed)?;
            Ok((0..).zip(rows).map(|(at, row)| result(row, &*outcome.values, at)).collect())
        })
    }

    /// Each row by a table function of a plugin, which gives any number of rows. `result` makes a row of the row that went
    /// in, the columns of the answer, and the number in them.
    pub fn flat_map_plugin<U: Data>(
        &self,
        slot: &Arc<PluginSlot>,
        function: &str,
        arguments: impl Fn(&[T]) -> Vec<ArrayRef> + Send + Sync + 'static,
        result: impl Fn(&T, &[ArrayRef], usize) -> U + Send + Sync + 'static,
    ) -> DStream<U> {
        self.called(slot, function, Arc::new(arguments), move |slot, function, rows, columns| {
            let outcome = slot.call_table(function, rows.len(), columns).map_err(JobError::failed)?;
            let from = outcome.input_rows.values().iter().enumerate();
            let made = from.filter_map(|(at, row)| Some(result(rows.get(*row as usize)?, &outcome.columns, at)));
            Ok(made.collect())
        })
    }

    fn called<U: Data>(
        &self,
        slot: &Arc<PluginSlot>,
        function: &str,
        arguments: Arguments<T>,
        call: impl Fn(&PluginSlot, &str, &[T], &[ArrayRef]) -> Result<Vec<U>, JobError> + Send + Sync + 'static,
    ) -> DStream<U> {
        let (parent, call, function) = (Arc::clone(&self.core), Arc::new(call), Arc::<str>::from(function));
        let used = Arc::clone(slot);
        let new = NewStream {
            operation: "map_plugin",
            slide_ms: self.slide(),
            parents: vec![self.any()],
            role: Role::Plugin(Arc::new(PluginUse { slot: Arc::clone(slot) })),
            refusal: None,
            compute: Box::new(move |time| {
                let rows = parent.rows(time)?;
                Ok(rows.map(|rows| {
                    let (call, slot) = (Arc::clone(&call), Arc::clone(&used));
                    let (arguments, function) = (Arc::clone(&arguments), Arc::clone(&function));
                    rows.try_map_partitions(move |partition, rows| {
                        if rows.is_empty() {
                            return Ok(Vec::new());
                        }
                        let scope = Scope::default().partition(u32::try_from(partition).unwrap_or(u32::MAX));
                        scope.enter(|| call(&slot, &function, rows, &arguments(rows)))
                    })
                }))
            }),
        };
        DStream::new(&self.core.frame, &self.outputs, new)
    }
}
