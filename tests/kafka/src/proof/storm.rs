//! The storm: records in, deaths, and the count at the end.

use super::verdict::{Found, windows};
use super::{BEGIN_MS, KEYS, WINDOW_MS};
use crate::{Isolation, Kafka, Record};
use anyhow::{Context, Result, bail, ensure};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rdkafka::producer::{BaseProducer, Producer};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many partitions the topic has that is read.
const PARTITIONS: u64 = 6;
/// How long nothing may come out before it is given up.
const PATIENCE: Duration = Duration::from_secs(240);
/// After so many deaths of the host a broker dies.
const BROKER_EVERY: u64 = 5;

/// What is to happen.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many records are counted.
    pub records: u64,
    /// How often the host is killed.
    pub kills: u64,
    /// What chance depends on.
    pub seed: u64,
    /// The program that is a host when its first argument is `host`.
    pub program: PathBuf,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Records that were written.
    pub records: u64,
    /// Deaths of the host.
    pub kills: u64,
    /// Deaths of brokers.
    pub brokers: u64,
    /// Windows and keys that came out.
    pub windows: u64,
    /// Records of the output that no reader of committed records sees.
    pub aborted: u64,
    /// Records that are in no count.
    pub lost: u64,
    /// Records that are counted too often.
    pub doubled: u64,
}

/// The query as a process.
struct Host<'a> {
    plan: &'a Plan,
    arguments: Vec<String>,
    log: PathBuf,
    child: Option<Child>,
}

impl Host<'_> {
    fn start(&mut self) -> Result<()> {
        let log = std::fs::File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.plan.program);
        command.arg("host").args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().context("the host does not start")?);
        Ok(())
    }

    /// Sees that it runs: one that failed, as when all brokers it needs are away, is started again.
    fn tend(&mut self) -> Result<()> {
        let has_ended = match &mut self.child {
            Some(child) => child.try_wait()?.is_some(),
            None => true,
        };
        if has_ended { self.start() } else { Ok(()) }
    }

    fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            // It may have failed by itself.
            let _ = child.kill();
            child.wait()?;
        }
        Ok(())
    }

    fn log(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.kill();
    }
}

/// Runs the storm; `tell` gets a line of progress now and then.
///
/// # Errors
/// When brokers do not start, or nothing comes out any more.
pub fn storm(plan: &Plan, tell: &mut dyn FnMut(String)) -> Result<Outcome> {
    ensure!(plan.records >= 1_000, "fewer than 1000 records are no storm");
    let kafka = Kafka::start_with(3, 400, &[])?;
    let (input, output) = ("records", "counts");
    kafka.create_topic(input, usize::try_from(PARTITIONS)?, &[])?;
    kafka.create_topic(output, 3, &[])?;
    // A portion is much shorter than what a record may be late, so chance makes none late.
    let portion = (plan.records / 50).next_multiple_of(KEYS).clamp(KEYS, 50_000);
    let (per_batch, delay_ms) = (portion.max(1_000), 4 * portion);
    let folder = tempfile::Builder::new().prefix("millstream-kafka-proof-").tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let checkpoint = path("checkpoint");
    let arguments = [kafka.bootstrap(), input, output, path_text(&checkpoint)?];
    let mut arguments: Vec<String> = arguments.map(str::to_owned).into();
    arguments.extend([per_batch.to_string(), delay_ms.to_string()]);
    let mut host = Host { plan, arguments, log: path("host.log"), child: None };

    let (kills, brokers) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&kafka, input, (plan, portion, delay_ms), &kills));
        let stormed = deaths(&kafka, &mut host, (&kills, &brokers), tell);
        // The writer must not wait for deaths that do not come.
        kills.store(plan.kills, Ordering::SeqCst);
        let written = writer.join().map_err(|_| anyhow::anyhow!("the writer of records panicked"))?;
        stormed.and(written)
    })?;

    let expected = windows(plan.records);
    let (mut seen, mut since) = (u64::MAX, Instant::now());
    let found = loop {
        host.tend()?;
        let found = found(&kafka, output)?;
        if found.len() >= expected {
            break found;
        }
        if found.len() != seen {
            (seen, since) = (found.len(), Instant::now());
            tell(format!("{seen} of {expected} windows and keys are there"));
        }
        if since.elapsed() > PATIENCE {
            tell(format!("nothing comes out any more: {}", host.log()));
            break found;
        }
        std::thread::sleep(Duration::from_millis(500));
    };
    host.kill()?;
    // What the last life had open is aborted, and what it had committed is there.
    let aborted = u64::try_from(kafka.try_read(output, Isolation::Uncommitted)?.len())?;
    let found = if found.len() >= expected { self::found(&kafka, output)? } else { found };
    let verdict = found.judge(plan.records);
    Ok(Outcome {
        records: plan.records,
        kills: kills.load(Ordering::SeqCst),
        brokers: brokers.load(Ordering::SeqCst),
        windows: found.len(),
        aborted: aborted.saturating_sub(found.len()),
        lost: verdict.lost,
        doubled: verdict.doubled,
    })
}

fn path_text(path: &Path) -> Result<&str> {
    path.to_str().context("a path is no UTF-8")
}

/// Writes the records, no faster than the deaths come, so that each death hits work.
fn write(kafka: &Kafka, topic: &str, (plan, portion, delay_ms): (&Plan, u64, u64), kills: &AtomicU64) -> Result<()> {
    let mut config = kafka.client();
    config.set("enable.idempotence", "true").set("linger.ms", "5").set("message.timeout.ms", "300000");
    let producer: BaseProducer = config.create()?;
    let record = |number: u64, key: String| Record {
        partition: i32::try_from(number % PARTITIONS).ok(),
        key: Some(key.into_bytes()),
        value: Some(number.to_string().into_bytes()),
        timestamp: i64::try_from(BEGIN_MS + number).ok(),
        ..Record::default()
    };
    let mut next = 0;
    while next < plan.records {
        let done = kills.load(Ordering::SeqCst);
        if done < plan.kills && next * (plan.kills + 1) > plan.records * (done + 1) {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        }
        let end = (next + portion).min(plan.records);
        let records: Vec<Record> = (next..end).map(|number| record(number, format!("k{}", number % KEYS))).collect();
        kafka.produce_by(&producer, topic, &records)?;
        producer.flush(Duration::from_secs(300)).context("records are not taken")?;
        next = end;
    }
    // Time goes on, so that the last windows close; what closes them is in a window that stays open.
    let last = (plan.records.div_ceil(WINDOW_MS) + 1) * WINDOW_MS + delay_ms;
    let ends: Vec<Record> = (0..PARTITIONS)
        .map(|partition| Record { partition: i32::try_from(partition).ok(), ..record(last, "the end".to_owned()) })
        .collect();
    kafka.produce_by(&producer, topic, &ends)?;
    Ok(producer.flush(Duration::from_secs(300))?)
}

/// Kills the host as often as planned, and brokers between.
fn deaths(
    kafka: &Kafka,
    host: &mut Host<'_>,
    (kills, brokers): (&AtomicU64, &AtomicU64),
    tell: &mut dyn FnMut(String),
) -> Result<()> {
    let mut random = StdRng::seed_from_u64(host.plan.seed);
    let (total, mut down) = (host.plan.kills, None);
    for kill in 1..=total {
        host.tend()?;
        // From before the first batch to many batches later.
        let life = Duration::from_millis(random.random_range(100..4_000));
        if let Some(broker) = down.take() {
            std::thread::sleep(life / 2);
            kafka.start_again(broker)?;
            std::thread::sleep(life / 2);
        } else if kill % BROKER_EVERY == 3 {
            std::thread::sleep(life / 2);
            let broker = random.random_range(1..=kafka.brokers());
            kafka.kill(broker)?;
            down = Some(broker);
            brokers.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(life / 2);
        } else {
            std::thread::sleep(life);
        }
        host.kill()?;
        kills.store(kill, Ordering::SeqCst);
        if kill % 10 == 0 || kill == total {
            tell(format!("{kill} of {total} deaths of the host, {} of brokers", brokers.load(Ordering::SeqCst)));
        }
    }
    if let Some(broker) = down {
        kafka.start_again(broker)?;
    }
    Ok(())
}

fn found(kafka: &Kafka, topic: &str) -> Result<Found> {
    let (mut found, mut wrong) = (Found::default(), None);
    kafka.for_each(topic, Isolation::Stable, |record| {
        let key = String::from_utf8_lossy(record.key.as_deref().unwrap_or_default()).into_owned();
        if let Err(error) = found.add(&key, &record.text()) {
            wrong.get_or_insert(error);
        }
    })?;
    match wrong {
        None => Ok(found),
        Some(error) => bail!(error),
    }
}
