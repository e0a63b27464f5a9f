//! The program, in a folder that goes when the process goes, however that ends.

use crate::Client;
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

/// The variable that names a server of the user's.
pub const VARIABLE: &str = "MILLSTREAM_TEST_REDIS";
/// How long a server may take to come up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Waits for the end of its input, which is the end of the process or of the folder's owner; then nothing is left.
const KEEPER: &str = r#"
cat >/dev/null
[ -e "$1/server.pid" ] && kill -9 "$(cat "$1/server.pid")" 2>/dev/null
for try in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1" 2>/dev/null && break; sleep 0.2; done
"#;

/// A folder, and the server that runs there.
struct Own {
    folder: PathBuf,
    keeper: Child,
    child: Mutex<Option<Child>>,
    port: u16,
    arguments: Vec<String>,
}

/// A server; when it is ours it can be killed.
pub struct Redis {
    url: String,
    own: Option<Own>,
    names: AtomicU32,
}

impl Redis {
    /// One server for all who leave it alone: that of the user, or one of our own.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Redis> = LazyLock::new(|| match std::env::var(VARIABLE) {
            Ok(url) => Redis { url, own: None, names: AtomicU32::new(0) },
            Err(_) => Redis::start(&[]),
        });
        &SHARED
    }

    /// A server of our own, which keeps everything at once; `None` when the user has named one, for then there may be no
    /// program here.
    pub fn own(arguments: &[&str]) -> Option<Self> {
        std::env::var(VARIABLE).is_err().then(|| Self::start(arguments))
    }

    fn start(more: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("millstream-redis-").tempdir().unwrap().keep();
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(&folder).stdin(Stdio::piped());
        // A group of its own: what ends the test from the keyboard must not end the keeper.
        let keeper = command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        let port = free_port();
        let mut arguments: Vec<String> = Vec::new();
        let (port_text, folder_text) = (port.to_string(), folder.display().to_string());
        for (name, value) in [
            ("--port", port_text.as_str()),
            ("--bind", "127.0.0.1"),
            ("--dir", folder_text.as_str()),
            ("--save", ""),
            ("--appendonly", "yes"),
            ("--appendfsync", "always"),
        ] {
            arguments.extend([name.to_owned(), value.to_owned()]);
        }
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        let own = Own { folder, keeper, child: Mutex::new(None), port, arguments };
        own.start();
        Self { url: format!("redis://127.0.0.1:{port}/0"), own: Some(own), names: AtomicU32::new(0) }
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A connection.
    pub fn client(&self) -> Client {
        Client::of(&self.url)
    }

    /// A name that no other test has.
    pub fn name(&self, about: &str) -> String {
        format!("test-{}-{}-{about}", std::process::id(), self.names.fetch_add(1, Ordering::SeqCst))
    }

    /// The port of our own server.
    pub fn port(&self) -> u16 {
        self.own.as_ref().unwrap().port
    }

    /// The folder of our own server.
    pub fn folder(&self) -> &Path {
        &self.own.as_ref().unwrap().folder
    }

    /// Ends it as a crash does.
    pub fn kill(&self) {
        self.own.as_ref().unwrap().kill();
    }

    /// Starts it after a [`kill`](Self::kill).
    pub fn restart(&self) {
        self.own.as_ref().unwrap().start();
    }
}

impl Own {
    fn start(&self) {
        let begin = Instant::now();
        let mut child = self.child.lock().unwrap();
        assert!(child.is_none(), "it runs already");
        let log = self.folder.join("server.log");
        let output = File::options().create(true).append(true).open(&log).unwrap();
        let mut command = Command::new("redis-server");
        command.args(&self.arguments).stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        let started = command.spawn();
        let mut started = started.unwrap_or_else(|error| panic!("redis-server: {error}: ./x test installs it"));
        std::fs::write(self.folder.join("server.pid"), started.id().to_string()).unwrap();
        let is_up = || TcpStream::connect(("127.0.0.1", self.port)).is_ok();
        while !is_up() {
            let text = || std::fs::read_to_string(&log).unwrap_or_default();
            if begin.elapsed() > PATIENCE || started.try_wait().unwrap().is_some() {
                let _ = started.kill();
                panic!("redis-server does not come up: {}", text());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        *child = Some(started);
    }

    fn kill(&self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.kill();
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// A port that nobody uses now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
