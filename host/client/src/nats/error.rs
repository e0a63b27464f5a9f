//! What can go wrong with NATS, and who must act.

use crate::database::is_of_tls;
use crate::patience::Transient;
use async_nats::ConnectErrorKind;
use millstream_common::{Fault, Hint};
use serde::Deserialize;

/// A server could not be reached or did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NatsError {
    /// Nobody answers there.
    #[error("cannot reach `{place}`")]
    Unreachable {
        /// The servers.
        place: String,
        /// What the network said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection cannot be encrypted.
    #[error("cannot encrypt the connection to `{place}`")]
    Tls {
        /// The servers.
        place: String,
        /// What is wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file that says who asks cannot be used.
    #[error("cannot use `{file}`, which says who asks `{place}`: {reason}")]
    Credentials {
        /// The servers.
        place: String,
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server does not let the user in.
    #[error("`{place}` does not let {who} in: {message}")]
    Denied {
        /// The servers.
        place: String,
        /// Who wanted in.
        who: String,
        /// What the server said.
        message: String,
    },
    /// The user may not do that.
    #[error("`{place}` does not allow it: {message}")]
    Forbidden {
        /// The servers.
        place: String,
        /// What the server said.
        message: String,
    },
    /// The connection broke; what was asked for may have been done or not.
    #[error("the connection to `{place}` broke: {reason}")]
    Lost {
        /// The servers.
        place: String,
        /// What was noticed.
        reason: String,
    },
    /// An answer took too long.
    #[error("`{place}` did not answer within {seconds} s")]
    Timeout {
        /// The servers.
        place: String,
        /// The limit.
        seconds: u64,
    },
    /// Nobody wants the answer any more.
    #[error("`{place}` was not waited for any longer, for the query is to stop")]
    Stopped {
        /// The servers.
        place: String,
    },
    /// The server is not ready.
    #[error("`{place}` could not do it now: {message}")]
    Busy {
        /// The servers.
        place: String,
        /// What the server said.
        message: String,
    },
    /// The server, or the user's account there, has no JetStream.
    #[error(
        "`{place}` has no JetStream for this user ({message}): without it a message is gone once it is sent, and neither read \
         again nor written exactly once"
    )]
    NoJetStream {
        /// The servers.
        place: String,
        /// What the server said.
        message: String,
    },
    /// There is no such stream.
    #[error("`{place}` has no stream `{stream}`")]
    NoStream {
        /// The servers.
        place: String,
        /// The stream.
        stream: String,
    },
    /// No stream takes messages of that subject.
    #[error("no stream at `{place}` takes messages of subject `{subject}`")]
    NotTaken {
        /// The servers.
        place: String,
        /// The subject.
        subject: String,
    },
    /// The server, the account or the stream has no room for more.
    #[error("`{place}` has no room left: {message}")]
    Full {
        /// The servers.
        place: String,
        /// What the server said.
        message: String,
    },
    /// What answers there is not NATS, or another version of it than is known.
    #[error("`{place}` does not answer as NATS does: {reason}")]
    Foreign {
        /// The servers.
        place: String,
        /// What is strange about the answer.
        reason: String,
    },
    /// Anything else that the server does not do.
    #[error("`{place}` refuses: {message}")]
    Refused {
        /// The servers.
        place: String,
        /// What the server said.
        message: String,
    },
}

/// What JetStream says when it does not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct ApiError {
    /// The kind, as in HTTP.
    #[serde(default)]
    pub(super) code: u16,
    /// What it is.
    #[serde(default)]
    pub(super) err_code: u16,
    /// The same in words.
    #[serde(default)]
    pub(super) description: String,
}

impl ApiError {
    /// Whether the stream is not there.
    pub(super) fn is_no_stream(&self) -> bool {
        self.err_code == 10059
    }

    /// Whether the message is not there.
    pub(super) fn is_no_message(&self) -> bool {
        self.err_code == 10037
    }

    /// Whether somebody else has written since.
    pub(super) fn is_wrong_sequence(&self) -> bool {
        self.err_code == 10071
    }
}

impl NatsError {
    /// What an error of JetStream means.
    pub(super) fn of_api(place: &str, error: ApiError) -> Self {
        let (place, text) = (place.to_owned(), error.description);
        let message = format!("{text} ({})", error.err_code);
        match error.err_code {
            10039 | 10076 => Self::NoJetStream { place, message: text },
            // Resources of server and account, memory, storage.
            10002 | 10023 | 10028 | 10047 => Self::Full { place, message },
            // A stream that keeps what it has and takes no more.
            10077 if text.contains("maximum") => Self::Full { place, message },
            _ if error.code == 503 => Self::Busy { place, message },
            _ => Self::Refused { place, message },
        }
    }

    /// What a word of the server beside the answers means.
    pub(super) fn of_server(place: &str, who: &str, said: &str) -> Self {
        let (place, message) = (place.to_owned(), said.trim_matches('\'').to_owned());
        let lower = message.to_ascii_lowercase();
        if lower.contains("permissions violation") {
            return Self::Forbidden { place, message };
        }
        if ["authorization", "authentication"].iter().any(|word| lower.contains(word)) {
            return Self::Denied { place, who: who.to_owned(), message };
        }
        Self::Lost { place, reason: message }
    }

    /// What an error while connecting means.
    pub(super) fn of_connecting(place: &str, who: &str, error: async_nats::ConnectError) -> Self {
        let (owned, said) = (place.to_owned(), millstream_common::describe_chain(&error));
        match error.kind() {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                Self::Denied { place: owned, who: who.to_owned(), message: said }
            }
            ConnectErrorKind::Tls => Self::Tls { place: owned, source: Box::new(error) },
            _ if is_of_tls(&said) => Self::Tls { place: owned, source: Box::new(error) },
            _ if said.contains("expected INFO") || said.contains("invalid server operation") => {
                Self::Foreign { place: owned, reason: said }
            }
            _ if said.contains("nats: ") => Self::of_server(place, who, said.rsplit("nats: ").next().unwrap_or(&said)),
            _ => Self::Unreachable { place: owned, source: Box::new(error) },
        }
    }
}

impl Transient for NatsError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Lost { .. } | Self::Timeout { .. } | Self::Busy { .. })
    }
}

impl Hint for NatsError {
    fn fault(&self) -> Fault {
        match self {
            Self::Credentials { .. } | Self::NoStream { .. } | Self::NotTaken { .. } => Fault::Query,
            _ => Fault::Outside,
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Unreachable { .. } => "start a server, or correct hosts and ports in option `servers`",
            Self::Tls { .. } => {
                "name the file of the certificate that the server's is signed with in `sslrootcert`, and in `sslcert` and `sslkey` \
                 your own where the server wants one"
            }
            Self::Credentials { .. } => {
                "name the file with the seed of a key in `nkey`, or one that `nsc generate creds` has made in `credentials`"
            }
            Self::Denied { .. } => {
                "correct `user` and the password, `token`, `nkey` or `credentials`; secrets may stand in variables that \
                 `passwordEnv` and `tokenEnv` name"
            }
            Self::Forbidden { .. } => "let the user publish to and subscribe what the README of the connector names",
            Self::Lost { .. } => "start the query again when the server is back: it goes on where it was",
            Self::Timeout { .. } => "raise `queryTimeout`, or look what the server is busy with",
            Self::Busy { .. } => "wait until the server is ready, and start the query again",
            Self::NoJetStream { .. } => {
                "start the server with JetStream (`nats-server -js`), let the account have it, or name its `domain`"
            }
            Self::NoStream { .. } => "correct option `stream`, or make the stream first: `nats stream add`",
            Self::NotTaken { .. } => "correct the subject, or add it to those of the stream: `nats stream edit`",
            Self::Full { .. } => "raise the limits of stream, account or server, or let the stream discard what is old",
            Self::Foreign { .. } => "correct hosts and ports in option `servers`",
            Self::Stopped { .. } | Self::Refused { .. } => return None,
        };
        Some(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_jetstream_are_situations() {
        let of = |code, err_code, description: &str| {
            NatsError::of_api("nats://h:1", ApiError { code, err_code, description: description.into() })
        };
        assert!(matches!(of(503, 10076, "JetStream not enabled"), NatsError::NoJetStream { .. }));
        assert!(matches!(of(503, 10077, "maximum messages exceeded"), NatsError::Full { .. }));
        assert!(of(503, 10008, "JetStream system temporarily unavailable").is_transient());
        assert!(!of(503, 10023, "insufficient resources").is_transient());
        let other = of(400, 10060, "expected stream does not match");
        assert_eq!(other.to_string(), "`nats://h:1` refuses: expected stream does not match (10060)");
    }

    #[test]
    fn what_the_server_says_beside_its_answers_has_a_meaning() {
        let of = |said: &str| NatsError::of_server("nats://h:1", "user `ann`", said);
        assert_eq!(
            of("'Permissions Violation for Publish to \"$JS.API.INFO\"'").to_string(),
            "`nats://h:1` does not allow it: Permissions Violation for Publish to \"$JS.API.INFO\""
        );
        assert_eq!(
            of("Authorization Violation").to_string(),
            "`nats://h:1` does not let user `ann` in: Authorization Violation"
        );
        assert!(of("Stale Connection").is_transient());
    }
}
