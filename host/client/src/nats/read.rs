//! Stored messages of a range, page by page, by a consumer that lives no longer than that.

use super::subject::{matches, overlap};
use super::{Connection, NatsError};
use async_nats::{Message, Subscriber};
use futures::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// No page has more messages.
const PAGE: u64 = 8192;
/// About how many bytes a page has at most, unless a single message has more.
const PAGE_BYTES: usize = 8 << 20;
/// After how long without a question the server forgets a consumer.
const FORGOTTEN: Duration = Duration::from_secs(30);
/// How long the server holds a question open when it has fewer messages than it is asked for.
const OPEN: Duration = Duration::from_secs(2);

/// Which messages of a stream are read.
#[derive(Debug, Clone, Copy)]
pub struct Range<'a> {
    /// The stream.
    pub stream: &'a str,
    /// Messages behind this number.
    pub after: u64,
    /// Up to this one.
    pub until: u64,
    /// At most so many.
    pub most: u64,
    /// Whose subject one of these filters takes; all when there is none.
    pub filters: &'a [String],
    /// Whether only their headers are wanted.
    pub headers_only: bool,
}

/// A message that a stream has.
#[derive(Debug)]
pub struct Stored {
    /// Its number.
    pub sequence: u64,
    /// When the stream took it, in microseconds since 1970.
    pub micros: i64,
    message: Message,
}

impl Stored {
    /// Its subject.
    pub fn subject(&self) -> &str {
        &self.message.subject
    }

    /// Its content.
    pub fn data(&self) -> &[u8] {
        &self.message.payload
    }

    /// The value of a header, the first of several.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.message.headers.as_ref()?.get(name).map(async_nats::HeaderValue::as_str)
    }

    /// Names and values of its headers. The client does not keep the order of names, so they are sorted; values of one name
    /// are in their order.
    pub fn headers(&self) -> Vec<(&str, &str)> {
        let Some(headers) = &self.message.headers else { return Vec::new() };
        let mut found: Vec<(&str, &str)> = headers
            .iter()
            .flat_map(|(name, values)| values.iter().map(move |value| (name.as_ref(), value.as_str())))
            .collect();
        // Stable, so values of one name stay as they are.
        found.sort_by_key(|(name, _)| *name);
        found
    }
}

/// What the server says of a consumer.
#[derive(Deserialize)]
struct Told {
    name: String,
    num_pending: u64,
    delivered: Delivered,
}

#[derive(Deserialize)]
struct Delivered {
    stream_seq: u64,
}

/// A consumer on the server.
struct Consumer {
    name: String,
    /// How many messages it is still to give.
    pending: u64,
    /// How many it has given.
    given: u64,
    inbox: String,
    answers: Subscriber,
}

impl Connection {
    /// Reads messages of a range in their order; `take` gets them page by page. Answers after which number nothing of the range
    /// is left, which is before its end when there were `most` messages. What a failed reading has handed over is good.
    ///
    /// # Errors
    /// What the server or the network says, also when the stream is not there.
    pub fn read(&self, range: &Range<'_>, take: &mut dyn FnMut(Vec<Stored>)) -> Result<u64, NatsError> {
        if range.until <= range.after || range.most == 0 {
            return Ok(range.after.max(range.until));
        }
        let mut consumer = self.consumer(range)?;
        let done = self.pages(range, &mut consumer, take);
        self.forget(range.stream, &consumer.name);
        done
    }

    /// Before which message of a stream a time is, as the number of the one before; the time is written as in RFC 3339.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn sequence_before(&self, stream: &str, time: &str) -> Result<u64, NatsError> {
        let told = self.make_consumer(stream, json!({ "deliver_policy": "by_start_time", "opt_start_time": time }))?;
        self.forget(stream, &told.name);
        Ok(told.delivered.stream_seq)
    }

    fn make_consumer(&self, stream: &str, mut config: Value) -> Result<Told, NatsError> {
        for (name, value) in [
            ("ack_policy", json!("none")),
            ("replay_policy", json!("instant")),
            ("mem_storage", json!(true)),
            ("num_replicas", json!(1)),
            ("inactive_threshold", json!(FORGOTTEN.as_nanos() as u64)),
        ] {
            config[name] = value;
        }
        let question = json!({ "stream_name": stream, "config": config });
        match self.ask::<Told>(&format!("CONSUMER.CREATE.{stream}"), &question)? {
            Ok(told) => Ok(told),
            Err(error) if error.is_no_stream() => {
                Err(NatsError::NoStream { place: self.place().to_owned(), stream: stream.to_owned() })
            }
            Err(error) => Err(self.refused(error)),
        }
    }

    fn consumer(&self, range: &Range<'_>) -> Result<Consumer, NatsError> {
        let mut config =
            json!({ "deliver_policy": "by_start_sequence", "opt_start_seq": range.after.saturating_add(1) });
        match range.filters {
            [filter] => config["filter_subject"] = json!(filter),
            filters if !filters.is_empty() && !self.filters_here(filters) => config["filter_subjects"] = json!(filters),
            _ => {}
        }
        if range.headers_only {
            config["headers_only"] = json!(true);
        }
        let told = self.make_consumer(range.stream, config)?;
        let inbox = self.client.new_inbox();
        let answers = self.wait(self.limit(), async {
            let opened = self.client.subscribe(inbox.clone()).await;
            opened.map_err(|error| self.lost(millstream_common::describe_chain(&error)))
        })?;
        Ok(Consumer { name: told.name, pending: told.num_pending, given: 0, inbox, answers })
    }

    /// Whether filters are applied here: servers before 2.10 know one, and later ones several that do not overlap.
    fn filters_here(&self, filters: &[String]) -> bool {
        let is_apart = |(at, one): (usize, &String)| filters[..at].iter().all(|other| !overlap(one, other));
        filters.len() > 1 && !(self.is_from(2, 10) && filters.iter().enumerate().all(is_apart))
    }

    /// Lets the server forget a consumer at once. It does so by itself a little later.
    fn forget(&self, stream: &str, consumer: &str) {
        if self.is_broken() {
            return;
        }
        if let Err(error) = self.ask::<Value>(&format!("CONSUMER.DELETE.{stream}.{consumer}"), &Value::Null) {
            tracing::debug!(error = millstream_common::describe_chain(&error), "a consumer is left to time out");
        }
    }

    fn pages(
        &self,
        range: &Range<'_>,
        consumer: &mut Consumer,
        take: &mut dyn FnMut(Vec<Stored>),
    ) -> Result<u64, NatsError> {
        let (mut at, mut room) = (range.after, range.most);
        let is_filtered_here = self.filters_here(range.filters);
        while at < range.until && consumer.pending > 0 {
            let wanted = (range.until - at).min(PAGE);
            let mut page = self.page(range, consumer, if is_filtered_here { wanted } else { wanted.min(room) })?;
            let Some(last) = page.last() else { continue };
            at = last.sequence;
            page.retain(|message| {
                let is_taken = !is_filtered_here || range.filters.iter().any(|one| matches(one, message.subject()));
                message.sequence <= range.until && is_taken
            });
            page.truncate(usize::try_from(room).unwrap_or(usize::MAX));
            room -= page.len() as u64;
            let last = page.last().map_or(at, |last| last.sequence);
            take(page);
            if room == 0 {
                return Ok(last);
            }
        }
        Ok(range.until)
    }

    /// The next messages.
    fn page(&self, range: &Range<'_>, consumer: &mut Consumer, wanted: u64) -> Result<Vec<Stored>, NatsError> {
        let bytes = PAGE_BYTES.max(self.most_bytes().saturating_mul(2));
        let question = json!({ "batch": wanted, "expires": OPEN.as_nanos() as u64, "max_bytes": bytes }).to_string();
        let subject = self.api_subject(&format!("CONSUMER.MSG.NEXT.{}.{}", range.stream, consumer.name));
        let (page, is_late) = self.wait(self.limit(), async {
            let asked = self.client.publish_with_reply(subject, consumer.inbox.clone(), question.into()).await;
            asked.map_err(|error| self.lost(millstream_common::describe_chain(&error)))?;
            let mut page = Vec::new();
            while let Some(message) = consumer.answers.next().await {
                if let Some(status) = message.status {
                    let said = message.description.unwrap_or_default();
                    match status.as_u16() {
                        100 => continue,
                        404 => {
                            consumer.pending = 0;
                            return Ok((page, false));
                        }
                        408 => return Ok((page, true)),
                        409 if said.contains("MaxBytes") => return Ok((page, false)),
                        409 if said.starts_with("Exceeded") => {
                            return Err(NatsError::Refused { place: self.place().to_owned(), message: said });
                        }
                        503 => return Err(self.busy("the consumer that reads is gone")),
                        _ => return Err(self.busy(said)),
                    }
                }
                let place = message.reply.as_deref().and_then(place_of);
                let Some(place) = place else { return Err(self.strange("a message does not tell its number")) };
                if place.given != consumer.given + 1 {
                    return Err(self.lost("messages did not get through"));
                }
                consumer.given = place.given;
                consumer.pending = place.pending;
                let is_last = place.sequence >= range.until || place.pending == 0;
                page.push(Stored { sequence: place.sequence, micros: place.nanos.div_euclid(1000), message });
                if is_last || page.len() as u64 >= wanted {
                    return Ok((page, false));
                }
            }
            Err(self.lost("no more messages come"))
        })?;
        if is_late && page.is_empty() {
            // What was to come may have been removed meanwhile.
            let what = format!("CONSUMER.INFO.{}.{}", range.stream, consumer.name);
            let told = self.ask::<Told>(&what, &Value::Null)?.map_err(|error| self.refused(error))?;
            if told.num_pending > 0 {
                return Err(self.busy("it does not give messages that it has"));
            }
            consumer.pending = 0;
        }
        Ok(page)
    }
}

/// Where a message stands.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    sequence: u64,
    /// Its number among those that the consumer has given.
    given: u64,
    nanos: i64,
    /// How many the consumer has behind it.
    pending: u64,
}

/// What the subject tells to which a message would be acknowledged:
/// `$JS.ACK.[DOMAIN.ACCOUNT.]STREAM.CONSUMER.DELIVERIES.SEQUENCE.GIVEN.NANOSECONDS.PENDING[.TOKEN]`.
fn place_of(reply: &str) -> Option<Place> {
    let words = reply.strip_prefix("$JS.ACK.")?;
    let count = words.split('.').count();
    let mut words = words.split('.').skip(if count >= 9 { 5 } else { 3 });
    let sequence = words.next()?.parse().ok()?;
    let given = words.next()?.parse().ok()?;
    let nanos = words.next()?.parse().ok()?;
    Some(Place { sequence, given, nanos, pending: words.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_nats::HeaderMap;

    #[test]
    fn a_message_tells_where_it_stands() {
        let place = Place { sequence: 17, given: 3, nanos: 1_796_051_853_229_134_871, pending: 2 };
        assert_eq!(place_of("$JS.ACK.S.G5vhWO37.1.17.3.1796051853229134871.2").as_ref(), Some(&place));
        let with_domain = "$JS.ACK.hub.ACCHASH.S.G5vhWO37.1.17.3.1796051853229134871.2.token";
        assert_eq!(place_of(with_domain).as_ref(), Some(&place));
        for strange in ["", "_INBOX.x", "$JS.ACK.S.C.1.2", "$JS.ACK.S.C.1.x.3.4.5"] {
            assert_eq!(place_of(strange), None, "{strange}");
        }
    }

    #[test]
    fn headers_have_an_order() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("b", "2"), ("a", "3"), ("b", "1")] {
            headers.append(name, value);
        }
        let message = Message {
            subject: "s".into(),
            reply: None,
            payload: bytes::Bytes::new(),
            headers: Some(headers),
            status: None,
            description: None,
            length: 0,
        };
        let stored = Stored { sequence: 1, micros: 0, message };
        assert_eq!(stored.headers(), [("a", "3"), ("b", "2"), ("b", "1")]);
        assert_eq!(stored.header("b"), Some("2"));
    }
}
