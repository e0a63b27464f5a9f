//! The program, in a folder that goes when the process goes, however that ends.

use crate::Client;
use databases_tests::{Folder, free_port};
use std::fs::File;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The variable that names servers of the user's.
pub const VARIABLE: &str = "MILLSTREAM_TEST_NATS";
/// How long a server may take to come up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Where Debian has the program, which is not in everybody's path.
const PROGRAMS: [&str; 2] = ["nats-server", "/usr/sbin/nats-server"];
/// What a server has that keeps streams.
pub const JETSTREAM: &str = "jetstream { store_dir: \"FOLDER\" }\n";

/// A folder, and the server that runs there.
struct Own {
    folder: Folder,
    child: Mutex<Option<Child>>,
    port: u16,
}

/// A server; when it is ours it can be killed.
pub struct Nats {
    servers: String,
    own: Option<Own>,
    names: AtomicU32,
}

impl Nats {
    /// One server for all who leave it alone: that of the user, or one of our own.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Nats> = LazyLock::new(|| match std::env::var(VARIABLE) {
            Ok(servers) => Nats { servers, own: None, names: AtomicU32::new(0) },
            Err(_) => Nats::start(JETSTREAM),
        });
        &SHARED
    }

    /// A server of our own with streams, and more lines of its configuration, in which `FOLDER` stands for its folder; `None`
    /// when the user has named one, for then there may be no program here.
    pub fn own(lines: &str) -> Option<Self> {
        Self::configured(&format!("{JETSTREAM}{lines}"))
    }

    /// As [`own`](Self::own), with nothing but these lines.
    pub fn configured(lines: &str) -> Option<Self> {
        std::env::var(VARIABLE).is_err().then(|| Self::start(lines))
    }

    fn start(lines: &str) -> Self {
        let (folder, port) = (Folder::new("nats"), free_port());
        let lines = lines.replace("FOLDER", &folder.path().display().to_string());
        let text = format!("listen: \"127.0.0.1:{port}\"\n{lines}");
        std::fs::write(folder.path().join("server.conf"), text).unwrap();
        let own = Own { folder, child: Mutex::new(None), port };
        own.start();
        Self { servers: format!("nats://127.0.0.1:{port}"), own: Some(own), names: AtomicU32::new(0) }
    }

    /// What option `servers` says.
    pub fn servers(&self) -> &str {
        &self.servers
    }

    /// A client that needs no secret.
    pub fn client(&self) -> Client {
        Client::of(&self.servers)
    }

    /// A name that no other test has.
    pub fn name(&self, about: &str) -> String {
        format!("test-{}-{}-{about}", std::process::id(), self.names.fetch_add(1, Ordering::SeqCst))
    }

    /// A stream that no other test has, which takes its own name and all subjects below.
    pub fn stream(&self, about: &str) -> String {
        let name = self.name(about);
        self.client().make_stream(&name, &[&name, &format!("{name}.>")], &serde_json::json!({}));
        name
    }

    /// The port of our own server.
    pub fn port(&self) -> u16 {
        self.own.as_ref().unwrap().port
    }

    /// The folder of our own server.
    pub fn folder(&self) -> &Path {
        self.own.as_ref().unwrap().folder.path()
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
        let log = self.folder.path().join("server.log");
        let start = |program: &&str| {
            let output = File::options().create(true).append(true).open(&log).unwrap();
            let mut command = Command::new(program);
            command.arg("-c").arg(self.folder.path().join("server.conf"));
            command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output).spawn().ok()
        };
        let started = PROGRAMS.iter().find_map(start);
        let mut started = started.unwrap_or_else(|| panic!("nats-server: ./x test installs it"));
        std::fs::write(self.folder.path().join("server.pid"), started.id().to_string()).unwrap();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let text = || std::fs::read_to_string(&log).unwrap_or_default();
            if begin.elapsed() > PATIENCE || started.try_wait().unwrap().is_some() {
                let _ = started.kill();
                panic!("nats-server does not come up: {}", text());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        *child = Some(started);
    }

    fn kill(&self) {
        // Also after a failed start.
        if let Some(mut child) = self.child.lock().unwrap_or_else(PoisonError::into_inner).take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.kill();
    }
}
