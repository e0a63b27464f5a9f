//! The form of a package: the layout that the registries of WebAssembly components agree on.
//!
//! ```text
//!   manifest   application/vnd.oci.image.manifest.v1+json
//!     config   application/vnd.wasm.config.v0+json     what it imports and exports
//!     layer    application/wasm                        the component, the only one
//! ```
//!
//! The same component always makes the same manifest: no time is written into it.

use crate::PackageError;
use crate::reference::PackageReference;
use millstream_common::Digest;
use oci_spec::image::{Descriptor, ImageManifest, ImageManifestBuilder, MediaType, Sha256Digest};
use serde::Serialize;

/// The media type of manifests.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
const COMPONENT: &str = "application/wasm";
/// Bytes of a manifest that are read.
pub(crate) const MANIFEST_BYTES: u64 = 1 << 20;

/// What a manifest says of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackageManifest {
    /// The digest of the component.
    pub component: Digest,
    /// Its size in bytes.
    pub size: u64,
}

impl PackageManifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// What it is instead of a package of ours, in words.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let manifest: ImageManifest = match serde_json::from_slice(bytes) {
            Ok(manifest) => manifest,
            Err(_) if is_index(bytes) => return Err("it is an index of several images".to_owned()),
            Err(error) => return Err(format!("its manifest does not have the form of one: {error}")),
        };
        if manifest.schema_version() != 2 {
            return Err(format!("its manifest has the version {}", manifest.schema_version()));
        }
        let config = manifest.config().media_type();
        if config.as_ref() != CONFIG {
            return Err(format!("its configuration is `{}`, and not `{CONFIG}`", shown(config.as_ref())));
        }
        let [layer] = manifest.layers().as_slice() else {
            return Err(format!("it has {} layers, and not one", manifest.layers().len()));
        };
        if layer.media_type().as_ref() != COMPONENT {
            return Err(format!("its layer is `{}`, and not `{COMPONENT}`", shown(layer.media_type().as_ref())));
        }
        Ok(Self { component: sha256(layer)?, size: layer.size() })
    }

    pub(crate) fn of(reference: &PackageReference, bytes: &[u8]) -> Result<Self, PackageError> {
        Self::read(bytes).map_err(|reason| PackageError::NotAPlugin { reference: reference.to_string(), reason })
    }
}

/// The digest of what a descriptor describes.
pub(crate) fn sha256(descriptor: &Descriptor) -> Result<Digest, String> {
    let hex = descriptor.as_digest_sha256().ok_or("it has a layer whose digest is not sha256")?;
    hex.parse().map_err(|_| "it has a layer whose digest has not 64 hex digits".to_owned())
}

fn is_index(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(bytes).is_ok_and(|value| value.get("manifests").is_some())
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(120).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    created: &'static str,
    architecture: &'static str,
    os: &'static str,
    layer_digests: [String; 1],
    component: Interfaces<'a>,
}

#[derive(Serialize)]
struct Interfaces<'a> {
    exports: &'a [String],
    imports: &'a [String],
    target: Option<&'a str>,
}

/// The configuration and the manifest of a component.
pub(crate) fn make(component: &[u8], imports: &[String], exports: &[String]) -> (Vec<u8>, Vec<u8>) {
    let digest = Digest::of(component);
    let config = Config {
        created: "1970-01-01T00:00:00Z",
        architecture: "wasm",
        os: "wasip2",
        layer_digests: [format!("sha256:{digest}")],
        component: Interfaces { exports, imports, target: None },
    };
    let config = serde_json::to_vec(&config).expect("texts and lists of them always have a JSON form");
    let layer = descriptor(COMPONENT, component);
    let manifest = image(descriptor(CONFIG, &config), vec![layer]);
    (config, manifest)
}

/// Describes bytes.
pub(crate) fn descriptor(media_type: &str, bytes: &[u8]) -> Descriptor {
    let digest: Sha256Digest = Digest::of(bytes).to_string().parse().expect("64 hex digits are a digest");
    Descriptor::new(MediaType::from(media_type), bytes.len() as u64, digest)
}

/// A manifest.
pub(crate) fn image(config: Descriptor, layers: Vec<Descriptor>) -> Vec<u8> {
    let built = ImageManifestBuilder::default()
        .schema_version(2_u32)
        .media_type(MediaType::from(MANIFEST))
        .config(config)
        .layers(layers)
        .build()
        .expect("a manifest with version, configuration and layers lacks nothing");
    serde_json::to_vec(&built).expect("texts, numbers and lists of them always have a JSON form")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_component_makes_the_same_manifest_which_says_what_it_is() {
        let imports = ["millstream:plugin/log@0.2.0".to_owned()];
        let (config, manifest) = make(b"component", &imports, &[]);
        assert_eq!(make(b"component", &imports, &[]), (config.clone(), manifest.clone()));
        assert_eq!(
            PackageManifest::read(&manifest),
            Ok(PackageManifest { component: Digest::of(b"component"), size: 9 })
        );
        let text = String::from_utf8(config).unwrap();
        assert!(text.contains(r#""os":"wasip2""#) && text.contains("millstream:plugin/log@0.2.0"), "{text}");
    }

    #[test]
    fn what_is_no_plugin_is_told_what_it_is() {
        let (config, manifest) = make(b"component", &[], &[]);
        let text = String::from_utf8(manifest).unwrap();
        let other = |from: &str, to: &str| PackageManifest::read(text.replace(from, to).as_bytes()).unwrap_err();
        assert!(other(CONFIG, "application/vnd.oci.image.config.v1+json").contains("its configuration is"));
        assert!(other("\"application/wasm\"", "\"text/plain\"").contains("its layer is `text/plain`"));
        assert!(other("\"schemaVersion\":2", "\"schemaVersion\":1").contains("version 1"));
        let two = image(descriptor(CONFIG, &config), vec![descriptor(COMPONENT, b"a"), descriptor(COMPONENT, b"b")]);
        assert!(PackageManifest::read(&two).unwrap_err().contains("2 layers"));
        let digest = Digest::of(b"component").to_string();
        assert!(other(&digest, "12").contains("form"));
        let index = br#"{"schemaVersion":2,"manifests":[]}"#;
        assert!(PackageManifest::read(index).unwrap_err().contains("index"));
        assert!(PackageManifest::read(b"<html>").unwrap_err().contains("form"));
    }
}
