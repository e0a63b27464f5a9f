//! What a client says while it runs: to the log of the host, and its last complaint into the errors.

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode};
use std::sync::{Arc, Mutex, PoisonError};

/// Takes log lines and global errors of a client. It is the context of a client that needs no other; a context with more
/// to do hands its lines on to [`take`](Self::take).
#[derive(Debug, Clone, Default)]
pub struct KafkaLog {
    complaint: Arc<Mutex<Option<String>>>,
}

impl KafkaLog {
    /// A log without lines.
    pub fn new() -> Self {
        Self::default()
    }

    /// The last thing that went wrong, such as `Connect to … failed: Connection refused`: the reason behind an error that
    /// says only that nobody answered.
    pub fn complaint(&self) -> Option<String> {
        self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Drops the complaint: it has passed.
    pub fn forget(&self) {
        *self.complaint.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Takes a line of the client.
    pub fn take(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        use RDKafkaLogLevel::{Alert, Critical, Debug, Emerg, Error, Info, Notice, Warning};
        match level {
            // A broker that goes away is normal until it stays away, and then there is an error.
            Emerg | Alert | Critical | Error | Warning => {
                self.complain(line);
                tracing::debug!(target: "kafka", facility, "{line}");
            }
            Notice | Info => tracing::debug!(target: "kafka", facility, "{line}"),
            Debug => tracing::trace!(target: "kafka", facility, "{line}"),
        }
    }

    /// Keeps what went wrong, without the names of threads and brokers that stand before it.
    fn complain(&self, line: &str) {
        let mut text = line.trim();
        while let Some(rest) = text.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            text = rest.1.trim();
        }
        *self.complaint.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
    }
}

impl ClientContext for KafkaLog {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        self.take(level, facility, line);
    }

    fn error(&self, error: ClientError, reason: &str) {
        // That a partition is read to its end is no error.
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::PartitionEOF) {
            return;
        }
        // That nobody is there is known; why is the complaint before.
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::AllBrokersDown) || self.complaint().is_none() {
            self.complain(reason);
        }
        tracing::debug!(target: "kafka", "{error}: {reason}");
    }
}

impl ConsumerContext for KafkaLog {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_complaint_is_kept_without_the_name_of_a_thread() {
        let log = KafkaLog::new();
        log.take(RDKafkaLogLevel::Info, "X", "all is well");
        assert_eq!(log.complaint(), None);
        log.take(RDKafkaLogLevel::Error, "FAIL", "[thrd:a:1/bootstrap]: a:1/bootstrap: Connect to a:1 failed: refused");
        assert_eq!(log.clone().complaint().as_deref(), Some("a:1/bootstrap: Connect to a:1 failed: refused"));
    }
}
