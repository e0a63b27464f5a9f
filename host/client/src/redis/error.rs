//! What can go wrong with Redis, and who must act.

use crate::database::is_of_tls;
use crate::patience::Transient;
use ::redis::ErrorKind;
use millstream_common::{Fault, Hint};

/// A server could not be reached or did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedisError {
    /// Nobody answers there.
    #[error("cannot reach `{place}`")]
    Unreachable {
        /// The server.
        place: String,
        /// What the network said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection cannot be encrypted.
    #[error("cannot encrypt the connection to `{place}`")]
    Tls {
        /// The server.
        place: String,
        /// What is wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server does not let the user in.
    #[error("`{place}` does not let user `{user}` in: {message}")]
    Denied {
        /// The server.
        place: String,
        /// The user.
        user: String,
        /// What the server said.
        message: String,
    },
    /// The user may not do that.
    #[error("`{place}` does not allow it: {message}")]
    Forbidden {
        /// The server.
        place: String,
        /// What the server said.
        message: String,
    },
    /// The connection broke; what was asked for may have been done or not.
    #[error("the connection to `{place}` broke")]
    Lost {
        /// The server.
        place: String,
        /// What the network said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An answer took too long.
    #[error("`{place}` did not answer within {seconds} s")]
    Timeout {
        /// The server.
        place: String,
        /// The limit.
        seconds: u64,
    },
    /// The server is not ready.
    #[error("`{place}` could not do it now: {message}")]
    Busy {
        /// The server.
        place: String,
        /// What the server said.
        message: String,
    },
    /// The server has no memory for more.
    #[error("`{place}` has no memory left: {message}")]
    Full {
        /// The server.
        place: String,
        /// What the server said.
        message: String,
    },
    /// The server is a replica, which takes no writes.
    #[error("`{place}` is a replica and takes no writes")]
    Replica {
        /// The server.
        place: String,
    },
    /// A key holds something else.
    #[error("a key at `{place}` holds another kind of value: {message}")]
    WrongType {
        /// The server.
        place: String,
        /// Which key, and what it holds, as far as known.
        message: String,
    },
    /// The server is a node of a cluster that does not have the keys, or not all of them.
    #[error("`{place}` is a node of a cluster: {message}")]
    Cluster {
        /// The server.
        place: String,
        /// What the server said, or which keys are apart.
        message: String,
    },
    /// The server is too old for what is needed.
    #[error("`{place}` is too old: {message}")]
    Old {
        /// The server.
        place: String,
        /// What it lacks.
        message: String,
    },
    /// What answers there is not Redis.
    #[error("`{place}` does not answer as Redis does: {reason}")]
    Foreign {
        /// The place.
        place: String,
        /// What is strange about the answer.
        reason: String,
    },
    /// Anything else that the server does not do.
    #[error("`{place}` refuses: {message}")]
    Refused {
        /// The server.
        place: String,
        /// What the server said, with its code in front.
        message: String,
    },
}

impl RedisError {
    /// What an error that the server answered means, by its code.
    pub(super) fn of_server(place: &str, user: &str, code: &str, details: &str) -> Self {
        let (place, message) = (place.to_owned(), details.to_owned());
        match code {
            "NOAUTH" | "WRONGPASS" | "DENIED" => Self::Denied { place, user: user.to_owned(), message },
            "NOPERM" => Self::Forbidden { place, message },
            "LOADING" | "BUSY" | "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN" | "NOREPLICAS" => {
                Self::Busy { place, message }
            }
            "ERR" if details.contains("max number of clients") => Self::Busy { place, message },
            "OOM" => Self::Full { place, message },
            "READONLY" => Self::Replica { place },
            "WRONGTYPE" => Self::WrongType { place, message },
            "MOVED" | "ASK" => {
                let mut words = details.split_ascii_whitespace();
                let (slot, node) = (words.next().unwrap_or("?"), words.next().unwrap_or("another node"));
                Self::Cluster { place, message: format!("slot {slot} of the key is at `{node}`") }
            }
            "CROSSSLOT" => {
                Self::Cluster { place, message: "keys that are written together are in several slots".into() }
            }
            _ => Self::Refused { place, message: format!("{code} {details}").trim_end().to_owned() },
        }
    }

    /// What an error of the client in the middle of a connection means.
    pub(super) fn of_talking(place: &str, seconds: u64, error: ::redis::RedisError) -> Self {
        let place = place.to_owned();
        match error.kind() {
            _ if error.is_timeout() => Self::Timeout { place, seconds },
            // Both sides greet each other when the first words are sent.
            _ if is_of_tls(&error.to_string()) => Self::Tls { place, source: Box::new(error) },
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Self::Foreign { place, reason: error.to_string() },
            _ => Self::Lost { place, source: Box::new(error) },
        }
    }

    /// What an error while connecting means.
    pub(super) fn of_connecting(place: &str, user: &str, is_tls: bool, error: ::redis::RedisError) -> Self {
        let (owned, said) = (place.to_owned(), error.to_string());
        if error.kind() == ErrorKind::AuthenticationFailed {
            return Self::Denied { place: owned, user: user.to_owned(), message: "wrong user or password".into() };
        }
        // The client has its own words around what the server said.
        if said.contains("switch database") {
            let message = error.detail().map_or(said.clone(), str::to_owned);
            return Self::Refused { place: owned, message };
        }
        if let Some(code) = error.code() {
            return Self::of_server(place, user, code, error.detail().unwrap_or_default());
        }
        if is_tls && is_of_tls(&said) {
            return Self::Tls { place: owned, source: Box::new(error) };
        }
        match error.kind() {
            ErrorKind::Parse => Self::Foreign { place: owned, reason: said },
            _ => Self::Unreachable { place: owned, source: Box::new(error) },
        }
    }
}

impl Transient for RedisError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Lost { .. } | Self::Timeout { .. } | Self::Busy { .. })
    }
}

impl Hint for RedisError {
    fn fault(&self) -> Fault {
        match self {
            Self::WrongType { .. } | Self::Cluster { .. } => Fault::Query,
            _ => Fault::Outside,
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Unreachable { .. } => "start the server, or correct host and port in option `url`",
            Self::Tls { .. } => {
                "use `redis://` for a port without TLS; name the file of the certificate that the server's is signed with in `sslrootcert`"
            }
            Self::Denied { .. } => {
                "correct `user` and the password; it may stand in a variable that option `passwordEnv` names"
            }
            Self::Forbidden { .. } => "let the rules of the user (`ACL SETUSER`) have these commands and keys",
            Self::Lost { .. } => "start the query again when the server is back: it goes on where it was",
            Self::Timeout { .. } => "raise `queryTimeout`, or look what the server is busy with",
            Self::Busy { .. } => "wait until the server is ready, and start the query again",
            Self::Full { .. } => "raise `maxmemory` of the server, or keep less in it",
            Self::Replica { .. } => "name the primary server in option `url`",
            Self::WrongType { .. } => "name another key, or remove what is there",
            Self::Cluster { .. } => {
                "name the node that has the keys in `url`, and let all keys that are written together have one hash tag, as in `{counts}:`"
            }
            Self::Old { .. } => "use a newer server",
            Self::Foreign { .. } => "correct host and port in option `url`",
            Self::Refused { .. } => return None,
        };
        Some(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_server_are_situations() {
        let of = |code: &str, details: &str| RedisError::of_server("redis://h:1/0", "ann", code, details);
        assert_eq!(
            of("MOVED", "3999 10.0.0.2:6381").to_string(),
            "`redis://h:1/0` is a node of a cluster: slot 3999 of the key is at `10.0.0.2:6381`"
        );
        assert!(matches!(of("NOAUTH", "Authentication required."), RedisError::Denied { .. }));
        assert!(of("LOADING", "").is_transient() && of("ERR", "max number of clients reached").is_transient());
        assert!(!of("OOM", "").is_transient());
        assert_eq!(of("ERR", "no such key").to_string(), "`redis://h:1/0` refuses: ERR no such key");
        assert_eq!(of("WRONGTYPE", "").fault(), Fault::Query);
    }
}
