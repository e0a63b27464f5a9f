//! Interfaces `describe`, `scalar` and `table`: functions of rows.

use wasmtime::component::{ComponentType, Lift};

use super::{Batch, BatchRef, DESCRIBE, Field, Nulls, RowError, SCALAR, TABLE};
use crate::export::{answers, export};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "lifting makes the variants")]
pub(crate) enum Kind {
    #[component(name = "scalar")]
    Scalar,
    #[component(name = "table")]
    Table,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "lifting makes the variants")]
pub(crate) enum Volatility {
    #[component(name = "immutable")]
    Immutable,
    #[component(name = "volatile")]
    Volatile,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) arguments: Vec<Field>,
    pub(crate) results: Vec<Field>,
    pub(crate) volatility: Volatility,
    pub(crate) nulls: Nulls,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct ScalarOutput {
    pub(crate) values: Batch,
    #[component(name = "row-errors")]
    pub(crate) row_errors: Vec<RowError>,
}

#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct TableOutput {
    #[component(name = "input-rows")]
    pub(crate) input_rows: Vec<u8>,
    pub(crate) rows: Batch,
    #[component(name = "row-errors")]
    pub(crate) row_errors: Vec<RowError>,
}

export! {
    /// `describe.describe`: what functions there are.
    DescribeFunctions = DESCRIBE, "describe", () -> Vec<Function>;
}

answers! {
    /// `scalar.call`: function number, arguments.
    CallScalar = SCALAR, "call", (u32, BatchRef<'a>) -> ScalarOutput;
    /// `table.call`: function number, arguments.
    CallTable = TABLE, "call", (u32, BatchRef<'a>) -> TableOutput;
}
