//! Records of Kafka's topics, each partition in the order of its offsets.
//!
//! ```text
//!   config     which topics, from where, how much at a time
//!   lookup     asks brokers: which partitions, which offsets, which topic ids
//!   offset     {"topic":{"0":134}}, as in Spark            admission  how much of it one batch takes
//!   journal    in the checkpoint: where the query began, and which topic of a name it reads
//!   watch      what is new, gone, or another topic now
//!   commits    offsets in a consumer group, for programs that ask for it
//!   ranges     a batch as pieces of partitions             reader     pieces to records      columns  records to Arrow
//! ```
//!
//! Rule of its life: the checkpoint alone says where to go on; nothing is committed to Kafka unless a program of
//! streams asks for it. A range of offsets has
//! the same rows each time it is read, as long as Kafka keeps them. Offsets may have holes, after compaction and between
//! transactions: the end of a range is reached by the position of the client, and holes are no loss. What Kafka no longer
//! has is a loss with a name: it ends the query, or is counted and warned of when `failOnDataLoss` is false.
//!
//! It decodes neither keys nor values. Options and limits: `README.md` beside this file.

mod admission;
mod columns;
mod commits;
mod config;
mod journal;
mod lookup;
mod loss;
mod offset;
mod ranges;
mod reader;
mod source;
mod starting;
mod topics;
mod watch;

pub use source::KafkaSourceFactory;
