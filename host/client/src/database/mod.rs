//! What connections to databases have in common: options become an address, errors become situations.
//!
//! One step before [`postgres`](crate::postgres) and [`mysql`](crate::mysql), which open what an [`Address`] says. An
//! address is made from options without a look at the world; the password in it is never shown.

mod address;
mod blocking;
mod error;
mod secret;
mod tls;
mod url;
mod words;

pub use address::{ADDRESS_OPTIONS, Address, Product, TlsMode};
pub(crate) use blocking::{Driver, Unanswered};
pub use error::DatabaseError;
pub use secret::Secret;
pub(crate) use tls::{client_config, is_of_tls, proving_config};
pub(crate) use url::parse as parse_url;
pub use words::TableName;
