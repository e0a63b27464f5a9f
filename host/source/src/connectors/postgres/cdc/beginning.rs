//! How a stream of changes begins: publication, slot, and the rows that are there already.
//!
//! The slot is made first and the snapshot is taken after it, so no change is missed. What the slot holds of
//! transactions that the snapshot has seen is left out by their numbers. Of a batch query there is the snapshot alone.

use super::super::table::{BEGIN, read_rows};
use super::catalog::obstacle;
use super::config::{CdcConfig, literal};
use crate::SourceError;
use crate::connectors::database::{SnapshotFiles, failed};
use crate::decode::scalar;
use arrow::datatypes::SchemaRef;
use millstream_client::database::{DatabaseError, Product};
use millstream_client::postgres::{Connection, parse_lsn};
use millstream_common::StopSignal;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, Hasher, RandomState};

/// The names that a stream has taken, written down before they are used.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) slot: String,
    pub(super) publication: String,
}

/// How the stream began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Beginning {
    /// Where in the log, as PostgreSQL writes it.
    pub(super) lsn: String,
    /// The transactions that the snapshot has seen, if there is one.
    pub(super) seen: Option<String>,
    /// When the snapshot was taken, in microseconds since 1970.
    pub(super) taken_us: i64,
    /// How many files of rows it has.
    pub(super) pieces: u64,
}

/// The rows that were there.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// The transactions that it has seen, as PostgreSQL writes them.
    seen: String,
    /// When it was taken, in microseconds since 1970.
    pub(super) taken_us: i64,
    /// How many files of rows it has.
    pub(super) pieces: u64,
}

/// The names of a stream, from now on the same.
pub(super) fn names(name: &str, config: &CdcConfig, files: &SnapshotFiles) -> Result<Names, SourceError> {
    if let Some(names) = files.document::<Names>("names")? {
        return Ok(names);
    }
    let plain: String =
        name.to_lowercase().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(30).collect();
    let unique = RandomState::new().build_hasher().finish();
    let own = format!("millstream_{plain}_{unique:016x}");
    let names = Names {
        slot: config.slot.clone().unwrap_or_else(|| own.clone()),
        publication: config.publication.clone().unwrap_or(own),
    };
    files.write_document("names", &names)?;
    Ok(names)
}

/// Begins the stream: what an attempt before has left is used again.
pub(super) fn begin(
    name: &str,
    config: &CdcConfig,
    (names, schema): (&Names, &SchemaRef),
    files: &SnapshotFiles,
    stop: &StopSignal,
) -> Result<Beginning, SourceError> {
    let connection = Connection::open(&config.shared.address, "millstream snapshot", stop);
    let mut connection = connection.map_err(failed(name, "connect"))?;
    let found = obstacle(config, &names.publication, &mut connection);
    if let Some(reason) = found.map_err(failed(name, "ask for the settings of the server"))? {
        return Err(SourceError::Schema { name: name.to_owned(), reason });
    }
    let making = failed(name, "make the publication and the slot");
    let lsn = make_slot(name, config, names, &mut connection).map_err(making)?;
    let mut beginning = Beginning { lsn, seen: None, taken_us: 0, pieces: 0 };
    if config.shared.snapshot {
        let Snapshot { seen, taken_us, pieces } = take_snapshot(name, config, schema, files, &mut connection)?;
        beginning = Beginning { seen: Some(seen), taken_us, pieces, ..beginning };
    }
    files.write_state(&beginning)?;
    Ok(beginning)
}

/// Takes the rows that are there, and makes nothing on the server.
pub(super) fn take_rows(
    name: &str,
    config: &CdcConfig,
    schema: &SchemaRef,
    files: &SnapshotFiles,
    stop: &StopSignal,
) -> Result<Snapshot, SourceError> {
    let connection = Connection::open(&config.shared.address, "millstream snapshot", stop);
    take_snapshot(name, config, schema, files, &mut connection.map_err(failed(name, "connect"))?)
}

/// The first value of the first row.
fn one(connection: &mut Connection, sql: &str) -> Result<Option<String>, DatabaseError> {
    Ok(connection.texts(sql)?.into_iter().flatten().next().flatten())
}

/// Makes what is missing; answers where the slot begins.
fn make_slot(
    name: &str,
    config: &CdcConfig,
    names: &Names,
    connection: &mut Connection,
) -> Result<String, DatabaseError> {
    let (publication, slot) = (literal(&names.publication), literal(&names.slot));
    if one(connection, &format!("SELECT 1 FROM pg_publication WHERE pubname = {publication}"))?.is_none() {
        connection.run(&format!(
            "CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true)",
            Product::Postgres.quote(&names.publication),
            config.table
        ))?;
    }
    let find = format!(
        "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = {slot} AND database = current_database()"
    );
    if let Some(lsn) = one(connection, &find)? {
        return Ok(lsn);
    }
    connection.run(&format!("SELECT pg_create_logical_replication_slot({slot}, 'pgoutput')"))?;
    // The checkpoint has the names too, but it may be thrown away before the slot is.
    tracing::warn!(
        source = name,
        publication = names.publication,
        "replication slot `{}` is made, and the server keeps its log for it: when the query is given up, drop it with \
         `SELECT pg_drop_replication_slot({slot})`",
        names.slot
    );
    one(connection, &find)?.ok_or_else(|| DatabaseError::Missing {
        place: connection.address().place(),
        message: format!("the replication slot `{}`, which was just made", names.slot),
    })
}

fn take_snapshot(
    name: &str,
    config: &CdcConfig,
    schema: &SchemaRef,
    files: &SnapshotFiles,
    connection: &mut Connection,
) -> Result<Snapshot, SourceError> {
    let reading = failed(name, "take the snapshot");
    // In the transaction that reads, the first statement decides what is seen.
    connection.run(BEGIN).map_err(&reading)?;
    let rows =
        connection.rows("SELECT pg_current_snapshot()::text, (now() AT TIME ZONE 'UTC')::text").map_err(&reading)?;
    let text = |at| rows.first().and_then(|row| row.get(at)).unwrap_or_default();
    let (seen, taken_us) = (text(0).to_owned(), scalar::parse_timestamp(text(1)).unwrap_or(0));
    let mut pieces = 0;
    read_rows(name, connection, &config.table, schema, &mut |rows| {
        files.write(pieces, &rows)?;
        pieces += 1;
        Ok(())
    })?;
    Ok(Snapshot { seen, taken_us, pieces })
}

/// The transactions that a snapshot has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// All before this one.
    first: u64,
    /// None from this one on.
    next: u64,
    /// Nor these between them.
    running: Vec<u64>,
}

impl Seen {
    /// Reads `10:20:10,14`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (first, next) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let running = parts.next()?.split(',').filter(|number| !number.is_empty());
        Some(Self { first, next, running: running.map(|number| number.parse().ok()).collect::<Option<_>>()? })
    }

    /// Whether it has seen a transaction, whose number in the log lacks the upper half.
    pub(super) fn has(&self, xid: u32) -> bool {
        let distance = i64::from(xid.wrapping_sub(self.next as u32) as i32);
        let full = self.next.saturating_add_signed(distance);
        full < self.first || (full < self.next && !self.running.contains(&full))
    }
}

/// The position in a beginning.
pub(super) fn position(name: &str, lsn: &str) -> Result<u64, SourceError> {
    parse_lsn(lsn).ok_or_else(|| SourceError::Damaged {
        name: name.to_owned(),
        place: "state".to_owned(),
        reason: format!("`{lsn}` is no position in a log"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_has_seen_what_was_committed_before_it() {
        let seen = Seen::parse("10:20:10,14").unwrap();
        for (xid, has) in [(9, true), (10, false), (11, true), (14, false), (19, true), (20, false), (1000, false)] {
            assert_eq!(seen.has(xid), has, "{xid}");
        }
        let late = Seen::parse("4294967300:4294967300:").unwrap();
        assert!(late.has(3) && late.has(u32::MAX) && !late.has(4) && !late.has(5));
        assert_eq!(Seen::parse("10"), None);
    }
}
