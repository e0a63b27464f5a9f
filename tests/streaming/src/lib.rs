//! Runs stories of streaming queries.
//!
//! A `.stream` file tells sources, a query, and steps: rows that arrive, batches, restarts, and what each batch must
//! give. The same story is played straight, with a restart after every batch, with other partition counts, and with a
//! crash at every durable write; the sink must get the same batches each time.
//!
//! ```text
//!   # Goal: a late row is dropped and counted.
//!   source clicks (at timestamp, user string) watermark at delay 10 seconds
//!   query  SELECT window(at, '5 seconds') AS w, count(*) AS n FROM clicks GROUP BY window(at, '5 seconds')
//!   mode   append
//!
//!   add clicks 12:00:01,a; 12:00:04,b
//!   batch
//!   ----
//!   no-data batch
//!   ----
//!   add clicks 12:00:30,c
//!   batch
//!   ----
//!   no-data batch
//!   ----
//!   [12:00:00,12:00:05) | 2
//! ```
//!
//! Rows of a batch are compared in any order unless the story says `ordered`. Times without a date are of 1970-01-01.
//! [`World`] is what stories and the tests of recovery and swaps have in common: a session whose files can crash.

mod components;
mod feed;
mod meddled;
mod parse;
mod player;
mod recorder;
mod report;
mod story;
mod text;
mod text_server;
mod world;

pub use components::component;
pub use meddled::{Call, Fate, MeddledFiles};
pub use parse::parse;
pub use player::{Played, SinkKind, SourceKind, Variant, crash_everywhere, play};
pub use recorder::Recorder;
pub use story::{Action, PluginDeclaration, SourceDeclaration, Step, Story};
pub use text::{cell, rows, time_ms, unit};
pub use text_server::TextServer;
pub use world::World;
