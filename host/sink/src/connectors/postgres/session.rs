//! Loading rows into PostgreSQL.

use super::dialect::family;
use super::text;
use crate::connectors::database::{DELETE, Load, LoadError, Session, TRUNCATE, TableColumn};
use arrow::array::RecordBatch;
use millstream_client::database::{DatabaseError, Product, TableName};
use millstream_client::postgres::Connection;

/// The temporary table in which rows are sorted out by key; the connection's own.
const STAGE: &str = "pg_temp.millstream_stage";

/// An open connection.
pub(super) struct PostgresSession {
    connection: Connection,
}

impl PostgresSession {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection }
    }

    fn load_by_key(&mut self, load: &Load, rows: &[RecordBatch]) -> Result<(), LoadError> {
        let mut indices = load.indices.clone();
        let mut staged: Vec<String> =
            load.columns.iter().enumerate().map(|(at, name)| format!("{name} AS c{at}")).collect();
        if let Some(change) = load.change {
            indices.push(change);
            staged.push("''::text AS change".to_owned());
        }
        self.connection.run(&format!(
            "CREATE TEMP TABLE IF NOT EXISTS millstream_stage ON COMMIT DELETE ROWS AS \
             SELECT 0::bigint AS n, {} FROM {} WITH NO DATA",
            staged.join(", "),
            load.table
        ))?;
        self.connection.copy_in(&format!("COPY {STAGE} FROM STDIN"), text::encode(rows, &indices, true)?)?;
        for sql in by_key(load) {
            self.connection.run(&sql)?;
        }
        Ok(())
    }
}

/// The statements that bring the staged rows into the table.
fn by_key(load: &Load) -> Vec<String> {
    let keys: Vec<String> = load.key.iter().map(|at| format!("c{at}")).collect();
    let names: Vec<&str> = load.key.iter().map(|at| load.columns[*at].as_str()).collect();
    let keys = keys.join(", ");
    // The last row of each key.
    let last = format!("(SELECT DISTINCT ON ({keys}) * FROM {STAGE} ORDER BY {keys}, n DESC) AS last");
    let mut statements = Vec::new();
    let mut only = String::new();
    if load.change.is_some() {
        let same: Vec<String> =
            load.key.iter().map(|at| format!("target.{} = last.c{at}", load.columns[*at])).collect();
        let same = same.join(" AND ");
        // What stands before the last one that takes all away does not count.
        let all = format!("(SELECT max(n) FROM {STAGE} WHERE change = '{TRUNCATE}')");
        statements.push(format!("DELETE FROM {} WHERE {all} IS NOT NULL", load.table));
        statements.push(format!("DELETE FROM {STAGE} WHERE n <= {all}"));
        statements.push(format!(
            "DELETE FROM {} AS target USING {last} WHERE last.change = '{DELETE}' AND {same}",
            load.table
        ));
        only = format!(" WHERE last.change IS DISTINCT FROM '{DELETE}'");
    }
    let values: Vec<String> = (0..load.columns.len()).map(|at| format!("c{at}")).collect();
    let set: Vec<String> = load
        .columns
        .iter()
        .enumerate()
        .filter(|(at, _)| !load.key.contains(at))
        .map(|(_, name)| format!("{name} = EXCLUDED.{name}"))
        .collect();
    let action = if set.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {}", set.join(", ")) };
    statements.push(format!(
        "INSERT INTO {} ({}) SELECT {} FROM {last}{only} ON CONFLICT ({}) DO {action}",
        load.table,
        load.columns.join(", "),
        values.join(", "),
        names.join(", ")
    ));
    statements
}

/// A table's name as a text that PostgreSQL looks up.
fn looked_up(table: &TableName) -> String {
    format!("to_regclass({})", Product::Postgres.literal(&table.quoted(Product::Postgres)))
}

impl Session for PostgresSession {
    fn begin(&mut self) -> Result<(), DatabaseError> {
        self.connection.run("BEGIN; SET LOCAL lock_timeout = '60s'")
    }

    fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.connection.run(sql)
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        self.connection.texts(sql)
    }

    fn columns(&mut self, table: &TableName) -> Result<Option<Vec<TableColumn>>, DatabaseError> {
        let rows = self.rows(&format!(
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod), t.typname, CASE \
               WHEN t.typname = 'numeric' AND a.atttypmod >= 0 THEN (a.atttypmod - 4) & 1023 \
               WHEN t.typname IN ('timestamp', 'timestamptz') AND a.atttypmod >= 0 THEN a.atttypmod END, \
               a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' \
             FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
             WHERE a.attrelid = {} AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum",
            looked_up(table)
        ))?;
        let column = |row: Vec<Option<String>>| {
            let mut row = row.into_iter();
            let mut next = || row.next().flatten().unwrap_or_default();
            let (name, data_type, type_name, digits, required) = (next(), next(), next(), next(), next());
            let family = family(&type_name);
            TableColumn { name, data_type, family, digits: digits.parse().ok(), is_required: required == "t" }
        };
        Ok(if rows.is_empty() { None } else { Some(rows.into_iter().map(column).collect()) })
    }

    fn check_table(&mut self, table: &TableName) -> Result<Option<String>, DatabaseError> {
        let rows = self.rows(&format!("SELECT relkind::text FROM pg_class WHERE oid = {}", looked_up(table)))?;
        let kind = rows.into_iter().flatten().next().flatten().unwrap_or_default();
        let reason = || format!("`{}` is no table of this database (a view, or foreign); name a table", table.shown());
        Ok(if kind == "r" || kind == "p" { None } else { Some(reason()) })
    }

    fn unique_keys(&mut self, table: &TableName) -> Result<Vec<Vec<String>>, DatabaseError> {
        let rows = self.rows(&format!(
            "SELECT i.indexrelid::text, a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid \
             AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]) \
             WHERE i.indrelid = {} AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL \
             AND i.indexprs IS NULL ORDER BY 1",
            looked_up(table)
        ))?;
        let mut keys: Vec<(String, Vec<String>)> = Vec::new();
        for row in rows {
            let mut row = row.into_iter().flatten();
            let (index, column) = (row.next().unwrap_or_default(), row.next().unwrap_or_default());
            match keys.last_mut() {
                Some((last, columns)) if *last == index => columns.push(column),
                _ => keys.push((index, vec![column])),
            }
        }
        Ok(keys.into_iter().map(|(_, columns)| columns).collect())
    }

    fn load(&mut self, load: &Load, rows: &[RecordBatch]) -> Result<(), LoadError> {
        if !load.key.is_empty() {
            return self.load_by_key(load, rows);
        }
        let sql = format!("COPY {} ({}) FROM STDIN", load.table, load.columns.join(", "));
        self.connection.copy_in(&sql, text::encode(rows, &load.indices, false)?)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(change: Option<usize>) -> Load {
        let columns = vec!["\"k\"".to_owned(), "\"v\"".to_owned()];
        Load { table: "\"t\"".into(), columns, indices: vec![0, 1], key: vec![0], change, batch_size: 1 }
    }

    #[test]
    fn the_last_row_of_a_key_is_written_over_the_one_that_is_there() {
        let statements = by_key(&load(None));
        assert_eq!(statements.len(), 1);
        assert!(statements[0].contains("ON CONFLICT (\"k\") DO UPDATE SET \"v\" = EXCLUDED.\"v\""), "{statements:?}");
        let statements = by_key(&load(Some(2)));
        assert_eq!(statements.len(), 4);
        assert!(statements[2].starts_with("DELETE FROM \"t\" AS target USING"), "{statements:?}");
        assert!(statements[3].contains("IS DISTINCT FROM 'delete'"), "{statements:?}");
    }
}
