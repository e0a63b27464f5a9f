//! A server of either product, ours or the user's.

use crate::server::Server;
use crate::{mariadb, postgres};
use millstream_client::database::{Address, Product};
use millstream_client::{mysql, postgres as postgresql};
use millstream_common::{Options, StopSignal};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A server; when it is ours it can be killed.
pub struct Database {
    product: Product,
    url: String,
    server: Option<Server>,
    databases: AtomicU32,
}

/// The variable that names a server of the user's.
pub fn variable(product: Product) -> &'static str {
    match product {
        Product::Postgres => "MILLSTREAM_TEST_POSTGRES",
        Product::Mysql => "MILLSTREAM_TEST_MYSQL",
    }
}

/// Whether the user has named a server of that product.
pub fn is_of_user(product: Product) -> bool {
    std::env::var_os(variable(product)).is_some_and(|value| !value.is_empty())
}

impl Database {
    /// The server of the user, or one of our own.
    pub fn start(product: Product) -> Self {
        if is_of_user(product) {
            let url = std::env::var(variable(product)).unwrap();
            return Self { product, url, server: None, databases: AtomicU32::new(0) };
        }
        let (server, url) = match product {
            Product::Postgres => postgres::install(),
            Product::Mysql => mariadb::install(&[]),
        };
        Self::own(product, server, url)
    }

    /// A MariaDB of our own that has these settings, too.
    pub fn mariadb_with(settings: &[(&str, &str)]) -> Self {
        let (server, url) = mariadb::install(settings);
        Self::own(Product::Mysql, server, url)
    }

    fn own(product: Product, server: Server, url: String) -> Self {
        let database = Self { product, url, server: Some(server), databases: AtomicU32::new(0) };
        database.restart();
        database
    }

    /// Which product it is.
    pub fn product(&self) -> Product {
        self.product
    }

    /// The product's name, for people.
    pub fn name(&self) -> &'static str {
        match self.product {
            Product::Postgres => "PostgreSQL",
            Product::Mysql => "MariaDB",
        }
    }

    /// The format of its sinks and tables.
    pub fn format(&self) -> &'static str {
        match self.product {
            Product::Postgres => "postgresql",
            Product::Mysql => "mysql",
        }
    }

    /// A database of its own for a test; answers its URL.
    pub fn database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::SeqCst);
        let name = format!("millstream_{}_{number}", std::process::id());
        execute(&self.url, &[&format!("CREATE DATABASE {name}")]);
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
        let signal = match self.product {
            Product::Postgres => "INT",
            Product::Mysql => "TERM",
        };
        self.server.as_ref().unwrap().stop(signal);
    }

    /// Ends it as a crash does.
    pub fn kill(&self) {
        self.server.as_ref().unwrap().kill();
    }

    /// Starts it after a [`stop`](Self::stop) or a [`kill`](Self::kill).
    pub fn restart(&self) {
        let address = address(&self.url);
        let is_up = || match self.product {
            Product::Postgres => postgresql::Connection::open(&address, "harness", &StopSignal::new()).is_ok(),
            Product::Mysql => mysql::Connection::open(&address, "harness", &StopSignal::new()).is_ok(),
        };
        self.server.as_ref().unwrap().start(is_up);
    }

    /// The certificate of our own server of PostgreSQL, whose name is `localhost`.
    pub fn certificate(&self) -> PathBuf {
        self.server.as_ref().unwrap().folder().join("data/server.crt")
    }
}

/// Which product a URL is of.
pub fn product_of(url: &str) -> Product {
    if url.starts_with("postgres") { Product::Postgres } else { Product::Mysql }
}

fn address(url: &str) -> Address {
    Address::new(product_of(url), "the test", &Options::new().with("url", url), &|_| None).unwrap()
}

/// A connection of either product.
pub enum Connection {
    /// To PostgreSQL.
    Postgres(postgresql::Connection),
    /// To MariaDB.
    Mysql(mysql::Connection),
}

impl Connection {
    /// Opens one for looking.
    pub fn open(url: &str) -> Self {
        let (address, stop) = (address(url), StopSignal::new());
        match address.product {
            Product::Postgres => {
                Self::Postgres(postgresql::Connection::open(&address, "millstream test", &stop).unwrap())
            }
            Product::Mysql => Self::Mysql(mysql::Connection::open(&address, "millstream test", &stop).unwrap()),
        }
    }

    /// Runs a statement that answers nothing; in PostgreSQL it may be several.
    pub fn run(&mut self, sql: &str) {
        let done = match self {
            Self::Postgres(connection) => connection.run(sql),
            Self::Mysql(connection) => connection.run(sql),
        };
        done.unwrap_or_else(|error| panic!("{sql}: {}", millstream_common::describe_chain(&error)));
    }

    /// The rows of a statement, each as its values joined by `|`, nulls as `-`.
    pub fn rows(&mut self, sql: &str) -> Vec<String> {
        let rows = match self {
            Self::Postgres(connection) => connection.texts(sql),
            Self::Mysql(connection) => connection.texts(sql),
        };
        let rows = rows.unwrap_or_else(|error| panic!("{sql}: {}", millstream_common::describe_chain(&error)));
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        rows.into_iter().map(|row| row.into_iter().map(text).collect::<Vec<_>>().join("|")).collect()
    }
}

/// The rows of a statement, as [`Connection::rows`].
pub fn rows(url: &str, sql: &str) -> Vec<String> {
    Connection::open(url).rows(sql)
}

/// Runs statements, one each, over one connection.
pub fn execute(url: &str, statements: &[&str]) {
    let mut connection = Connection::open(url);
    statements.iter().for_each(|sql| connection.run(sql));
}

/// Whether a table is there.
pub fn has_table(url: &str, table: &str) -> bool {
    let place = match product_of(url) {
        Product::Postgres => "current_schema()",
        Product::Mysql => "DATABASE()",
    };
    let sql =
        format!("SELECT 1 FROM information_schema.tables WHERE table_schema = {place} AND table_name = '{table}'");
    !rows(url, &sql).is_empty()
}
