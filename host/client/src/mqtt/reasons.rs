//! What the reasons mean that a broker gives where it does not do what it was asked.

use super::MqttError;
use rumqttc::v5::mqttbytes::v5::{
    ConnectReturnCode, DisconnectReasonCode, PubAckReason, PubRecReason, SubscribeReasonCode,
};
use std::fmt::Debug;

/// The words of a reason: `NotAuthorized` is `not authorized`.
fn words(reason: &impl Debug) -> String {
    let mut words = String::new();
    for letter in format!("{reason:?}").chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

impl MqttError {
    /// Why a broker does not let a client in.
    pub(super) fn of_greeting(place: &str, who: &str, code: ConnectReturnCode, said: Option<&str>) -> Self {
        let place = place.to_owned();
        let message = said.map_or_else(|| words(&code), |said| format!("{}: {said}", words(&code)));
        match code {
            ConnectReturnCode::BadUserNamePassword
            | ConnectReturnCode::NotAuthorized
            | ConnectReturnCode::Banned
            | ConnectReturnCode::BadAuthenticationMethod => Self::Denied { place, who: who.to_owned(), message },
            ConnectReturnCode::RefusedProtocolVersion | ConnectReturnCode::UnsupportedProtocolVersion => {
                Self::Old { place }
            }
            ConnectReturnCode::ServerUnavailable
            | ConnectReturnCode::ServiceUnavailable
            | ConnectReturnCode::ServerBusy
            | ConnectReturnCode::ConnectionRateExceeded => Self::Busy { place, message },
            _ => Self::Refused { place, message },
        }
    }

    /// Why a broker ends a connection; `None` when it says nothing that is known.
    pub(super) fn of_farewell(place: &str, client: &str, code: Option<DisconnectReasonCode>) -> Self {
        let place = place.to_owned();
        let Some(code) = code else {
            return Self::Lost { place, source: "the broker ended it without a reason that is known".into() };
        };
        let message = words(&code);
        match code {
            DisconnectReasonCode::SessionTakenOver => Self::TakenOver { place, client: client.to_owned() },
            DisconnectReasonCode::NotAuthorized => Self::Forbidden { place, message },
            DisconnectReasonCode::ServerBusy
            | DisconnectReasonCode::ConnectionRateExceeded
            | DisconnectReasonCode::MessageRateTooHigh => Self::Busy { place, message },
            DisconnectReasonCode::NormalDisconnection
            | DisconnectReasonCode::ServerShuttingDown
            | DisconnectReasonCode::KeepAliveTimeout
            | DisconnectReasonCode::MaximumConnectTime
            | DisconnectReasonCode::AdministrativeAction
            | DisconnectReasonCode::UnspecifiedError => {
                Self::Lost { place, source: format!("the broker ended it: {message}").into() }
            }
            _ => Self::Refused { place, message: format!("it ended the connection: {message}") },
        }
    }

    /// Why a broker does not take a message of quality 1; `None` when it has it.
    pub fn of_acknowledgement(place: &str, topic: &str, reason: PubAckReason) -> Option<Self> {
        let is_forbidden = match reason {
            PubAckReason::Success | PubAckReason::NoMatchingSubscribers => return None,
            reason => reason == PubAckReason::NotAuthorized,
        };
        Some(Self::of_message(place, topic, is_forbidden, &reason))
    }

    /// Why a broker does not take a message of quality 2; `None` when it has it.
    pub fn of_receipt(place: &str, topic: &str, reason: PubRecReason) -> Option<Self> {
        let is_forbidden = match reason {
            PubRecReason::Success | PubRecReason::NoMatchingSubscribers => return None,
            reason => reason == PubRecReason::NotAuthorized,
        };
        Some(Self::of_message(place, topic, is_forbidden, &reason))
    }

    fn of_message(place: &str, topic: &str, is_forbidden: bool, reason: &impl Debug) -> Self {
        let (place, message) = (place.to_owned(), format!("a message to topic `{topic}`: {}", words(reason)));
        if is_forbidden { Self::Forbidden { place, message } } else { Self::Refused { place, message } }
    }

    /// Why a broker does not give the topics of a filter with quality `qos` (1 or 2); `None` when it does.
    pub fn of_subscription(place: &str, filter: &str, qos: u8, reason: SubscribeReasonCode) -> Option<Self> {
        let place = place.to_owned();
        let message = match reason {
            SubscribeReasonCode::Success(granted) if granted as u8 >= qos => return None,
            SubscribeReasonCode::Success(granted) => {
                let granted = granted as u8;
                format!("it gives topics `{filter}` with QoS {granted} at most; set `qos` to that, or let it give more")
            }
            reason => format!("to give topics `{filter}`: {}", words(&reason)),
        };
        let is_forbidden = reason == SubscribeReasonCode::NotAuthorized;
        Some(if is_forbidden { Self::Forbidden { place, message } } else { Self::Refused { place, message } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::Transient;
    use rumqttc::v5::mqttbytes::QoS;

    #[test]
    fn reasons_are_situations_in_words() {
        let greeting = |code, said| MqttError::of_greeting("mqtt://h:1", "user `ann`", code, said);
        assert_eq!(
            greeting(ConnectReturnCode::NotAuthorized, Some("go away")).to_string(),
            "`mqtt://h:1` does not let user `ann` in: not authorized: go away"
        );
        assert!(greeting(ConnectReturnCode::ServerBusy, None).is_transient());
        let farewell = |code| MqttError::of_farewell("mqtt://h:1", "me", code);
        assert!(
            farewell(Some(DisconnectReasonCode::ServerShuttingDown)).is_transient() && farewell(None).is_transient()
        );
        assert!(!farewell(Some(DisconnectReasonCode::SessionTakenOver)).is_transient());
        assert!(!farewell(Some(DisconnectReasonCode::PacketTooLarge)).is_transient());
    }

    #[test]
    fn what_was_done_is_no_error() {
        let subscription = |reason| MqttError::of_subscription("mqtt://h:1", "a/#", 1, reason);
        assert!(subscription(SubscribeReasonCode::Success(QoS::AtLeastOnce)).is_none());
        assert!(subscription(SubscribeReasonCode::Success(QoS::AtMostOnce)).unwrap().to_string().contains("QoS 0"));
        let forbidden = subscription(SubscribeReasonCode::NotAuthorized).unwrap().to_string();
        assert_eq!(forbidden, "`mqtt://h:1` does not allow it: to give topics `a/#`: not authorized");
        assert!(MqttError::of_acknowledgement("p", "t", PubAckReason::NoMatchingSubscribers).is_none());
        assert!(MqttError::of_acknowledgement("p", "t", PubAckReason::QuotaExceeded).is_some());
        assert!(MqttError::of_receipt("p", "t", PubRecReason::Success).is_none());
    }
}
