//! A server of PostgreSQL.

use crate::folder::Folder;
use crate::server::{Server, find, free_port, own_folder, run, unprivileged};
use millstream_client::database::{Address, Product};
use millstream_client::postgres::Connection;
use millstream_common::Options;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// The variable that names a server of the user's.
pub const VARIABLE: &str = "MILLSTREAM_TEST_POSTGRES";

/// A server; when it is ours it can be killed.
pub struct Postgres {
    url: String,
    server: Option<Server>,
    databases: AtomicU32,
}

impl Postgres {
    /// The server of the user, or one of our own.
    pub fn start() -> Self {
        match std::env::var(VARIABLE) {
            Ok(url) => Self { url, server: None, databases: AtomicU32::new(0) },
            Err(_) => Self::start_own(),
        }
    }

    /// A server of our own.
    pub fn start_own() -> Self {
        let folder = Folder::new("postgres");
        let programs = programs();
        let data = folder.path().join("data");
        own_folder(&data);
        let mut init = unprivileged(&find("initdb", &programs));
        init.arg("-D").arg(&data).args(["-U", "mill", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        run(&mut init);
        let mut certificate = unprivileged(&find("openssl", &[]));
        certificate.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost"]);
        certificate.args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]);
        run(certificate.arg("-keyout").arg(data.join("server.key")).arg("-out").arg(data.join("server.crt")));
        let access = "host all guarded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n";
        std::fs::write(data.join("pg_hba.conf"), access).unwrap();
        let port = free_port();
        let mut arguments = vec!["-D".to_owned(), data.display().to_string(), "-p".to_owned(), port.to_string()];
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "ssl=on",
            "wal_level=logical",
            "max_replication_slots=40",
            "max_wal_senders=40",
            "fsync=off",
            "shared_buffers=32MB",
            "log_min_messages=warning",
        ] {
            arguments.extend(["-c".to_owned(), setting.to_owned()]);
        }
        let server = Server::new(folder, find("postgres", &programs), arguments);
        let url = format!("postgresql://mill@127.0.0.1:{port}/postgres?sslmode=disable");
        let postgres = Self { url, server: Some(server), databases: AtomicU32::new(0) };
        postgres.restart();
        postgres
    }

    /// A database of its own for a test; answers its URL.
    pub fn database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::SeqCst);
        let name = format!("millstream_{}_{number}", std::process::id());
        connect(&self.url).run(&format!("CREATE DATABASE {name}")).unwrap();
        let (head, tail) = self.url.rsplit_once('/').unwrap();
        let parameters = tail.split_once('?').map_or(String::new(), |(_, parameters)| format!("?{parameters}"));
        format!("{head}/{name}{parameters}")
    }

    /// Whether it can be killed.
    pub fn is_own(&self) -> bool {
        self.server.is_some()
    }

    /// Ends it in order: connections are closed at once, and what they have not committed is gone.
    pub fn stop(&self) {
        self.server.as_ref().unwrap().stop("INT");
    }

    /// Ends it as a crash does.
    pub fn kill(&self) {
        self.server.as_ref().unwrap().kill();
    }

    /// Starts it after a [`stop`](Self::stop) or a [`kill`](Self::kill).
    pub fn restart(&self) {
        let address = address(&self.url);
        self.server.as_ref().unwrap().start(|| Connection::open(&address, "harness").is_ok());
    }

    /// The certificate of our own server, whose name is `localhost`.
    pub fn certificate(&self) -> PathBuf {
        self.server.as_ref().unwrap().folder().join("data/server.crt")
    }
}

/// Where Debian keeps the server's programs, newest first.
fn programs() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    folders.sort();
    folders.reverse();
    folders
}

fn address(url: &str) -> Address {
    Address::new(Product::Postgres, "the test", &Options::new().with("url", url), &|_| None).unwrap()
}

/// A connection for looking.
pub fn connect(url: &str) -> Connection {
    Connection::open(&address(url), "millstream test").unwrap()
}

/// The rows of a statement, each as its values joined by `|`, nulls as `-`.
pub fn rows(url: &str, sql: &str) -> Vec<String> {
    let rows = connect(url).rows(sql).unwrap();
    rows.iter()
        .map(|row| (0..row.len()).map(|at| row.get(at).unwrap_or("-").to_owned()).collect::<Vec<_>>().join("|"))
        .collect()
}

/// Runs statements.
pub fn execute(url: &str, sql: &str) {
    connect(url).run(sql).unwrap();
}
