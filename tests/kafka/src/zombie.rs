//! A producer that died in the middle of its words, as the brokers hear it.
//!
//! No client can be told to speak too late, so this speaks Kafka's protocol itself, in two requests of fixed versions: it
//! takes the name of a transaction, and commits an offset into a transaction that was never begun.

use crate::Kafka;
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// InitProducerId, version 0.
const TAKE: (i16, i16) = (22, 0);
/// TxnOffsetCommit, version 2.
const COMMIT: (i16, i16) = (28, 2);
/// How long a broker may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Before it is asked again.
const PAUSE: Duration = Duration::from_millis(50);
/// A coordinator is loading, not available or somewhere else; an earlier transaction is being ended.
const NOT_YET: [i16; 4] = [14, 15, 16, 51];

/// What to leave behind.
#[derive(Debug, Clone, Copy)]
pub struct Zombie<'a> {
    /// The name of the transaction, which it takes over from whoever has it.
    pub transaction: &'a str,
    /// The group whose offset is committed.
    pub group: &'a str,
    /// The topic whose partition 0 the offset is of.
    pub topic: &'a str,
    /// The offset.
    pub offset: i64,
}

impl Kafka {
    /// Commits an offset in the name of a transaction that is not open and that nobody will end: the group waits for its end
    /// for ever. The cluster must be one broker with `transaction.partition.verification.enable` false; others refuse it in
    /// most cases.
    ///
    /// # Errors
    /// When the broker refuses it.
    pub fn leave_hanging(&self, zombie: Zombie<'_>) -> Result<()> {
        let mut broker = TcpStream::connect(self.bootstrap())?;
        broker.set_read_timeout(Some(PATIENCE))?;
        let mut take = Words::default();
        take.text(zombie.transaction);
        take.0.extend(60_000_i32.to_be_bytes());
        // The time it throttles, an error, the id, and how often the name was taken.
        let answer = ask_until_ready(&mut broker, TAKE, &take, |answer| number(answer, 4))?;
        let identity = answer.get(6..16).context("the answer is cut off")?;

        let mut commit = Words::default();
        commit.text(zombie.transaction);
        commit.text(zombie.group);
        commit.0.extend(identity);
        commit.0.extend(1_i32.to_be_bytes());
        commit.text(zombie.topic);
        commit.0.extend(1_i32.to_be_bytes());
        commit.0.extend(0_i32.to_be_bytes());
        commit.0.extend(zombie.offset.to_be_bytes());
        // No generation of a leader, and no note.
        commit.0.extend((-1_i32).to_be_bytes());
        commit.0.extend((-1_i16).to_be_bytes());
        // The error is the last.
        ask_until_ready(&mut broker, COMMIT, &commit, |answer| number(answer, answer.len().saturating_sub(2)))?;
        Ok(())
    }
}

/// A request in the making.
#[derive(Default)]
struct Words(Vec<u8>);

impl Words {
    fn text(&mut self, text: &str) {
        self.0.extend(i16::try_from(text.len()).unwrap_or(i16::MAX).to_be_bytes());
        self.0.extend(text.as_bytes());
    }
}

/// Asks until the broker has ended and loaded what it must, and answers what it then says without an error.
fn ask_until_ready(
    broker: &mut TcpStream,
    request: (i16, i16),
    body: &Words,
    error: impl Fn(&[u8]) -> Result<i16>,
) -> Result<Vec<u8>> {
    let begin = Instant::now();
    loop {
        let answer = ask(broker, request, body)?;
        match error(&answer)? {
            0 => return Ok(answer),
            code if NOT_YET.contains(&code) && begin.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            code => bail!("the broker refuses request {} with error {code}", request.0),
        }
    }
}

/// Sends a request, and answers the body of its answer.
fn ask(broker: &mut TcpStream, (key, version): (i16, i16), body: &Words) -> Result<Vec<u8>> {
    let mut head = Words::default();
    head.0.extend(key.to_be_bytes());
    head.0.extend(version.to_be_bytes());
    head.0.extend(1_i32.to_be_bytes());
    head.text("zombie");
    let size = i32::try_from(head.0.len() + body.0.len())?;
    broker.write_all(&[&size.to_be_bytes(), head.0.as_slice(), body.0.as_slice()].concat())?;
    let mut size = [0; 4];
    broker.read_exact(&mut size)?;
    let mut answer = vec![0; usize::try_from(i32::from_be_bytes(size))?];
    broker.read_exact(&mut answer)?;
    ensure!(answer.len() > 4, "the answer is cut off");
    Ok(answer.split_off(4))
}

fn number(bytes: &[u8], at: usize) -> Result<i16> {
    let bytes = bytes.get(at..at + 2).context("the answer is cut off")?;
    Ok(i16::from_be_bytes([bytes[0], bytes[1]]))
}
