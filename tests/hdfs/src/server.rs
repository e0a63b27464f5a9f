//! A cluster of one name node and one data node.

use crate::process::{Process, Role, log, shell};
use anyhow::{Context, Result, bail, ensure};
use millstream_checkpoint::open_files;
use millstream_common::DurableFiles;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What points the tests at another cluster.
const OTHERS: &str = "MILLSTREAM_TEST_HDFS";
/// How long a cluster may take to take its first file.
const START: Duration = Duration::from_secs(180);

/// The cluster. Its servers end when it is dropped, and in any case with the program.
#[derive(Debug)]
pub struct Hdfs {
    /// What stands before the names of tests, without a slash at the end.
    base: String,
    /// None when the servers are somebody else's.
    own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    folder: PathBuf,
    name_node: Mutex<Option<Process>>,
    data_node: Mutex<Option<Process>>,
}

impl Hdfs {
    /// Starts a cluster of its own.
    ///
    /// # Errors
    /// When it does not take a file in time.
    pub fn start() -> Result<Self> {
        let mut last = None;
        // Somebody else may take the port in between.
        for _ in 0..3 {
            match Self::try_start() {
                Ok(hdfs) => return Ok(hdfs),
                Err(error) => last = Some(error),
            }
        }
        Err(last.context("no start was tried")?)
    }

    fn try_start() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("millstream-hdfs-").tempdir()?.keep();
        let port = free_port()?;
        let own = Own { folder: folder.clone(), name_node: Mutex::new(None), data_node: Mutex::new(None) };
        let hdfs = Self { base: format!("hdfs://127.0.0.1:{port}/tests"), own: Some(own) };
        fs::write(folder.join("core-site.xml"), site(&[("fs.defaultFS", format!("hdfs://127.0.0.1:{port}"))]))?;
        let place = |name: &str| format!("file://{}", folder.join(name).display());
        let any_port = "127.0.0.1:0".to_owned();
        let settings = [
            ("dfs.replication", "1".to_owned()),
            ("dfs.namenode.name.dir", place("names")),
            ("dfs.datanode.data.dir", place("data")),
            ("dfs.namenode.http-address", any_port.clone()),
            ("dfs.datanode.address", any_port.clone()),
            ("dfs.datanode.http.address", any_port.clone()),
            ("dfs.datanode.ipc.address", any_port),
            ("dfs.namenode.safemode.extension", "0".to_owned()),
            ("dfs.heartbeat.interval", "1".to_owned()),
            ("dfs.namenode.handler.count", "4".to_owned()),
            // The machine of a test loses no power.
            ("dfs.namenode.edits.noeditlogchannelflush", "true".to_owned()),
        ];
        fs::write(folder.join("hdfs-site.xml"), site(&settings))?;
        Process::format(&folder)?;
        hdfs.start_again(Role::NameNode)?;
        hdfs.start_again(Role::DataNode)?;
        hdfs.wait()?;
        Ok(hdfs)
    }

    /// One cluster for all tests of this program: each has a folder of its own. Somebody else's when `MILLSTREAM_TEST_HDFS`
    /// says so.
    ///
    /// # Panics
    /// When it does not start.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Hdfs> = OnceLock::new();
        SHARED.get_or_init(|| {
            if let Some(base) = others() {
                return Self { base, own: None };
            }
            Self::start().unwrap_or_else(|error| panic!("no HDFS for the tests: {error:#}"))
        })
    }

    /// A cluster of its own whose servers a test may kill; `None`, with a line, when the tests run on somebody else's.
    ///
    /// # Panics
    /// When it does not start.
    #[allow(clippy::print_stderr, reason = "that a test is left out must be seen")]
    pub fn of_own() -> Option<Self> {
        if others().is_some() {
            eprintln!("left out: this test kills servers, and {OTHERS} names some that are not its own");
            return None;
        }
        Some(Self::start().unwrap_or_else(|error| panic!("no HDFS for the test: {error:#}")))
    }

    /// A folder that no other test has: its location.
    pub fn folder(&self, like: &str) -> String {
        format!("{}/{like}-{}", self.base, uuid::Uuid::new_v4().simple())
    }

    /// `hdfs://host:port`.
    pub fn authority(&self) -> &str {
        let from = self.base.find("://").map_or(0, |at| at + 3);
        self.base[from..].find('/').map_or(&self.base, |at| &self.base[..from + at])
    }

    /// The files below a location.
    ///
    /// # Errors
    /// When the location cannot be opened.
    pub fn files(&self, location: &str) -> Result<Arc<dyn DurableFiles>> {
        Ok(open_files(location, &[])?)
    }

    /// All files below a location, as Hadoop's own client lists them, which hides none.
    ///
    /// # Errors
    /// When the client fails.
    pub fn list_all(&self, location: &str) -> Result<Vec<String>> {
        let said = shell(&["-ls", "-R", location])?;
        // A file's line begins with a hyphen, and ends with its name.
        let files = said.lines().filter(|line| line.starts_with('-'));
        Ok(files.filter_map(|line| line.find("hdfs://").map(|at| line[at..].to_owned())).collect())
    }

    /// Kills a server, as `kill -9` does.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&self, role: Role) -> Result<()> {
        let mut process = self.server(role)?;
        process.as_mut().context("the server does not run")?.signal("KILL")?;
        // What is dropped while it runs takes the folder with it; this one has ended.
        *process = None;
        Ok(())
    }

    /// Halts a server: its connections stay, and it does not answer.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause(&self, role: Role) -> Result<()> {
        self.server(role)?.as_mut().context("the server does not run")?.signal("STOP")
    }

    /// Lets a server go on after [`pause`](Self::pause).
    ///
    /// # Errors
    /// When it does not run.
    pub fn resume(&self, role: Role) -> Result<()> {
        self.server(role)?.as_mut().context("the server does not run")?.signal("CONT")
    }

    /// Starts a server that was killed, with what it had. It does not answer yet.
    ///
    /// # Errors
    /// When it runs.
    pub fn start_again(&self, role: Role) -> Result<()> {
        let folder = &self.own.as_ref().context("the servers are somebody else's")?.folder;
        let mut process = self.server(role)?;
        ensure!(process.is_none(), "the server runs already");
        *process = Some(Process::start(folder, role)?);
        Ok(())
    }

    /// Waits until the cluster takes a file.
    ///
    /// # Errors
    /// When it takes none in time.
    pub fn wait(&self) -> Result<()> {
        let begin = Instant::now();
        loop {
            let Err(error) = self.files(&self.folder("ready"))?.put_new("file", "ready".into()) else { return Ok(()) };
            if begin.elapsed() > START {
                let own = self
                    .own
                    .as_ref()
                    .map(|own| format!("{}\n{}", log(&own.folder, Role::NameNode), log(&own.folder, Role::DataNode)));
                bail!("HDFS takes no file: {error:?}: {}", own.unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn server(&self, role: Role) -> Result<MutexGuard<'_, Option<Process>>> {
        let own = self.own.as_ref().context("the servers are somebody else's")?;
        let process = match role {
            Role::NameNode => &own.name_node,
            Role::DataNode => &own.data_node,
        };
        Ok(process.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        for process in [&self.data_node, &self.name_node] {
            drop(process.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn others() -> Option<String> {
    let base = std::env::var(OTHERS).ok().filter(|value| !value.is_empty())?;
    Some(base.trim_end_matches('/').to_owned())
}

/// A port that nobody listens on, below those that the system gives to outgoing connections: a server that is down for a while
/// finds it free again.
fn free_port() -> Result<u16> {
    for _ in 0..1_000 {
        let port = 10_000 + u16::try_from(uuid::Uuid::new_v4().as_u128() % 20_000)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("there is no free port")
}

/// A file of settings as Hadoop reads it.
fn site(settings: &[(&str, String)]) -> String {
    let property =
        |(name, value): &(&str, String)| format!("  <property><name>{name}</name><value>{value}</value></property>\n");
    let properties: String = settings.iter().map(property).collect();
    format!("<?xml version=\"1.0\"?>\n<configuration>\n{properties}</configuration>\n")
}
