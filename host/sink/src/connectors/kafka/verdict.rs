//! What to do about an error of the client.

use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode as Code};

/// What brokers before 2.7 say for a producer that another has taken over: the number that Kafka's protocol has for it.
const OUTDATED: i32 = 47;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The same call again: the client goes on where it was.
    Again,
    /// Abort the transaction, and write the batch once more.
    Abort,
    /// The client is of no use any more, or it is not known what became of the batch: a new client asks.
    Reconnect,
    /// Another run of the query has taken over.
    Fenced,
    /// It would happen again.
    GiveUp,
}

/// The verdict on an error, when the client has died of `fatal`, if of anything.
pub(super) fn verdict(error: &ClientError, fatal: Option<Code>) -> Verdict {
    if fatal.is_some_and(is_fence) {
        return Verdict::Fenced;
    }
    if let ClientError::Transaction(error) = error {
        return match error.code() {
            code if error.is_fatal() && is_fence(code) => Verdict::Fenced,
            code if is_hopeless(code) => Verdict::GiveUp,
            _ if error.is_fatal() => Verdict::Reconnect,
            _ if error.txn_requires_abort() => Verdict::Abort,
            _ if error.is_retriable() => Verdict::Again,
            _ => Verdict::Reconnect,
        };
    }
    match error.rdkafka_error_code() {
        Some(code) if is_hopeless(code) => Verdict::GiveUp,
        _ if fatal.is_some() => Verdict::Reconnect,
        Some(Code::Fatal) => Verdict::Reconnect,
        Some(_) => Verdict::Abort,
        None => Verdict::GiveUp,
    }
}

fn is_fence(code: Code) -> bool {
    matches!(code, Code::Fenced | Code::ProducerFenced) || code as i32 == OUTDATED
}

/// Whether the batch, the topic or the user is the reason.
fn is_hopeless(code: Code) -> bool {
    matches!(
        code,
        Code::MessageSizeTooLarge
            | Code::MessageBatchTooLarge
            | Code::InvalidMessage
            | Code::InvalidRecord
            | Code::UnknownPartition
            | Code::UnknownTopic
            | Code::UnknownTopicOrPartition
            | Code::InvalidTopic
            | Code::PolicyViolation
            | Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::TransactionalIdAuthorizationFailed
            | Code::InvalidTransactionTimeout
            | Code::UnsupportedFeature
            | Code::UnsupportedVersion
            | Code::UnsupportedForMessageFormat
            | Code::InvalidRequiredAcks
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_with_the_batch_is_not_tried_again() {
        let of = |code| verdict(&ClientError::MessageProduction(code), None);
        assert_eq!(of(Code::MessageSizeTooLarge), Verdict::GiveUp);
        assert_eq!(of(Code::UnknownPartition), Verdict::GiveUp);
        assert_eq!(of(Code::TopicAuthorizationFailed), Verdict::GiveUp);
        assert_eq!(of(Code::MessageTimedOut), Verdict::Abort);
        assert_eq!(of(Code::PurgeQueue), Verdict::Abort);
        assert_eq!(of(Code::Fatal), Verdict::Reconnect);
        assert_eq!(verdict(&ClientError::Canceled, None), Verdict::GiveUp);
    }

    #[test]
    fn a_client_that_died_says_whether_another_lives() {
        let timed_out = ClientError::MessageProduction(Code::MessageTimedOut);
        assert_eq!(verdict(&timed_out, Some(Code::Fenced)), Verdict::Fenced);
        assert_eq!(verdict(&timed_out, Some(Code::ProducerFenced)), Verdict::Fenced);
        assert_eq!(verdict(&timed_out, Some(Code::OutOfOrderSequenceNumber)), Verdict::Reconnect);
    }
}
