//! The columns of the table as the log tells them, against those of the stream.

use super::catalog::Said;
use super::pgoutput::{Message, Old, Relation, Value};
use crate::connectors::database::{Change, Op, Raw, updated};
use crate::connectors::postgres::table::raw;
use arrow::datatypes::{DataType, Schema};

/// The columns that the stream has.
#[derive(Debug)]
pub(super) struct Columns {
    /// The number of the table.
    table: u32,
    names: Vec<String>,
    types: Vec<DataType>,
    /// The numbers of their types in the server's catalog when the run began.
    type_ids: Vec<u32>,
    /// Which of them are the primary key.
    key: Vec<usize>,
    /// Whether the server was asked for them: then there must be no other column.
    is_asked: bool,
    /// Where in the log's rows each column stands.
    places: Vec<Option<usize>>,
}

impl Columns {
    /// Those of a stream of `table`, of which the server said this when the run began.
    pub(super) fn new(table: &Schema, said: &Said, is_asked: bool) -> Self {
        let type_id =
            |name: &String| said.columns.iter().find(|column| column.name == *name).map(|column| column.type_id);
        let names: Vec<String> = table.fields().iter().map(|field| field.name().clone()).collect();
        Self {
            table: said.table,
            types: table.fields().iter().map(|field| field.data_type().clone()).collect(),
            type_ids: names.iter().map(|name| type_id(name).unwrap_or_default()).collect(),
            key: said.key.iter().filter_map(|key| names.iter().position(|name| name == key)).collect(),
            places: vec![None; names.len()],
            names,
            is_asked,
        }
    }

    /// Takes the columns over that the log tells. Before the run began they may have been others: a column that was not
    /// there yet is null. Since then they must be as the stream has them.
    pub(super) fn meet(&mut self, relation: &Relation, is_since: bool) -> Result<(), String> {
        if relation.id != self.table {
            return Ok(());
        }
        let find = |name: &String| relation.columns.iter().position(|(found, _)| found == name);
        self.places = self.names.iter().map(find).collect();
        if !is_since {
            return Ok(());
        }
        for ((name, place), type_id) in self.names.iter().zip(&self.places).zip(&self.type_ids) {
            match place.map(|place| relation.columns[place].1) {
                None => return Err(format!("column `{name}` is gone")),
                Some(found) if found != *type_id => return Err(format!("column `{name}` has another type")),
                Some(_) => {}
            }
        }
        match relation.columns.iter().find(|(name, _)| self.is_asked && !self.names.contains(name)) {
            Some((new, _)) => Err(format!("column `{new}` is new")),
            None => Ok(()),
        }
    }

    /// Whether a change is of the table: a publication may have others.
    pub(super) fn is_of(&self, relation: u32) -> bool {
        self.table == relation
    }

    /// The changes that a message tells; answers the column whose value is missing.
    pub(super) fn changes(&self, message: Message) -> Result<Vec<Change>, String> {
        Ok(match message {
            Message::Insert { relation, new } if self.is_of(relation) => vec![self.change(Op::Insert, &new, None)?],
            Message::Update { relation, old, new } if self.is_of(relation) => match &old {
                // The key alone is only there when it has changed, and another key is another row.
                Some(key) if !key.is_whole => {
                    let gone = self.change(Op::Delete, &key.values, None)?;
                    vec![gone, self.change(Op::Insert, &new, old.as_ref())?]
                }
                Some(whole) => updated(
                    &self.key,
                    self.change(Op::Update, &whole.values, None)?,
                    self.change(Op::Update, &new, old.as_ref())?,
                ),
                None => vec![self.change(Op::Update, &new, None)?],
            },
            Message::Delete { relation, old } if self.is_of(relation) => {
                vec![self.change(Op::Delete, &old.values, None)?]
            }
            Message::Truncate { relations } if relations.iter().any(|relation| self.is_of(*relation)) => {
                vec![Change { op: Op::Truncate, values: vec![Raw::Null; self.names.len()] }]
            }
            _ => Vec::new(),
        })
    }

    /// A row of the log as a change. `old` has the values that the log leaves out because they are the same as before.
    fn change(&self, op: Op, values: &[Value], old: Option<&Old>) -> Result<Change, String> {
        let whole = old.filter(|old| old.is_whole).map(|old| old.values.as_slice());
        let mut row = Vec::with_capacity(self.names.len());
        for (at, place) in self.places.iter().enumerate() {
            let value = place.and_then(|place| match values.get(place) {
                Some(Value::Unchanged) => whole.and_then(|whole| whole.get(place)).or(values.get(place)),
                other => other,
            });
            row.push(match value {
                None | Some(Value::Null) => Raw::Null,
                Some(Value::Text(text)) => raw(Some(text), &self.types[at]).into_owned(),
                Some(Value::Unchanged) => return Err(self.names[at].clone()),
            });
        }
        Ok(Change { op, values: row })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Field;
    use millstream_client::postgres::ColumnType;

    fn relation(columns: &[(&str, u32)]) -> Relation {
        Relation { id: 1, columns: columns.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect() }
    }

    fn columns(names: &[&str], key: &[&str], is_asked: bool) -> Columns {
        let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect();
        let column = |name: &&str| ColumnType {
            name: (*name).to_owned(),
            type_name: "text".to_owned(),
            type_id: 25,
            modifier: -1,
        };
        let said = Said {
            table: 1,
            columns: names.iter().map(column).collect(),
            key: key.iter().map(|name| (*name).to_owned()).collect(),
            position: 0,
        };
        Columns::new(&Schema::new(fields), &said, is_asked)
    }

    fn text(text: &str) -> Value {
        Value::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn a_change_of_the_table_is_refused_since_the_run_began_and_goes_before() {
        let mut asked = columns(&["a", "b"], &[], true);
        asked.meet(&relation(&[("a", 25)]), false).expect("b was not there yet");
        let insert = Message::Insert { relation: 1, new: vec![text("x")] };
        assert_eq!(asked.changes(insert).unwrap()[0].values[1], Raw::Null);
        asked.meet(&relation(&[("a", 25), ("b", 25)]), true).expect("now it is");
        let since = |asked: &mut Columns, columns: &[(&str, u32)]| asked.meet(&relation(columns), true).unwrap_err();
        assert_eq!(since(&mut asked, &[("a", 25), ("b", 25), ("c", 25)]), "column `c` is new");
        assert_eq!(since(&mut asked, &[("a", 25)]), "column `b` is gone");
        assert_eq!(since(&mut asked, &[("a", 23), ("b", 25)]), "column `a` has another type");

        let mut declared = columns(&["a"], &[], false);
        declared.meet(&relation(&[("a", 25), ("c", 25)]), true).expect("a column that nobody declared is nobody's");
    }

    #[test]
    fn other_tables_of_a_publication_are_none_of_the_stream() {
        let mut columns = columns(&["a"], &[], true);
        columns.meet(&relation(&[("a", 25)]), true).unwrap();
        columns.meet(&Relation { id: 2, columns: vec![("z".to_owned(), 23)] }, true).unwrap();
        let of = |relation| Message::Insert { relation, new: vec![text("x")] };
        assert!(columns.changes(of(2)).unwrap().is_empty());
        assert_eq!(columns.changes(of(1)).unwrap()[0].values, [Raw::Text(b"x".as_slice().into())]);
    }

    #[test]
    fn a_value_that_the_log_leaves_out_comes_from_the_old_row() {
        let mut columns = columns(&["id", "a"], &["id"], true);
        columns.meet(&relation(&[("id", 25), ("a", 25)]), true).unwrap();
        let update = |old: &str, new: &str, is_whole| Message::Update {
            relation: 1,
            old: Some(Old { is_whole, values: vec![text(old), text("x")] }),
            new: vec![text(new), Value::Unchanged],
        };
        let change = columns.changes(update("1", "1", true)).unwrap();
        assert_eq!((change.len(), &change[0].values[1]), (1, &Raw::Text(b"x".as_slice().into())));
        assert_eq!(columns.changes(update("1", "2", false)), Err("a".to_owned()));
        let ops: Vec<Op> = columns.changes(update("1", "2", true)).unwrap().iter().map(|change| change.op).collect();
        assert_eq!(ops, [Op::Delete, Op::Insert], "another key is another row");
    }
}
