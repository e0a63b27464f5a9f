//! What was found that vouches for a component, kept so that it can be looked at again without a registry.

use super::key::{SigningKey, TrustedKeys};
use super::payload::Payload;
use crate::PackageError;
use crate::manifest::PackageManifest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use millstream_common::Digest;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A signature of a package as a registry keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSignature {
    /// The text that is signed.
    pub payload: Vec<u8>,
    /// The signature, as base64.
    pub signature: String,
}

impl ImageSignature {
    /// Signs a manifest of a repository.
    ///
    /// # Errors
    /// When the machine has no random numbers.
    pub fn make(key: &SigningKey, repository: &str, manifest: Digest) -> Result<Self, PackageError> {
        let payload = Payload::make(repository, manifest);
        let signature = key.sign(&payload)?;
        Ok(Self { payload, signature })
    }
}

/// A signature with all that is needed to see what it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "lowercase", deny_unknown_fields)]
pub enum Evidence {
    /// A signature over the component's bytes.
    File {
        /// As base64.
        signature: String,
    },
    /// A signature over a package.
    Package {
        /// Registry and repository.
        repository: String,
        /// The manifest, as base64.
        manifest: String,
        /// The payload, as base64.
        payload: String,
        /// As base64.
        signature: String,
    },
}

impl Evidence {
    /// Of a package.
    pub fn of_package(repository: &str, manifest: &[u8], signature: &ImageSignature) -> Self {
        Self::Package {
            repository: repository.to_owned(),
            manifest: STANDARD.encode(manifest),
            payload: STANDARD.encode(&signature.payload),
            signature: signature.signature.clone(),
        }
    }

    /// The key that vouches for a component.
    ///
    /// # Errors
    /// Why it does not, in words.
    pub fn verify<'a>(&self, keys: &'a TrustedKeys, component: &[u8]) -> Result<&'a str, String> {
        let no_key = || format!("it is by none of the trusted keys, {}, or over other bytes", keys.names().join(", "));
        match self {
            Self::File { signature } => keys.signer(component, signature).ok_or_else(no_key),
            Self::Package { repository, manifest, payload, signature } => {
                let decode = |text: &str| STANDARD.decode(text).map_err(|_| "it is damaged".to_owned());
                let (manifest, payload) = (decode(manifest)?, decode(payload)?);
                let signer = keys.signer(&payload, signature).ok_or_else(no_key)?;
                Payload::check(&payload, repository, Digest::of(&manifest))?;
                if PackageManifest::read(&manifest)?.component != Digest::of(component) {
                    return Err("its manifest names another component".to_owned());
                }
                Ok(signer)
            }
        }
    }
}

/// The file with the signature of a component's file.
pub fn signature_file(component: &Path) -> PathBuf {
    let mut name = component.as_os_str().to_owned();
    name.push(".sig");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest;

    fn key(folder: &Path) -> SigningKey {
        let file = folder.join("key.pem");
        std::fs::write(&file, crate::signature::new_key()).unwrap();
        SigningKey::read(&file).unwrap()
    }

    #[test]
    fn evidence_of_a_package_leads_from_the_key_to_the_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let key = key(folder.path());
        let (_, manifest) = manifest::make(b"component", &[], &[]);
        let (_, other) = manifest::make(b"another", &[], &[]);
        let signature = ImageSignature::make(&key, "localhost:1/words", Digest::of(&manifest)).unwrap();
        let keys = key.public();
        let good = Evidence::of_package("localhost:1/words", &manifest, &signature);
        assert_eq!(good.verify(&keys, b"component"), Ok("the key that signed"));
        assert!(good.verify(&keys, b"Component").unwrap_err().contains("names another component"));
        assert!(good.verify(&TrustedKeys::default(), b"component").unwrap_err().contains("none of the trusted keys"));
        // The same signature for another manifest, or in another repository.
        let replayed = Evidence::of_package("localhost:1/words", &other, &signature);
        assert!(replayed.verify(&keys, b"another").unwrap_err().contains("over another manifest"));
        let moved = Evidence::of_package("localhost:1/other", &manifest, &signature);
        assert!(moved.verify(&keys, b"component").unwrap_err().contains("it is for `localhost:1/words`"));
        let text = serde_json::to_string(&good).unwrap();
        assert_eq!(serde_json::from_str::<Evidence>(&text).unwrap(), good);
    }

    #[test]
    fn evidence_of_a_file_is_over_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let key = key(folder.path());
        let evidence = Evidence::File { signature: key.sign(b"component").unwrap() };
        assert!(evidence.verify(&key.public(), b"component").is_ok());
        assert!(evidence.verify(&key.public(), b"tampered").is_err());
        assert_eq!(signature_file(Path::new("a/words.wasm")), Path::new("a/words.wasm.sig"));
    }
}
