//! Discretised streams: Spark Streaming's API in Rust, over the sources, the checkpoint and the state store of the engine.
//!
//! A [`StreamingContext`] cuts its inputs into batches, one per interval. A [`DStream`] has the rows of each batch as an
//! [`Rdd`]; operations make other streams of it, output operations make batches run. `README.md` has the operations by
//! Spark's names, what is guaranteed, and what differs.
//!
//! Rule of its life: the program is made, started and stopped, each once. With a checkpoint every batch is defined before it
//! runs and committed after it, and all state is in files that the commit names.
//!
//! It knows no SQL and no event time: time here is that of the batches.
//!
//! ```
//! use millstream_dstream::{RddQueue, StreamingContext};
//! use millstream_common::ManualClock;
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! let clock = Arc::new(ManualClock::at(0));
//! let context = StreamingContext::with_clock(Duration::from_secs(1), clock.clone())?;
//! let queue = RddQueue::new();
//! let lines = context.queue_stream(&queue)?;
//! let counts = lines
//!     .flat_map(|line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>())
//!     .map(|word| (word, 1_i64))
//!     .reduce_by_key(|a, b| a + b);
//! counts.print()?;
//!
//! let batches = context.start_stepwise()?;
//! queue.push(vec!["hello world", "hello"]);
//! clock.advance(Duration::from_secs(1));
//! assert_eq!(batches.run_due()?, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod context;
mod error;
mod input;
mod item;
mod listener;
mod lock;
mod output;
mod rdd;
mod schedule;
mod state;
mod stream;
mod time;

pub use context::{ContextState, StreamingContext};
pub use error::{DStreamError, JobError, Refusal};
pub use input::{CanCommitOffsets, DirectOptions, KafkaOffsetRange, RddQueue, Receiver, ReceiverHandle, Record};
pub use item::{Data, Item, Key};
pub use listener::{BatchInfo, OutputOperationInfo, ReceiverInfo, StreamingListener};
pub use output::Show;
pub use rdd::{Cogrouped, Combiner, InputRange, OuterJoined, Rdd};
pub use schedule::Stepper;
pub use state::{MapWithStateStream, State, StateSpec};
pub use stream::DStream;
pub use time::Time;
