//! Keys: public ones that are trusted, and one that signs.

use crate::PackageError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use millstream_common::Digest;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What stands before the point in the public key of the curve P-256.
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Bytes of a file with a key.
const KEY_BYTES: u64 = 64 << 10;
/// Bytes of a signature as text.
const SIGNATURE_TEXT: usize = 1 << 10;

/// A key that is trusted.
#[derive(Clone, PartialEq, Eq)]
struct PublicKey {
    name: String,
    point: Vec<u8>,
}

/// The keys of which one must have signed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TrustedKeys {
    keys: Vec<PublicKey>,
}

impl fmt::Debug for TrustedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| &key.name)).finish()
    }
}

impl TrustedKeys {
    /// Reads the public keys of files.
    ///
    /// # Errors
    /// When one cannot be read, or has no public key of the curve P-256.
    pub fn read<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<Self, PackageError> {
        let mut trusted = Self::default();
        for file in files {
            trusted.add(&file.display().to_string(), &read(file)?)?;
        }
        Ok(trusted)
    }

    /// Adds the public key of a text in the form PEM.
    ///
    /// # Errors
    /// When it has none of the curve P-256.
    pub fn add(&mut self, place: &str, pem: &[u8]) -> Result<(), PackageError> {
        let bad = |reason: String| PackageError::Key { place: place.to_owned(), reason };
        let key = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| {
            bad(match std::str::from_utf8(pem) {
                Ok(text) if text.contains("PRIVATE KEY") => "it is a private key".to_owned(),
                _ => "it does not begin with `-----BEGIN PUBLIC KEY-----`".to_owned(),
            })
        })?;
        match key.strip_prefix(&P256[..]) {
            Some(point) if point.len() == 65 && point[0] == 4 => {
                let name = format!("{place} ({})", Digest::of(&key).short());
                self.keys.push(PublicKey { name, point: point.to_vec() });
                Ok(())
            }
            _ => Err(bad("it is a key of another kind than ECDSA over P-256".to_owned())),
        }
    }

    /// Adds all keys of another list.
    pub fn merge(&mut self, other: Self) {
        self.keys.extend(other.keys);
    }

    /// The names of the keys, with the beginnings of their digests.
    pub fn names(&self) -> Vec<&str> {
        self.keys.iter().map(|key| key.name.as_str()).collect()
    }

    /// The key that made a signature over a message; `None` when it is none of these.
    pub(crate) fn signer(&self, message: &[u8], signature: &str) -> Option<&str> {
        let signature = signature.trim();
        if signature.len() > SIGNATURE_TEXT {
            return None;
        }
        let signature = STANDARD.decode(signature).ok()?;
        let made = |key: &&PublicKey| {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &key.point).verify(message, &signature).is_ok()
        };
        self.keys.iter().find(made).map(|key| key.name.as_str())
    }
}

/// A key that signs.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Reads the private key of a file: PKCS #8 in the form PEM, without a password.
    ///
    /// # Errors
    /// When it cannot be read, or has no such key.
    pub fn read(file: &Path) -> Result<Self, PackageError> {
        let pem = read(file)?;
        let bad = |reason: &str| PackageError::Key { place: file.display().to_string(), reason: reason.to_owned() };
        let text = String::from_utf8_lossy(&pem);
        if text.contains("-----BEGIN ENCRYPTED") {
            return Err(bad(
                "it is protected by a password; sign with the program that made it (`cosign sign`, `cosign sign-blob`), \
                 or take it off with openssl",
            ));
        }
        if text.contains("-----BEGIN EC PRIVATE KEY-----") {
            return Err(bad("it is in the form SEC 1; turn it with `openssl pkcs8 -topk8 -nocrypt`"));
        }
        let key = PrivatePkcs8KeyDer::from_pem_slice(&pem)
            .map_err(|_| bad("it does not begin with `-----BEGIN PRIVATE KEY-----`"))?;
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.secret_pkcs8_der(), &random)
            .map_err(|_| bad("it is a key of another kind than ECDSA over P-256"))?;
        Ok(Self { pair, random })
    }

    /// Signs a message; the signature as base64.
    ///
    /// # Errors
    /// When the machine has no random numbers.
    pub fn sign(&self, message: &[u8]) -> Result<String, PackageError> {
        let signature = self.pair.sign(&self.random, message).map_err(|_| PackageError::Key {
            place: "the key".to_owned(),
            reason: "the machine gives no random numbers to sign with".to_owned(),
        })?;
        Ok(STANDARD.encode(signature.as_ref()))
    }

    /// The public half, as the one trusted key.
    pub fn public(&self) -> TrustedKeys {
        let point = self.pair.public_key().as_ref().to_vec();
        TrustedKeys { keys: vec![PublicKey { name: "the key that signed".to_owned(), point }] }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, PackageError> {
    let failed = |source| PackageError::Io { doing: "read the key", path: file.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(file).map_err(failed)?.take(KEY_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// A new key as the text of a file; for tests only.
#[cfg(test)]
pub(crate) fn new_key() -> String {
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new()).unwrap();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(pkcs8.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`.
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE/S+/fV+mDeG2BXKx00GmYQuDlLR7\n\
        w0jiBbvrmz6WZ9xbGFIHjg2hpJGGlpIehi1jjWuFWPxXNrIpq5GI64Jd2g==\n\
        -----END PUBLIC KEY-----";
    /// Made with `openssl dgst -sha256 -sign` over `component`.
    const BY_OPENSSL: &str =
        "MEUCIQD08KEQnB4+SFhbhC6eqQjbAjsdmAxtkJGBj3ewUfNM5QIgB5kIBdMWZhp/I2yECw/Y0UB9ZzX/cUpI0YoM56LF3gc=";
    const OF_ANOTHER_CURVE: &str = "-----BEGIN PUBLIC KEY-----\n\
        MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAExnk2L1jDNuCTzSy93trwJXKKUDk2h2u5\n\
        UZwfv0LTL2XEq/jYOEUTKFRUhK409eFoi1FWeb5gHKkAP3kUAbkZmYsSP4itudto\n\
        lrGzGnQhRFt25KTBk9QnXBiyMoZQ178Y\n\
        -----END PUBLIC KEY-----";

    fn trusted() -> TrustedKeys {
        let mut keys = TrustedKeys::default();
        keys.add("test.pub", PUBLIC.as_bytes()).unwrap();
        keys
    }

    #[test]
    fn signatures_of_openssl_are_good_for_their_key_and_bytes_only() {
        let keys = trusted();
        assert!(keys.signer(b"component", BY_OPENSSL).unwrap().starts_with("test.pub ("));
        assert!(keys.signer(b"Component", BY_OPENSSL).is_none());
        assert!(TrustedKeys::default().signer(b"component", BY_OPENSSL).is_none());
        for broken in ["", "AAAA", "not base64", &BY_OPENSSL[4..], "A".repeat(4000).as_str()] {
            assert!(keys.signer(b"component", broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn what_is_signed_here_is_good_for_the_public_half() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.pem");
        std::fs::write(&file, new_key()).unwrap();
        let key = SigningKey::read(&file).unwrap();
        let signature = key.sign(b"component").unwrap();
        assert!(key.public().signer(b"component", &signature).is_some());
        assert!(key.public().signer(b"Component", &signature).is_none());
        assert!(trusted().signer(b"component", &signature).is_none(), "another key");
    }

    #[test]
    fn keys_of_other_kinds_are_told_apart() {
        let mut keys = TrustedKeys::default();
        let mut error = |pem: &str| keys.add("k", pem.as_bytes()).unwrap_err().to_string();
        assert!(error(&new_key()).contains("it is a private key"));
        assert!(error(OF_ANOTHER_CURVE).contains("of another kind"));
        assert!(error("hello").contains("does not begin with"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.pem");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            SigningKey::read(&file).unwrap_err().to_string()
        };
        assert!(read("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n").contains("password"));
        assert!(read("-----BEGIN EC PRIVATE KEY-----\n").contains("SEC 1"));
        assert!(read(PUBLIC).contains("does not begin with"));
    }
}
