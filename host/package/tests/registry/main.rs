//! Push and pull with a real registry.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[allow(dead_code, reason = "shared with another test")]
mod server;

use millstream_common::{Digest, Hint};
use millstream_package::{
    Evidence, ImageSignature, NewPackage, PackageError, PackageManifest, PackageReference, Registry, SigningKey,
};
use server::Server;
use std::process::Command;

fn reference(server: &Server, rest: &str) -> PackageReference {
    server.reference(rest).parse().unwrap()
}

fn package(component: &[u8]) -> NewPackage<'_> {
    NewPackage { component, imports: &[], exports: &[] }
}

#[test]
fn what_is_pushed_is_pulled_by_tag_and_by_digest_and_a_tag_may_move() {
    let (server, registry) = (Server::open(), Registry::default());
    let words = reference(&server, "acme/words:1.2");
    assert!(matches!(registry.resolve(&words).unwrap_err(), PackageError::NotFound { .. }));
    // Larger than any buffer on the way.
    let large: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
    let first = registry.push(&words, package(&large)).unwrap();
    assert_eq!(registry.push(&words, package(&large)).unwrap(), first, "a second time it is there already");
    let resolved = registry.resolve(&words).unwrap();
    assert_eq!(resolved.digest, first);
    assert_eq!(resolved.package, PackageManifest { component: Digest::of(&large), size: large.len() as u64 });
    assert_eq!(registry.component(&words, resolved.package).unwrap(), large);

    let second = registry.push(&words, package(b"second edition")).unwrap();
    assert_ne!(second, first);
    assert_eq!(registry.resolve(&words).unwrap().digest, second, "the tag has moved");
    assert_eq!(registry.resolve(&words.at(first)).unwrap().digest, first, "the digest has not");
    assert!(matches!(registry.resolve(&words.at(Digest::of(b"x"))).unwrap_err(), PackageError::NotFound { .. }));
    let error = registry.push(&words.at(first), package(b"x")).unwrap_err();
    assert!(error.to_string().contains("pushed to a tag"), "{error}");
}

#[test]
fn bytes_that_were_changed_in_the_registrys_own_storage_are_not_taken() {
    let (server, registry) = (Server::open(), Registry::default());
    let words = reference(&server, "acme/words:1");
    registry.push(&words, package(b"component")).unwrap();
    let resolved = registry.resolve(&words).unwrap();
    let hex = Digest::of(b"component").to_string();
    let blob = server.folder.path().join(format!("data/docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]));
    std::fs::write(blob, b"Component").unwrap();
    let error = registry.component(&words, resolved.package).unwrap_err();
    assert!(matches!(error, PackageError::WrongDigest { .. }), "{error}");
}

#[test]
fn a_guarded_registry_lets_nobody_in_without_a_login() {
    let (server, registry) = (Server::guarded(), Registry::default());
    let words = reference(&server, "acme/words:1");
    for error in [registry.resolve(&words).unwrap_err(), registry.push(&words, package(b"c")).unwrap_err()] {
        assert!(matches!(error, PackageError::Denied { .. }), "{error}");
        assert!(error.hint().unwrap().contains("docker login"), "{:?}", error.hint());
    }
}

#[test]
fn signatures_lie_beside_the_package_and_several_can_vouch_for_it() {
    let (server, registry) = (Server::open(), Registry::default());
    let words = reference(&server, "acme/words:1");
    let manifest = registry.push(&words, package(b"component")).unwrap();
    assert!(registry.signatures(&words, manifest).unwrap().is_empty());
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str| {
        let file = folder.path().join(name);
        let arguments = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"];
        assert!(Command::new("openssl").args(arguments).arg(&file).status().unwrap().success());
        SigningKey::read(&file).unwrap()
    };
    let keys = [key("one.pem"), key("two.pem")];
    for key in &keys {
        let signature = ImageSignature::make(key, &words.place(), manifest).unwrap();
        registry.push_signature(&words, manifest, &signature).unwrap();
    }
    let found = registry.signatures(&words, manifest).unwrap();
    assert_eq!(found.len(), 2);
    let bytes = registry.resolve(&words).unwrap().manifest;
    let vouches = |key: &SigningKey| {
        let good = |signature: &ImageSignature| {
            Evidence::of_package(&words.place(), &bytes, signature).verify(&key.public(), b"component").is_ok()
        };
        found.iter().filter(|signature| good(signature)).count()
    };
    assert_eq!([vouches(&keys[0]), vouches(&keys[1])], [1, 1]);
}
