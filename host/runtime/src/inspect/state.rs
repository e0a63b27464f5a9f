//! The state of a stateful operator after a batch, as rows (Spark's `statestore` reader).
//!
//! ```text
//!   commits/N ──► files of each partition ──► keys and values as bytes ──┐
//!   offsets/N ──► families: what the bytes mean ─────────────────────────┴──► key, value, partition_id
//! ```
//!
//! Takes no lease and writes nothing, so it works beside a running query: what a batch committed does not change.

use super::CheckpointPlace;
use super::checkpoint::manifests;
use crate::query::families_of;
use crate::{RuntimeError, Session, offline_store};
use arrow::array::{Array, ArrayRef, Int32Array, RecordBatch, RecordBatchOptions, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use millstream_checkpoint::{Checkpoint, CommitEntry, StatePin};
use millstream_common::{BatchId, OperatorUid};
use millstream_operators::{FamilyReader, StateFamily};
use millstream_state::{ByteRows, FamilySpec, LogStore, StateError, StateStore};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often a newer batch is tried when the files of the last one have been deleted meanwhile.
const ATTEMPTS: usize = 3;

/// Which rows of state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateRequest {
    /// The operator; the only one when left out.
    pub operator: Option<String>,
    /// The family; all of them when left out.
    pub family: Option<String>,
    /// The batch after which; the last one that is done when left out.
    pub batch: Option<u64>,
    /// The most rows per family.
    pub limit: Option<usize>,
}

/// Rows of one family.
#[derive(Debug, Clone)]
pub struct StateTable {
    /// The operator.
    pub uid: String,
    /// The family.
    pub family: String,
    /// The batch after which they are as they are.
    pub batch: u64,
    /// Whether the family is the only one of its operator.
    pub is_only: bool,
    /// `key` and `value`, structs of the columns that keys and values have, if they have any, and `partition_id`.
    pub schema: SchemaRef,
    /// The rows: by partition, then by the bytes of the key.
    pub rows: Vec<RecordBatch>,
}

impl StateTable {
    /// The rows with the columns of keys and values beside each other: `key.word`, `value.count`, `partition_id`.
    pub fn flat(&self) -> (SchemaRef, Vec<RecordBatch>) {
        let fields: Vec<FieldRef> = flat_fields(&self.schema);
        let schema = Arc::new(Schema::new(fields));
        let rows = self.rows.iter().map(|rows| {
            let columns =
                rows.columns().iter().flat_map(|column| match column.as_any().downcast_ref::<StructArray>() {
                    Some(parts) => parts.columns().to_vec(),
                    None => vec![Arc::clone(column)],
                });
            RecordBatch::try_new(Arc::clone(&schema), columns.collect()).expect("parts are as long as their whole")
        });
        let rows = rows.collect();
        (schema, rows)
    }
}

fn flat_fields(schema: &Schema) -> Vec<FieldRef> {
    let of_field = |field: &FieldRef| match field.data_type() {
        DataType::Struct(parts) => {
            let named = |part: &FieldRef| {
                Arc::new(Field::new(format!("{}.{}", field.name(), part.name()), part.data_type().clone(), true))
            };
            parts.iter().map(named).collect()
        }
        _ => vec![Arc::clone(field)],
    };
    schema.fields().iter().flat_map(of_field).collect()
}

/// Asks the query's plan for its stateful operators.
type Planned<'a> = dyn Fn() -> Result<BTreeMap<String, StatePin>, RuntimeError> + 'a;

/// Reads state, a table per family. The query, if it is named, is planned only when the checkpoint does not say what its
/// state is made of.
///
/// # Errors
/// When there is no such batch or operator, several operators and none is named, or the state cannot be read.
pub fn state(
    session: &Session,
    place: &CheckpointPlace,
    request: &StateRequest,
) -> Result<Vec<StateTable>, RuntimeError> {
    let checkpoint = place.open(session)?;
    let planned = || place.planned(session);
    let mut attempt = 0;
    loop {
        attempt += 1;
        let commit = commit(&checkpoint, request.batch)?;
        match after(&checkpoint, &commit, &planned, request) {
            // The query that runs has moved on and no longer needs the files.
            Err(RuntimeError::State(StateError::Missing { .. })) if request.batch.is_none() && attempt < ATTEMPTS => {}
            tables => return tables,
        }
    }
}

fn commit(checkpoint: &Checkpoint, batch: Option<u64>) -> Result<CommitEntry, RuntimeError> {
    let log = checkpoint.commit_log();
    let batches = log.batches()?;
    let (Some(first), Some(last)) = (batches.first(), batches.last()) else {
        return Err(invalid(
            format!("there is no state in `{}`: no batch is done", checkpoint.location()),
            "start the query first",
        ));
    };
    let wanted = batch.map_or(*last, BatchId);
    let missing = || {
        let reason = format!("there is no state after batch {wanted}: it is not done, or no longer kept");
        invalid(reason, &format!("batches {first} to {last} can be looked at"))
    };
    log.get(wanted)?.ok_or_else(missing)
}

fn after(
    checkpoint: &Checkpoint,
    commit: &CommitEntry,
    planned: &Planned<'_>,
    request: &StateRequest,
) -> Result<Vec<StateTable>, RuntimeError> {
    let uid = operator(commit, request.operator.as_deref())?;
    let files = manifests(commit.batch, uid.as_str(), &commit.state[uid.as_str()])?;
    let mut families = families(checkpoint, commit.batch, &uid, planned)?;
    let is_only = families.len() == 1;
    let told: Vec<String> = families.iter().map(|family| family.name.clone()).collect();
    if let Some(wanted) = &request.family {
        let known = families.iter().map(|family| family.name.as_str()).collect::<Vec<_>>().join(", ");
        families.retain(|family| family.name == *wanted);
        if families.is_empty() {
            let reason = format!("the state of `{uid}` has no family `{wanted}`");
            return Err(invalid(reason, &format!("there are {known}")));
        }
    }
    let mut tables: Vec<(StateTable, FamilyReader)> = Vec::new();
    for family in &families {
        let reader = FamilyReader::try_new(family).map_err(|error| unreadable(&uid, error))?;
        let none = reader.read(&ByteRows::new(), &ByteRows::new()).map_err(|error| unreadable(&uid, error))?;
        let schema = Arc::new(Schema::new(columns(none, 0, 0).into_iter().map(|(field, _)| field).collect::<Vec<_>>()));
        let (uid, batch) = (uid.to_string(), commit.batch.0);
        let table = StateTable { uid, family: family.name.clone(), batch, is_only, schema, rows: Vec::new() };
        tables.push((table, reader));
    }
    for (partition, manifest) in (0..).zip(&files) {
        let mut store =
            offline_store::open(checkpoint, &uid, partition, manifest, ("reader", &offline_store::budget()))?;
        if let Some(untold) = untold(&mut store, &told)? {
            let reason = format!("its files have a family `{}` that the checkpoint does not tell of", untold.name);
            return Err(unknown(&uid, reason));
        }
        for ((table, reader), family) in tables.iter_mut().zip(&families) {
            read(&mut store, &uid, partition, family, (table, reader), request.limit)?;
        }
    }
    Ok(tables.into_iter().map(|(table, _)| table).collect())
}

/// A family with rows that the checkpoint does not tell of. One without rows has been emptied.
fn untold(store: &mut LogStore, told: &[String]) -> Result<Option<FamilySpec>, RuntimeError> {
    for spec in store.families().into_iter().filter(|spec| !told.contains(&spec.name)) {
        let id = store.family(&spec)?;
        let mut has_rows = false;
        store.scan(id, &mut |_, _| has_rows = true)?;
        if has_rows {
            return Ok(Some(spec));
        }
    }
    Ok(None)
}

/// The operator that is meant.
fn operator(commit: &CommitEntry, wanted: Option<&str>) -> Result<OperatorUid, RuntimeError> {
    let known = commit.state.keys().map(String::as_str).collect::<Vec<_>>();
    let uid = match (wanted, &*known) {
        (Some(wanted), known) if known.contains(&wanted) => wanted,
        (_, []) => {
            return Err(invalid(
                "the query keeps no state".into(),
                "a query without grouping, limit or duplicates to drop has none",
            ));
        }
        (Some(wanted), known) => {
            let reason = format!("there is no operator `{wanted}` in the state after batch {}", commit.batch);
            return Err(invalid(reason, &format!("there is {}", known.join(", "))));
        }
        (None, [only]) => only,
        (None, known) => {
            let reason = format!("the query has {} operators with state: {}", known.len(), known.join(", "));
            return Err(invalid(reason, "name one of them with `--operator`"));
        }
    };
    OperatorUid::new(uid)
        .map_err(|error| invalid(error.to_string(), "see with `millstream checkpoint verify` what is wrong"))
}

/// What the bytes of an operator's state mean.
fn families(
    checkpoint: &Checkpoint,
    batch: BatchId,
    uid: &OperatorUid,
    planned: &Planned<'_>,
) -> Result<Vec<StateFamily>, RuntimeError> {
    let entry = checkpoint.offset_log().get(batch)?;
    let stored = entry.and_then(|entry| entry.state_schemas.get(uid.as_str()).cloned());
    let tells = stored.as_ref().is_some_and(|stored| !stored.families.is_null());
    let planned = if tells { None } else { planned()?.remove(uid.as_str()) };
    let pin = match (stored, planned) {
        (Some(stored), _) if tells => stored,
        (Some(stored), Some(planned)) if planned.schema_id == stored.schema_id => planned,
        (None, Some(planned)) => planned,
        _ => {
            let reason = format!(
                "the entry of batch {batch} does not say what the state of `{uid}` is made of: an older release wrote it"
            );
            return Err(invalid(reason, "name the query file in place of the checkpoint"));
        }
    };
    families_of(&pin).map_err(|reason| unknown(uid, reason))
}

/// Appends the rows of one partition.
fn read(
    store: &mut LogStore,
    uid: &OperatorUid,
    partition: u32,
    family: &StateFamily,
    (table, reader): (&mut StateTable, &FamilyReader),
    limit: Option<usize>,
) -> Result<(), RuntimeError> {
    let so_far: usize = table.rows.iter().map(RecordBatch::num_rows).sum();
    let room = limit.map_or(usize::MAX, |limit| limit.saturating_sub(so_far));
    let Some(spec) = store.families().into_iter().find(|spec| spec.name == family.name) else { return Ok(()) };
    // The store refuses a family whose files carry another schema.
    let id = store.family(&FamilySpec { schema_id: family.schema_id.clone(), ..spec })?;
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    store.scan(id, &mut |key, value| entries.push((key.to_vec(), value.to_vec())))?;
    entries.sort_unstable();
    entries.truncate(room);
    if entries.is_empty() {
        return Ok(());
    }
    let (mut keys, mut values) = (ByteRows::new(), ByteRows::new());
    for (key, value) in &entries {
        keys.push(key);
        values.push(value);
    }
    let read = reader.read(&keys, &values).map_err(|error| unreadable(uid, error))?;
    let columns = columns(read, partition, entries.len()).into_iter().map(|(_, column)| column).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(entries.len()));
    let rows = RecordBatch::try_new_with_options(Arc::clone(&table.schema), columns, &options);
    table.rows.push(rows.map_err(|error| unknown(uid, error.to_string()))?);
    Ok(())
}

/// The columns of the result; a key or value without columns is none.
fn columns((key, value): (StructArray, StructArray), partition: u32, rows: usize) -> Vec<(FieldRef, ArrayRef)> {
    let mut columns: Vec<(FieldRef, ArrayRef)> = Vec::new();
    for (name, parts) in [("key", key), ("value", value)] {
        if parts.num_columns() > 0 {
            columns.push((Arc::new(Field::new(name, parts.data_type().clone(), false)), Arc::new(parts)));
        }
    }
    let partitions = Arc::new(Int32Array::from_value(partition as i32, rows));
    columns.push((Arc::new(Field::new("partition_id", DataType::Int32, false)), partitions));
    columns
}

fn invalid(reason: String, hint: &str) -> RuntimeError {
    RuntimeError::Invalid { reason, hint: Some(hint.to_owned()) }
}

fn unreadable(uid: &OperatorUid, error: millstream_operators::OperatorError) -> RuntimeError {
    unknown(uid, millstream_common::describe_chain(&error))
}

fn unknown(uid: &OperatorUid, reason: String) -> RuntimeError {
    RuntimeError::UnknownState { uid: uid.to_string(), action: "read", reason }
}
