//! What the server says of the table when a run begins.

use super::config::{CdcConfig, literal};
use millstream_client::database::{DatabaseError, Product};
use millstream_client::postgres::{ColumnType, Connection, parse_lsn};

/// What the server said.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// The number of the table.
    pub(super) table: u32,
    /// Its columns, but for those that are computed from others: the log does not have them. The number of a type is the one
    /// that the log tells: a domain's own, although its values are those of the type below it.
    pub(super) columns: Vec<ColumnType>,
    /// The names of the columns of its primary key.
    pub(super) key: Vec<String>,
    /// Where the log ended just before it was asked: what the log tells behind this is as said, or the table has changed.
    pub(super) position: u64,
}

/// Asks for the table.
pub(super) fn ask(config: &CdcConfig, connection: &mut Connection) -> Result<Said, DatabaseError> {
    let missing = || DatabaseError::Missing {
        place: config.shared.address.place(),
        message: format!("there is no table `{}`", config.shared.shown()),
    };
    let table = config.looked_up();
    let first = connection.texts(&format!("SELECT pg_current_wal_insert_lsn()::text, ({table}::oid)::text"))?;
    let mut first = first.into_iter().flatten();
    let position = first.next().flatten().and_then(|text| parse_lsn(&text)).unwrap_or_default();
    let number = first.next().flatten().and_then(|text| text.parse().ok()).ok_or_else(missing)?;
    let names = |sql: String, connection: &mut Connection| -> Result<Vec<String>, DatabaseError> {
        Ok(connection.texts(&sql)?.into_iter().flatten().flatten().collect())
    };
    let all = connection.texts(&format!(
        "SELECT attname, atttypid::text FROM pg_attribute WHERE attrelid = {number} AND attnum > 0 AND NOT attisdropped \
         AND attgenerated = '' ORDER BY attnum"
    ))?;
    let all: Vec<(String, u32)> = all.into_iter().filter_map(name_and_type).collect();
    if all.is_empty() {
        return Err(missing());
    }
    let key = names(
        format!(
            "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid \
             AND a.attnum = ANY (i.indkey::int2[]) WHERE i.indrelid = {number} AND i.indisprimary"
        ),
        connection,
    )?;
    let quoted: Vec<String> = all.iter().map(|(name, _)| Product::Postgres.quote(name)).collect();
    let mut columns = connection.describe(&format!("SELECT {} FROM {}", quoted.join(", "), config.table))?;
    for (column, (_, type_id)) in columns.iter_mut().zip(&all) {
        column.type_id = *type_id;
    }
    Ok(Said { table: number, columns, key, position })
}

/// A column's name and the number of its type, out of a row of the catalog.
fn name_and_type(row: Vec<Option<String>>) -> Option<(String, u32)> {
    let mut row = row.into_iter();
    let (name, type_id) = (row.next()??, row.next()??);
    Some((name, type_id.parse().ok()?))
}

/// Why the changes of the table cannot be read, if they cannot; `publication` is there already, or will be made.
pub(super) fn obstacle(
    config: &CdcConfig,
    publication: &str,
    connection: &mut Connection,
) -> Result<Option<String>, DatabaseError> {
    let shown = config.shared.shown();
    let level = connection.texts("SHOW wal_level")?.into_iter().flatten().flatten().next().unwrap_or_default();
    if level != "logical" {
        return Ok(Some(format!(
            "the server has `wal_level` {level}, which has no changes of rows; set it to `logical` and restart the server"
        )));
    }
    let row = connection.texts(&format!(
        "SELECT c.relkind::text, c.relreplident::text, \
           EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)::text, \
           (c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits h WHERE h.inhparent = c.oid))::text, \
           (SELECT (p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate)::text FROM pg_publication p \
            WHERE p.pubname = {}) \
         FROM pg_class c WHERE c.oid = {}",
        literal(publication),
        config.looked_up()
    ))?;
    let row = row.into_iter().next().unwrap_or_default();
    let text = |at: usize| row.get(at).and_then(|text| text.as_deref()).unwrap_or_default();
    if !matches!(text(0), "r" | "p") {
        return Ok(Some(format!("there is no table `{shown}` whose changes are in the log")));
    }
    if text(3) == "true" {
        return Ok(Some(format!(
            "other tables inherit from `{shown}`, and the log has their rows under their own names"
        )));
    }
    match text(4) {
        "true" => Ok(None),
        "false" => Ok(Some(format!(
            "publication `{publication}` leaves out some of insert, update, delete and truncate; publish all of them"
        ))),
        // One that is made would make the server refuse updates and deletes of such a table, to everybody.
        _ if text(1) == "n" || (text(1) == "d" && text(2) != "true") => Ok(Some(format!(
            "table `{shown}` has no primary key by which the log could name its rows; give it one, or set REPLICA \
             IDENTITY FULL"
        ))),
        _ => Ok(None),
    }
}
