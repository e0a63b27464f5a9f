//! Plugins: compile, load, limit and call components, and turn what comes back into trusted values.
//!
//! Beside the data path: `plan` puts a [`PluginSlot`] behind each plugin function, operators call it once per
//! batch, the runtime swaps the component in it between batches.
//!
//! Rule of its life: everything from a guest is hostile until converted: sizes, offsets, text, time, memory. A trapped
//! instance is dropped and never entered again. The limits of [`PluginLimits`] hold for every call.
//!
//! It knows no SQL, no state, no batches' order, and grants a guest nothing but `log`, an empty world, and what the operator names.

mod account;
mod admission;
pub mod build;
mod call;
mod compile;
mod component;
mod description;
mod dice;
mod engine;
mod error;
mod export;
mod layout;
mod limits;
mod log;
mod permissions;
pub mod processor;
mod scope;
mod signature;
mod slice;
mod slot;
mod stamp;
mod wasi;
mod wire;

pub use account::{Account, AccountLimits, Beyond, Spent, Tenant};
pub use admission::{Admission, Gate, Refusal};
pub use compile::{CacheFigures, CacheOptions, Compilations, CompileLimits, CompilerProgram, compile_stdin};
pub use component::Component;
pub use engine::{PluginHost, PluginHostOptions};
pub use error::WasmError;
pub use limits::PluginLimits;
pub use permissions::{AskedAnew, HostPattern, HttpGrant, Permission, Permissions, check_authorities};
pub use scope::Scope;
pub use signature::{
    AggregateSignature, FunctionKind, FunctionSignature, MigrationStep, SinkOption, SinkSignature, SourceOption,
    SourceSignature, Volatility,
};
pub use slice::{Slice, WHOLE};
pub use slot::{
    CanaryFigures, DeadLetter, Difference, DifferenceKind, FaultPolicy, MigratedRows, PluginMetrics, PluginSlot,
    RowFault, ScalarOutcome, SinkOutcome, SinkTarget, SourceCalls, SourcePage, StatesOutcome, TableOutcome,
    differences, sink_fields,
};
pub use stamp::BatchStamp;
