//! A server of MariaDB.

use crate::folder::Folder;
use crate::server::{Server, find, free_port, own_folder, run, unprivileged};
use millstream_client::database::{Address, Product};
use millstream_client::mysql::{Connection, Value};
use millstream_common::Options;
use std::sync::atomic::{AtomicU32, Ordering};

/// The variable that names a server of the user's.
pub const VARIABLE: &str = "MILLSTREAM_TEST_MYSQL";

/// A server; when it is ours it can be killed.
pub struct MariaDb {
    url: String,
    server: Option<Server>,
    databases: AtomicU32,
}

impl MariaDb {
    /// The server of the user, or one of our own.
    pub fn start() -> Self {
        match std::env::var(VARIABLE) {
            Ok(url) => Self { url, server: None, databases: AtomicU32::new(0) },
            Err(_) => Self::start_own(),
        }
    }

    /// A server of our own.
    pub fn start_own() -> Self {
        let folder = Folder::new("mariadb");
        let data = folder.path().join("data");
        own_folder(&data);
        let folders = ["/usr/sbin".into(), "/usr/bin".into(), "/usr/libexec".into()];
        let mut init = unprivileged(&find("mariadb-install-db", &folders));
        init.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
        init.args(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]);
        run(&mut init);
        let users = "CREATE DATABASE IF NOT EXISTS mill;\n\
             CREATE USER IF NOT EXISTS 'mill'@'%' IDENTIFIED BY 'mill-secret';\n\
             GRANT ALL ON *.* TO 'mill'@'%';\n";
        std::fs::write(folder.path().join("users.sql"), users).unwrap();
        let port = free_port();
        let mut arguments = vec!["--no-defaults".to_owned()];
        for (name, value) in [
            ("datadir", data.display().to_string()),
            ("port", port.to_string()),
            ("bind-address", "127.0.0.1".to_owned()),
            ("socket", data.join("socket").display().to_string()),
            ("pid-file", data.join("server.id").display().to_string()),
            ("init-file", folder.path().join("users.sql").display().to_string()),
            ("log-bin", "binlog".to_owned()),
            ("binlog-format", "ROW".to_owned()),
            ("binlog-row-image", "FULL".to_owned()),
            ("binlog-row-metadata", "FULL".to_owned()),
            ("character-set-server", "utf8mb4".to_owned()),
            ("server-id", "1".to_owned()),
            ("innodb-flush-log-at-trx-commit", "2".to_owned()),
            ("innodb-buffer-pool-size", "32M".to_owned()),
            ("innodb-log-file-size", "16M".to_owned()),
        ] {
            arguments.push(format!("--{name}={value}"));
        }
        arguments.push("--skip-name-resolve".to_owned());
        let server = Server::new(folder, find("mariadbd", &folders), arguments);
        let url = format!("mysql://mill:mill-secret@127.0.0.1:{port}/mill?sslmode=disable");
        let mariadb = Self { url, server: Some(server), databases: AtomicU32::new(0) };
        mariadb.restart();
        mariadb
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
        self.server.as_ref().unwrap().stop("TERM");
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
}

fn address(url: &str) -> Address {
    Address::new(Product::Mysql, "the test", &Options::new().with("url", url), &|_| None).unwrap()
}

/// A connection for looking.
pub fn connect(url: &str) -> Connection {
    Connection::open(&address(url), "millstream test").unwrap()
}

/// The rows of a statement, each as its values joined by `|`, nulls as `-`.
pub fn rows(url: &str, sql: &str) -> Vec<String> {
    let text = |value: Value| match value {
        Value::NULL => "-".to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => other.as_sql(true),
    };
    let rows = connect(url).rows(sql).unwrap();
    rows.into_iter().map(|row| row.unwrap().into_iter().map(text).collect::<Vec<_>>().join("|")).collect()
}

/// Runs statements, one each.
pub fn execute(url: &str, statements: &[&str]) {
    let mut connection = connect(url);
    for sql in statements {
        connection.run(sql).unwrap();
    }
}
