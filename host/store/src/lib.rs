//! Stores of objects by their URL: S3, Google Cloud Storage, Azure, memory, HDFS.
//!
//! Checkpoints, files and tables of Delta Lake open what is not a folder of this machine here, and nowhere else:
//! [`open_store`] makes the store of a location, [`is_stored`] says which locations have one, [`is_store_option`] which options
//! a store knows. Locations are taken as they are written ([`store_url`]). HDFS is a store of our own, behind the feature
//! `hdfs`; the others are the `object_store` crate's.
//!
//! Rule of its life: opening asks nobody. Whether there is a server at the address, and whom it lets in, is told by the first
//! question.
//!
//! Nothing here knows what lies in a store, or what an option of a connector is.

mod error;
#[cfg(feature = "hdfs")]
mod hdfs;
mod location;
mod open;
mod option;
mod scheme;

pub use error::StoreError;
pub use location::{split, store_url, without_secrets};
pub use open::open_store;
pub use option::{is_store_option, option_name};
pub use scheme::{is_hdfs, is_stored, refusal};
