//! A query at work: the loop, and the handle that others hold.
//!
//! [`QueryRun`] is one life of a query, driven batch by batch; [`StreamingQuery`] is that on a thread of its own.
//!
//! ```text
//!   recovery ──► [ batch ]* ──► stop
//!                   │
//!                   ├─ define   ask the sources, write the offset log        (batch.rs)
//!                   ├─ execute  operators, state, sink                        (batch.rs)
//!                   └─ commit   watermark, commit log, retention             (batch.rs)
//! ```

mod batch;
mod border;
mod canary;
mod changes;
mod fork;
mod handle;
mod input_digest;
mod late_rows;
mod open;
mod output_digest;
mod planned;
mod prepared;
pub mod progress;
mod recovery;
mod restart;
mod run;
mod said;
mod swap;
mod tables;
mod tap;

pub use border::Remake;
pub use canary::CanaryTerms;
pub(crate) use canary::percent;
pub use changes::{ColumnChange, QueryChange};
pub(crate) use changes::{advice, describe as describe_changes, families_of, operators as state_changes};
pub(crate) use fork::{Fork, ForkOptions, Output, Ran};
pub use handle::{ProgressListener, QueryStatus, StreamingQuery};
pub(crate) use open::{
    RunningPlugin, check_mode, check_opened, check_place, check_sink, checkpoint_option, folder_of_its_own,
    load_plugins, plan, query_input, tables as read_tables, with_plugin_sink, with_store_options, without_checkpoint,
};
pub(crate) use output_digest::{EntriesDigest, output_digest};
pub(crate) use planned::{PlannedWith, plan_with};
pub use run::QueryRun;
pub(crate) use run::look;
pub(crate) use said::SaidQuery;
pub use swap::{SwapGrounds, SwapPause, SwapRequest, Swapped};
pub(crate) use tap::LiveBatch;
