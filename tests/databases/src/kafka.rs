//! Kafka → windowed count → PostgreSQL and MariaDB, exactly once: the storm of Kafka's own proof, with two tables in the
//! place of its topic.
//!
//! One host runs two queries over the same records, one for each table. While it is killed again and again, and brokers
//! between, each server is stopped in order and killed, and comes back at once or only for the next life of the host.
//!
//! The tables have no key: a count that is written twice is there twice.

use crate::{Database, Product, has_table, rows};
use anyhow::{Context, Result, bail};
use kafka_tests::proof::{Found, Given, Output};
use millstream_runtime::{OutputMode, Session, Trigger};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Runs the two queries until the process is killed.
///
/// # Errors
/// When one cannot start or fails.
pub fn host(arguments: &[String]) -> Result<()> {
    let given = Given::new(arguments)?;
    let [postgres, mariadb] = given.output else { bail!("a host needs the URLs of two databases") };
    let session = Session::new()?;
    let counts = given.counts(&session)?;
    for (format, url) in [("postgresql", postgres), ("mysql", mariadb)] {
        let writer = counts.write_stream().query_name(format).output_mode(OutputMode::Append);
        let writer = writer.trigger(Trigger::Default).format(format).option("url", url).option("dbtable", "counts");
        writer.option("checkpointLocation", format!("{}/{format}", given.checkpoint)).start()?;
    }
    let ended = session.streams().await_any_termination();
    ended.map_err(|error| anyhow::anyhow!(millstream_common::describe_chain(&*error)))
}

/// A table in a server.
struct Table {
    server: Database,
    url: String,
    is_down: AtomicBool,
}

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stop,
    Crash,
}

impl Table {
    fn new(product: Product) -> Self {
        let server = Database::start(product);
        let url = server.database();
        Self { server, url, is_down: AtomicBool::new(false) }
    }

    fn start_again(&self) {
        if self.is_down.swap(false, Ordering::SeqCst) {
            self.server.restart();
        }
    }

    fn rows(&self, sql: &str) -> Vec<String> {
        if has_table(&self.url, "counts") { rows(&self.url, sql) } else { Vec::new() }
    }

    /// The columns of the counts as text, the start of the window in seconds.
    fn counts(&self) -> Vec<String> {
        self.rows(match self.server.product() {
            // In days, the first of which has the number 2440588, and seconds of the day.
            Product::Postgres => {
                "SELECT (to_char(start, 'J')::bigint - 2440588) * 86400 + to_char(start, 'SSSS')::bigint, key, n \
                 FROM counts"
            }
            Product::Mysql => "SELECT CAST(UNIX_TIMESTAMP(start) AS SIGNED), `key`, n FROM counts",
        })
    }
}

/// A table in each of two servers.
pub struct Tables {
    postgres: Table,
    mariadb: Table,
    stops: AtomicU64,
    crashes: AtomicU64,
}

impl Tables {
    /// Starts the servers, or takes those of the user.
    pub fn start() -> Self {
        let (postgres, mariadb) = (Table::new(Product::Postgres), Table::new(Product::Mysql));
        Self { postgres, mariadb, stops: AtomicU64::new(0), crashes: AtomicU64::new(0) }
    }

    /// How often a server was stopped in order, and how often one was killed.
    pub fn deaths(&self) -> (u64, u64) {
        (self.stops.load(Ordering::SeqCst), self.crashes.load(Ordering::SeqCst))
    }

    /// Ends a server of ours; answers what happened.
    fn end(&self, table: &Table, end: End) -> Option<String> {
        if !table.server.is_own() {
            return None;
        }
        let (word, count) = match end {
            End::Stop => ("stopped", &self.stops),
            End::Crash => ("killed", &self.crashes),
        };
        match end {
            End::Stop => table.server.stop(),
            End::Crash => table.server.kill(),
        }
        table.is_down.store(true, Ordering::SeqCst);
        count.fetch_add(1, Ordering::SeqCst);
        Some(format!("{} was {word}", table.server.name()))
    }
}

fn found(rows: Vec<String>) -> Result<Found> {
    let mut found = Found::default();
    for row in rows {
        let parts: Vec<&str> = row.split('|').collect();
        let [start, key, count] = parts.as_slice() else { bail!("the row `{row}` is not ours") };
        found.add(key, &format!("{start}|{count}")).with_context(|| format!("the row `{row}` is not ours"))?;
    }
    Ok(found)
}

impl Output for Tables {
    fn arguments(&self) -> Vec<String> {
        vec![self.postgres.url.clone(), self.mariadb.url.clone()]
    }

    fn count(&self) -> Result<u64> {
        let mut least = u64::MAX;
        for table in [&self.postgres, &self.mariadb] {
            let key = table.server.product().quote("key");
            let rows = table.rows(&format!("SELECT count(*) FROM (SELECT DISTINCT start, {key} FROM counts) AS c"));
            least = least.min(rows.first().map_or(Ok(0), |text| text.parse())?);
        }
        Ok(least)
    }

    fn found(&self) -> Result<Vec<(String, Found)>> {
        let of = |table: &Table| Ok((table.server.name().to_owned(), found(table.counts())?));
        [&self.postgres, &self.mariadb].into_iter().map(of).collect()
    }

    /// Within three lives of the host each server is stopped once and killed once.
    fn disturb(&self, kill: u64) -> Result<Option<String>> {
        self.calm()?;
        let (postgres, mariadb) = (&self.postgres, &self.mariadb);
        let happened = match kill % 6 {
            1 => vec![self.end(postgres, End::Stop)],
            2 => vec![self.end(mariadb, End::Crash)],
            3 => vec![self.end(mariadb, End::Stop), self.end(postgres, End::Crash)],
            // It stays down into the next life of the host.
            4 => return Ok(self.end(postgres, End::Crash)),
            5 => return Ok(self.end(mariadb, End::Stop)),
            _ => Vec::new(),
        };
        self.calm()?;
        let happened: Vec<String> = happened.into_iter().flatten().collect();
        Ok((!happened.is_empty()).then(|| happened.join(", ")))
    }

    fn calm(&self) -> Result<()> {
        self.postgres.start_again();
        self.mariadb.start_again();
        Ok(())
    }
}
