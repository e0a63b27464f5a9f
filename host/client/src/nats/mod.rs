//! NATS with JetStream: options become a connection, answers and errors become what they mean.
//!
//! First thing that source and sink of NATS do: [`NatsAddress`] takes the options of a query without a look at the world,
//! [`Connection`] opens what it says. [`Connection::stream`] tells what a stream is like, [`Connection::read`] gives stored
//! messages of a range, [`Connection::publish`] sends messages and waits until the stream has them.
//!
//! Rule of its life: one connection, for one thread that waits. After an error of the network it is of no more use; who
//! holds it opens another: what the client does by itself to come back is not made use of, for nobody would know what became
//! of a question. Reading leaves nothing on the server: its consumers are in memory there, acknowledge nothing and go with the
//! reading, or half a minute after who made them is gone. Secrets are never shown.
//!
//! It knows no rows. Of core NATS, where a message is gone once it is sent, it uses questions and answers only.

mod address;
mod connection;
mod error;
mod publish;
mod read;
mod stream;
mod subject;

pub use address::{Login, NATS_OPTIONS, NatsAddress};
pub use connection::Connection;
pub use error::NatsError;
pub use publish::Outgoing;
pub use read::{Range, Stored};
pub use stream::{Retention, StreamState};
pub use subject::{is_filter, is_subject, matches};
