//! How a stream of changes begins: a position in the log, and the rows that are there already.

use super::super::columns::{quoted_table, texts};
use super::super::table::read_rows;
use super::config::CdcConfig;
use super::log::Position;
use crate::SourceError;
use crate::connectors::database::{SnapshotFiles, failed};
use arrow::datatypes::SchemaRef;
use millstream_client::database::DatabaseError;
use millstream_client::mysql::Connection;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, Hasher, RandomState};

/// How the stream began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Beginning {
    /// Where in the log.
    pub(super) position: Position,
    /// By which number the server knows this reader.
    pub(super) reader: u32,
    /// Whether there is a snapshot.
    pub(super) snapshot: bool,
    /// When it was taken, in microseconds since 1970.
    pub(super) taken_us: i64,
    /// How many files of rows it has.
    pub(super) pieces: u64,
}

/// Begins the stream.
pub(super) fn begin(
    name: &str,
    config: &CdcConfig,
    schema: &SchemaRef,
    files: &SnapshotFiles,
) -> Result<Beginning, SourceError> {
    let mut connection =
        Connection::open(&config.address, "millstream snapshot", &millstream_common::StopSignal::new())
            .map_err(failed(name, "connect"))?;
    check_server(name, &mut connection)?;
    let asking = failed(name, "take the snapshot");
    let (position, taken_us) = snapshot_position(&mut connection).map_err(&asking)?;
    let random = RandomState::new().build_hasher().finish() as u32;
    let reader = config.server_id.unwrap_or(random | 0x4000_0000);
    let mut beginning = Beginning { position, reader, snapshot: config.snapshot, taken_us, pieces: 0 };
    if config.snapshot {
        let all: Vec<usize> = (0..schema.fields().len()).collect();
        let rows = read_rows(name, &mut connection, &quoted_table(&config.table), schema, &all)?;
        for (number, rows) in (0..).zip(&rows) {
            files.write(number, rows)?;
        }
        beginning.pieces = rows.len() as u64;
    }
    connection.run("COMMIT").map_err(&asking)?;
    files.write_state(&beginning)?;
    Ok(beginning)
}

fn one(connection: &mut Connection, sql: &str) -> Result<Vec<String>, DatabaseError> {
    let row = connection.rows(sql)?.into_iter().next();
    let values = row.map(texts).unwrap_or_default();
    Ok(values.into_iter().map(|value| String::from_utf8_lossy(&value.unwrap_or_default()).into_owned()).collect())
}

fn check_server(name: &str, connection: &mut Connection) -> Result<(), SourceError> {
    let settings = one(connection, "SELECT @@log_bin, @@binlog_format, @@binlog_row_image");
    let settings = settings.map_err(failed(name, "ask for the settings of the server"))?;
    for (setting, value, wanted) in [
        ("log_bin", settings.first(), "1"),
        ("binlog_format", settings.get(1), "ROW"),
        ("binlog_row_image", settings.get(2), "FULL"),
    ] {
        let value = value.map_or("", String::as_str);
        if !value.eq_ignore_ascii_case(wanted) {
            let reason =
                format!("the server has `{setting}` {value}, and changes of rows need {wanted}; change it there");
            return Err(SourceError::Schema { name: name.to_owned(), reason });
        }
    }
    Ok(())
}

/// Where the log ends now.
pub(super) fn end_of_log(connection: &mut Connection) -> Result<Position, DatabaseError> {
    let found = match one(connection, "SHOW MASTER STATUS") {
        // MySQL 8.4 knows it by another name.
        Err(DatabaseError::Refused { .. }) => one(connection, "SHOW BINARY LOG STATUS")?,
        other => other?,
    };
    position(connection, found.first(), found.get(1))
}

fn position(
    connection: &Connection,
    file: Option<&String>,
    position: Option<&String>,
) -> Result<Position, DatabaseError> {
    let position = position.and_then(|text| text.parse().ok());
    match (file, position) {
        (Some(file), Some(position)) if !file.is_empty() => Ok(Position { file: file.clone(), position }),
        _ => Err(DatabaseError::Missing {
            place: connection.address().place(),
            message: "the position of its binary log".to_owned(),
        }),
    }
}

/// Begins a transaction that sees one state of the database, and answers where in the log that is.
fn snapshot_position(connection: &mut Connection) -> Result<(Position, i64), DatabaseError> {
    let version = one(connection, "SELECT VERSION()")?.pop().unwrap_or_default();
    connection.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    let place = if version.contains("MariaDB") {
        // Which keeps the position of the log with the snapshot.
        connection.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        let file = one(connection, "SHOW STATUS LIKE 'binlog_snapshot_file'")?;
        let at = one(connection, "SHOW STATUS LIKE 'binlog_snapshot_position'")?;
        position(connection, file.get(1), at.get(1))?
    } else {
        // Nobody commits between the two, for a moment.
        connection.run("FLUSH TABLES WITH READ LOCK")?;
        connection.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        let place = end_of_log(connection)?;
        connection.run("UNLOCK TABLES")?;
        place
    };
    let now = one(connection, "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)")?;
    Ok((place, now.first().and_then(|text| text.parse().ok()).unwrap_or(0)))
}
