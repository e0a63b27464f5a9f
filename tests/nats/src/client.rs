//! Asking a server, and reading its answers.

pub use async_nats::ConnectOptions;
use async_nats::{HeaderMap, Message};
use futures::StreamExt;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection for looking.
pub struct Client {
    runtime: Runtime,
    inner: async_nats::Client,
}

impl Client {
    /// To servers that let everybody in.
    pub fn of(servers: &str) -> Self {
        Self::with(servers, ConnectOptions::new())
    }

    /// With a login.
    pub fn with(servers: &str, options: ConnectOptions) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let servers: Vec<&str> = servers.split(',').collect();
        let inner = runtime.block_on(options.connect(servers)).unwrap();
        Self { runtime, inner }
    }

    fn wait<F: Future>(&self, future: F) -> F::Output {
        let limited = async { tokio::time::timeout(PATIENCE, future).await };
        self.runtime.block_on(limited).unwrap_or_else(|_| panic!("no answer"))
    }

    /// What JetStream answers.
    pub fn ask(&self, what: &str, question: &Value) -> Value {
        let payload = if question.is_null() { Vec::new() } else { question.to_string().into_bytes() };
        let answer = self.wait(self.inner.request(format!("$JS.API.{what}"), payload.into())).unwrap();
        serde_json::from_slice(&answer.payload).unwrap()
    }

    /// What JetStream answers, when it is no refusal.
    fn done(&self, what: &str, question: &Value) -> Value {
        let answer = self.ask(what, question);
        assert!(answer.get("error").is_none(), "{what}: {answer}");
        answer
    }

    /// Makes a stream with what is beside the ordinary.
    pub fn make_stream(&self, name: &str, subjects: &[&str], more: &Value) {
        let mut config =
            json!({ "name": name, "subjects": subjects, "storage": "file", "duplicate_window": 120_000_000_000_u64 });
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        self.done(&format!("STREAM.CREATE.{name}"), &config);
    }

    /// Changes the configuration of a stream.
    pub fn change_stream(&self, name: &str, more: &Value) {
        let mut config = self.stream(name)["config"].clone();
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        self.done(&format!("STREAM.UPDATE.{name}"), &config);
    }

    /// What a stream is like.
    pub fn stream(&self, name: &str) -> Value {
        self.done(&format!("STREAM.INFO.{name}"), &json!({ "deleted_details": true }))
    }

    /// Removes a stream.
    pub fn remove_stream(&self, name: &str) {
        self.done(&format!("STREAM.DELETE.{name}"), &Value::Null);
    }

    /// Removes messages: all before `sequence`, of a subject, or all.
    pub fn purge(&self, name: &str, which: &Value) {
        self.done(&format!("STREAM.PURGE.{name}"), which);
    }

    /// Removes one message.
    pub fn delete(&self, name: &str, sequence: u64) {
        self.done(&format!("STREAM.MSG.DELETE.{name}"), &json!({ "seq": sequence }));
    }

    /// Adds a message, and answers its number.
    pub fn publish(&self, subject: &str, data: &str) -> u64 {
        self.publish_with(subject, data.as_bytes(), &[])
    }

    /// As [`publish`](Self::publish), with headers.
    pub fn publish_with(&self, subject: &str, data: &[u8], headers: &[(&str, &str)]) -> u64 {
        let answer = self.put(subject, data, headers);
        let number = answer["seq"].as_u64().filter(|_| answer.get("error").is_none());
        number.unwrap_or_else(|| panic!("{subject}: {answer}"))
    }

    /// Adds a message with an id, unless the stream knows the id; answers whether it did not.
    pub fn publish_once(&self, subject: &str, id: &str) -> bool {
        self.put(subject, id.as_bytes(), &[("Nats-Msg-Id", id)]).get("duplicate").is_none()
    }

    /// What is answered to a message.
    fn put(&self, subject: &str, data: &[u8], headers: &[(&str, &str)]) -> Value {
        let mut map = HeaderMap::new();
        headers.iter().for_each(|(name, value)| map.append(*name, *value));
        let request = async_nats::Request::new().headers(map).payload(data.to_vec().into());
        let answer = self.wait(self.inner.send_request(subject.to_owned(), request)).unwrap();
        serde_json::from_slice(&answer.payload).unwrap()
    }

    /// Adds messages with these numbers as their content.
    pub fn publish_numbers(&self, subject: &str, numbers: std::ops::RangeInclusive<u32>) {
        self.wait(async {
            let requests = numbers.map(|number| self.inner.request(subject.to_owned(), number.to_string().into()));
            let mut answers = futures::stream::iter(requests).buffered(256);
            while let Some(answer) = answers.next().await {
                let answer: Value = serde_json::from_slice(&answer.unwrap().payload).unwrap();
                assert!(answer.get("error").is_none(), "{answer}");
            }
        });
    }

    /// How many messages a stream has.
    pub fn count(&self, stream: &str) -> usize {
        usize::try_from(self.stream(stream)["state"]["messages"].as_u64().unwrap()).unwrap()
    }

    /// The messages that a stream has, in order.
    pub fn messages(&self, stream: &str) -> Vec<Message> {
        let count = self.count(stream);
        let config =
            json!({ "deliver_policy": "all", "ack_policy": "none", "replay_policy": "instant", "mem_storage": true });
        let question = json!({ "stream_name": stream, "config": config });
        let name = self.done(&format!("CONSUMER.CREATE.{stream}"), &question)["name"].as_str().unwrap().to_owned();
        let found = self.wait(async {
            let inbox = self.inner.new_inbox();
            let mut answers = self.inner.subscribe(inbox.clone()).await.unwrap();
            let mut found = Vec::new();
            while found.len() < count {
                let question = json!({ "batch": 1000, "no_wait": true }).to_string();
                let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}");
                self.inner.publish_with_reply(subject, inbox.clone(), question.into()).await.unwrap();
                let wanted = (count - found.len()).min(1000);
                for _ in 0..wanted {
                    let message = answers.next().await.unwrap();
                    assert!(message.status.is_none(), "{message:?}");
                    found.push(message);
                }
            }
            found
        });
        self.done(&format!("CONSUMER.DELETE.{stream}.{name}"), &Value::Null);
        found
    }

    /// The messages that a stream has, as subject without the stream's name, and content.
    pub fn texts(&self, stream: &str) -> Vec<String> {
        let text = |message: &Message| {
            let subject = message.subject.strip_prefix(stream).unwrap_or(&message.subject).trim_start_matches('.');
            format!("{subject} {}", String::from_utf8_lossy(&message.payload)).trim_start().to_owned()
        };
        self.messages(stream).iter().map(text).collect()
    }

    /// How many consumers a stream has.
    pub fn consumers(&self, stream: &str) -> u64 {
        self.stream(stream)["state"]["consumer_count"].as_u64().unwrap()
    }
}
