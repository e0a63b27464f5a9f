//! The book: a hash beside what is written, with the newest batch of a query and the number of the run that may write.

use super::config::Target;
use millstream_client::redis::{Connection, RedisError, Value};
use millstream_common::{BatchId, QueryId};

/// The keys in which a query keeps account of what it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Book {
    /// The hash with `fence` and `batch`.
    pub(super) key: String,
    /// The set of the keys that the last complete result has.
    pub(super) index: String,
}

/// What the book says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// The number of the run that may write.
    pub(super) fence: i64,
    /// The newest batch that is written.
    pub(super) batch: Option<BatchId>,
}

impl Book {
    pub(super) fn new(target: &Target, query: QueryId) -> Self {
        let (tag, name) = (target.tag(), target.name());
        Self {
            key: format!("millstream:{{{tag}}}:batches:{query}:{name}"),
            index: format!("millstream:{{{tag}}}:keys:{name}"),
        }
    }

    /// Takes the book for this run; answers what it says now.
    pub(super) fn claim(&self, connection: &mut Connection) -> Result<Entry, RedisError> {
        let taken = connection.ask(&[b"HINCRBY", self.key.as_bytes(), b"fence", b"1"])?;
        let Value::Int(fence) = taken else { return Err(connection.strange("a number that grew is no number")) };
        let entry = self.read(connection)?;
        let Some(Entry { batch, .. }) = entry else {
            return Err(connection.strange("a number that was just written is not there"));
        };
        // Another run may have taken the book since: the number that is there now is that one's.
        Ok(Entry { fence, batch })
    }

    /// What it says; `None` when there is none.
    pub(super) fn read(&self, connection: &mut Connection) -> Result<Option<Entry>, RedisError> {
        let answer = connection.ask(&[b"HMGET", self.key.as_bytes(), b"fence", b"batch"])?;
        let Value::Array(values) = answer else { return Err(connection.strange("fields of a hash are no list")) };
        let number = |at: usize| match values.get(at) {
            Some(Value::BulkString(bytes)) => std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<i64>().ok()),
            _ => None,
        };
        let batch = number(1).and_then(|batch| u64::try_from(batch).ok()).map(BatchId);
        Ok(number(0).map(|fence| Entry { fence, batch }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_client::redis::RedisAddress;
    use millstream_common::Options;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn the_book_is_in_the_slot_of_what_is_written() {
        let query = QueryId(uuid::Uuid::nil());
        let stream = Target::Stream { key: "clicks".into(), max_length: None };
        let book = Book::new(&stream, query);
        assert_eq!(book.key, format!("millstream:{{clicks}}:batches:{query}:clicks"));
        let keys = Target::Keys { prefix: "x{a}:".into(), columns: vec![], is_string: false };
        assert_eq!(Book::new(&keys, query).index, "millstream:{a}:keys:x{a}:");
    }
    /// A server whose book another run takes after each time that it is taken; it serves one connection.
    fn server_with_a_rival() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = client.read(&mut buffer) {
                let said = &buffer[..read];
                let has = |word: &[u8]| said.windows(word.len()).any(|part| part == word);
                let answer: &[u8] = match (has(b"HINCRBY"), has(b"HMGET")) {
                    (true, _) => b":7\r\n",
                    (_, true) => b"*2\r\n$1\r\n8\r\n$2\r\n41\r\n",
                    _ => b"+OK\r\n",
                };
                client.write_all(answer).unwrap();
            }
        });
        port
    }

    #[test]
    fn two_runs_that_open_at_once_have_numbers_of_their_own() {
        let url = format!("redis://127.0.0.1:{}", server_with_a_rival());
        let options = Options::new().with("url", &url);
        let address = RedisAddress::new("the test", &options, &|_| None).unwrap();
        let mut connection = Connection::open(&address, "test").unwrap();
        let book = Book { key: "book".into(), index: "index".into() };
        let entry = book.claim(&mut connection).unwrap();
        assert_eq!(entry, Entry { fence: 7, batch: Some(BatchId(41)) });
    }
}
