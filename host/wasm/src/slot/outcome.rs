//! What comes back from a slot: values, faults, dead letters, counts.

use arrow::array::{ArrayRef, UInt32Array};
use millstream_common::Digest;
use serde::{Deserialize, Serialize};

/// What happens to rows that a plugin cannot compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultPolicy {
    /// The batch fails.
    #[default]
    Fail,
    /// The rows at fault get null (scalar) or no rows (table) or are left out (aggregate), and are counted.
    Skip,
    /// As `Skip`, and each row's arguments are kept as a dead letter.
    DeadLetter,
}

/// One row that could not be computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    /// The row of the batch, from 0.
    pub row: u32,
    /// Why.
    pub error: String,
}

/// The values of a scalar function.
#[derive(Debug, Clone)]
pub struct ScalarOutcome {
    /// One value per row; null where the row is at fault.
    pub values: ArrayRef,
    /// The rows at fault, ascending; empty under [`FaultPolicy::Fail`].
    pub faults: Vec<RowFault>,
}

/// The rows of a table function.
#[derive(Debug, Clone)]
pub struct TableOutcome {
    /// For each output row the batch's row it came from, ascending.
    pub input_rows: UInt32Array,
    /// The columns.
    pub columns: Vec<ArrayRef>,
    /// The rows at fault, ascending; they have no output rows.
    pub faults: Vec<RowFault>,
}

/// States of an aggregate function.
#[derive(Debug, Clone)]
pub struct StatesOutcome {
    /// The state columns, one row for each group; rows at fault are not in them.
    pub states: Vec<ArrayRef>,
    /// The rows at fault, ascending; empty under [`FaultPolicy::Fail`].
    pub faults: Vec<RowFault>,
}

/// A row that could not be computed, kept for its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The function that was called.
    pub function: String,
    /// The component it was called in.
    pub digest: Digest,
    /// Why it failed.
    pub message: String,
    /// The arguments, as one JSON object with the names of the signature.
    pub arguments: String,
}

/// Counts of one slot since they were last taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PluginMetrics {
    /// Calls into a guest, failed ones too.
    pub calls: u64,
    /// Rows passed to the plugin.
    pub rows: u64,
    /// Rows that came back: values of scalars, rows of table functions, states of aggregates.
    pub output_rows: u64,
    /// Rows at fault.
    pub faults: u64,
    /// Calls that ended in a trap, a passed deadline, a broken limit, or garbage.
    pub traps: u64,
    /// Instances made.
    pub instances: u64,
    /// Wall time in the slot, in microseconds.
    pub time_us: u64,
    /// CPU time in the slot, in microseconds.
    pub cpu_us: u64,
    /// Time that calls waited because the plugin or its tenant had spent its CPU time, in microseconds.
    pub throttled_us: u64,
    /// The most memory that the instances had together since the slot was made, in bytes.
    pub memory_bytes: u64,
}
