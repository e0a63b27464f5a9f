//! Messages on their way into a stream: many at once, and each is waited for until the stream has it.

use super::{Connection, NatsError};
use async_nats::{HeaderMap, HeaderName, HeaderValue, Subject, Subscriber};
use bytes::Bytes;
use futures::StreamExt;
use serde_json::Value;
use std::collections::HashMap;
use std::str::FromStr;

/// So many messages are on their way at most.
const OPEN: usize = 1024;
/// And about so many bytes.
const OPEN_BYTES: usize = 8 << 20;
/// Names of headers that begin so mean something to the server.
const RESERVED: &str = "nats-";

/// A message to be published.
#[derive(Debug)]
pub struct Outgoing {
    subject: Subject,
    headers: HeaderMap,
    data: Bytes,
}

impl Outgoing {
    /// A message of a subject, for a stream only, with an id by which the stream knows it within its duplicate window.
    pub fn new(subject: &str, stream: &str, id: &str, data: Bytes) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Stream", stream);
        headers.insert("Nats-Msg-Id", id);
        Self { subject: subject.into(), headers, data }
    }

    /// Adds a header. Those that mean something to the server, whose names begin with `Nats-`, are left out.
    ///
    /// # Errors
    /// Why it can be none.
    pub fn add_header(&mut self, name: &str, value: &str) -> Result<(), String> {
        if name.get(..RESERVED.len()).is_some_and(|head| head.eq_ignore_ascii_case(RESERVED)) {
            return Ok(());
        }
        let bad_name = || format!("`{}` cannot be the name of a header", name.escape_debug());
        let name = HeaderName::from_str(name).ok().filter(|_| !name.is_empty()).ok_or_else(bad_name)?;
        let value =
            HeaderValue::from_str(value).map_err(|_| format!("the value of header `{name}` has several lines"))?;
        self.headers.append(name, value);
        Ok(())
    }

    /// About how many bytes it has, with its headers.
    pub fn size(&self) -> usize {
        let headers = self.headers.iter().flat_map(|(name, values)| {
            let name: &str = name.as_ref();
            values.iter().map(move |value| name.len() + value.as_str().len() + 4)
        });
        // With the line that says that there are headers, and the empty one behind them.
        self.data.len() + headers.sum::<usize>() + 12
    }
}

/// Messages whose acknowledgement has not come.
struct Open {
    answers: Subscriber,
    /// Subjects and sizes by number.
    messages: HashMap<u64, (Subject, usize)>,
    bytes: usize,
}

impl Connection {
    /// Publishes messages in order, many at once; when it is through, the stream has all of them. `acked` is told the place
    /// of each one, from 0, when the stream has it.
    ///
    /// # Errors
    /// What the server or the network says. Of those that were not told nobody knows whether the stream has them.
    pub fn publish(
        &self,
        messages: impl Iterator<Item = Outgoing> + Send,
        acked: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), NatsError> {
        let inbox = self.client.new_inbox();
        self.wait(None, async {
            let answers = self.client.subscribe(format!("{inbox}.*")).await;
            let answers = answers.map_err(|error| self.lost(millstream_common::describe_chain(&error)))?;
            let mut open = Open { answers, messages: HashMap::new(), bytes: 0 };
            for (number, message) in (0_u64..).zip(messages) {
                while open.messages.len() >= OPEN || open.bytes >= OPEN_BYTES {
                    acked(self.take_one(&mut open, &inbox).await?);
                }
                let size = message.size();
                let Outgoing { subject, headers, data } = message;
                let reply = format!("{inbox}.{number}");
                let sent = self.client.publish_with_reply_and_headers(subject.clone(), reply, headers, data).await;
                sent.map_err(|error| match error.kind() {
                    async_nats::PublishErrorKind::Send => self.lost(millstream_common::describe_chain(&error)),
                    _ => {
                        let said = millstream_common::describe_chain(&error);
                        let message = format!("a message of subject `{subject}`: {said}");
                        NatsError::Refused { place: self.place().to_owned(), message }
                    }
                })?;
                open.bytes += size;
                open.messages.insert(number, (subject, size));
            }
            while !open.messages.is_empty() {
                acked(self.take_one(&mut open, &inbox).await?);
            }
            Ok(())
        })
    }

    /// Waits for one acknowledgement, and answers whose it is.
    async fn take_one(&self, open: &mut Open, inbox: &str) -> Result<u64, NatsError> {
        let next = open.answers.next();
        let answer = match self.limit() {
            Some(limit) => tokio::time::timeout(limit, next).await.map_err(|_| self.late())?,
            None => next.await,
        };
        let answer = answer.ok_or_else(|| self.lost("no more acknowledgements come"))?;
        let number = answer.subject.strip_prefix(inbox).and_then(|rest| rest.strip_prefix('.')?.parse::<u64>().ok());
        let message = number.and_then(|number| open.messages.remove(&number).map(|message| (number, message)));
        let Some((number, (subject, size))) = message else {
            return Err(self.strange("it acknowledges what was not sent"));
        };
        open.bytes -= size;
        if answer.status.is_some_and(|status| status.as_u16() == 503) {
            return Err(NatsError::NotTaken { place: self.place().to_owned(), subject: subject.to_string() });
        }
        match self.answered::<Value>(&answer.payload)? {
            Ok(_) => Ok(number),
            Err(mut error) => {
                error.description = format!("a message of subject `{subject}`: {}", error.description);
                Err(self.refused(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_cannot_be_are_named_and_those_of_the_server_left_out() {
        let mut message = Outgoing::new("a.b", "S", "id", Bytes::from_static(b"data"));
        let empty = message.size();
        assert_eq!(message.add_header("nats-Rollup", "all"), Ok(()));
        assert_eq!(message.size(), empty);
        assert_eq!(message.add_header("trace", "1"), Ok(()));
        assert_eq!(message.add_header("trace", "2"), Ok(()));
        assert_eq!(message.size(), empty + 2 * "trace: 1\r\n".len());
        assert!(message.add_header("a b:", "1").unwrap_err().contains("`a b:`"));
        assert!(message.add_header("", "1").is_err());
        assert!(message.add_header("a", "1\r\nb: 2").unwrap_err().contains("several lines"));
    }
}
