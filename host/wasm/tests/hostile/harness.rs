//! Slots around guests, and what is asked of them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, Int64Array};
use millstream_common::{BatchId, QueryId};
use millstream_wasm::{BatchStamp, FaultPolicy, FunctionKind, PluginHost, PluginLimits, PluginSlot, WasmError};

use crate::raw::Guest;

/// The host that all tests share.
pub(crate) fn host() -> Arc<PluginHost> {
    static HOST: OnceLock<Arc<PluginHost>> = OnceLock::new();
    Arc::clone(HOST.get_or_init(|| PluginHost::new().unwrap()))
}

/// A slot with a guest in it.
pub(crate) fn slot_with(guest: &Guest, change: impl FnOnce(&mut PluginLimits)) -> Arc<PluginSlot> {
    let mut limits = PluginLimits { deadline: Duration::from_secs(5), ..PluginLimits::default() };
    change(&mut limits);
    let component = host().load("guest", &guest.component()).unwrap();
    PluginSlot::new("guest", host(), component, limits, FaultPolicy::Fail)
}

/// A slot with a guest in it.
pub(crate) fn slot(guest: &Guest) -> Arc<PluginSlot> {
    slot_with(guest, |_| {})
}

/// An honest guest that many tests share, as the neighbour of theirs.
pub(crate) fn honest() -> Arc<PluginSlot> {
    static SLOT: OnceLock<Arc<PluginSlot>> = OnceLock::new();
    Arc::clone(SLOT.get_or_init(|| slot(&Guest::default())))
}

/// Limits that are soon reached.
pub(crate) fn limits() -> PluginLimits {
    PluginLimits {
        memory_bytes: 8 << 20,
        deadline: Duration::from_millis(200),
        result_bytes: 1 << 20,
        log_bytes_per_call: 10_000,
        ..PluginLimits::default()
    }
}

/// A column of 64-bit integers.
pub(crate) fn numbers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

/// What the guest makes of some numbers.
pub(crate) fn call(slot: &PluginSlot, values: &[i64]) -> Result<Vec<i64>, WasmError> {
    let (rows, arguments) = (values.len(), [numbers(values.iter().copied())]);
    let column = match slot.component().functions()[0].kind {
        FunctionKind::Scalar => slot.call_scalar("f", rows, &arguments)?.values,
        FunctionKind::Table => slot.call_table("f", rows, &arguments)?.columns.remove(0),
    };
    Ok(column.as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec())
}

/// The first number that the guest makes of a row.
pub(crate) fn answer(slot: &PluginSlot) -> i64 {
    call(slot, &[0]).unwrap()[0]
}

/// The stamp of a batch.
pub(crate) fn batch(query: u128, batch: u64, time_ms: i64) -> BatchStamp {
    let query = QueryId(uuid::Uuid::from_u128(query));
    BatchStamp { query: Some(query), batch: Some(BatchId(batch)), time_ms }
}
