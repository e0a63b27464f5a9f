//! The text that a signature of a package is over: which manifest, of which repository.

use millstream_common::Digest;
use serde::{Deserialize, Serialize};

/// The media type of a payload.
pub(crate) const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation of a payload's layer that has the signature.
pub(crate) const SIGNATURE_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
const TYPE: &str = "cosign container image signature";

/// The tag under which the signatures of a manifest are.
pub(crate) fn signature_tag(manifest: Digest) -> String {
    format!("sha256-{manifest}.sig")
}

/// The text.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Payload {
    critical: Critical,
    #[serde(default)]
    optional: serde_json::Value,
}

#[derive(Debug, Serialize, Deserialize)]
struct Critical {
    identity: Identity,
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Identity {
    #[serde(rename = "docker-reference")]
    reference: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

impl Payload {
    /// The payload for a manifest in a repository.
    pub(crate) fn make(repository: &str, manifest: Digest) -> Vec<u8> {
        let payload = Self {
            critical: Critical {
                identity: Identity { reference: repository.to_owned() },
                image: Image { digest: format!("sha256:{manifest}") },
                kind: TYPE.to_owned(),
            },
            optional: serde_json::Value::Null,
        };
        serde_json::to_vec(&payload).expect("texts always have a JSON form")
    }

    /// Whether a payload speaks of this manifest in this repository; the reason if not.
    pub(crate) fn check(bytes: &[u8], repository: &str, manifest: Digest) -> Result<(), String> {
        let payload: Self =
            serde_json::from_slice(bytes).map_err(|_| "its payload does not have the form of one".to_owned())?;
        let Critical { identity, image, kind } = payload.critical;
        if kind != TYPE {
            return Err(format!("its payload is a `{}`", shown(&kind)));
        }
        if image.digest != format!("sha256:{manifest}") {
            return Err(format!("it is over another manifest, {}", shown(&image.digest)));
        }
        // Older releases of cosign write the tag behind the repository.
        let of = &identity.reference;
        let named = without_tag(of).trim_start_matches("index.");
        if named != repository.trim_start_matches("index.") {
            return Err(format!("it is for `{}`, and not for `{repository}`", shown(of)));
        }
        Ok(())
    }
}

fn without_tag(reference: &str) -> &str {
    let reference = reference.split('@').next().unwrap_or(reference);
    match reference.rsplit_once(':') {
        Some((head, tail)) if !tail.contains('/') => head,
        _ => reference,
    }
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_for_one_manifest_of_one_repository() {
        let (manifest, other) = (Digest::of(b"1"), Digest::of(b"2"));
        let payload = Payload::make("localhost:5000/acme/words", manifest);
        assert_eq!(Payload::check(&payload, "localhost:5000/acme/words", manifest), Ok(()));
        let error = Payload::check(&payload, "localhost:5000/acme/words", other).unwrap_err();
        assert!(error.contains("over another manifest"), "{error}");
        let error = Payload::check(&payload, "localhost:5000/acme/other", manifest).unwrap_err();
        assert!(error.contains("it is for `localhost:5000/acme/words`"), "{error}");
        let tagged = Payload::make("localhost:5000/acme/words:1", manifest);
        assert_eq!(Payload::check(&tagged, "localhost:5000/acme/words", manifest), Ok(()));
        assert!(Payload::check(b"{}", "r", manifest).unwrap_err().contains("form"));
        let text = String::from_utf8(payload).unwrap().replace("container image signature", "promise");
        assert!(Payload::check(text.as_bytes(), "r", manifest).unwrap_err().contains("`cosign promise`"));
    }

    #[test]
    fn the_payload_of_cosign_is_understood() {
        let manifest = Digest::of(b"1");
        let text = format!(
            "{{\"critical\":{{\"identity\":{{\"docker-reference\":\"registry.example.com/acme/words\"}},\
             \"image\":{{\"docker-manifest-digest\":\"sha256:{manifest}\"}},\
             \"type\":\"cosign container image signature\"}},\"optional\":{{\"creator\":\"somebody\"}}}}"
        );
        assert_eq!(Payload::check(text.as_bytes(), "registry.example.com/acme/words", manifest), Ok(()));
    }
}
