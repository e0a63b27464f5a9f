//! Redis and its relatives: options become a connection, answers and errors become what they mean.
//!
//! First thing that source and sink of Redis do: [`RedisAddress`] takes the options of a query without a look at the
//! world, [`Connection`] opens what it says. Commands go out packed, one or many at a time ([`Commands`]), and the answers
//! come back in their order.
//!
//! Rule of its life: one connection, for one thread that waits. After an error of the network it is of no more use; who
//! holds it opens another. The password is never shown.
//!
//! It knows no rows. Nodes of a cluster are not followed: what another node has is an error that names it.

mod address;
mod commands;
mod connection;
mod error;

pub use ::redis::Value;
pub use address::{REDIS_OPTIONS, RedisAddress};
pub use commands::Commands;
pub use connection::Connection;
pub use error::RedisError;
