//! How a stream of changes begins: a position in the log, and the rows that are there already.

use super::super::table::read_rows;
use super::config::CdcConfig;
use super::position::Position;
use crate::SourceError;
use crate::connectors::database::{SnapshotFiles, failed};
use arrow::datatypes::SchemaRef;
use millstream_client::database::{DatabaseError, Product};
use millstream_client::mysql::Connection;
use millstream_common::StopSignal;
use serde::{Deserialize, Serialize};

/// How the stream began. Files of earlier releases have a number `reader` too, by which the server knew whoever read the
/// stream; it is not used any more, for two of one number shut each other out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Beginning {
    /// Where in the log.
    pub(super) position: Position,
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
    stop: &StopSignal,
) -> Result<Beginning, SourceError> {
    let connection = Connection::open(&config.shared.address, "millstream snapshot", stop);
    let mut connection = connection.map_err(failed(name, "connect"))?;
    check_server(name, &mut connection)?;
    let asking = failed(name, "take the snapshot");
    let (position, taken_us) = snapshot_position(&mut connection).map_err(&asking)?;
    let snapshot = config.shared.snapshot;
    let mut beginning = Beginning { position, snapshot, taken_us, pieces: 0 };
    if snapshot {
        let from = config.shared.table.quoted(Product::Mysql);
        read_rows(name, &mut connection, &from, schema, &mut |rows| {
            files.write(beginning.pieces, &rows)?;
            beginning.pieces += 1;
            Ok(())
        })?;
    }
    connection.run("COMMIT").map_err(&asking)?;
    files.write_state(&beginning)?;
    Ok(beginning)
}

pub(super) fn one(connection: &mut Connection, sql: &str) -> Result<Vec<String>, DatabaseError> {
    let row = connection.texts(sql)?.into_iter().next().unwrap_or_default();
    Ok(row.into_iter().map(Option::unwrap_or_default).collect())
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
    // MariaDB's switch and MySQL's; a server has one of them.
    for setting in ["log_bin_compress", "binlog_transaction_compression"] {
        let value = one(connection, &format!("SHOW VARIABLES LIKE '{setting}'"));
        let value = value.map_err(failed(name, "ask for the settings of the server"))?.pop().unwrap_or_default();
        if value.eq_ignore_ascii_case("ON") {
            let reason = format!("the server has `{setting}` ON, and compressed changes are not read; set it to OFF");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_of_an_earlier_release_is_read() {
        let text = r#"{"position":{"file":"binlog.000001","position":4},"reader":1073741825,"snapshot":true,"taken_us":5,
            "pieces":2}"#;
        let beginning: Beginning = serde_json::from_str(text).unwrap();
        assert_eq!((beginning.position.position, beginning.pieces), (4, 2));
    }
}
