//! A real schema registry on loopback, which forgets everything when it ends.

use crate::jars;
use crate::node::{KEEPER, free_ports};
use anyhow::{Context, Result, bail};
use millstream_client::schema_registry::{RegistryAddress, SchemaRegistry, Version};
use millstream_common::Options;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What points the tests at another registry.
const OTHER: &str = "MILLSTREAM_TEST_SCHEMA_REGISTRY";
/// How long it may take to answer on a busy machine.
const START: Duration = Duration::from_secs(120);

/// A registry.
#[derive(Debug)]
pub struct RegistryServer {
    url: String,
    folder: PathBuf,
    /// None when it is somebody else's, or has ended.
    keeper: Option<Child>,
}

impl RegistryServer {
    /// One for all tests of this program: each makes subjects of its own. Somebody else's when
    /// `MILLSTREAM_TEST_SCHEMA_REGISTRY` says so.
    ///
    /// # Panics
    /// When it does not start.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<RegistryServer> = OnceLock::new();
        SHARED.get_or_init(|| match std::env::var(OTHER).ok().filter(|value| !value.is_empty()) {
            Some(url) => Self { url, folder: PathBuf::new(), keeper: None },
            None => Self::start().unwrap_or_else(|error| panic!("no schema registry for the tests: {error:#}")),
        })
    }

    fn start() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("millstream-registry-").tempdir()?.keep().join("registry");
        std::fs::create_dir(&folder)?;
        let port = free_ports(1)?[0];
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(jars::java());
        command.args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dquarkus.http.host=127.0.0.1"]);
        command.arg(format!("-Dquarkus.http.port={port}")).arg("-jar").arg(jars::schema_registry()?);
        command.env("KEPT", &folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = command.spawn().context("the schema registry does not start")?;
        let url = format!("http://127.0.0.1:{port}/apis/ccompat/v7");
        let server = Self { url, folder, keeper: Some(keeper) };
        let begin = Instant::now();
        while !server.client().version("nothing", Version::Latest).is_err_and(|error| error.is_absence()) {
            if begin.elapsed() > START {
                let log = std::fs::read_to_string(server.folder.join("broker.log")).unwrap_or_default();
                bail!("the schema registry does not answer: {log}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(server)
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client that asks once.
    ///
    /// # Panics
    /// When the address is none.
    pub fn client(&self) -> SchemaRegistry {
        let options = Options::new().with("max.retries", "0");
        let address = RegistryAddress::new(&self.url, &options, |_| None);
        SchemaRegistry::new(address.unwrap_or_else(|error| panic!("{error}")))
    }
}

impl Drop for RegistryServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.keeper.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}
