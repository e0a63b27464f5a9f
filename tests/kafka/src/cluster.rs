//! Brokers that know each other.

use crate::node::{Node, free_ports};
use crate::secured::{Secured, certificate, properties, users};
use anyhow::{Context, Result, ensure};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What points the tests at other brokers.
const OTHERS: &str = "MILLSTREAM_TEST_KAFKA";
/// How long a cluster may take to agree on who leads.
const PATIENCE: Duration = Duration::from_secs(90);
/// Any cluster may have this name: they never meet.
const CLUSTER: &str = "millstreamTestsAAAAAAA";

/// A cluster. Its brokers end when it is dropped, and in any case with the program.
#[derive(Debug)]
pub struct Kafka {
    /// None when the brokers are somebody else's.
    nodes: Vec<Node>,
    bootstrap: String,
    heap_mib: usize,
    folder: Option<PathBuf>,
}

impl Kafka {
    /// Starts a cluster of its own with so many brokers; of three, two must have what is written.
    ///
    /// # Errors
    /// When a broker does not answer in time.
    pub fn start(brokers: usize) -> Result<Self> {
        Self::start_with(brokers, 256, &[])
    }

    /// As [`start`](Self::start), with this much memory for each and other properties of brokers.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(brokers: usize, heap_mib: usize, properties: &[(&str, &str)]) -> Result<Self> {
        let mut last = None;
        // Somebody else may take a port in between.
        for _ in 0..3 {
            match Self::try_start(brokers, heap_mib, properties) {
                Ok(kafka) => return Ok(kafka),
                Err(error) => last = Some(error),
            }
        }
        Err(last.context("no start was tried")?)
    }

    fn try_start(brokers: usize, heap_mib: usize, properties: &[(&str, &str)]) -> Result<Self> {
        ensure!((1..=9).contains(&brokers), "a cluster has between 1 and 9 brokers");
        let folder = tempfile::Builder::new().prefix("millstream-kafka-").tempdir()?.keep();
        let ports = free_ports(2 * brokers)?;
        let nodes: Vec<Node> = (1..=brokers)
            .zip(ports.chunks(2))
            .map(|(id, ports)| Node::new(id, (ports[0], ports[1]), folder.join(id.to_string())))
            .collect();
        let bootstrap = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect::<Vec<_>>().join(",");
        let kafka = Self { nodes, bootstrap, heap_mib, folder: Some(folder) };
        let voters = kafka.nodes.iter().map(|node| format!("{}@127.0.0.1:{}", node.id, node.controller_port));
        let mut all = common(brokers, &voters.collect::<Vec<_>>().join(","));
        all.extend(properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        for node in &kafka.nodes {
            node.configure(&all)?;
            match node.id {
                1 => node.format(CLUSTER, &[])?,
                _ => node.format_as(&kafka.nodes[0])?,
            }
            node.launch(heap_mib)?;
        }
        kafka.wait()?;
        Ok(kafka)
    }

    /// Starts one broker that has a listener for users beside the plain one.
    ///
    /// # Errors
    /// When it does not answer, or certificates cannot be made.
    pub fn start_secured() -> Result<(Self, Secured)> {
        let folder = tempfile::Builder::new().prefix("millstream-kafka-").tempdir()?.keep();
        let ports = free_ports(3)?;
        let node = Node::new(1, (ports[0], ports[1]), folder.join("1"));
        let bootstrap = format!("127.0.0.1:{}", ports[0]);
        let voters = format!("1@127.0.0.1:{}", ports[1]);
        let kafka = Self { nodes: vec![node], bootstrap, heap_mib: 256, folder: Some(folder.clone()) };
        let keys = folder.join("1").join("keys");
        let (authority, stranger) = std::thread::scope(|scope| {
            let stranger = scope.spawn(|| certificate(&keys, "stranger"));
            let authority = certificate(&keys, "broker");
            let stranger = stranger.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            anyhow::Ok((authority?, stranger?))
        })?;
        let mut all = common(1, &voters);
        all.extend(properties(&keys, (ports[0], ports[1], ports[2])));
        kafka.nodes[0].configure(&all)?;
        kafka.nodes[0].format(CLUSTER, &users())?;
        kafka.nodes[0].launch(kafka.heap_mib)?;
        kafka.wait()?;
        let address = format!("127.0.0.1:{}", ports[2]);
        Ok((kafka, Secured { address, authority, stranger }))
    }

    /// One broker for all tests of this program: each makes topics of its own. Somebody else's when
    /// `MILLSTREAM_TEST_KAFKA` says so.
    ///
    /// # Panics
    /// When it does not start.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Kafka> = OnceLock::new();
        SHARED.get_or_init(|| {
            if let Some(kafka) = Self::others() {
                return kafka;
            }
            Self::start(1).unwrap_or_else(|error| panic!("no broker for the tests: {error:#}"))
        })
    }

    /// A broker that a test may kill: one for all tests of this program, which have it in turns. It runs when a turn begins,
    /// whatever the one before left. `None`, with a line, when the tests run on somebody else's brokers.
    ///
    /// # Panics
    /// When it does not start.
    pub fn mortal() -> Option<Mortal> {
        static MORTAL: Mutex<Option<Kafka>> = Mutex::new(None);
        if is_left_out() {
            return None;
        }
        let mut turn = MORTAL.lock().unwrap_or_else(PoisonError::into_inner);
        match turn.as_ref() {
            None => *turn = Some(Self::start(1).unwrap_or_else(|error| panic!("no broker for the test: {error:#}"))),
            Some(kafka) if !kafka.nodes[0].is_running() => {
                kafka.start_again(1).unwrap_or_else(|error| panic!("the broker does not come back: {error:#}"));
            }
            Some(kafka) => drop(kafka.resume(1)),
        }
        Some(Mortal(turn))
    }

    /// A cluster of its own whose brokers a test may kill; `None`, with a line, when the tests run on somebody else's.
    ///
    /// # Panics
    /// When it does not start.
    pub fn of_own(brokers: usize) -> Option<Self> {
        Self::of_own_with(brokers, &[])
    }

    /// As [`of_own`](Self::of_own), with other properties of brokers.
    ///
    /// # Panics
    /// As [`of_own`](Self::of_own).
    pub fn of_own_with(brokers: usize, properties: &[(&str, &str)]) -> Option<Self> {
        if is_left_out() {
            return None;
        }
        let kafka = Self::start_with(brokers, 256, properties);
        Some(kafka.unwrap_or_else(|error| panic!("no brokers for the test: {error:#}")))
    }

    fn others() -> Option<Self> {
        let bootstrap = std::env::var(OTHERS).ok().filter(|value| !value.is_empty())?;
        Some(Self { nodes: Vec::new(), bootstrap, heap_mib: 0, folder: None })
    }

    /// The addresses, for `kafka.bootstrap.servers`.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// How many brokers were started; 0 when they are somebody else's.
    pub fn brokers(&self) -> usize {
        self.nodes.len()
    }

    /// What a plain client is made of.
    pub fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap);
        config
    }

    /// Kills a broker, counted from 1, as `kill -9` does.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&self, broker: usize) -> Result<()> {
        self.node(broker)?.signal("KILL")
    }

    /// Ends a broker in order.
    ///
    /// # Errors
    /// When it does not run, or does not end.
    pub fn stop(&self, broker: usize) -> Result<()> {
        self.node(broker)?.signal("TERM")
    }

    /// Halts a broker: its connections stay, and it does not answer.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause(&self, broker: usize) -> Result<()> {
        self.node(broker)?.signal("STOP")
    }

    /// Lets a broker go on after [`pause`](Self::pause).
    ///
    /// # Errors
    /// When it does not run.
    pub fn resume(&self, broker: usize) -> Result<()> {
        self.node(broker)?.signal("CONT")
    }

    /// Starts a broker again that was killed or stopped, with what it had, and waits until it answers.
    ///
    /// # Errors
    /// When it runs, or does not answer in time.
    pub fn start_again(&self, broker: usize) -> Result<()> {
        self.node(broker)?.launch(self.heap_mib)?;
        self.wait()
    }

    /// What a broker wrote last, for a test that fails.
    pub fn log(&self, broker: usize) -> String {
        self.node(broker).map(Node::log).unwrap_or_default()
    }

    /// Waits until all that run answer, and know each other.
    fn wait(&self) -> Result<()> {
        let running = self.nodes.iter().filter(|node| node.is_running());
        let count = running.clone().count();
        running.clone().try_for_each(Node::wait)?;
        let consumer: BaseConsumer = self.client().create()?;
        let begin = Instant::now();
        loop {
            let known = consumer.fetch_metadata(None, Duration::from_secs(5));
            if known.is_ok_and(|metadata| metadata.brokers().len() >= count) {
                return Ok(());
            }
            let logs = || self.nodes.iter().map(Node::log).collect::<Vec<_>>().join("\n");
            ensure!(begin.elapsed() < PATIENCE, "the brokers do not find each other: {}", logs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn node(&self, broker: usize) -> Result<&Node> {
        self.nodes.iter().find(|node| node.id == broker).with_context(|| format!("there is no broker {broker} of ours"))
    }
}

/// Whether a test is left out because brokers are somebody else's; says so.
#[allow(clippy::print_stderr, reason = "that a test is left out must be seen")]
fn is_left_out() -> bool {
    let is_left_out = Kafka::others().is_some();
    if is_left_out {
        eprintln!("left out: this test kills brokers, and {OTHERS} names some that are not its own");
    }
    is_left_out
}

/// The turn of a test with the broker that may be killed.
#[derive(Debug)]
pub struct Mortal(MutexGuard<'static, Option<Kafka>>);

impl Deref for Mortal {
    type Target = Kafka;

    fn deref(&self) -> &Kafka {
        self.0.as_ref().expect("a turn begins when there is one")
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        self.nodes.clear();
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// What all brokers are told. Small, and quick to see that one has died.
fn common(brokers: usize, voters: &str) -> Vec<(String, String)> {
    let copies = brokers.min(3);
    let needed = copies.div_ceil(2).max(1);
    let said = [
        ("process.roles", "broker,controller".to_owned()),
        ("controller.quorum.voters", voters.to_owned()),
        ("listener.security.protocol.map", "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT".to_owned()),
        ("inter.broker.listener.name", "BROKER".to_owned()),
        ("controller.listener.names", "CONTROLLER".to_owned()),
        ("default.replication.factor", copies.to_string()),
        ("min.insync.replicas", needed.to_string()),
        ("offsets.topic.replication.factor", copies.to_string()),
        ("offsets.topic.num.partitions", "3".to_owned()),
        ("transaction.state.log.replication.factor", copies.to_string()),
        ("transaction.state.log.min.isr", needed.to_string()),
        ("transaction.state.log.num.partitions", "3".to_owned()),
        ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "500".to_owned()),
        ("group.initial.rebalance.delay.ms", "0".to_owned()),
        ("auto.create.topics.enable", "false".to_owned()),
        ("broker.session.timeout.ms", "4000".to_owned()),
        ("broker.heartbeat.interval.ms", "500".to_owned()),
        ("log.cleaner.dedupe.buffer.size", "4194304".to_owned()),
        ("log.cleaner.backoff.ms", "200".to_owned()),
        // Tests write records of any time, and none of them is too old.
        ("log.retention.ms", "-1".to_owned()),
        ("num.network.threads", "2".to_owned()),
        ("num.io.threads", "3".to_owned()),
    ];
    said.map(|(name, value)| (name.to_owned(), value)).into()
}
