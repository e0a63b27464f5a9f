//! Loading rows into MySQL and MariaDB.

use super::dialect::family;
use crate::connectors::database::{Cell, DELETE, Load, LoadError, Session, TRUNCATE, TableColumn, cell};
use arrow::array::{Array, AsArray, RecordBatch};
use chrono::{DateTime, Datelike, NaiveDate, Timelike};
use millstream_client::database::{DatabaseError, Product, TableName};
use millstream_client::mysql::{Connection, Value};

/// How many values a statement can have.
const VALUES: usize = 65_535;
/// How many bytes of values a statement has at most; servers take packets of 16 MiB and more by default, the oldest 4.
const BYTES: usize = 2 * 1024 * 1024;

/// An open connection.
pub(super) struct MysqlSession {
    connection: Connection,
}

impl MysqlSession {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection }
    }

    fn flush(&mut self, statement: &Statement, rows: &mut Pending) -> Result<(), LoadError> {
        if rows.count > 0 {
            self.connection.execute(&statement.text(rows.count), std::mem::take(&mut rows.values))?;
            *rows = Pending::default();
        }
        Ok(())
    }
}

/// Rows that wait for their statement.
#[derive(Default)]
struct Pending {
    values: Vec<Value>,
    bytes: usize,
    count: usize,
}

/// A statement over many rows.
struct Statement {
    head: String,
    row: String,
    tail: String,
    width: usize,
}

impl Statement {
    /// Puts rows there: by key over those that are there, or beside them.
    fn insert(load: &Load) -> Self {
        let set: Vec<String> = load
            .columns
            .iter()
            .enumerate()
            .filter(|(at, _)| !load.key.contains(at))
            .map(|(_, name)| format!("{name} = VALUES({name})"))
            .collect();
        let tail = match (load.key.first(), set.is_empty()) {
            (None, _) => String::new(),
            // A row of nothing but its key stays as it is.
            (Some(key), true) => format!(" ON DUPLICATE KEY UPDATE {0} = {0}", load.columns[*key]),
            (Some(_), false) => format!(" ON DUPLICATE KEY UPDATE {}", set.join(", ")),
        };
        let head = format!("INSERT INTO {} ({}) VALUES ", load.table, load.columns.join(", "));
        Self { head, row: placeholders(load.columns.len()), tail, width: load.columns.len() }
    }

    /// Takes the rows of keys away.
    fn delete(load: &Load) -> Self {
        let names: Vec<&str> = load.key.iter().map(|at| load.columns[*at].as_str()).collect();
        let head = format!("DELETE FROM {} WHERE ({}) IN (", load.table, names.join(", "));
        Self { head, row: placeholders(names.len()), tail: ")".to_owned(), width: names.len() }
    }

    fn text(&self, rows: usize) -> String {
        let rows = vec![self.row.as_str(); rows].join(",");
        format!("{}{rows}{}", self.head, self.tail)
    }

    /// Whether another row of so many bytes still fits.
    fn has_room(&self, pending: &Pending, bytes: usize, batch_size: usize) -> bool {
        let rows = batch_size.min(VALUES / self.width.max(1)).max(1);
        pending.count == 0 || (pending.count < rows && pending.bytes + bytes <= BYTES)
    }
}

fn placeholders(count: usize) -> String {
    format!("({})", vec!["?"; count].join(","))
}

/// A value as the protocol has it, and about how many bytes it takes.
fn value(name: &str, cell: Cell<'_>) -> Result<(Value, usize), LoadError> {
    let refuse = |reason: &str| LoadError::Rows(format!("column {name} has {reason}"));
    let finite = |is_finite: bool| {
        if is_finite { Ok(()) } else { Err(refuse("a number that is NaN or infinite, which MySQL does not know")) }
    };
    let bytes = |bytes: Vec<u8>| {
        let size = bytes.len() + 9;
        (Value::Bytes(bytes), size)
    };
    Ok(match cell {
        Cell::Null => (Value::NULL, 1),
        Cell::Bool(value) => (Value::Int(value.into()), 8),
        Cell::Int(value) => (Value::Int(value), 8),
        Cell::Float(value) => {
            finite(value.is_finite())?;
            (Value::Float(value), 4)
        }
        Cell::Double(value) => {
            finite(value.is_finite())?;
            (Value::Double(value), 8)
        }
        Cell::Decimal(digits) => bytes(digits.into_bytes()),
        Cell::Text(text) => bytes(text.into_owned().into_bytes()),
        Cell::Binary(binary) => bytes(binary.into_owned()),
        Cell::Json(text) => bytes(text.into_bytes()),
        Cell::Date(days) => {
            let date = NaiveDate::default().checked_add_signed(chrono::TimeDelta::days(days.into()));
            let date = date.filter(|date| (0..=9999).contains(&date.year()));
            let date = date.ok_or_else(|| refuse("a date outside of the years 0 to 9999"))?;
            (Value::Date(date.year() as u16, date.month() as u8, date.day() as u8, 0, 0, 0, 0), 5)
        }
        Cell::Timestamp { micros, .. } => {
            let time = DateTime::from_timestamp_micros(micros).map(|time| time.naive_utc());
            let time = time.filter(|time| (0..=9999).contains(&time.year()));
            let time = time.ok_or_else(|| refuse("a time outside of the years 0 to 9999"))?;
            let (hour, minute, second) = (time.hour() as u8, time.minute() as u8, time.second() as u8);
            let micros = time.nanosecond() / 1000;
            (Value::Date(time.year() as u16, time.month() as u8, time.day() as u8, hour, minute, second, micros), 12)
        }
    })
}

/// The conditions that find a table in the server's own views.
fn found(table: &TableName) -> String {
    let literal = |text: &str| Product::Mysql.literal(text);
    let schema = table.schema.as_deref().map_or("DATABASE()".to_owned(), literal);
    format!("TABLE_SCHEMA = {schema} AND TABLE_NAME = {}", literal(&table.table))
}

impl Session for MysqlSession {
    fn begin(&mut self) -> Result<(), DatabaseError> {
        self.connection.run("START TRANSACTION")
    }

    fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.connection.run(sql)
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        self.connection.texts(sql)
    }

    fn columns(&mut self, table: &TableName) -> Result<Option<Vec<TableColumn>>, DatabaseError> {
        let rows = self.rows(&format!(
            "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, COALESCE(DATETIME_PRECISION, NUMERIC_SCALE), \
             IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL AND EXTRA NOT LIKE '%auto_increment%', \
             EXTRA LIKE '%GENERATED%' AND EXTRA NOT LIKE '%DEFAULT_GENERATED%' \
             FROM information_schema.COLUMNS WHERE {} ORDER BY ORDINAL_POSITION",
            found(table)
        ))?;
        let column = |row: Vec<Option<String>>| {
            let mut row = row.into_iter();
            let mut next = || row.next().flatten().unwrap_or_default();
            let (name, data_type, column_type, digits, required) = (next(), next(), next(), next(), next());
            let family = family(&data_type, &column_type);
            let digits = digits.parse().ok();
            (next() != "1").then(|| TableColumn {
                name,
                data_type: column_type,
                family,
                digits,
                is_required: required == "1",
            })
        };
        Ok(if rows.is_empty() { None } else { Some(rows.into_iter().filter_map(column).collect()) })
    }

    fn check_table(&mut self, table: &TableName) -> Result<Option<String>, DatabaseError> {
        let sql = format!("SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE {}", found(table));
        let row = self.rows(&sql)?.into_iter().next().unwrap_or_default();
        let mut row = row.into_iter().map(Option::unwrap_or_default);
        let (kind, engine) = (row.next().unwrap_or_default(), row.next().unwrap_or_default());
        let name = table.shown();
        Ok(if !kind.contains("TABLE") {
            Some(format!("`{name}` is a view; name a table"))
        } else if !engine.eq_ignore_ascii_case("InnoDB") {
            Some(format!("table `{name}` has the engine {engine}, which has no transactions; let it have InnoDB"))
        } else {
            None
        })
    }

    fn unique_keys(&mut self, table: &TableName) -> Result<Vec<Vec<String>>, DatabaseError> {
        let rows = self.rows(&format!(
            "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS WHERE {} AND NON_UNIQUE = 0 \
             ORDER BY INDEX_NAME, SEQ_IN_INDEX",
            found(table)
        ))?;
        let mut keys: Vec<(Option<String>, Vec<String>)> = Vec::new();
        for row in rows {
            let mut row = row.into_iter();
            let (index, column, part) = (row.next().flatten(), row.next().flatten(), row.next().flatten());
            // An index over the beginning of a column is none of the column.
            let column = if part.is_some() { String::new() } else { column.unwrap_or_default() };
            match keys.last_mut() {
                Some((last, columns)) if *last == index => columns.push(column),
                _ => keys.push((index, vec![column])),
            }
        }
        Ok(keys.into_iter().map(|(_, columns)| columns).collect())
    }

    fn load(&mut self, load: &Load, rows: &[RecordBatch]) -> Result<(), LoadError> {
        let (insert, delete) = (Statement::insert(load), Statement::delete(load));
        let all: Vec<usize> = (0..load.columns.len()).collect();
        let mut pending = Pending::default();
        let mut deleting = false;
        for batch in rows {
            let changes = load.change.map(|change| batch.column(change).as_string::<i32>());
            for row in 0..batch.num_rows() {
                // In the order of the rows: what comes later counts.
                let change = changes.filter(|changes| changes.is_valid(row)).map_or("", |changes| changes.value(row));
                if change == TRUNCATE {
                    // What waits would be taken away as well.
                    pending = Pending::default();
                    self.connection.run(&format!("DELETE FROM {}", load.table))?;
                    continue;
                }
                let deletes = change == DELETE;
                if deletes != deleting {
                    self.flush(if deleting { &delete } else { &insert }, &mut pending)?;
                    deleting = deletes;
                }
                let columns = if deletes { &load.key } else { &all };
                let mut values = Vec::with_capacity(columns.len());
                let mut bytes = 0;
                for at in columns.iter().copied() {
                    let cell = cell(batch.column(load.indices[at]).as_ref(), row)?;
                    let (value, size) = value(&load.columns[at], cell)?;
                    values.push(value);
                    bytes += size;
                }
                let statement = if deletes { &delete } else { &insert };
                if !statement.has_room(&pending, bytes, load.batch_size) {
                    self.flush(statement, &mut pending)?;
                }
                pending.values.append(&mut values);
                pending.bytes += bytes;
                pending.count += 1;
            }
        }
        self.flush(if deleting { &delete } else { &insert }, &mut pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(key: Vec<usize>) -> Load {
        let columns = vec!["`k`".to_owned(), "`v`".to_owned()];
        Load { table: "`t`".into(), columns, indices: vec![0, 1], key, change: None, batch_size: 3 }
    }

    #[test]
    fn statements_have_many_rows() {
        assert_eq!(Statement::insert(&load(vec![])).text(2), "INSERT INTO `t` (`k`, `v`) VALUES (?,?),(?,?)");
        let upsert = Statement::insert(&load(vec![0])).text(1);
        assert_eq!(upsert, "INSERT INTO `t` (`k`, `v`) VALUES (?,?) ON DUPLICATE KEY UPDATE `v` = VALUES(`v`)");
        let keys = Statement::insert(&load(vec![0, 1])).text(1);
        assert!(keys.ends_with("ON DUPLICATE KEY UPDATE `k` = `k`"), "{keys}");
        assert_eq!(Statement::delete(&load(vec![0])).text(2), "DELETE FROM `t` WHERE (`k`) IN ((?),(?))");
    }

    #[test]
    fn a_statement_is_full_by_rows_values_or_bytes() {
        let statement = Statement::insert(&load(vec![]));
        let pending = |count, bytes| Pending { values: vec![], bytes, count };
        assert!(statement.has_room(&pending(0, 0), BYTES + 1, 3), "one row must go");
        assert!(statement.has_room(&pending(2, 10), 10, 3));
        assert!(!statement.has_room(&pending(3, 10), 10, 3));
        assert!(!statement.has_room(&pending(1, BYTES), 1, 3));
        assert!(!statement.has_room(&pending(VALUES / 2, 10), 1, usize::MAX));
    }

    #[test]
    fn what_mysql_does_not_know_is_refused_by_name() {
        for cell in [
            Cell::Double(f64::NAN),
            Cell::Float(f32::INFINITY),
            Cell::Date(i32::MAX),
            Cell::Timestamp { micros: i64::MIN, utc: true },
        ] {
            assert!(matches!(value("`v`", cell), Err(LoadError::Rows(reason)) if reason.contains("column `v`")));
        }
    }
}
