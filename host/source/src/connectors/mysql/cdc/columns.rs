//! The columns of the stream, and where in the rows of the log they are.

use super::super::columns::{MysqlColumn, type_name};
use super::position::Position;
use super::values::ColumnKind;
use crate::connectors::database::{Change, Op, Raw};
use arrow::datatypes::Schema;
use millstream_client::mysql::BinlogRow;

/// The columns of the stream.
#[derive(Debug)]
pub(super) struct Columns {
    wanted: Vec<(String, ColumnKind)>,
    /// Which of them are the primary key.
    pub(super) key: Vec<usize>,
    /// All columns of the table when the run began, in order.
    all: Vec<MysqlColumn>,
    is_asked: bool,
    /// Where the log ended just before the server was asked for them.
    pub(super) asked_at: Position,
}

impl Columns {
    /// Those of the stream, of which the table has all; answers which of them cannot be read.
    pub(super) fn new(
        stream: &Schema,
        table: Vec<MysqlColumn>,
        is_asked: bool,
        asked_at: Position,
    ) -> Result<Self, String> {
        // Which cannot be passed over in a row.
        if let Some(compressed) = table.iter().find(|column| is_compressed(&column.column_type)) {
            return Err(format!(
                "column `{}` is compressed, and the log has compressed values as they are; let it be without COMPRESSED",
                compressed.name
            ));
        }
        let mut wanted = Vec::new();
        for field in stream.fields() {
            let column = table.iter().find(|column| column.name == *field.name());
            let column_type = column.map_or("", |column| &column.column_type);
            let kind = ColumnKind::new(column_type, column.and_then(|column| column.charset.as_deref()));
            wanted.push((field.name().clone(), kind.map_err(|reason| format!("column `{}` {reason}", field.name()))?));
        }
        let is_key = |name: &String| table.iter().any(|column| column.is_key && column.name == *name);
        let key = (0..wanted.len()).filter(|at| is_key(&wanted[*at].0)).collect();
        Ok(Self { wanted, key, all: table, is_asked, asked_at })
    }

    /// Where each column of the stream is in a row of the log, whose columns have these names or, with
    /// `binlog_row_metadata` at its default, only a number. Before the run began they may have been others.
    pub(super) fn places(&self, names: &[String], is_since: bool) -> Result<Vec<Option<usize>>, String> {
        let is_named = names.iter().all(|name| !name.starts_with('@'));
        if !is_named {
            if names.len() != self.all.len() {
                return Err(format!("it has {} columns in the log, and {} now", names.len(), self.all.len()));
            }
            let place = |wanted: &String| self.all.iter().position(|column| column.name == *wanted);
            return Ok(self.wanted.iter().map(|(name, _)| place(name)).collect());
        }
        let places: Vec<Option<usize>> =
            self.wanted.iter().map(|(name, _)| names.iter().position(|found| found == name)).collect();
        if !is_since {
            return Ok(places);
        }
        let gone = self.wanted.iter().zip(&places).find(|(_, place)| place.is_none());
        let new = names.iter().find(|name| self.is_asked && !self.wanted.iter().any(|(wanted, _)| wanted == *name));
        match (gone, new) {
            (Some(((name, _), _)), _) => Err(format!("column `{name}` is gone")),
            (None, Some(name)) => Err(format!("column `{name}` is new")),
            (None, None) => Ok(places),
        }
    }

    /// How the table is another one than when the run began, if it is.
    pub(super) fn difference(&self, now: &[MysqlColumn]) -> Option<String> {
        let of = |columns: &[MysqlColumn], name: &str| columns.iter().find(|column| column.name == name).cloned();
        for (name, _) in &self.wanted {
            match (of(&self.all, name), of(now, name)) {
                (_, None) => return Some(format!("column `{name}` is gone")),
                (Some(then), Some(now)) if then.column_type != now.column_type || then.charset != now.charset => {
                    return Some(format!("column `{name}` has another type"));
                }
                _ => {}
            }
        }
        let new = now.iter().find(|column| of(&self.all, &column.name).is_none());
        if let Some(new) = new.filter(|_| self.is_asked) {
            return Some(format!("column `{}` is new", new.name));
        }
        // Without names in the log, columns are known by their place.
        let order = |columns: &[MysqlColumn]| columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
        (order(now) != order(&self.all)).then(|| "its columns have another order".to_owned())
    }

    /// A row of the log as a change; answers what cannot be read.
    pub(super) fn change(&self, op: Op, places: &[Option<usize>], row: &mut BinlogRow) -> Result<Change, String> {
        let mut values = Vec::with_capacity(self.wanted.len());
        for ((name, kind), place) in self.wanted.iter().zip(places) {
            let value = place.and_then(|place| row.take(place)).map(|value| value.into_owned());
            values.push(kind.text(value).map_err(|reason| format!("column `{name}`: {reason}"))?);
        }
        Ok(Change { op, values })
    }

    /// The change that takes all rows away.
    pub(super) fn truncate(&self) -> Change {
        Change { op: Op::Truncate, values: vec![Raw::Null; self.wanted.len()] }
    }
}

/// Whether MariaDB compresses the values of a column, which it says in a comment.
fn is_compressed(column_type: &str) -> bool {
    !matches!(type_name(column_type), "enum" | "set") && column_type.contains(" compressed*/")
}

#[cfg(test)]
mod tests {
    use super::super::super::columns::schema;
    use super::*;

    fn columns(types: &[(&str, &str)]) -> Vec<MysqlColumn> {
        let column = |(name, column_type): &(&str, &str)| MysqlColumn {
            name: (*name).to_owned(),
            column_type: (*column_type).to_owned(),
            is_key: *name == "a",
            charset: None,
        };
        types.iter().map(column).collect()
    }

    fn of(table: &[MysqlColumn]) -> Columns {
        let asked_at = Position { file: "binlog.000001".to_owned(), position: 4 };
        Columns::new(&schema(table), table.to_vec(), true, asked_at).unwrap()
    }

    #[test]
    fn columns_that_change_in_the_middle_are_named_and_go_before() {
        let columns = of(&columns(&[("a", "int"), ("b", "int")]));
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(columns.places(&names(&["b"]), false), Ok(vec![None, Some(0)]), "a is not there yet");
        assert_eq!(columns.places(&names(&["b", "a"]), true), Ok(vec![Some(1), Some(0)]));
        assert_eq!(columns.places(&names(&["b", "a", "c"]), true), Err("column `c` is new".to_owned()));
        assert_eq!(columns.places(&names(&["b"]), true), Err("column `a` is gone".to_owned()));
        assert!(columns.places(&names(&["@0"]), false).is_err());
    }

    #[test]
    fn a_table_with_a_column_that_cannot_be_read_is_refused_by_its_name() {
        let asked_at = Position { file: "binlog.000001".to_owned(), position: 4 };
        for (column_type, reason) in [("text /*m!100301 compressed*/", "is compressed"), ("vector(3)", "has the type")]
        {
            let table = columns(&[("a", "int"), ("b", column_type)]);
            let error = Columns::new(&schema(&table), table, true, asked_at.clone()).unwrap_err();
            assert!(error.starts_with(&format!("column `b` {reason}")), "{error}");
        }
        of(&columns(&[("a", "enum(' compressed*/')")]));
    }

    #[test]
    fn a_statement_that_leaves_the_columns_as_they_are_changes_nothing() {
        let then = columns(&[("a", "int"), ("b", "enum('x','y')")]);
        let stream = of(&then);
        assert_eq!(stream.difference(&then), None);
        for (now, reason) in [
            (columns(&[("a", "int"), ("b", "enum('y','x')")]), "column `b` has another type"),
            (columns(&[("a", "int")]), "column `b` is gone"),
            (columns(&[("a", "int"), ("b", "enum('x','y')"), ("c", "int")]), "column `c` is new"),
            (columns(&[("b", "enum('x','y')"), ("a", "int")]), "its columns have another order"),
        ] {
            assert_eq!(stream.difference(&now).as_deref(), Some(reason));
        }
    }
}
