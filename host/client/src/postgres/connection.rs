//! One connection to PostgreSQL, for a thread that waits.

use super::error;
use crate::database::{Address, DatabaseError, Driver, TlsMode, Unanswered, client_config};
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use millstream_common::StopSignal;
use std::time::Duration;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage, SimpleQueryRow, config::SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a connection without traffic is trusted before it is looked after.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long the network may leave what was sent without an answer of its own.
const UNANSWERED: Duration = Duration::from_secs(60);

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnType {
    /// Its name.
    pub name: String,
    /// Its type, by the name in the catalog: `int4`, `numeric`, …
    pub type_name: String,
    /// Its type, by the number in the catalog.
    pub type_id: u32,
    /// What stands in parentheses behind the type, as the catalog packs it; -1 for nothing.
    pub modifier: i32,
}

/// An open connection. It has UTC, ISO dates, and waits for durable commits.
pub struct Connection {
    client: Client,
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
        let unreachable = |source: Box<dyn std::error::Error + Send + Sync>| DatabaseError::Unreachable {
            place: address.place(),
            source,
        };
        let driver = Driver::new(stop).map_err(|error| unreachable(Box::new(error)))?;
        let mut config = Config::new();
        config.host(&address.host).port(address.port).user(&address.user).dbname(&address.database);
        config.application_name(name).connect_timeout(address.connect_timeout);
        config.keepalives_idle(KEEPALIVE).tcp_user_timeout(UNANSWERED);
        if let Some(password) = &address.password {
            config.password(password.reveal());
        }
        config.ssl_mode(match address.tls {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyFull => SslMode::Require,
        });
        let failed = |source: tokio_postgres::Error| error::of_connecting(address, source);
        let late = |why| match why {
            Unanswered::Late => unreachable("it takes longer than `connectTimeout`".into()),
            Unanswered::Stopped => DatabaseError::Stopped { place: address.place() },
        };
        let limit = address.connect_timeout;
        let client = if address.tls == TlsMode::Disable {
            let connected = driver.connect(limit, config.connect(NoTls)).map_err(late)?;
            let (client, connection) = connected.map_err(failed)?;
            driver.spawn(async move { noted(connection.await) });
            client
        } else {
            let tls = client_config(address.tls, address.root_certificates.as_deref())
                .map_err(|source| DatabaseError::Tls { place: address.place(), source })?;
            let connected = driver.connect(limit, config.connect(MakeRustlsConnect::new(tls))).map_err(late)?;
            let (client, connection) = connected.map_err(failed)?;
            driver.spawn(async move { noted(connection.await) });
            client
        };
        let mut connection = Self { client, driver, address: address.clone() };
        connection.run(
            "SET TIME ZONE 'UTC'; SET datestyle TO 'ISO, YMD'; SET intervalstyle TO 'iso_8601'; SET bytea_output TO 'hex'; \
             SET extra_float_digits TO 1; SET synchronous_commit TO on; SET client_min_messages TO warning",
        )?;
        Ok(connection)
    }

    /// Where it leads.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether it is known to be broken.
    pub fn is_broken(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs statements that answer nothing.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        let answer = self.driver.wait(self.address.query_timeout, self.client.batch_execute(sql));
        self.answered(answer)
    }

    /// Runs a statement and answers its rows, all values as text.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<SimpleQueryRow>, DatabaseError> {
        let answer = self.driver.wait(self.address.query_timeout, self.client.simple_query(sql));
        let messages = self.answered(answer)?;
        Ok(messages
            .into_iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            })
            .collect())
    }

    /// Runs a statement and answers its rows as text.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn texts(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        let texts = |row: SimpleQueryRow| (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect();
        Ok(self.rows(sql)?.into_iter().map(texts).collect())
    }

    /// The columns that a statement would answer.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn describe(&mut self, sql: &str) -> Result<Vec<ColumnType>, DatabaseError> {
        let answer = self.driver.wait(self.address.query_timeout, self.client.prepare(sql));
        let statement = self.answered(answer)?;
        let column = |column: &tokio_postgres::Column| ColumnType {
            name: column.name().to_owned(),
            type_name: column.type_().name().to_owned(),
            type_id: column.type_().oid(),
            modifier: column.type_modifier(),
        };
        Ok(statement.columns().iter().map(column).collect())
    }

    /// Sends rows in COPY's text form.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn copy_in(&mut self, sql: &str, pieces: Vec<Bytes>) -> Result<u64, DatabaseError> {
        let client = &self.client;
        let answer = self.driver.wait(self.address.query_timeout, async {
            let sink = client.copy_in(sql).await?;
            let mut sink = std::pin::pin!(sink);
            for piece in pieces {
                if sink.feed(piece).await.is_err() {
                    // The server's reason comes as the answer to the end.
                    break;
                }
            }
            sink.finish().await
        });
        self.answered(answer)
    }

    /// What a logical slot holds after the last advance, up to about `most` changes and whole transactions:
    /// position and message of the output plugin.
    ///
    /// # Errors
    /// What the server or the network says.
    pub fn peek_changes(
        &mut self,
        slot: &str,
        publication: &str,
        upto: Option<&str>,
        most: Option<i32>,
    ) -> Result<Vec<(u64, Vec<u8>)>, DatabaseError> {
        let client = &self.client;
        let answer = self.driver.wait(self.address.query_timeout, async {
            let sql = "SELECT lsn::text, data FROM pg_logical_slot_peek_binary_changes($1, $2::text::pg_lsn, $3, \
                       'proto_version', '1', 'publication_names', $4)";
            let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 4] =
                [(&slot, Type::NAME), (&upto, Type::TEXT), (&most, Type::INT4), (&publication, Type::TEXT)];
            let mut changes = Vec::new();
            let rows = client.query_typed_raw(sql, parameters).await?;
            let mut rows = std::pin::pin!(rows);
            while let Some(row) = rows.next().await {
                let row = row?;
                let position: String = row.try_get(0)?;
                changes.push((parse_lsn(&position).unwrap_or_default(), row.try_get::<_, Vec<u8>>(1)?));
            }
            Ok(changes)
        });
        self.answered(answer)
    }

    fn answered<T>(&self, answer: Result<Result<T, tokio_postgres::Error>, Unanswered>) -> Result<T, DatabaseError> {
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(error::of_statement(&self.address, source)),
            Err(Unanswered::Stopped) => Err(DatabaseError::Stopped { place: self.address.place() }),
            Err(Unanswered::Late) => {
                let seconds = self.address.query_timeout.unwrap_or_default().as_secs();
                Err(DatabaseError::Timeout { place: self.address.place(), seconds })
            }
        }
    }
}

/// The number behind `16/B374D848`.
pub fn parse_lsn(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    let (high, low) = (u32::from_str_radix(high, 16).ok()?, u32::from_str_radix(low, 16).ok()?);
    Some(u64::from(high) << 32 | u64::from(low))
}

fn noted(ended: Result<(), tokio_postgres::Error>) {
    if let Err(error) = ended {
        tracing::debug!(error = millstream_common::describe_chain(&error), "a connection to PostgreSQL ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_in_the_log_has_two_halves() {
        assert_eq!(parse_lsn("16/B374D848"), Some(0x16_B374_D848));
        assert_eq!(parse_lsn("0/0"), Some(0));
        assert_eq!(parse_lsn("B374D848"), None);
        assert_eq!(parse_lsn("-1/0"), None);
    }
}
