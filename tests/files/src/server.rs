//! A real S3 server over a temporary folder, which ends with its owner.

use anyhow::{Context, Result, bail};
use millstream_common::DurableFiles;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const USER: &str = "millstream";
const PASSWORD: &str = "only-for-tests";
const BUCKET: &str = "bucket";

/// The server.
#[derive(Debug)]
pub struct Server {
    address: String,
    child: Child,
    _folder: TempDir,
}

impl Server {
    /// Starts it, with one empty bucket.
    ///
    /// # Errors
    /// When the program is not there or does not start.
    pub fn start() -> Result<Self> {
        let program = program()?;
        let folder = tempfile::tempdir()?;
        // A bucket is a folder.
        let (objects, about) = (folder.path().join("objects"), folder.path().join("about"));
        std::fs::create_dir_all(objects.join(BUCKET))?;
        std::fs::create_dir_all(&about)?;
        // Somebody else may take the port before the server does.
        for _ in 0..5 {
            let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
            let mut command = Command::new(&program);
            command.args(["--port", &address, "--quiet", "posix", "--sidecar"]).arg(&about).arg(&objects);
            command.env("ROOT_ACCESS_KEY", USER).env("ROOT_SECRET_KEY", PASSWORD);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
            let deadline = Instant::now() + Duration::from_secs(60);
            while Instant::now() < deadline && child.try_wait()?.is_none() {
                if TcpStream::connect(&address).is_ok() {
                    return Ok(Self { address, child, _folder: folder });
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            child.kill().ok();
            child.wait()?;
        }
        bail!("the S3 server `{}` does not start", program.display())
    }

    /// What a host file says to reach it.
    pub fn options(&self) -> Vec<(String, String)> {
        [
            ("aws_endpoint", format!("http://{}", self.address)),
            ("aws_access_key_id", USER.to_owned()),
            ("aws_secret_access_key", PASSWORD.to_owned()),
            ("aws_region", "us-east-1".to_owned()),
            ("aws_allow_http", "true".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// The section of a host file.
    pub fn host_file(&self) -> String {
        let lines = self.options().into_iter().map(|(name, value)| format!("{name} = \"{value}\"\n"));
        format!("[object_store]\n{}", lines.collect::<String>())
    }

    /// A location in its bucket.
    pub fn location(&self, key: &str) -> String {
        format!("s3://{BUCKET}/{key}")
    }

    /// The objects below a key.
    ///
    /// # Errors
    /// When the location cannot be opened.
    pub fn files(&self, key: &str) -> Result<Arc<dyn DurableFiles>> {
        Ok(millstream_checkpoint::open_files(&self.location(key), &self.options())?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Where `./x toolchain` puts it.
fn program() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let toolchains = variable("MILLSTREAM_TOOLCHAINS").or_else(|| Some(cache()?.join("millstream/toolchains")));
    let program = toolchains.map(|folder| folder.join("s3/versitygw")).filter(|program| program.is_file());
    program.context("`versitygw` is not here: run `./x toolchain`, which builds it")
}
