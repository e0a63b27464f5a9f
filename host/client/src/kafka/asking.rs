//! How brokers are asked: in small steps, so that a login that fails and a wish to stop are heard at once.
//!
//! A call of the client says after its whole time that nobody answered, and why is in the log. A step asks for a short time,
//! looks at the log, and goes on while there is hope.

use super::{KafkaError, KafkaLog};
use crate::patience::pause;
use millstream_common::{StopSignal, describe_chain};
use rdkafka::error::KafkaResult;
use std::time::{Duration, Instant};

/// The first step, and the longest.
const STEP: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(3));
/// After that long without an answer the user is told.
const SILENCE: Duration = Duration::from_secs(2);
/// Between two steps.
const PAUSE: Duration = Duration::from_millis(50);

/// A question to the brokers.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// Who asks, for the log: a stream or a sink.
    pub owner: &'a str,
    /// What is asked, for messages: `list the topics`.
    pub action: &'a str,
    /// The brokers as the user named them.
    pub servers: &'a str,
    /// How long it is tried.
    pub patience: Duration,
    /// Ends the wait.
    pub stop: &'a StopSignal,
    /// What the client says.
    pub log: &'a KafkaLog,
}

impl Asking<'_> {
    /// Asks until there is an answer, there is no hope, or time is up. `question` is given the time of a step; `listen` makes
    /// the client hand over what it has said.
    ///
    /// # Errors
    /// What the brokers or the client refuse, why nobody answers, and [`KafkaError::Stopped`].
    pub fn ask<T>(
        &self,
        listen: impl Fn(),
        mut question: impl FnMut(Duration) -> KafkaResult<T>,
    ) -> Result<T, KafkaError> {
        let begin = Instant::now();
        let (mut step, mut is_told) = (STEP.0, false);
        loop {
            if self.stop.is_set() {
                return Err(KafkaError::Stopped { action: self.action.to_owned() });
            }
            let left = self.patience.saturating_sub(begin.elapsed()).max(Duration::from_millis(1));
            let answer = question(step.min(left));
            listen();
            let error = match answer {
                Ok(answer) => {
                    // What was wrong before is no reason for what comes.
                    self.log.forget();
                    return Ok(answer);
                }
                Err(error) => KafkaError::new(self.action, self.servers, &error, self.log),
            };
            if !error.is_passing() || begin.elapsed() >= self.patience {
                return Err(error);
            }
            if begin.elapsed() >= SILENCE && !std::mem::replace(&mut is_told, true) {
                let (owner, seconds) = (self.owner, self.patience.as_secs());
                tracing::warn!(owner, "{}; it is tried for {seconds} seconds", describe_chain(&error));
            }
            pause(PAUSE, self.stop);
            step = (step * 2).min(STEP.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::config::RDKafkaLogLevel;
    use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode as Code};

    fn ask(log: &KafkaLog, stop: &StopSignal, patience: Duration, say: &str) -> (Result<u8, KafkaError>, Duration) {
        let asking = Asking { owner: "t", action: "ask", servers: "b:1", patience, stop, log };
        let begin = Instant::now();
        let listen = || log.take(RDKafkaLogLevel::Error, "FAIL", say);
        let answer = asking.ask(listen, |_| Err(ClientError::MetadataFetch(Code::OperationTimedOut)));
        (answer, begin.elapsed())
    }

    #[test]
    fn what_no_waiting_mends_is_not_waited_for() {
        let (log, stop, long) = (KafkaLog::new(), StopSignal::new(), Duration::from_secs(60));
        let (answer, waited) = ask(&log, &stop, long, "SASL authentication error: invalid credentials");
        assert!(matches!(answer, Err(KafkaError::Login { .. })) && waited < Duration::from_secs(5), "{answer:?}");
        let (answer, waited) = ask(&log, &stop, long, "SSL handshake failed: certificate verify failed");
        assert!(matches!(answer, Err(KafkaError::Tls { .. })) && waited < Duration::from_secs(5), "{answer:?}");
        stop.set();
        assert!(matches!(ask(&log, &stop, long, "x").0, Err(KafkaError::Stopped { .. })));
        let begin = Instant::now();
        pause(long, &stop);
        assert!(begin.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn what_may_pass_is_tried_as_long_as_was_granted_and_an_answer_ends_old_complaints() {
        let (log, stop) = (KafkaLog::new(), StopSignal::new());
        let (answer, waited) = ask(&log, &stop, Duration::from_millis(150), "Connect failed: refused");
        assert!(matches!(answer, Err(KafkaError::Unreachable { .. })) && waited >= Duration::from_millis(150));
        let asking = Asking { owner: "t", action: "ask", servers: "b:1", patience: waited, stop: &stop, log: &log };
        assert_eq!(asking.ask(|| (), |_| Ok(7)).unwrap(), 7);
        assert_eq!(log.complaint(), None);
    }
}
