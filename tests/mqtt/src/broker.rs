//! The program, in a folder that goes when the process goes, however that ends.

use crate::Client;
use databases_tests::{Folder, free_port};
use std::fs::File;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

/// The variable that names a broker of the user's.
pub const VARIABLE: &str = "MILLSTREAM_TEST_MQTT";
/// How long a broker may take to come up or to go down.
const PATIENCE: Duration = Duration::from_secs(30);
/// Where Debian has the program, which is not in everybody's path.
const PROGRAMS: [&str; 2] = ["mosquitto", "/usr/sbin/mosquitto"];

/// A folder, and the broker that runs there.
struct Own {
    folder: Folder,
    child: Mutex<Option<Child>>,
    port: u16,
}

/// A broker; when it is ours it can be stopped.
pub struct Broker {
    url: String,
    own: Option<Own>,
    names: AtomicU32,
}

impl Broker {
    /// One broker for all who leave it alone: that of the user, or one of our own.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Broker> = LazyLock::new(|| match std::env::var(VARIABLE) {
            Ok(url) => Broker { url, own: None, names: AtomicU32::new(0) },
            Err(_) => Broker::start(""),
        });
        &SHARED
    }

    /// A broker of our own, with more lines of its configuration, in which `FOLDER` stands for its folder; `None` when the
    /// user has named one, for then there may be no program here.
    pub fn own(lines: &str) -> Option<Self> {
        std::env::var(VARIABLE).is_err().then(|| Self::start(lines))
    }

    fn start(lines: &str) -> Self {
        let (folder, port) = (Folder::new("mqtt"), free_port());
        let place = folder.path().display().to_string();
        // It keeps everything, and writes it down when it goes.
        let mut text = format!(
            "user root\npersistence true\npersistence_location {place}/\npersistence_file {FILE}\nlog_dest stderr\n\
             max_queued_messages 0\nmax_inflight_messages 0\nlistener {port} 127.0.0.1\n"
        );
        if !lines.contains("allow_anonymous") {
            text.push_str("allow_anonymous true\n");
        }
        text.push_str(&lines.replace("FOLDER", &place));
        std::fs::write(folder.path().join("mosquitto.conf"), text).unwrap();
        let own = Own { folder, child: Mutex::new(None), port };
        own.start();
        Self { url: format!("mqtt://127.0.0.1:{port}"), own: Some(own), names: AtomicU32::new(0) }
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client.
    pub fn client(&self) -> Client {
        Client::of(&self.url)
    }

    /// A name that no other test has.
    pub fn name(&self, about: &str) -> String {
        format!("test-{}-{}-{about}", std::process::id(), self.names.fetch_add(1, Ordering::SeqCst))
    }

    /// The port of our own broker.
    pub fn port(&self) -> u16 {
        self.own.as_ref().unwrap().port
    }

    /// The folder of our own broker.
    pub fn folder(&self) -> &Path {
        self.own.as_ref().unwrap().folder.path()
    }

    /// Ends it; it writes down what it has.
    pub fn stop(&self) {
        self.own.as_ref().unwrap().stop();
    }

    /// Starts it after a [`stop`](Self::stop).
    pub fn restart(&self) {
        self.own.as_ref().unwrap().start();
    }

    /// Lets it forget all between a [`stop`](Self::stop) and a [`restart`](Self::restart).
    pub fn forget(&self) {
        std::fs::remove_file(self.folder().join(FILE)).unwrap();
    }
}

/// Where it writes down what it has.
const FILE: &str = "mosquitto.db";

impl Own {
    fn start(&self) {
        let begin = Instant::now();
        let mut child = self.child.lock().unwrap();
        assert!(child.is_none(), "it runs already");
        let log = self.folder.path().join("broker.log");
        let start = |program: &&str| {
            let output = File::options().create(true).append(true).open(&log).unwrap();
            let mut command = Command::new(program);
            command.arg("-c").arg(self.folder.path().join("mosquitto.conf"));
            command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output).spawn().ok()
        };
        let mut started = PROGRAMS.iter().find_map(start).unwrap_or_else(|| panic!("mosquitto: ./x test installs it"));
        std::fs::write(self.folder.path().join("broker.pid"), started.id().to_string()).unwrap();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let text = || std::fs::read_to_string(&log).unwrap_or_default();
            if begin.elapsed() > PATIENCE || started.try_wait().unwrap().is_some() {
                let _ = started.kill();
                panic!("mosquitto does not come up: {}", text());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        *child = Some(started);
    }

    fn stop(&self) {
        let Some(mut child) = self.child.lock().unwrap().take() else { return };
        let asked = Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(asked.success());
        let begin = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < PATIENCE, "mosquitto does not go");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
