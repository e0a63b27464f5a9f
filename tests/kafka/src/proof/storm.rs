//! The storm: records in, deaths, and the count at the end.

use super::output::{Output, Topic};
use super::verdict::windows;
use super::{BEGIN_MS, KEYS, WINDOW_MS};
use crate::{Kafka, Record};
use anyhow::{Context, Result, ensure};
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

impl Plan {
    /// What a program is told: how many records (ten million), how many kills (100), the seed (1); it is a host, too.
    ///
    /// # Errors
    /// When that is not numbers, or more of them; the message says what `name` takes.
    pub fn of(name: &str, arguments: &[String]) -> Result<Self> {
        let numbers: Vec<u64> = arguments.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        ensure!(numbers.len() <= 3, "usage: {name} [N [KILLS [SEED]]]");
        let number = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
        let (records, kills, seed) = (number(0, 10_000_000), number(1, 100), number(2, 1));
        Ok(Self { records, kills, seed, program: std::env::current_exe()? })
    }
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
    /// How often the host ended by itself, as when all that it needs was away for too long, and was started again.
    pub failures: u64,
    /// Windows and keys that came out, in the place that has the fewest.
    pub windows: u64,
    /// Records of the output that no reader of committed records sees.
    pub aborted: u64,
    /// Records that are in no count, of all places.
    pub lost: u64,
    /// Records that are counted too often, of all places.
    pub doubled: u64,
}

/// The query as a process.
struct Host<'a> {
    plan: &'a Plan,
    arguments: Vec<String>,
    log: PathBuf,
    child: Option<Child>,
    failures: u64,
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
            Some(child) => {
                let has_failed = child.try_wait()?.is_some();
                self.failures += u64::from(has_failed);
                has_failed
            }
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

/// Runs the storm from Kafka to Kafka; `tell` gets a line of progress now and then.
///
/// # Errors
/// When brokers do not start, or nothing comes out any more.
pub fn storm(plan: &Plan, tell: &mut dyn FnMut(String)) -> Result<Outcome> {
    let kafka = brokers()?;
    storm_over(plan, &kafka, &Topic::create(&kafka)?, tell)
}

/// Runs the storm from Kafka to another output, as [`storm`].
///
/// # Errors
/// As [`storm`], and when the output cannot be read or a server of it does not start.
pub fn storm_into(plan: &Plan, output: &dyn Output, tell: &mut dyn FnMut(String)) -> Result<Outcome> {
    storm_over(plan, &brokers()?, output, tell)
}

fn brokers() -> Result<Kafka> {
    Kafka::start_with(3, 400, &[])
}

fn storm_over(plan: &Plan, kafka: &Kafka, output: &dyn Output, tell: &mut dyn FnMut(String)) -> Result<Outcome> {
    ensure!(plan.records >= 1_000, "fewer than 1000 records are no storm");
    let input = "records";
    kafka.create_topic(input, usize::try_from(PARTITIONS)?, &[])?;
    // A portion is much shorter than what a record may be late, so chance makes none late.
    let portion = (plan.records / 50).next_multiple_of(KEYS).clamp(KEYS, 50_000);
    let (per_batch, delay_ms) = (portion.max(1_000), 4 * portion);
    let folder = tempfile::Builder::new().prefix("millstream-kafka-proof-").tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let checkpoint = path("checkpoint");
    let mut arguments: Vec<String> = [kafka.bootstrap(), input, path_text(&checkpoint)?].map(str::to_owned).into();
    arguments.extend([per_batch.to_string(), delay_ms.to_string()]);
    arguments.extend(output.arguments());
    let mut host = Host { plan, arguments, log: path("host.log"), child: None, failures: 0 };

    let (kills, brokers) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(kafka, input, (plan, portion, delay_ms), &kills));
        let stormed = deaths(kafka, output, &mut host, (&kills, &brokers), tell);
        // The writer must not wait for deaths that do not come.
        kills.store(plan.kills, Ordering::SeqCst);
        let written = writer.join().map_err(|_| anyhow::anyhow!("the writer of records panicked"))?;
        stormed.and(written)
    })?;

    let expected = windows(plan.records);
    let (mut seen, mut since) = (u64::MAX, Instant::now());
    loop {
        host.tend()?;
        let found = output.count()?;
        if found >= expected {
            break;
        }
        if found != seen {
            (seen, since) = (found, Instant::now());
            tell(format!("{seen} of {expected} windows and keys are there"));
        }
        if since.elapsed() > PATIENCE {
            tell(format!("nothing comes out any more: {}", host.log()));
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    host.kill()?;
    // What the host had sent may still be on its way.
    std::thread::sleep(Duration::from_millis(500));
    let aborted = output.unseen()?;
    let (mut lost, mut doubled, mut least) = (0, 0, u64::MAX);
    for (place, found) in output.found()? {
        let verdict = found.judge(plan.records);
        tell(format!("{place}: {} windows and keys, {} lost, {} doubled", found.len(), verdict.lost, verdict.doubled));
        (lost, doubled, least) = (lost + verdict.lost, doubled + verdict.doubled, least.min(found.len()));
    }
    if host.failures > 0 {
        tell(format!("the host ended by itself {} times, at last: {}", host.failures, host.log()));
    }
    Ok(Outcome {
        records: plan.records,
        kills: kills.load(Ordering::SeqCst),
        brokers: brokers.load(Ordering::SeqCst),
        failures: host.failures,
        windows: least,
        aborted,
        lost,
        doubled,
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

/// Kills the host as often as planned, and brokers and what is behind the output between.
fn deaths(
    kafka: &Kafka,
    output: &dyn Output,
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
        std::thread::sleep(life / 2);
        if let Some(broker) = down.take() {
            kafka.start_again(broker)?;
        } else if kill % BROKER_EVERY == 3 {
            let broker = random.random_range(1..=kafka.brokers());
            kafka.kill(broker)?;
            down = Some(broker);
            brokers.fetch_add(1, Ordering::SeqCst);
        }
        if let Some(happened) = output.disturb(kill)? {
            tell(happened);
        }
        std::thread::sleep(life / 2);
        host.kill()?;
        kills.store(kill, Ordering::SeqCst);
        if kill % 10 == 0 || kill == total {
            tell(format!("{kill} of {total} deaths of the host, {} of brokers", brokers.load(Ordering::SeqCst)));
        }
    }
    if let Some(broker) = down {
        kafka.start_again(broker)?;
    }
    output.calm()
}
