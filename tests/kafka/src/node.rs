//! One broker: a process with a folder and two ports, which it keeps over its lives.

use crate::jars;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How long a broker may take to answer on a busy machine.
const START: Duration = Duration::from_secs(90);
/// How long a broker may take for an orderly end, before it is killed.
const STOP: Duration = Duration::from_secs(30);

/// Sends signals to the broker, one name per line; when its input ends, which happens however the test program ends, it
/// kills the broker and removes the folder. A signal to the whole group does not end it before that.
pub(crate) const KEEPER: &str = r#"
trap : HUP INT TERM
"$@" >>"$KEPT/broker.log" 2>&1 </dev/null &
broker=$!
while read -r signal; do
  kill -s "$signal" $broker 2>/dev/null
  case $signal in KILL | TERM) wait $broker; exit ;; esac
done
kill -s KILL $broker 2>/dev/null
wait $broker
rm -rf "$KEPT"
rmdir "${KEPT%/*}" 2>/dev/null
exit 0
"#;

/// One broker.
#[derive(Debug)]
pub(crate) struct Node {
    /// From 1.
    pub(crate) id: usize,
    pub(crate) port: u16,
    pub(crate) controller_port: u16,
    /// What is on its disk.
    folder: PathBuf,
    keeper: Mutex<Option<Child>>,
}

/// Ports that nobody listens on, below those that the system gives to outgoing connections: a broker that is down for a
/// while finds them free again.
pub(crate) fn free_ports(count: usize) -> Result<Vec<u16>> {
    let mut ports = Vec::new();
    for _ in 0..10_000 {
        let port = 10_000 + u16::try_from(uuid::Uuid::new_v4().as_u128() % 20_000)?;
        if !ports.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            ports.push(port);
        }
        if ports.len() == count {
            return Ok(ports);
        }
    }
    bail!("there are no {count} free ports")
}

impl Node {
    /// A broker that does not run yet.
    pub(crate) fn new(id: usize, (port, controller_port): (u16, u16), folder: PathBuf) -> Self {
        Self { id, port, controller_port, folder, keeper: Mutex::new(None) }
    }

    /// Writes the configuration.
    pub(crate) fn configure(&self, properties: &[(String, String)]) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        let lines: String = properties.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        let own = format!(
            "node.id={}\nlisteners=BROKER://127.0.0.1:{port},CONTROLLER://127.0.0.1:{}\n\
             advertised.listeners=BROKER://127.0.0.1:{port}\nlog.dirs={}\n",
            self.id,
            self.controller_port,
            self.data().display(),
            port = self.port,
        );
        Ok(fs::write(self.properties(), own + &lines)?)
    }

    /// Makes the data folder by Kafka's own program; the second time in this program by a copy of the first.
    pub(crate) fn format(&self, cluster: &str, more: &[String]) -> Result<()> {
        static MADE: OnceLock<(Vec<u8>, String)> = OnceLock::new();
        let files = (self.data().join("bootstrap.checkpoint"), self.data().join("meta.properties"));
        if let Some((bootstrap, meta)) = MADE.get().filter(|_| more.is_empty()) {
            fs::create_dir_all(self.data())?;
            fs::write(files.0, bootstrap)?;
            return Ok(fs::write(files.1, self.meta(meta))?);
        }
        let mut command = Command::new(jars::java());
        command.args(["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", &jars::class_path()?]);
        command.args(["kafka.tools.StorageTool", "format", "-t", cluster, "-c"]).arg(self.properties()).args(more);
        let output = command.stdin(Stdio::null()).output().context("java does not start: run `./x toolchain`")?;
        ensure!(
            output.status.success(),
            "a broker's folder cannot be made: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        if more.is_empty() {
            let made = (fs::read(files.0)?, fs::read_to_string(files.1)?);
            MADE.get_or_init(|| made);
        }
        Ok(())
    }

    /// Makes the data folder as another broker of the same cluster has it.
    pub(crate) fn format_as(&self, other: &Self) -> Result<()> {
        fs::create_dir_all(self.data())?;
        fs::copy(other.data().join("bootstrap.checkpoint"), self.data().join("bootstrap.checkpoint"))?;
        let meta = fs::read_to_string(other.data().join("meta.properties"))?;
        Ok(fs::write(self.data().join("meta.properties"), self.meta(&meta))?)
    }

    /// What another broker's folder says of itself, for this one.
    fn meta(&self, other: &str) -> String {
        let line = |line: &str| match line.split_once('=') {
            Some(("node.id", _)) => format!("node.id={}\n", self.id),
            // 22 characters of base 64 are a folder's name in the cluster.
            Some(("directory.id", _)) => {
                format!("directory.id={}A\n", &uuid::Uuid::new_v4().simple().to_string()[..21])
            }
            _ => format!("{line}\n"),
        };
        other.lines().map(line).collect()
    }

    /// Starts the process; it does not answer yet.
    pub(crate) fn launch(&self, heap_mib: usize) -> Result<()> {
        let mut keeper = self.keeper();
        ensure!(keeper.is_none(), "broker {} runs already", self.id);
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(jars::java()).arg(format!("-Xmx{heap_mib}m"));
        command.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]);
        command.args(["-cp", &jars::class_path()?, "kafka.Kafka"]).arg(self.properties());
        command.env("KEPT", &self.folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        *keeper = Some(command.spawn().context("the broker does not start")?);
        Ok(())
    }

    /// Waits until it answers.
    pub(crate) fn wait(&self) -> Result<()> {
        let begin = Instant::now();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
            let died = self.log().contains("Exiting Kafka") || self.log().contains("Could not find or load");
            if died || begin.elapsed() > START {
                bail!("broker {} does not answer: {}", self.id, self.log());
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        Ok(())
    }

    /// Sends a signal: `STOP`, `CONT`; after `TERM` and `KILL` the process is gone, and the folder is there.
    pub(crate) fn signal(&self, signal: &str) -> Result<()> {
        let mut keeper = self.keeper();
        let child = keeper.as_mut().with_context(|| format!("broker {} does not run", self.id))?;
        let input = child.stdin.as_mut().context("the keeper has no input")?;
        writeln!(input, "{signal}")?;
        if matches!(signal, "TERM" | "KILL") {
            let begin = Instant::now();
            while child.try_wait()?.is_none() {
                if begin.elapsed() > STOP {
                    bail!("broker {} does not end: {}", self.id, self.log());
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            *keeper = None;
        }
        Ok(())
    }

    /// Whether the process runs.
    pub(crate) fn is_running(&self) -> bool {
        self.keeper().is_some()
    }

    /// The end of what it wrote.
    pub(crate) fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.join("broker.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn properties(&self) -> PathBuf {
        Path::new(&self.folder).join("server.properties")
    }

    fn keeper(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.keeper.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = self.keeper().take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}
