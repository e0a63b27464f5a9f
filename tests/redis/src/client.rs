//! Asking a server, and reading its answers.

use millstream_client::redis::{Commands, Connection, RedisAddress, Value};
use millstream_common::Options;

/// A connection for looking.
pub struct Client(Connection);

impl Client {
    /// To a URL.
    pub fn of(url: &str) -> Self {
        let address = RedisAddress::new("the test", &Options::new().with("url", url), &|_| None).unwrap();
        Self(Connection::open(&address, "harness").unwrap())
    }

    /// The answer to words that are separated by spaces, as text; an error begins with `-`.
    pub fn ask(&mut self, words: &str) -> String {
        self.words(&words.split_whitespace().collect::<Vec<_>>())
    }

    /// The answer to a command whose words may have spaces.
    pub fn words<A: AsRef<[u8]>>(&mut self, words: &[A]) -> String {
        let mut command = Commands::new();
        command.add(words);
        text(&self.0.ask_all(&command).unwrap()[0])
    }

    /// Adds entries with ids `1-0`, `2-0`, … from `from` on, which have a field `v` with the same number.
    pub fn add_entries(&mut self, stream: &str, numbers: std::ops::RangeInclusive<u32>) {
        let mut commands = Commands::new();
        for number in numbers {
            let number = number.to_string();
            commands.add(&["XADD", stream, &format!("{number}-0"), "v", &number]);
        }
        for answer in self.0.ask_all(&commands).unwrap() {
            assert!(!matches!(answer, Value::ServerError(_)), "{answer:?}");
        }
    }

    /// The entries of a stream without their ids: fields joined by spaces.
    pub fn entries(&mut self, stream: &str) -> Vec<String> {
        let mut command = Commands::new();
        command.add(&["XRANGE", stream, "-", "+"]);
        let Value::Array(entries) = &self.0.ask_all(&command).unwrap()[0] else { panic!("`{stream}` is no stream") };
        let fields = |entry: &Value| match entry {
            Value::Array(parts) => text(&parts[1]),
            other => panic!("{other:?}"),
        };
        entries.iter().map(fields).collect()
    }

    /// The fields of a hash, sorted, as `name=value` joined by spaces.
    pub fn hash(&mut self, key: &str) -> String {
        let mut command = Commands::new();
        command.add(&["HGETALL", key]);
        let Value::Array(parts) = &self.0.ask_all(&command).unwrap()[0] else { panic!("`{key}` is no hash") };
        let mut pairs: Vec<String> =
            parts.chunks_exact(2).map(|pair| format!("{}={}", text(&pair[0]), text(&pair[1]))).collect();
        pairs.sort();
        pairs.join(" ")
    }

    /// The keys that match a pattern, sorted.
    pub fn keys(&mut self, pattern: &str) -> Vec<String> {
        let mut command = Commands::new();
        command.add(&["KEYS", pattern]);
        let Value::Array(keys) = &self.0.ask_all(&command).unwrap()[0] else { panic!("keys are no list") };
        let mut keys: Vec<String> = keys.iter().map(text).collect();
        keys.sort();
        keys
    }
}

/// An answer as text; parts of a list are joined by spaces.
fn text(value: &Value) -> String {
    match value {
        Value::Nil => "(nil)".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::Okay => "OK".to_owned(),
        Value::Array(parts) => parts.iter().map(text).collect::<Vec<_>>().join(" "),
        Value::ServerError(error) => format!("-{} {}", error.code(), error.details().unwrap_or_default()),
        other => format!("{other:?}"),
    }
}
