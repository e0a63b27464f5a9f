//! A reference to a package: `oci://host/repository:tag`, `oci://host/repository@sha256:digest`, or both.
//!
//! The part behind `oci://` has the grammar of container images. A registry is always named: there is no default one that
//! somebody else could own a name in.

use crate::PackageError;
use millstream_common::Digest;
use oci_spec::distribution::Reference;
use std::fmt;
use std::str::FromStr;

const SCHEME: &str = "oci://";

/// A reference to a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageReference {
    parts: Reference,
    digest: Option<Digest>,
}

impl PackageReference {
    /// Whether a text is meant to be one.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Host and port of the registry.
    pub fn registry(&self) -> &str {
        self.parts.registry()
    }

    /// The name within the registry.
    pub fn repository(&self) -> &str {
        self.parts.repository()
    }

    /// The tag.
    pub fn tag(&self) -> Option<&str> {
        self.parts.tag()
    }

    /// The digest of the manifest; one that has it always means the same bytes.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Registry and repository: what cosign calls a reference.
    pub fn place(&self) -> String {
        format!("{}/{}", self.registry(), self.repository())
    }

    /// The last part of the repository's name.
    pub fn name(&self) -> &str {
        self.repository().rsplit('/').next().unwrap_or_default()
    }

    /// What a registry is asked for: the digest, or else the tag.
    pub(crate) fn wanted(&self) -> String {
        match (self.digest, self.tag()) {
            (Some(digest), _) => format!("sha256:{digest}"),
            (None, Some(tag)) => tag.to_owned(),
            (None, None) => String::new(),
        }
    }

    /// The same place at a digest.
    #[must_use]
    pub fn at(&self, digest: Digest) -> Self {
        Self { parts: self.parts.clone_with_digest(format!("sha256:{digest}")), digest: Some(digest) }
    }
}

impl FromStr for PackageReference {
    type Err = PackageError;

    fn from_str(text: &str) -> Result<Self, PackageError> {
        let bad = |reason: &str| PackageError::Reference {
            text: text.chars().filter(|c| !c.is_control()).take(200).collect(),
            reason: reason.to_owned(),
        };
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| bad("it does not begin with `oci://`"))?;
        let (host, path) = rest.split_once('/').ok_or_else(|| bad("it names no repository"))?;
        if !host.contains(['.', ':']) && host != "localhost" {
            return Err(bad("it names no registry"));
        }
        if !path.contains([':', '@']) {
            return Err(bad("it has neither a tag nor a digest"));
        }
        let parts: Reference = rest.parse().map_err(|error| bad(&format!("{error}")))?;
        let digest = match parts.digest() {
            None => None,
            Some(digest) => {
                let hex = digest.strip_prefix("sha256:").ok_or_else(|| bad("its digest is not sha256"))?;
                Some(hex.parse().map_err(|_| bad("its digest has not 64 hex digits"))?)
            }
        };
        Ok(Self { parts, digest })
    }
}

impl fmt::Display for PackageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PackageReference, String> {
        text.parse().map_err(|error: PackageError| error.to_string())
    }

    #[test]
    fn a_reference_has_a_registry_a_repository_and_a_tag_or_a_digest() {
        let tagged = parse("oci://localhost:5000/acme/words:1.2").unwrap();
        assert_eq!((tagged.registry(), tagged.repository()), ("localhost:5000", "acme/words"));
        assert_eq!((tagged.tag(), tagged.digest(), tagged.name()), (Some("1.2"), None, "words"));
        assert_eq!(tagged.to_string(), "oci://localhost:5000/acme/words:1.2");
        let digest = Digest::of(b"x");
        let both = parse(&format!("oci://registry.example.com/acme/words:1@sha256:{digest}")).unwrap();
        assert_eq!((both.digest(), both.wanted()), (Some(digest), format!("sha256:{digest}")));
        assert_eq!(tagged.at(digest).to_string(), format!("oci://localhost:5000/acme/words@sha256:{digest}"));
    }

    #[test]
    fn what_is_no_reference_is_told_why() {
        for (text, reason) in [
            ("words.wasm", "`oci://`"),
            ("oci://words:1", "no repository"),
            ("oci://acme/words:1", "no registry"),
            ("oci://registry.example.com/acme/words", "neither a tag nor a digest"),
            ("oci://registry.example.com/ACME/words:1", "invalid"),
            ("oci://registry.example.com/acme/words@sha256:12", "invalid"),
            ("oci://registry.example.com/../words:1", "invalid"),
            ("oci://user:password@registry.example.com/words:1", "invalid"),
            ("oci://registry.example.com/words?x=1:1", "invalid"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let other = format!("oci://registry.example.com/words@sha512:{}", "0".repeat(128));
        assert!(parse(&other).unwrap_err().contains("not sha256"));
    }
}
