//! What can go wrong with a broker of MQTT, and who must act.

use crate::patience::Transient;
use millstream_common::{Fault, Hint};

/// A broker could not be reached or did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MqttError {
    /// Nobody answers there.
    #[error("cannot reach `{place}`")]
    Unreachable {
        /// The broker.
        place: String,
        /// What the network said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection cannot be encrypted.
    #[error("cannot encrypt the connection to `{place}`")]
    Tls {
        /// The broker.
        place: String,
        /// What is wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The broker does not let the user in.
    #[error("`{place}` does not let {who} in: {message}")]
    Denied {
        /// The broker.
        place: String,
        /// The user, or nobody in particular.
        who: String,
        /// What the broker said.
        message: String,
    },
    /// The user may not do that.
    #[error("`{place}` does not allow it: {message}")]
    Forbidden {
        /// The broker.
        place: String,
        /// What was asked for.
        message: String,
    },
    /// The connection broke; what was sent may have arrived or not.
    #[error("the connection to `{place}` broke")]
    Lost {
        /// The broker.
        place: String,
        /// What the network said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An answer took too long.
    #[error("`{place}` did not answer within {seconds} s")]
    Timeout {
        /// The broker.
        place: String,
        /// The limit.
        seconds: u64,
    },
    /// The broker is not ready, or has enough to do.
    #[error("`{place}` could not do it now: {message}")]
    Busy {
        /// The broker.
        place: String,
        /// What the broker said.
        message: String,
    },
    /// Another client has come with the same name.
    #[error("another client took the place of `{client}` at `{place}`")]
    TakenOver {
        /// The broker.
        place: String,
        /// The name of the client.
        client: String,
    },
    /// The broker does not speak version 5.
    #[error("`{place}` does not speak MQTT 5")]
    Old {
        /// The broker.
        place: String,
    },
    /// What answers there is no broker of MQTT.
    #[error("`{place}` does not answer as a broker of MQTT does: {reason}")]
    Foreign {
        /// The place.
        place: String,
        /// What is strange about the answer.
        reason: String,
    },
    /// Anything else that the broker does not do.
    #[error("`{place}` refuses: {message}")]
    Refused {
        /// The broker.
        place: String,
        /// What the broker said.
        message: String,
    },
    /// Nobody wanted to wait any longer.
    #[error("`{place}` was not waited for any longer: the query is to stop")]
    Stopped {
        /// The broker.
        place: String,
    },
}

impl Transient for MqttError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Lost { .. } | Self::Timeout { .. } | Self::Busy { .. })
    }
}

impl Hint for MqttError {
    fn fault(&self) -> Fault {
        Fault::Outside
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Unreachable { .. } => "start the broker, or correct host and port in option `url`",
            Self::Tls { .. } => {
                "use `mqtt://` for a port without TLS; name the file of the certificate that the broker's is signed with in `sslrootcert`, and your own in `sslcert` and `sslkey` if it wants one"
            }
            Self::Denied { .. } => {
                "correct `user` and the password; it may stand in a variable that option `passwordEnv` names"
            }
            Self::Forbidden { .. } => "let the broker's rules give the user these topics",
            Self::Lost { .. } => "start the query again when the broker is back: it goes on where it was",
            Self::Timeout { .. } => "raise `queryTimeout`, or look what the broker is busy with",
            Self::Busy { .. } => "wait until the broker is ready, and start the query again",
            Self::TakenOver { .. } => {
                "run each query once at a time, and give no other client the same name with `clientId`"
            }
            Self::Old { .. } => "use a broker that speaks MQTT 5, and let it listen for that",
            Self::Foreign { .. } => "correct host and port in option `url`",
            Self::Refused { .. } | Self::Stopped { .. } => return None,
        };
        Some(text.into())
    }
}
