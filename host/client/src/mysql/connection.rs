//! One connection to MySQL or MariaDB, for a thread that waits.

use super::error;
use crate::database::{Address, DatabaseError, Driver, TlsMode, Unanswered};
use millstream_common::StopSignal;
use mysql_async::consts::ColumnType;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Params, Row, SslOpts, Value};
use std::path::PathBuf;
use std::time::Duration;

/// How long a connection without traffic is trusted before it is looked after.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// What every session is told: UTC, and errors in the place of values that are cut to fit.
const SESSION: &str = "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,\
     ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = 60, autocommit = 1";

/// An open connection. It has UTC and the strict mode.
pub struct Connection {
    conn: Option<Conn>,
    driver: Driver,
    address: Address,
}

impl Connection {
    /// Opens a connection; `name` is how the server's own views call it. Nothing is waited for much longer than until
    /// `stop` is set, now or later.
    ///
    /// # Errors
    /// When nobody answers, the server does not let the user in, or TLS is not as asked for.
    pub fn open(address: &Address, name: &str, stop: &StopSignal) -> Result<Self, DatabaseError> {
        let driver = Driver::new(stop)
            .map_err(|source| DatabaseError::Unreachable { place: address.place(), source: Box::new(source) })?;
        let mut connection = Self { conn: None, driver, address: address.clone() };
        let encrypted = address.tls != TlsMode::Disable;
        let opened = match connection.connect(name, encrypted) {
            Err(DatabaseError::Tls { .. }) if address.tls == TlsMode::Prefer => connection.connect(name, false),
            other => other,
        };
        opened?;
        connection.run(SESSION)?;
        Ok(connection)
    }

    fn connect(&mut self, name: &str, encrypted: bool) -> Result<(), DatabaseError> {
        let options = options(&self.address, name, encrypted);
        let conn = self.driver.connect(self.address.connect_timeout, Conn::new(options));
        let place = self.address.place();
        let conn = conn.map_err(|why| match why {
            Unanswered::Late => {
                DatabaseError::Unreachable { place, source: "it takes longer than `connectTimeout`".into() }
            }
            Unanswered::Stopped => DatabaseError::Stopped { place },
        })?;
        self.conn = Some(conn.map_err(|source| error::of_connecting(&self.address, source))?);
        Ok(())
    }

    /// Where it leads.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Runs a statement that answers nothing.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.ask(async |conn| conn.query_drop(sql).await)
    }

    /// Runs a statement and answers its rows, all values as text.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>, DatabaseError> {
        self.ask(async |conn| conn.query(sql).await)
    }

    /// Runs a statement and answers its rows as text.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn texts(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let row = |row| row_bytes(row).into_iter().map(|value| value.map(text)).collect();
        Ok(self.rows(sql)?.into_iter().map(row).collect())
    }

    /// Runs a statement and answers the types of its columns.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn types(&mut self, sql: &str) -> Result<Vec<ColumnType>, DatabaseError> {
        self.ask(async |conn| {
            let result = conn.query_iter(sql).await?;
            let types = result.columns_ref().iter().map(|column| column.column_type()).collect();
            result.drop_result().await?;
            Ok(types)
        })
    }

    /// Runs a statement and hands its rows over, so many at once, each value as the bytes of its text. `take` answers whether
    /// it wants more; when it does not, the connection is of no more use.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn read(
        &mut self,
        sql: &str,
        at_once: usize,
        take: &mut dyn FnMut(Vec<Vec<Option<Vec<u8>>>>) -> bool,
    ) -> Result<(), DatabaseError> {
        let mut has_ended = true;
        self.ask(async |conn| {
            let mut result = conn.query_iter(sql).await?;
            let mut rows = Vec::new();
            while let Some(row) = result.next().await? {
                rows.push(row_bytes(row));
                if rows.len() >= at_once && !take(std::mem::take(&mut rows)) {
                    has_ended = false;
                    return Ok(());
                }
            }
            if !rows.is_empty() {
                take(rows);
            }
            Ok(())
        })?;
        if !has_ended {
            self.conn = None;
        }
        Ok(())
    }

    /// Runs a statement with values.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn execute(&mut self, sql: &str, values: Vec<Value>) -> Result<(), DatabaseError> {
        self.ask(async |conn| conn.exec_drop(sql, Params::Positional(values)).await)
    }

    /// Does something with the connection of the driver.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn ask<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Conn) -> Result<T, mysql_async::Error>,
    ) -> Result<T, DatabaseError> {
        let lost = || DatabaseError::Lost { place: self.address.place(), source: "it is closed".into() };
        let conn = self.conn.as_mut().ok_or_else(lost)?;
        match self.driver.wait(self.address.query_timeout, work(conn)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(error::of_statement(&self.address, source)),
            Err(why) => {
                // Nobody knows where in its answer the server is.
                self.conn = None;
                let place = self.address.place();
                Err(match why {
                    Unanswered::Late => {
                        let seconds = self.address.query_timeout.unwrap_or_default().as_secs();
                        DatabaseError::Timeout { place, seconds }
                    }
                    Unanswered::Stopped => DatabaseError::Stopped { place },
                })
            }
        }
    }

    /// Takes the driver's connection out, with what runs it.
    pub(crate) fn into_parts(mut self) -> (Option<Conn>, Driver, Address) {
        let driver = std::mem::replace(&mut self.driver, Driver::none());
        (self.conn.take(), driver, self.address.clone())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A server counts connections that go without a word as failures.
        if let Some(conn) = self.conn.take() {
            let _ = self.driver.finish(GOODBYE, conn.disconnect());
        }
    }
}

/// The values of a row of a statement without parameters, which come as text.
fn row_bytes(row: Row) -> Vec<Option<Vec<u8>>> {
    let bytes = |value: Option<Value>| match value? {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(bytes),
        other => Some(other.as_sql(true).trim_matches('\'').as_bytes().to_vec()),
    };
    row.unwrap_raw().into_iter().map(bytes).collect()
}

fn options(address: &Address, name: &str, encrypted: bool) -> Opts {
    let tls = encrypted.then(|| {
        let tls = SslOpts::default();
        match (address.tls, &address.root_certificates) {
            (TlsMode::VerifyFull, Some(file)) => {
                tls.with_root_certs(vec![PathBuf::from(file).into()]).with_disable_built_in_roots(true)
            }
            (TlsMode::VerifyFull, None) => tls,
            _ => tls.with_danger_accept_invalid_certs(true).with_danger_skip_domain_validation(true),
        }
    });
    let password = address.password.as_ref().map(|password| password.reveal().to_owned());
    OptsBuilder::default()
        .ip_or_hostname(address.host.clone())
        .tcp_port(address.port)
        .user(Some(address.user.clone()))
        .pass(password)
        .db_name(Some(address.database.clone()))
        .prefer_socket(false)
        .tcp_keepalive(Some(KEEPALIVE))
        .ssl_opts(tls)
        .stmt_cache_size(4)
        .connect_attribute("program_name", name)
        .into()
}
