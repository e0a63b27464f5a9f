//! What is admitted, and by what, without a registry: everything that is needed is at hand.

use super::*;
use millstream_common::Hint;
use millstream_package::{ImageSignature, RegistryOptions, SigningKey};
use std::path::PathBuf;
use std::process::Command;

/// A folder with keys, and what is kept.
struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["good", "other"] {
            let (key, public) = (world.path(&format!("{name}.pem")), world.path(&format!("{name}.pub")));
            openssl(&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", &text(&key)]);
            openssl(&["pkey", "-in", &text(&key), "-pubout", "-out", &text(&public)]);
        }
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn key(&self, name: &str) -> SigningKey {
        SigningKey::read(&self.path(&format!("{name}.pem"))).unwrap()
    }

    fn store(&self) -> PackageStore {
        PackageStore::new(self.path("packages"))
    }

    /// Packages that demand a signature by one of these.
    fn demanding(&self, keys: &[&str]) -> Arc<Packages> {
        let files: Vec<PathBuf> = keys.iter().map(|name| self.path(&format!("{name}.pub"))).collect();
        let keys = TrustedKeys::read(files.iter().map(PathBuf::as_path)).unwrap();
        // Whoever asks a registry here fails.
        let registry = Registry::new(RegistryOptions { allow: Some(Vec::new()), ..RegistryOptions::default() });
        Packages::new(registry, Some(self.store()), Some(keys))
    }

    /// Writes `plugin.wasm` with a signature that openssl makes, as `cosign sign-blob` does.
    fn sign_file(&self, bytes: &[u8], key: &str) -> PathBuf {
        let file = self.path("plugin.wasm");
        std::fs::write(&file, bytes).unwrap();
        let (key, der) = (text(&self.path(&format!("{key}.pem"))), text(&self.path("signature.der")));
        openssl(&["dgst", "-sha256", "-sign", &key, "-out", &der, &text(&file)]);
        openssl(&["base64", "-A", "-in", &der, "-out", &text(&signature_file(&file))]);
        file
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn openssl(arguments: &[&str]) {
    let ended = Command::new("openssl").args(arguments).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

fn admits(packages: &Packages, component: &[u8]) -> bool {
    packages.admit("p", component, Digest::of(component)).is_ok()
}

#[test]
fn without_keys_everything_is_admitted() {
    assert!(admits(&Packages::default(), b"anything"));
}

#[test]
fn a_file_is_admitted_with_the_signature_of_a_trusted_key_over_its_bytes() {
    let world = World::new();
    let file = world.sign_file(b"component", "good");
    let packages = world.demanding(&["other", "good"]);
    assert!(!admits(&packages, b"component"), "nobody has looked at its signature");
    assert_eq!(packages.of_file(&file).unwrap(), b"component");
    assert!(admits(&packages, b"component") && !admits(&packages, b"another"));
    // The next process knows it by what was kept, under the keys of that day.
    assert!(admits(&world.demanding(&["good"]), b"component"));
    assert!(!admits(&world.demanding(&["other"]), b"component"), "a key that is trusted no more");
    let refusal = world.demanding(&["other"]).admit("p", b"component", Digest::of(b"component")).unwrap_err();
    assert!(refusal.reason.contains("the host file demands one") && refusal.hint.contains("plugin verify"));
}

#[test]
fn a_file_without_a_good_signature_is_refused_with_the_reason() {
    let world = World::new();
    let packages = world.demanding(&["good"]);
    let file = world.sign_file(b"component", "other");
    let refused = || {
        let error = packages.of_file(&file).unwrap_err();
        (describe_chain(&error), error.hint().unwrap_or_default())
    };
    let (reason, hint) = refused();
    assert!(reason.contains("it is by none of the trusted keys") && reason.contains("good.pub ("), "{reason}");
    assert!(hint.contains("[signatures]"), "{hint}");
    world.sign_file(b"component", "good");
    std::fs::write(&file, "Component").unwrap();
    assert!(refused().0.contains("or over other bytes"), "tampered after it was signed");
    std::fs::write(signature_file(&file), "no signature").unwrap();
    assert!(refused().0.contains("no valid signature"));
    std::fs::remove_file(signature_file(&file)).unwrap();
    let (reason, hint) = refused();
    assert!(reason.contains("has no signature, and the host file demands one"), "{reason}");
    assert!(hint.contains("millstream plugin sign"), "{hint}");
    assert!(!admits(&packages, b"component") && !admits(&packages, b"Component"));
}

/// A manifest of one component, as a registry would keep it.
fn manifest(component: &[u8]) -> Vec<u8> {
    let digest = Digest::of(component);
    format!(
        "{{\"schemaVersion\":2,\"config\":{{\"mediaType\":\"application/vnd.wasm.config.v0+json\",\"digest\":\
         \"sha256:{digest}\",\"size\":1}},\"layers\":[{{\"mediaType\":\"application/wasm\",\"digest\":\
         \"sha256:{digest}\",\"size\":{}}}]}}",
        component.len()
    )
    .into_bytes()
}

#[test]
fn what_is_pinned_and_at_hand_needs_no_registry() {
    let world = World::new();
    let (store, manifest) = (world.store(), manifest(b"component"));
    let pin = Pin { manifest: Digest::of(&manifest), component: Digest::of(b"component") };
    let reference: PackageReference = "oci://registry.example.com/acme/words:1".parse().unwrap();
    let registry = Registry::new(RegistryOptions { allow: Some(Vec::new()), ..RegistryOptions::default() });
    let packages = Packages::new(registry, Some(store.clone()), None);
    let nowhere = |_| None;
    let error = packages.fetch(&reference, Some(pin), &nowhere).unwrap_err();
    assert!(matches!(error, PackageError::RegistryNotAllowed { .. }), "it would have to be asked");
    // A checkpoint has it; one that lies is not believed.
    assert!(packages.fetch(&reference, Some(pin), &|_| Some(b"another".to_vec())).is_err());
    assert_eq!(packages.fetch(&reference, Some(pin), &|_| Some(b"component".to_vec())).unwrap().bytes, b"component");
    store.keep(&manifest, b"component").unwrap();
    assert_eq!(packages.fetch(&reference, Some(pin), &nowhere).unwrap(), Fetched { pin, bytes: b"component".to_vec() });

    // With keys, the signature must be at hand as well.
    let demanding = world.demanding(&["good"]);
    assert!(demanding.fetch(&reference, Some(pin), &nowhere).is_err());
    let signature = ImageSignature::make(&world.key("good"), &reference.place(), pin.manifest).unwrap();
    let evidence = Evidence::of_package(&reference.place(), &manifest, &signature);
    store.keep_evidence(pin.component, evidence).unwrap();
    assert_eq!(demanding.fetch(&reference, Some(pin), &nowhere).unwrap().bytes, b"component");
    assert!(admits(&demanding, b"component"));
}
