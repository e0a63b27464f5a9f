//! Who vouches for a component: signatures in the forms that cosign makes, ECDSA over P-256 with SHA-256.
//!
//! ```text
//!   file      words.wasm + words.wasm.sig       base64 of a signature over the component's bytes (`cosign sign-blob`)
//!   package   tag sha256-<manifest>.sig         a payload that names repository and manifest, and a signature over the
//!                                               payload (`cosign sign`); the manifest names the component
//! ```
//!
//! Between the store or the registry and the engine: nothing is compiled before its evidence is good.
//!
//! Rule of its life: evidence is looked at against the keys of today whenever its component is to be loaded, so a key that
//! the operator takes away takes effect with the next start.
//!
//! No certificates, no log of transparency, no time: a key is trusted because the operator named it.

mod evidence;
mod key;
mod payload;

pub use evidence::{Evidence, ImageSignature, signature_file};
#[cfg(test)]
pub(crate) use key::new_key;
pub use key::{SigningKey, TrustedKeys};
#[cfg(test)]
pub(crate) use payload::Payload;
pub(crate) use payload::{SIGNATURE_ANNOTATION, SIMPLE_SIGNING, signature_tag};
