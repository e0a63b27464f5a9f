//! What can go wrong between a reference and bytes that may be loaded.

use millstream_common::{Digest, Fault, Hint};
use std::path::PathBuf;
use std::time::Duration;

/// A package could not be had, kept, pinned or believed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// The text is no reference.
    #[error("`{text}` is no reference to a package: {reason}")]
    Reference {
        /// The text.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The operator does not let packages come from there.
    #[error("packages may not come from `{registry}`")]
    RegistryNotAllowed {
        /// The registry.
        registry: String,
    },
    /// The registry could not be reached, or the connection broke.
    #[error("cannot get {what} from `{registry}`")]
    Unreachable {
        /// The registry.
        registry: String,
        /// What was wanted.
        what: String,
        /// What the connection said.
        #[source]
        source: reqwest::Error,
    },
    /// The registry did not answer in time.
    #[error("`{registry}` did not give {what} within {time:?}")]
    TimedOut {
        /// The registry.
        registry: String,
        /// What was wanted.
        what: String,
        /// The limit.
        time: Duration,
    },
    /// The registry has no such thing.
    #[error("`{registry}` has no {what}")]
    NotFound {
        /// The registry.
        registry: String,
        /// What was wanted.
        what: String,
    },
    /// The registry lets only others in.
    #[error("`{registry}` does not let us have {what}: {reason}")]
    Denied {
        /// The registry.
        registry: String,
        /// What was wanted.
        what: String,
        /// What it said.
        reason: String,
    },
    /// Credentials are there and cannot be used.
    #[error("the credentials for `{registry}` cannot be used: {reason}")]
    Credentials {
        /// The registry.
        registry: String,
        /// What is wrong.
        reason: String,
    },
    /// An answer that does not belong to the protocol, or a refusal.
    #[error("`{registry}` gave an answer for {what} that cannot be used: {reason}")]
    BadAnswer {
        /// The registry.
        registry: String,
        /// What was wanted.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An answer sends us where we do not go.
    #[error("`{registry}` sends us to `{to}` for {what}: {reason}")]
    Redirect {
        /// The registry.
        registry: String,
        /// What was wanted.
        what: String,
        /// Where to.
        to: String,
        /// Why we do not go.
        reason: &'static str,
    },
    /// More bytes than may come.
    #[error("{what} from `{registry}` has more than {limit} bytes")]
    TooLarge {
        /// The registry.
        registry: String,
        /// What was wanted.
        what: String,
        /// The most.
        limit: u64,
    },
    /// Other bytes than were promised.
    #[error("{what} from `{registry}` has the digest {found}, and not {wanted}")]
    WrongDigest {
        /// The registry.
        registry: String,
        /// What was wanted.
        what: String,
        /// The digest it should have.
        wanted: Digest,
        /// The digest it has.
        found: Digest,
    },
    /// Something, but no plugin.
    #[error("`{reference}` is no plugin: {reason}")]
    NotAPlugin {
        /// The reference.
        reference: String,
        /// What it is instead.
        reason: String,
    },
    /// The lock file cannot be used.
    #[error("cannot use the lock file `{}`: {reason}", .path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The lock file does not say which bytes a reference means, and must not be changed.
    #[error("`{}` does not pin `{reference}` of plugin `{plugin}`, and it may not be changed", .path.display())]
    NotLocked {
        /// The plugin.
        plugin: String,
        /// The reference.
        reference: String,
        /// The lock file.
        path: PathBuf,
    },
    /// A file or folder of this machine.
    #[error("cannot {doing} `{}`", .path.display())]
    Io {
        /// `read`, `write`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A key cannot be used.
    #[error("`{place}` has no key that can be used: {reason}")]
    Key {
        /// Its file.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A signature is demanded, and there is none.
    #[error("{what} has no signature, and the host file demands one")]
    Unsigned {
        /// The component.
        what: String,
        /// Where one is looked for.
        place: String,
    },
    /// There are signatures, and none of them is good.
    #[error("{what} has no valid signature: {reason}")]
    BadSignature {
        /// The component.
        what: String,
        /// What is wrong with each.
        reason: String,
    },
}

impl Hint for PackageError {
    fn fault(&self) -> Fault {
        match self {
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::BadAnswer { .. }
            | Self::Redirect { .. }
            | Self::WrongDigest { .. }
            | Self::Io { .. } => Fault::Outside,
            _ => Fault::Query,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Reference { .. } => {
                "write `oci://HOST/REPOSITORY:TAG`, or `oci://HOST/REPOSITORY@sha256:DIGEST`".to_owned()
            }
            Self::RegistryNotAllowed { .. } => {
                "have the operator add it to `allow` under [registries] in the host file".to_owned()
            }
            Self::Unreachable { registry, source, .. } if source.is_connect() => format!(
                "if it speaks plain HTTP, add `{registry}` to `plain_http` under [registries] in the host file, or say \
                 `--plain-http`"
            ),
            Self::NotFound { .. } => "look at the name and the tag; `millstream plugin push` puts one there".to_owned(),
            Self::Denied { registry, .. } => format!("say who you are: `docker login {registry}`"),
            Self::Credentials { registry, .. } => format!("log in again: `docker login {registry}`"),
            Self::TooLarge { .. } => {
                "take a smaller component, or have the operator raise `component_max` under [plugins] in the host file"
                    .to_owned()
            }
            Self::WrongDigest { .. } => {
                "do not use it: the registry, or somebody on the way, gives other bytes than it promised".to_owned()
            }
            Self::NotAPlugin { .. } => "push it with `millstream plugin push FILE REFERENCE`".to_owned(),
            Self::Lock { .. } => "make it anew with `millstream plugin lock QUERY.toml`".to_owned(),
            Self::NotLocked { .. } => {
                "run `millstream plugin lock QUERY.toml` and look at what it changes, or leave out `--locked`".to_owned()
            }
            Self::Key { .. } => {
                "a public key is the file `cosign.pub` of `cosign generate-key-pair`, or `openssl ec -pubout` of a key \
                 over P-256"
                    .to_owned()
            }
            Self::Unsigned { place, .. } => format!(
                "sign it: `millstream plugin sign {place} --key KEY`, or `cosign sign-blob` for a file and `cosign sign` \
                 for a package"
            ),
            Self::BadSignature { .. } => {
                "if you trust the key that signed it, have the operator add it to `keys` under [signatures] in the host \
                 file"
                    .to_owned()
            }
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::BadAnswer { .. } | Self::Redirect { .. } | Self::Io { .. } => return None,
        })
    }
}
