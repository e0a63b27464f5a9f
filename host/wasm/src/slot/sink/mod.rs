//! Sinks: the rows of one partition of a batch go out through a guest.
//!
//! ```text
//!   open ──true──► process … ──► prepare ──► close(none)      later, when the batch is done: commit(token),
//!     │ │              │            └ transactional only       when it is not: abort(token)
//!     │ │              └─ failed ──► close(what failed), the batch fails
//!     │ └─false─────────────────────────────► close(none), the rows are not wanted
//!     └─ failed: nothing is closed
//! ```
//!
//! Rule of its life: from `open` to `close` there is one instance, made for it and dropped after it, so what a guest
//! remembers is of this partition of this batch. A guest that traps, is late or answers nonsense is gone, and is not
//! closed. `process` is never repeated, because half of its rows may be out: rows that a guest names are skipped or kept
//! by the plugin's policy, and everything else fails the batch. `commit` and `abort` need no instance of their own.
//!
//! It keeps no token and knows no commit log.

mod session;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use millstream_common::{BatchId, OutputMode};

use super::PluginSlot;
use super::caller::Caller;
use super::outcome::RowFault;
use crate::component::Component;
use crate::error::WasmError;
use crate::export::Export;
use crate::layout::format;
use crate::signature::SinkSignature;
use crate::wire::sink::{Abort, Commit, TargetRef};
use session::Session;

/// What is written: one partition of one batch of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkTarget {
    /// The id of the query, which stays when it is restarted.
    pub query_id: String,
    /// The partition of the batch, from 0.
    pub partition: u32,
    /// The batch.
    pub batch: BatchId,
    /// The options of the query.
    pub options: Vec<(String, String)>,
}

/// What became of the rows of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkOutcome {
    /// Whether the sink wanted them.
    pub is_wanted: bool,
    /// Rows that it took.
    pub rows: u64,
    /// Rows that it named as failed; empty under [`FaultPolicy::Fail`](super::FaultPolicy::Fail).
    pub faults: Vec<RowFault>,
    /// What `commit` and `abort` get; of a transactional sink that wanted the rows.
    pub token: Option<Vec<u8>>,
}

impl SinkTarget {
    /// Calls with the form that crosses the boundary.
    fn lowered<T>(&self, call: impl FnOnce(TargetRef<'_>) -> T) -> T {
        let options: Vec<(&str, &str)> = self.options.iter().map(|(name, value)| (&**name, &**value)).collect();
        call(TargetRef { query_id: &self.query_id, partition: self.partition, batch: self.batch.0, options: &options })
    }
}

/// The columns as a guest gets them: without dictionaries, views and large offsets.
///
/// # Errors
///
/// Which column has a type that cannot cross the boundary.
pub fn sink_fields<'a>(fields: impl IntoIterator<Item = &'a FieldRef>) -> Result<Vec<FieldRef>, String> {
    fields
        .into_iter()
        .map(|field| {
            let data_type = plain(field.data_type());
            format::check(&data_type).map_err(|reason| format!("column `{}`: {reason}", field.name()))?;
            Ok(Arc::new(field.as_ref().clone().with_data_type(data_type)))
        })
        .collect()
}

/// The type that stands for one in all its forms.
fn plain(data_type: &DataType) -> DataType {
    let child = |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(plain(field.data_type())));
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::List(item) | DataType::LargeList(item) => DataType::List(child(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(child).collect()),
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(_, Some(_)) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        other => other.clone(),
    }
}

impl PluginSlot {
    /// Writes a partition of a batch. `fields` are its columns as [`sink_fields`] has them; the columns of `rows` have
    /// those types in any form.
    ///
    /// # Errors
    ///
    /// What fails the batch: everything but rows that the guest named and the policy lets pass.
    pub fn write_to_sink(
        &self,
        sink: &str,
        target: &SinkTarget,
        (mode, fields): (OutputMode, &[FieldRef]),
        rows: &[RecordBatch],
    ) -> Result<SinkOutcome, WasmError> {
        let request = self.request_of_sink(target.partition);
        let (number, signature) = self.sink_of(request.component(), sink)?;
        let session = Session::new(self, &request, (number, signature), target)?;
        session.write((mode, fields), rows)
    }

    /// Lets prepared rows be seen.
    ///
    /// # Errors
    ///
    /// When the guest does not do it, also [`WasmError::Unavailable`]; it can be tried again then.
    pub fn commit_sink(&self, sink: &str, target: &SinkTarget, token: &[u8]) -> Result<(), WasmError> {
        self.settle_sink::<Commit>(sink, target, token)
    }

    /// Drops prepared rows.
    ///
    /// # Errors
    ///
    /// As [`Self::commit_sink`].
    pub fn abort_sink(&self, sink: &str, target: &SinkTarget, token: &[u8]) -> Result<(), WasmError> {
        self.settle_sink::<Abort>(sink, target, token)
    }

    fn settle_sink<E>(&self, sink: &str, target: &SinkTarget, token: &[u8]) -> Result<(), WasmError>
    where
        E: for<'a> Export<Params<'a> = (u32, TargetRef<'a>, &'a [u8]), Output = ()>,
    {
        let request = self.request();
        let (number, signature) = self.sink_of(request.component(), sink)?;
        if !signature.transactional {
            let reason = "its component does not export `sink-transaction`".to_owned();
            return Err(self.bad_call(&format!("{sink}.{}", E::NAME), reason));
        }
        let mut caller = Caller::new(self, &request);
        let done = target.lowered(|target| caller.call::<E, ()>((number, target, token), Ok));
        caller.end(0, 0, 0);
        done.map_err(|failure| failure.into_error(&self.name, &format!("{sink}.{}", E::NAME)))
    }

    fn sink_of<'c>(&self, component: &'c Component, sink: &str) -> Result<(u32, &'c SinkSignature), WasmError> {
        component.sink(sink).ok_or_else(|| self.bad_call(sink, "the component has no such sink".into()))
    }
}

/// A schema as a guest is told of it.
fn flattened(fields: &[FieldRef]) -> Result<Vec<(String, String, bool, u32)>, String> {
    fn add(field: &FieldRef, nodes: &mut Vec<(String, String, bool, u32)>) -> Result<(), String> {
        let children: Vec<&FieldRef> = match field.data_type() {
            DataType::List(item) => vec![item],
            DataType::Struct(fields) => fields.iter().collect(),
            _ => Vec::new(),
        };
        let format =
            format::name(field.data_type()).map_err(|reason| format!("column `{}`: {reason}", field.name()))?;
        let count = u32::try_from(children.len()).map_err(|_| format!("`{}` has too many fields", field.name()))?;
        nodes.push((field.name().clone(), format, field.is_nullable(), count));
        children.into_iter().try_for_each(|child| add(child, nodes))
    }
    let mut nodes = Vec::new();
    fields.iter().try_for_each(|field| add(field, &mut nodes))?;
    Ok(nodes)
}

/// The columns of a batch in the types that were agreed.
fn agreed(rows: &RecordBatch, fields: &[FieldRef]) -> Result<Vec<ArrayRef>, String> {
    let columns = super::columns::normalised(rows.columns(), fields, rows.num_rows())?;
    for (column, field) in columns.iter().zip(fields).filter(|(_, field)| !field.is_nullable()) {
        if column.null_count() > 0 {
            return Err(format!("column `{}` has a null, which the sink does not take", field.name()));
        }
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{Field, Fields};

    #[test]
    fn columns_lose_their_form_and_keep_their_meaning() {
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let inner = Fields::from(vec![Field::new("v", DataType::Utf8View, true), Field::new("n", dictionary, false)]);
        let item = Arc::new(Field::new("item", DataType::Struct(inner), true));
        let fields = [
            Arc::new(Field::new("rows", DataType::LargeList(item), false)),
            Arc::new(Field::new("at", DataType::Timestamp(TimeUnit::Nanosecond, Some("+02:00".into())), true)),
        ];
        let agreed = sink_fields(&fields).unwrap();
        let nodes = flattened(&agreed).unwrap();
        let shown: Vec<String> =
            nodes.iter().map(|(name, format, _, count)| format!("{name} {format} {count}")).collect();
        assert_eq!(shown, ["rows +l 1", "item +s 2", "v u 0", "n u 0", "at tsu:UTC 0"]);
        let odd = [Arc::new(Field::new("d", DataType::Duration(TimeUnit::Second), true))];
        assert!(sink_fields(&odd).unwrap_err().contains("column `d`"));
    }
}
