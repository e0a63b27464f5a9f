//! Packages: how a plugin's component comes from a registry to this machine, stays the same, and is vouched for.
//!
//! Beside the data path, before anything is loaded: the query file and the command line name components by reference, the
//! runtime asks here for their bytes.
//!
//! ```text
//!   oci://host/repo:tag ──► lock file ──► digest ──► store ──hit──► bytes ──► signature ──► bytes that may be loaded
//!                             │ no entry               │ miss                    of a trusted key
//!                             └──► registry: tag       └──► registry: digest
//! ```
//!
//! Rule of its life: bytes are believed by their digest and by nothing else, wherever they come from. What a registry
//! answers is hostile until its size, its form and its digest are checked.
//!
//! It compiles and loads nothing, and knows no queries.

mod error;
mod lock;
mod manifest;
mod reference;
mod registry;
mod signature;
mod store;

pub use error::PackageError;
pub use lock::{LockEntry, LockFile};
pub use manifest::PackageManifest;
pub use reference::PackageReference;
pub use registry::{NewPackage, Pulled, Registry, RegistryOptions, Resolved};
pub use signature::{Evidence, ImageSignature, SigningKey, TrustedKeys, signature_file};
pub use store::{Held, PackageStore};
