//! Components by name: a file or a reference to a package; and the gate that lets in only what somebody vouches for.
//!
//! Before the engine: the query file, `check` and `swap` get their bytes here, and the engine asks here before it compiles
//! anything, also code out of a checkpoint.
//!
//! ```text
//!   file       ──► bytes ─► words.wasm.sig ─────────────┐
//!   reference  ──► pinned digest ─► store, checkpoint,   ├─► a trusted key has signed? ──► admitted
//!                                   or registry ─────────┘        no: an error, nothing is loaded
//!   checkpoint ──► bytes ─► evidence that was kept ──────┘
//! ```
//!
//! Rule of its life: without keys everything is admitted. With keys a component is admitted by its digest, after a
//! signature over it was good; what was good is kept beside the package, so that a restart needs no registry.

use crate::query_file::{QueryFileError, read_component};
use millstream_common::{Digest, describe_chain};
use millstream_package::{
    Evidence, PackageError, PackageManifest, PackageReference, PackageStore, Registry, TrustedKeys, signature_file,
};
use millstream_wasm::{Admission, Refusal};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a file with a signature.
const SIGNATURE_BYTES: u64 = 16 << 10;

/// Where components come from, and which may be loaded.
#[derive(Debug, Default)]
pub struct Packages {
    registry: Registry,
    store: Option<PackageStore>,
    keys: Option<TrustedKeys>,
    admitted: Mutex<BTreeSet<Digest>>,
}

/// What a reference is pinned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin {
    /// The digest of the manifest.
    pub manifest: Digest,
    /// The digest of the component.
    pub component: Digest,
}

/// A component that came by reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// What the reference means.
    pub pin: Pin,
    /// The component.
    pub bytes: Vec<u8>,
}

/// Finds a component somewhere else by its digest, in a checkpoint for example.
pub type Kept<'a> = &'a dyn Fn(Digest) -> Option<Vec<u8>>;

impl Packages {
    /// Packages of these registries, kept in `store`; with keys, only what one of them has signed is admitted.
    pub fn new(registry: Registry, store: Option<PackageStore>, keys: Option<TrustedKeys>) -> Arc<Self> {
        Arc::new(Self { registry, store, keys, admitted: Mutex::default() })
    }

    /// The registries.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Where packages are kept.
    pub fn store(&self) -> Option<&PackageStore> {
        self.store.as_ref()
    }

    /// The keys of which one must have signed; `None` when no signature is demanded.
    pub fn keys(&self) -> Option<&TrustedKeys> {
        self.keys.as_ref()
    }

    /// A component by the name that a person gave it: a file, or a reference, whose tag is looked up now.
    ///
    /// # Errors
    /// When it cannot be had, or a signature is demanded and none is good.
    pub fn component(&self, named: &str) -> Result<Vec<u8>, QueryFileError> {
        match PackageReference::is_meant(named) {
            true => Ok(self.fetch(&named.parse::<PackageReference>()?, None, &|_| None)?.bytes),
            false => self.of_file(Path::new(named)),
        }
    }

    /// The component of a file.
    ///
    /// # Errors
    /// When it cannot be read, or a signature is demanded and `FILE.sig` is none.
    pub fn of_file(&self, file: &Path) -> Result<Vec<u8>, QueryFileError> {
        let bytes = read_component(file)?;
        if self.keys.is_some() {
            let evidence = file_evidence(file)?.into_iter().collect();
            let place = file.display().to_string();
            self.vouch((&format!("component `{place}`"), &place), &bytes, evidence)?;
        }
        Ok(bytes)
    }

    /// The component of a reference. With a pin, exactly those bytes, from where they are nearest; else what the reference
    /// means now.
    ///
    /// # Errors
    /// When it cannot be had, is not what it is pinned to, or a signature is demanded and none is good.
    pub fn fetch(
        &self,
        reference: &PackageReference,
        pin: Option<Pin>,
        kept: Kept<'_>,
    ) -> Result<Fetched, PackageError> {
        if let Some(pin) = pin
            && let Some(bytes) = self.at_hand(pin.component, kept)
        {
            let is_good = self.keys.is_none() || self.admit_by_evidence(&bytes, pin.component);
            if is_good {
                return Ok(Fetched { pin, bytes });
            }
        }
        let wanted = pin.map_or_else(|| reference.clone(), |pin| reference.at(pin.manifest));
        let resolved = self.registry.resolve(&wanted)?;
        let found = Pin { manifest: resolved.digest, component: resolved.package.component };
        if let Some(pin) = pin.filter(|pin| pin.component != found.component) {
            return Err(PackageError::NotAPlugin {
                reference: wanted.to_string(),
                reason: format!("it is component {}, and the lock file says {}", found.component, pin.component),
            });
        }
        let bytes = match self.at_hand(found.component, kept) {
            Some(bytes) => bytes,
            None => self.registry.component(&wanted, resolved.package)?,
        };
        if self.keys.is_some() {
            let place = reference.place();
            let signatures = self.registry.signatures(&wanted, found.manifest)?;
            let evidence =
                signatures.iter().map(|signature| Evidence::of_package(&place, &resolved.manifest, signature));
            let at = reference.at(found.manifest).to_string();
            self.vouch((&format!("package `{reference}`"), &at), &bytes, evidence.collect())?;
        }
        self.keep(&resolved.manifest, &bytes);
        Ok(Fetched { pin: found, bytes })
    }

    /// What a reference means now, without its component.
    ///
    /// # Errors
    /// When the registry cannot be reached or has no such package.
    pub fn resolve(&self, reference: &PackageReference) -> Result<(Digest, PackageManifest), PackageError> {
        let resolved = self.registry.resolve(reference)?;
        Ok((resolved.digest, resolved.package))
    }

    fn at_hand(&self, component: Digest, kept: Kept<'_>) -> Option<Vec<u8>> {
        let limit = self.registry.options().component_bytes;
        let stored = self.store.as_ref().and_then(|store| store.component(component, limit));
        stored.or_else(|| kept(component).filter(|bytes| Digest::of(bytes) == component))
    }

    /// Nobody waits for the store: what is not kept is had from the registry again.
    fn keep(&self, manifest: &[u8], component: &[u8]) {
        if let Some(store) = &self.store
            && let Err(error) = store.keep(manifest, component)
        {
            tracing::warn!("a package is not kept for the next start: {}", describe_chain(&error));
        }
    }

    /// Admits a component when one of `evidence` is good.
    fn vouch(
        &self,
        (what, place): (&str, &str),
        component: &[u8],
        evidence: Vec<Evidence>,
    ) -> Result<(), PackageError> {
        let Some(keys) = &self.keys else { return Ok(()) };
        let (what, mut reasons) = (what.to_owned(), BTreeSet::new());
        if evidence.is_empty() {
            return Err(PackageError::Unsigned { what, place: place.to_owned() });
        }
        for evidence in evidence {
            match evidence.verify(keys, component) {
                Ok(signer) => {
                    let digest = Digest::of(component);
                    tracing::info!(%digest, signer, "{what} is signed");
                    self.admit_digest(digest);
                    if let Some(store) = &self.store
                        && let Err(error) = store.keep_evidence(digest, evidence)
                    {
                        tracing::warn!("a signature is not kept for the next start: {}", describe_chain(&error));
                    }
                    return Ok(());
                }
                Err(reason) => {
                    reasons.insert(reason);
                }
            }
        }
        Err(PackageError::BadSignature { what, reason: reasons.into_iter().collect::<Vec<_>>().join("; ") })
    }

    /// Admits a component by what was kept when its signature was seen last.
    fn admit_by_evidence(&self, component: &[u8], digest: Digest) -> bool {
        let (Some(keys), Some(store)) = (&self.keys, &self.store) else { return false };
        let is_good = store.evidence(digest).iter().any(|evidence| evidence.verify(keys, component).is_ok());
        if is_good {
            self.admit_digest(digest);
        }
        is_good
    }

    fn admit_digest(&self, digest: Digest) {
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner).insert(digest);
    }
}

impl Admission for Packages {
    fn admit(&self, _plugin: &str, component: &[u8], digest: Digest) -> Result<(), Refusal> {
        let known = || self.admitted.lock().unwrap_or_else(PoisonError::into_inner).contains(&digest);
        if self.keys.is_none() || known() || self.admit_by_evidence(component, digest) {
            return Ok(());
        }
        Err(Refusal {
            reason: format!("component {digest} has no signature that is known here, and the host file demands one"),
            hint: "show its signature with `millstream plugin verify FILE|REFERENCE`, and it is known from then on"
                .to_owned(),
        })
    }
}

/// The signature beside a component's file, if there is one.
fn file_evidence(component: &Path) -> Result<Option<Evidence>, PackageError> {
    let path = signature_file(component);
    let failed = |source| PackageError::Io { doing: "read the signature", path: path.clone(), source };
    let file = match std::fs::File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(SIGNATURE_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    let signature = String::from_utf8_lossy(&bytes).trim().to_owned();
    Ok(Some(Evidence::File { signature }))
}

#[cfg(test)]
mod tests;
