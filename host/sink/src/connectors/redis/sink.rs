//! The sink: one transaction per batch, with the batch's id in the book.

use super::FORMAT;
use super::book::{Book, Entry};
use super::config::{RedisConfig, Target};
use super::rows::{Encoded, Pieces, encode};
use crate::connectors::attempt::{self, patiently};
use crate::{Guarantee, Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkReport, SinkSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use millstream_client::redis::{Commands, Connection, RedisError, Value};
use millstream_common::{BatchId, OutputMode, StopSignal};
use std::collections::HashSet;

/// How many keys are named in one command.
const KEYS: usize = 500;
/// How often a transaction is tried at once when somebody changes the account of batches.
const ATTEMPTS: u32 = 10;

/// Writes the batch into the book, last in its transaction, unless entries could not be added: inside of a transaction the
/// server does not take back what went well.
const FINISH_STREAM: &str = "\
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'stream' then return redis.error_reply('WRONGTYPE it holds a ' .. kind) end
local told = redis.call('XINFO', 'STREAM', KEYS[1])
for at = 1, #told, 2 do
  if told[at] == 'last-generated-id' and told[at + 1] == '18446744073709551615-18446744073709551615' then
    return redis.error_reply('ERR the stream has no ids left')
  end
end
redis.call('HSET', KEYS[2], 'batch', ARGV[1])
return redis.status_reply('OK')";

/// Notes in the book, which is the last key, a key that is no hash after all was written.
const CHECK_HASHES: &str = "\
for at = 1, #KEYS - 1 do
  if redis.call('TYPE', KEYS[at]).ok ~= 'hash' then redis.call('HSET', KEYS[#KEYS], 'spoiled', KEYS[at]) end
end
return redis.status_reply('OK')";

/// Writes the batch into the book, last in its transaction, unless a key is noted there.
const FINISH_KEYS: &str = "\
local spoiled = redis.call('HGET', KEYS[1], 'spoiled')
if spoiled then
  redis.call('HDEL', KEYS[1], 'spoiled')
  return redis.error_reply('WRONGTYPE it is ' .. spoiled)
end
redis.call('HSET', KEYS[1], 'batch', ARGV[1])
return redis.status_reply('OK')";

/// Makes sinks that write to Redis.
#[derive(Debug, Clone, Copy, Default)]
pub struct RedisSinkFactory;

impl SinkFactory for RedisSinkFactory {
    fn check(&self, spec: &SinkSpec) -> Result<(), SinkError> {
        RedisConfig::new(spec).map(drop)
    }

    fn check_columns(&self, spec: &SinkSpec, schema: &SchemaRef) -> Result<(), SinkError> {
        RedisConfig::new(spec)?.check_columns(schema)
    }

    fn open(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn Sink>, SinkError> {
        let config = RedisConfig::new(spec)?;
        let book = Book::new(&config.target, context.query);
        let mut sink = RedisSink { config, book, stop: context.stop, fence: 0, connection: None, confirmed: None };
        sink.patiently("open", RedisSink::claim)?;
        Ok(Box::new(sink))
    }
}

struct RedisSink {
    config: RedisConfig,
    book: Book,
    /// Set when nothing is to be waited for any more.
    stop: StopSignal,
    /// The number of this run.
    fence: i64,
    connection: Option<Connection>,
    /// The newest batch that the server has confirmed to this run.
    confirmed: Option<BatchId>,
}

/// Why an attempt failed.
type Failure = attempt::Failure<RedisError>;

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It wrote the batch.
    Written,
    /// The batch was there.
    There,
    /// Somebody changed the account of batches, and it did nothing.
    Disturbed,
}

impl RedisSink {
    fn connection(&mut self) -> Result<&mut Connection, RedisError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.config.address, "millstream sink")?,
        };
        Ok(self.connection.insert(connection))
    }

    /// Tries until it goes well, or fails in a way that waiting does not mend, or has taken long enough, or nobody wants it any
    /// more. A failed attempt leaves no connection, and so no transaction that is open.
    fn patiently<T>(
        &mut self,
        action: &'static str,
        mut attempt: impl FnMut(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, SinkError> {
        let (stop, retry, place) = (self.stop.clone(), self.config.retry, self.config.place());
        let attempt = || attempt(self).inspect_err(|_| self.connection = None);
        patiently(FORMAT, (&stop, retry), attempt, |source| SinkError::Redis { action, place, source })
    }

    /// Takes the book for this run.
    fn claim(&mut self) -> Result<(), Failure> {
        if !self.config.target.is_in_one_slot() {
            self.check_no_cluster()?;
        }
        let book = self.book.clone();
        let Entry { fence, batch } = book.claim(self.connection()?)?;
        (self.fence, self.confirmed) = (fence, batch);
        Ok(())
    }

    /// Keys that are written together must be on one node.
    fn check_no_cluster(&mut self) -> Result<(), RedisError> {
        let name = self.config.target.name().to_owned();
        let connection = self.connection()?;
        let told = match connection.ask(&[b"INFO", b"cluster"]) {
            // Then it is told when they are written.
            Err(RedisError::Forbidden { .. } | RedisError::Refused { .. }) => return Ok(()),
            told => told?,
        };
        let is_cluster = match told {
            Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).contains("cluster_enabled:1"),
            _ => false,
        };
        if is_cluster {
            let message = format!("keys that begin with `{name}` are in many slots, and a batch is written at once");
            return Err(RedisError::Cluster { place: connection.place().to_owned(), message });
        }
        Ok(())
    }

    /// Writes a batch; answers whether it was written now.
    fn write(&mut self, batch: &SinkBatch<'_>, encoded: &Encoded) -> Result<bool, Failure> {
        for _ in 0..ATTEMPTS {
            match self.transact(batch, encoded)? {
                Outcome::Written => return Ok(true),
                Outcome::There => return Ok(false),
                Outcome::Disturbed => {}
            }
        }
        let message = "somebody else changes the account of batches all the time".to_owned();
        Err(RedisError::Busy { place: self.config.address.place(), message }.into())
    }

    /// One transaction.
    fn transact(&mut self, batch: &SinkBatch<'_>, encoded: &Encoded) -> Result<Outcome, Failure> {
        let is_complete = batch.mode == OutputMode::Complete;
        self.watch(encoded, is_complete)?;
        if let Some(newest) = self.look(batch.id)?.filter(|newest| *newest >= batch.id) {
            self.connection()?.ask(&[b"UNWATCH"])?;
            self.confirmed = Some(newest);
            return Ok(Outcome::There);
        }
        let gone = if is_complete { self.gone(encoded)? } else { Vec::new() };
        self.queue(&Commands::one(&[b"MULTI"]))?;
        let mut before = Pieces::default();
        named(&mut before, &[b"DEL"], &gone);
        for piece in before.iter().chain(encoded.pieces.iter()) {
            self.queue(piece)?;
        }
        let mut after = Pieces::default();
        if is_complete {
            after.add(&[b"DEL", self.book.index.as_bytes()]);
            named(&mut after, &[b"SADD", self.book.index.as_bytes()], &encoded.keys);
        }
        self.finish(&mut after, batch.id, encoded);
        for piece in after.iter() {
            self.queue(piece)?;
        }
        // When this fails nobody knows whether it was done: the next attempt looks into the book.
        let answer = self.connection()?.ask(&[b"EXEC"])?;
        match answer {
            Value::Nil => Ok(Outcome::Disturbed),
            Value::Array(answers) => {
                let connection = self.connection()?;
                // Where a part was refused, the book does not have the batch.
                for answer in answers {
                    connection.checked(answer)?;
                }
                self.confirmed = Some(batch.id);
                Ok(Outcome::Written)
            }
            _ => Err(self.connection()?.strange("the end of a transaction is no list").into()),
        }
    }

    /// The end of a transaction, which writes the batch into the book.
    fn finish(&self, commands: &mut Pieces, batch: BatchId, encoded: &Encoded) {
        let (id, book) = (batch.0.to_string(), self.book.key.as_bytes());
        match &self.config.target {
            Target::Stream { key, .. } => {
                commands.add(&[b"EVAL", FINISH_STREAM.as_bytes(), b"2", key.as_bytes(), book, id.as_bytes()]);
            }
            Target::Keys { is_string, .. } => {
                // What is a string now is one, whatever it was.
                let hashes = if *is_string { &[][..] } else { encoded.keys.as_slice() };
                for keys in hashes.chunks(KEYS) {
                    let count = (keys.len() + 1).to_string();
                    let head = [b"EVAL", CHECK_HASHES.as_bytes(), count.as_bytes()];
                    let keys = keys.iter().map(Vec::as_slice);
                    commands.add(&head.into_iter().chain(keys).chain([book]).collect::<Vec<&[u8]>>());
                }
                commands.add(&[b"EVAL", FINISH_KEYS.as_bytes(), b"1", book, id.as_bytes()]);
            }
        }
    }

    /// Watches the book, and refuses keys that hold another kind of value. Who changes them after this is found at the end
    /// of the transaction: the keys themselves are not watched, for the server takes long to watch many.
    fn watch(&mut self, encoded: &Encoded, is_complete: bool) -> Result<(), Failure> {
        let kind = match &self.config.target {
            Target::Stream { .. } => "stream",
            Target::Keys { is_string: true, .. } => "string",
            Target::Keys { is_string: false, .. } => "hash",
        };
        let mut watches = Pieces::default();
        watches.add(&[b"WATCH", self.book.key.as_bytes()]);
        if is_complete {
            watches.add(&[b"WATCH", self.book.index.as_bytes()]);
        }
        for piece in watches.iter() {
            self.queue(piece)?;
        }
        let connection = self.connection()?;
        for keys in encoded.keys.chunks(KEYS) {
            let mut commands = Commands::new();
            keys.iter().for_each(|key| commands.add(&[b"TYPE", key.as_slice()]));
            for (key, answer) in keys.iter().zip(connection.ask_all(&commands)?) {
                match connection.checked(answer)? {
                    Value::SimpleString(found) if found != kind && found != "none" => {
                        let message = format!("`{}` holds a {found}, and not a {kind}", String::from_utf8_lossy(key));
                        return Err(RedisError::WrongType { place: connection.place().to_owned(), message }.into());
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The newest batch of the book, if this run may write.
    fn look(&mut self, batch: BatchId) -> Result<Option<BatchId>, Failure> {
        let (book, sink, place) = (self.book.clone(), FORMAT.to_owned(), self.config.place());
        let went_back = |confirmed: BatchId, found: Option<BatchId>| {
            let found = found.map_or("none".to_owned(), |found| format!("batch {found}"));
            SinkError::WentBack { sink: sink.clone(), place: place.clone(), batch, confirmed, found }
        };
        let confirmed = self.confirmed;
        match (book.read(self.connection()?)?, confirmed) {
            (Some(entry), _) if entry.fence != self.fence => Err(SinkError::Fenced { sink, place, batch }.into()),
            (Some(Entry { batch: newest, .. }), Some(confirmed)) if newest < Some(confirmed) => {
                Err(went_back(confirmed, newest).into())
            }
            (Some(entry), _) => Ok(entry.batch),
            (None, Some(confirmed)) => Err(went_back(confirmed, None).into()),
            // The server has forgotten all, and had nothing of this query to forget.
            (None, None) => {
                self.claim()?;
                Ok(None)
            }
        }
    }

    /// The keys of the last complete result that the new one does not have.
    fn gone(&mut self, encoded: &Encoded) -> Result<Vec<Vec<u8>>, Failure> {
        let index = self.book.index.clone();
        let connection = self.connection()?;
        let answer = connection.ask(&[b"SMEMBERS", index.as_bytes()])?;
        let (Value::Array(members) | Value::Set(members)) = answer else {
            return Err(connection.strange("the members of a set are no list").into());
        };
        let stays: HashSet<&[u8]> = encoded.keys.iter().map(Vec::as_slice).collect();
        let keys = members.into_iter().filter_map(|member| match member {
            Value::BulkString(key) if !stays.contains(key.as_slice()) => Some(key),
            _ => None,
        });
        Ok(keys.collect())
    }

    /// Sends commands that the server is to take without a word against them.
    fn queue(&mut self, commands: &Commands) -> Result<(), Failure> {
        let connection = self.connection()?;
        for answer in connection.ask_all(commands)? {
            connection.checked(answer)?;
        }
        Ok(())
    }
}

/// Adds commands that name many keys.
fn named(pieces: &mut Pieces, head: &[&[u8]], keys: &[Vec<u8>]) {
    for keys in keys.chunks(KEYS) {
        let command: Vec<&[u8]> = head.iter().copied().chain(keys.iter().map(Vec::as_slice)).collect();
        pieces.add(&command);
    }
}

impl Sink for RedisSink {
    fn description(&self) -> String {
        format!("RedisSink[{}]", self.config.place())
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::ExactlyOnce
    }

    fn supports(&self, mode: OutputMode) -> bool {
        self.config.target.supports(mode)
    }

    fn add_batch(&mut self, batch: &SinkBatch<'_>) -> Result<SinkReport, SinkError> {
        if !self.supports(batch.mode) {
            let known = "append and update into a stream; with option `key`, complete too".to_owned();
            return Err(SinkError::Mode { sink: FORMAT.to_owned(), mode: batch.mode, known });
        }
        self.config.check_columns(batch.schema)?;
        let rows: usize = batch.rows.iter().map(RecordBatch::num_rows).sum();
        let is_complete = batch.mode == OutputMode::Complete;
        if rows == 0 && !is_complete {
            return Ok(SinkReport { rows: 0 });
        }
        let encoded = encode(&self.config.target, batch.schema, batch.rows, is_complete).map_err(|bad| {
            SinkError::Rows { sink: FORMAT.to_owned(), place: self.config.place(), batch: batch.id, reason: bad.0 }
        })?;
        let mut tried = false;
        let written = self.patiently("write", |sink| {
            // What an earlier attempt of this call may have written is of this call.
            let again = std::mem::replace(&mut tried, true);
            Ok(sink.write(batch, &encoded)? || again)
        })?;
        Ok(SinkReport { rows: if written { rows as u64 } else { 0 } })
    }

    fn stop(&mut self) {
        self.connection = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_are_named_in_several_commands() {
        let keys: Vec<Vec<u8>> = (0..1200).map(|number: u32| number.to_string().into_bytes()).collect();
        let mut pieces = Pieces::default();
        named(&mut pieces, &[b"DEL"], &keys);
        assert_eq!(pieces.iter().map(Commands::len).sum::<usize>(), 3);
        let mut none = Pieces::default();
        named(&mut none, &[b"DEL"], &[]);
        assert_eq!(none.iter().count(), 0);
    }
}
