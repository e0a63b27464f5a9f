//! What the errors of a client mean, and who must act.

use super::KafkaLog;
use millstream_common::{Fault, Hint};
use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode as Code};

/// Something that a client of Kafka was asked to do did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KafkaError {
    /// No broker answers.
    #[error("cannot {action}: no broker of `{servers}` answers")]
    Unreachable {
        /// What was tried: `list the partitions of topic …`.
        action: String,
        /// The brokers as the user named them.
        servers: String,
        /// What the client said last.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The brokers do not let the user in.
    #[error("cannot {action}: `{servers}` does not let this user in")]
    Login {
        /// What was tried.
        action: String,
        /// The brokers.
        servers: String,
        /// What the broker said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no safe connection: certificates do not fit, or one side speaks TLS and the other does not.
    #[error("cannot {action}: there is no TLS with `{servers}`")]
    Tls {
        /// What was tried.
        action: String,
        /// The brokers.
        servers: String,
        /// What the client said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The user may not do this.
    #[error("cannot {action}: this user may not do that at `{servers}`")]
    Forbidden {
        /// What was tried.
        action: String,
        /// The brokers.
        servers: String,
        /// What the broker said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The client was to stop before it had an answer.
    #[error("cannot {action}: the query is to stop")]
    Stopped {
        /// What was tried.
        action: String,
    },
    /// The client cannot be made of its settings.
    #[error("cannot make a client of Kafka for `{servers}`")]
    Settings {
        /// The brokers.
        servers: String,
        /// What the client said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another client with the same identity has taken over.
    #[error("cannot {action}: another client of the same name has taken over")]
    Fenced {
        /// What was tried.
        action: String,
        /// What the broker said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A record has more bytes than somebody takes.
    #[error("cannot {action} at `{servers}`: a record is too large")]
    TooLarge {
        /// What was tried.
        action: String,
        /// The brokers.
        servers: String,
        /// What the broker or the client said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A transaction may not be open for as long as the query wants.
    #[error("cannot {action}: `{servers}` does not allow transactions of that length")]
    TransactionTimeout {
        /// What was tried.
        action: String,
        /// The brokers.
        servers: String,
        /// What the broker said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Anything else that a broker or the client refused.
    #[error("cannot {action} at `{servers}`")]
    Failed {
        /// What was tried.
        action: String,
        /// The brokers.
        servers: String,
        /// What the broker or the client said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl KafkaError {
    /// What an error of the client means. `log` is that of the client: its last complaint is the reason where the error
    /// itself says only that time is up.
    pub fn new(action: impl Into<String>, servers: &str, error: &ClientError, log: &KafkaLog) -> Self {
        let (action, servers) = (action.into(), servers.to_owned());
        let code = error.rdkafka_error_code();
        let complaint = log.complaint();
        let login = complaint.as_deref().is_some_and(is_login);
        let tls = complaint.as_deref().is_some_and(is_tls);
        let said = match (code, complaint) {
            (Some(code), _) if !is_silence(code) => error.to_string(),
            (_, Some(complaint)) => complaint,
            (_, None) => error.to_string(),
        };
        let source = said.into();
        match code {
            Some(Code::Authentication | Code::SaslAuthenticationFailed | Code::IllegalSASLState) => {
                Self::Login { action, servers, source }
            }
            Some(
                Code::TopicAuthorizationFailed
                | Code::GroupAuthorizationFailed
                | Code::ClusterAuthorizationFailed
                | Code::TransactionalIdAuthorizationFailed,
            ) => Self::Forbidden { action, servers, source },
            Some(code) if is_fenced(code) => Self::Fenced { action, source },
            Some(code) if is_silence(code) && login => Self::Login { action, servers, source },
            Some(code) if code == Code::SSL || (is_silence(code) && tls) => Self::Tls { action, servers, source },
            Some(Code::MessageSizeTooLarge | Code::MessageBatchTooLarge) => Self::TooLarge { action, servers, source },
            Some(Code::InvalidTransactionTimeout) => Self::TransactionTimeout { action, servers, source },
            Some(code) if is_silence(code) => Self::Unreachable { action, servers, source },
            None if matches!(error, ClientError::ClientConfig(..) | ClientError::ClientCreation(_)) => {
                Self::Settings { servers, source }
            }
            _ => Self::Failed { action, servers, source },
        }
    }

    /// Whether the same may work a little later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Failed { .. })
    }
}

/// The number of the code by which brokers refuse a writer after another one with its name has come.
const REPLACED: i32 = 47;

/// Whether a broker has refused a login. A connection that ends during one is none, nor what the client only guesses.
fn is_login(complaint: &str) -> bool {
    let is_about = complaint.contains("SASL") && complaint.contains("uthentication");
    is_about && !is_cut(complaint) && !complaint.contains("SaslAuthenticateRequest failed")
}

/// Whether the handshake of TLS has failed, and not merely ended.
fn is_tls(complaint: &str) -> bool {
    complaint.contains("SSL handshake failed") && !is_cut(complaint)
}

/// Whether a connection was cut off: by a broker that died, or by one that speaks another protocol.
fn is_cut(complaint: &str) -> bool {
    ["isconnected", "might", "broker listener?", "onnection reset", "timed out"]
        .iter()
        .any(|part| complaint.contains(part))
}

/// Codes that say that another client has taken over.
fn is_fenced(code: Code) -> bool {
    matches!(code, Code::Fenced | Code::ProducerFenced) || code as i32 == REPLACED
}

/// Codes that say only that nobody answered.
fn is_silence(code: Code) -> bool {
    matches!(
        code,
        Code::BrokerTransportFailure
            | Code::AllBrokersDown
            | Code::OperationTimedOut
            | Code::MessageTimedOut
            | Code::RequestTimedOut
            | Code::TimedOutQueue
            | Code::Resolve
            | Code::NetworkException
            | Code::BrokerNotAvailable
    )
}

impl Hint for KafkaError {
    fn fault(&self) -> Fault {
        match self {
            Self::Unreachable { .. } | Self::Stopped { .. } | Self::Failed { .. } | Self::Fenced { .. } => {
                Fault::Outside
            }
            Self::Login { .. }
            | Self::Tls { .. }
            | Self::Forbidden { .. }
            | Self::Settings { .. }
            | Self::TransactionTimeout { .. } => Fault::Query,
            Self::TooLarge { .. } => Fault::Data,
        }
    }

    /// Brokers that are away were waited for.
    fn may_pass(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreachable { servers, source, .. } if is_cut(&source.to_string()) => Some(format!(
                "see that kafka.security.protocol is what `{servers}` speaks there, and that brokers can be reached from here"
            )),
            Self::Unreachable { servers, .. } => Some(format!(
                "see that a broker listens at `{servers}` and that the addresses it announces can be reached from here"
            )),
            Self::Login { .. } => Some(
                "look at user and password in kafka.sasl.jaas.config (or kafka.sasl.username and kafka.sasl.password), and at \
                 kafka.sasl.mechanism"
                    .into(),
            ),
            Self::Tls { .. } => Some(
                "look at kafka.security.protocol, at kafka.ssl.truststore.location, which has the certificate that the \
                 brokers' are signed by, and at the names in the brokers' certificates"
                    .into(),
            ),
            Self::TooLarge { .. } => Some(
                "raise kafka.max.request.size here and max.message.bytes of the topic, or write smaller records".into(),
            ),
            Self::TransactionTimeout { .. } => Some(
                "lower kafka.transaction.timeout.ms, or have transaction.max.timeout.ms raised at the brokers".into(),
            ),
            Self::Forbidden { .. } => Some("ask who runs the brokers for the permission".into()),
            Self::Fenced { .. } => Some("give each query a checkpoint of its own, and run it once at a time".into()),
            Self::Settings { .. } => Some("look at the options that begin with `kafka.`".into()),
            Self::Stopped { .. } | Self::Failed { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_common::describe_chain;
    use rdkafka::config::RDKafkaLogLevel;

    #[test]
    fn silence_is_told_with_the_brokers_and_the_last_complaint() {
        let log = KafkaLog::new();
        log.take(RDKafkaLogLevel::Error, "FAIL", "[thrd:x]: Connect to ipv4#127.0.0.1:1 failed: Connection refused");
        let error = KafkaError::new(
            "read topic `t`",
            "localhost:1",
            &ClientError::MetadataFetch(Code::BrokerTransportFailure),
            &log,
        );
        assert_eq!(
            describe_chain(&error),
            "cannot read topic `t`: no broker of `localhost:1` answers: Connect to ipv4#127.0.0.1:1 failed: Connection refused"
        );
        assert_eq!((error.fault(), error.is_passing()), (Fault::Outside, true));
    }

    #[test]
    fn a_login_that_fails_is_the_querys_fault() {
        let log = KafkaLog::new();
        log.take(RDKafkaLogLevel::Error, "FAIL", "SASL PLAIN authentication failed: SASL Authentication failed");
        let error = KafkaError::new("read", "b:1", &ClientError::MetadataFetch(Code::BrokerTransportFailure), &log);
        assert!(matches!(error, KafkaError::Login { .. }), "{error:?}");
        assert_eq!(error.fault(), Fault::Query);
        let error = KafkaError::new("read", "b:1", &ClientError::MetadataFetch(Code::TopicAuthorizationFailed), &log);
        assert!(matches!(error, KafkaError::Forbidden { .. }), "{error:?}");
    }

    #[test]
    fn tls_that_fails_is_no_broker_that_is_away() {
        let said = "ssl://b:1/bootstrap: SSL handshake failed: error:0A000086: certificate verify failed: broker \
                    certificate could not be verified";
        let of = |said: &str| {
            let log = KafkaLog::new();
            log.take(RDKafkaLogLevel::Error, "FAIL", said);
            KafkaError::new("read", "b:1", &ClientError::MetadataFetch(Code::BrokerTransportFailure), &log)
        };
        let error = of(said);
        assert!(matches!(error, KafkaError::Tls { .. }) && !error.is_passing(), "{error:?}");
        assert!(error.hint().is_some_and(|hint| hint.contains("kafka.ssl.truststore.location")), "{error:?}");
        // A broker that dies says nothing else, so it may come back.
        for said in [
            "b:1: Disconnected while requesting ApiVersion: might be caused by incorrect security.protocol configuration \
             (connecting to a SSL listener?)",
            "ssl://b:1: SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?",
            "sasl_ssl://b:1: SASL authentication error: SaslAuthenticateRequest failed: Local: Broker transport failure",
        ] {
            let error = of(said);
            assert!(matches!(error, KafkaError::Unreachable { .. }) && error.is_passing(), "{error:?}");
        }
        assert!(of("Disconnected: might be …").hint().is_some_and(|hint| hint.contains("kafka.security.protocol")));
    }

    #[test]
    fn what_somebody_limits_is_told_with_the_settings_that_limit_it() {
        let of = |code| KafkaError::new("write", "b:1", &ClientError::MessageProduction(code), &KafkaLog::new());
        assert!(of(Code::MessageSizeTooLarge).hint().is_some_and(|hint| hint.contains("kafka.max.request.size")));
        let error = of(Code::InvalidTransactionTimeout);
        assert!(error.hint().is_some_and(|hint| hint.contains("kafka.transaction.timeout.ms")), "{error:?}");
    }
}
