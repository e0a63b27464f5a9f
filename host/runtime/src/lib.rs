//! The loop, triggers, recovery, hot swap, progress; and the library's public API.
//!
//! Above the data path: a query runs as one loop on one thread, which asks the source, writes the offset log, runs
//! the operators, hands rows to the sink and writes the commit log (see [`query`]).
//!
//! ```no_run
//! use millstream_runtime::functions::{explode, split};
//! use millstream_runtime::{OutputMode, Session};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let session = Session::new()?;
//! let lines = session.read_stream().format("socket").option("host", "localhost").option("port", 9999).load()?;
//! let counts = lines.select([explode(split("value", " ")).alias("word")])?.group_by(["word"]).count()?;
//! // Or: lines.create_or_replace_temp_view("lines")?;
//! //     session.sql("SELECT word, count(*) AS count FROM lines LATERAL VIEW explode(split(value, ' ')) w AS word GROUP BY word")?
//! let query = counts.write_stream().output_mode(OutputMode::Complete).format("console").start()?;
//! query.await_termination()?;
//! # Ok(()) }
//! ```
//!
//! Rule of its life: the order of effects in [`query`] is the protocol; nothing else writes durable truth.
//!
//! It knows no command line and no tenant.

pub mod batch_query;
pub mod control;
mod error;
pub mod explain_row;
pub mod inspect;
mod migration;
mod offline_store;
pub mod packages;
pub mod query;
pub mod query_file;
pub mod repartition;
pub mod replay;
mod session;
mod settings;
mod spec;
pub mod streams;
pub mod verdict;

pub use error::RuntimeError;
pub use millstream_common::{BatchId, Clock, ManualClock, Options, OutputMode, QueryId, RunId, StopSignal, Trigger};
pub use millstream_package as package;
pub use millstream_plan::frame::{Column, IntoOperand, JoinOn, functions};
pub use millstream_sink::Export;
pub use millstream_sink::connectors::foreach::{ForeachWriter, Row, RowError};
pub use millstream_wasm::{CacheOptions, CompileLimits, CompilerProgram, PluginHostOptions, compile_stdin};
pub use query::progress::{
    CanaryProgress, PluginProgress, Progress, SinkProgress, SourceProgress, StateOperatorProgress, TenantProgress,
};
pub use query::{CanaryTerms, ColumnChange, QueryChange, QueryRun, Remake, StreamingQuery, SwapGrounds, Swapped};
pub use session::{
    DataFrame, DataFrameReader, DataStreamReader, DataStreamWriter, GroupedData, ProcessOptions, Session,
};
pub use settings::Settings;
pub use spec::{PluginSpec, QuerySpec, StateLimits, StreamSpec, TableSpec};
pub use streams::{StreamingQueryListener, StreamingQueryManager};
