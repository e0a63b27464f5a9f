//! Kafka → windowed count → PostgreSQL and MariaDB, exactly once: the storm of Kafka's own proof, with two tables in the
//! place of its topic.
//!
//! One host runs two queries over the same records, one for each table. While it is killed again and again, and brokers
//! between, each server is stopped in order and killed, and comes back at once or only for the next life of the host.
//!
//! The tables have no key: a count that is written twice is there twice.

use crate::{MariaDb, Postgres, mariadb, postgres};
use anyhow::{Context, Result, bail};
use kafka_tests::proof::{Found, Given, Output};
use millstream_runtime::{OutputMode, Session, Trigger};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The columns of a count as text, the start of the window in seconds; in the words of each server.
const POSTGRES_ROWS: &str = "SELECT extract(epoch FROM start)::bigint, key, n FROM counts";
const MARIADB_ROWS: &str = "SELECT CAST(UNIX_TIMESTAMP(start) AS SIGNED), `key`, n FROM counts";

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
        writer.option("checkpointLocation", &format!("{}/{format}", given.checkpoint)).start()?;
    }
    let ended = session.streams().await_any_termination();
    ended.map_err(|error| anyhow::anyhow!(millstream_common::describe_chain(&*error)))
}

/// A table in each of two servers.
pub struct Tables {
    postgres: (Postgres, String),
    mariadb: (MariaDb, String),
    /// Which of the two is down.
    down: [AtomicBool; 2],
    stops: AtomicU64,
    crashes: AtomicU64,
}

impl Tables {
    /// Starts the servers, or takes those of the user.
    pub fn start() -> Self {
        let (postgres, mariadb) = (Postgres::start(), MariaDb::start());
        let urls = (postgres.database(), mariadb.database());
        Self {
            postgres: (postgres, urls.0),
            mariadb: (mariadb, urls.1),
            down: [AtomicBool::new(false), AtomicBool::new(false)],
            stops: AtomicU64::new(0),
            crashes: AtomicU64::new(0),
        }
    }

    /// How often a server was stopped in order, and how often one was killed.
    pub fn deaths(&self) -> (u64, u64) {
        (self.stops.load(Ordering::SeqCst), self.crashes.load(Ordering::SeqCst))
    }

    /// Ends a server of ours; answers what happened.
    fn end(&self, is_postgres: bool, is_crash: bool) -> Option<String> {
        let (name, is_own) = match is_postgres {
            true => ("PostgreSQL", self.postgres.0.is_own()),
            false => ("MariaDB", self.mariadb.0.is_own()),
        };
        if !is_own {
            return None;
        }
        match (is_postgres, is_crash) {
            (true, true) => self.postgres.0.kill(),
            (true, false) => self.postgres.0.stop(),
            (false, true) => self.mariadb.0.kill(),
            (false, false) => self.mariadb.0.stop(),
        }
        self.down[usize::from(!is_postgres)].store(true, Ordering::SeqCst);
        if is_crash { &self.crashes } else { &self.stops }.fetch_add(1, Ordering::SeqCst);
        Some(format!("{name} was {}", if is_crash { "killed" } else { "stopped" }))
    }

    fn start_again(&self) {
        if self.down[0].swap(false, Ordering::SeqCst) {
            self.postgres.0.restart();
        }
        if self.down[1].swap(false, Ordering::SeqCst) {
            self.mariadb.0.restart();
        }
    }

    fn postgres_rows(&self, sql: &str) -> Vec<String> {
        match postgres::rows(&self.postgres.1, "SELECT to_regclass('counts') IS NOT NULL") == ["t"] {
            true => postgres::rows(&self.postgres.1, sql),
            false => Vec::new(),
        }
    }

    fn mariadb_rows(&self, sql: &str) -> Vec<String> {
        match mariadb::rows(&self.mariadb.1, "SHOW TABLES LIKE 'counts'").is_empty() {
            true => Vec::new(),
            false => mariadb::rows(&self.mariadb.1, sql),
        }
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
        vec![self.postgres.1.clone(), self.mariadb.1.clone()]
    }

    fn count(&self) -> Result<u64> {
        let one = |rows: Vec<String>| rows.first().map_or(Ok(0), |text| text.parse::<u64>());
        let postgres = one(self.postgres_rows("SELECT count(*) FROM (SELECT DISTINCT start, key FROM counts) AS c"))?;
        let mariadb = one(self.mariadb_rows("SELECT count(*) FROM (SELECT DISTINCT start, `key` FROM counts) AS c"))?;
        Ok(postgres.min(mariadb))
    }

    fn found(&self) -> Result<Vec<(String, Found)>> {
        Ok(vec![
            ("PostgreSQL".to_owned(), found(self.postgres_rows(POSTGRES_ROWS))?),
            ("MariaDB".to_owned(), found(self.mariadb_rows(MARIADB_ROWS))?),
        ])
    }

    /// Within three lives of the host each server is stopped once and killed once.
    fn disturb(&self, kill: u64) -> Result<Option<String>> {
        self.start_again();
        let (postgres, mariadb, stop, crash) = (true, false, false, true);
        let happened = match kill % 6 {
            1 => vec![self.end(postgres, stop)],
            2 => vec![self.end(mariadb, crash)],
            3 => vec![self.end(mariadb, stop), self.end(postgres, crash)],
            // It stays down into the next life of the host.
            4 => return Ok(self.end(postgres, crash)),
            5 => return Ok(self.end(mariadb, stop)),
            _ => Vec::new(),
        };
        self.start_again();
        let happened: Vec<String> = happened.into_iter().flatten().collect();
        Ok((!happened.is_empty()).then(|| happened.join(", ")))
    }

    fn calm(&self) -> Result<()> {
        self.start_again();
        Ok(())
    }
}
