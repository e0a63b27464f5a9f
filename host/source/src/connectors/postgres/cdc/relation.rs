//! The columns of the table as the log tells them, against those of the stream.

use super::pgoutput::{Old, Relation, Value};
use crate::connectors::database::{Change, Op, Raw};
use crate::connectors::postgres::table::raw;
use arrow::datatypes::{DataType, Schema};

/// The columns that the stream has.
#[derive(Debug)]
pub(super) struct Columns {
    names: Vec<String>,
    types: Vec<DataType>,
    /// The numbers of their types in the server's catalog when the run began.
    type_ids: Vec<u32>,
    /// Whether the server was asked for them: then there must be no other column.
    is_asked: bool,
    /// Whether the table of the log has had exactly these columns in this run.
    has_matched: bool,
    /// Where in the log's rows each column stands.
    places: Vec<Option<usize>>,
    /// The number of the table, once the log has told it.
    relation: Option<u32>,
}

impl Columns {
    pub(super) fn new(table: &Schema, type_ids: Vec<u32>, is_asked: bool) -> Self {
        Self {
            names: table.fields().iter().map(|field| field.name().clone()).collect(),
            types: table.fields().iter().map(|field| field.data_type().clone()).collect(),
            places: vec![None; type_ids.len()],
            type_ids,
            is_asked,
            has_matched: false,
            relation: None,
        }
    }

    /// Takes the columns of the log over. What was so before the run began may differ: a column that was not there yet is
    /// null. Once they are as the stream has them, they must stay so.
    pub(super) fn meet(&mut self, relation: &Relation) -> Result<(), String> {
        let find = |name: &String| relation.columns.iter().position(|(found, _)| found == name);
        self.places = self.names.iter().map(find).collect();
        self.relation = Some(relation.id);
        let mut difference = None;
        for ((name, place), type_id) in self.names.iter().zip(&self.places).zip(&self.type_ids) {
            match place.map(|place| relation.columns[place].1) {
                None => difference = Some(format!("column `{name}` is gone")),
                Some(found) if found != *type_id => difference = Some(format!("column `{name}` has another type")),
                Some(_) => {}
            }
        }
        if self.is_asked
            && let Some((new, _)) = relation.columns.iter().find(|(name, _)| !self.names.contains(name))
        {
            difference.get_or_insert_with(|| format!("column `{new}` is new"));
        }
        match difference {
            None => self.has_matched = true,
            Some(reason) if self.has_matched => return Err(reason),
            Some(_) => {}
        }
        Ok(())
    }

    /// Whether a change is of the table.
    pub(super) fn is_of(&self, relation: u32) -> bool {
        self.relation == Some(relation)
    }

    /// A row of the log as a change. `old` has the values that the log leaves out because they are the same as before.
    pub(super) fn change(&self, op: Op, values: &[Value], old: Option<&Old>) -> Result<Change, String> {
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

    /// A change of no row.
    pub(super) fn truncate(&self) -> Change {
        Change { op: Op::Truncate, values: vec![Raw::Null; self.names.len()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Field;

    fn relation(columns: &[(&str, u32)]) -> Relation {
        Relation { id: 1, columns: columns.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect() }
    }

    fn columns(names: &[&str], is_asked: bool) -> Columns {
        let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect();
        Columns::new(&Schema::new(fields), vec![25; names.len()], is_asked)
    }

    #[test]
    fn a_change_of_the_table_is_refused_only_when_it_leads_away_from_the_columns_of_the_stream() {
        let mut asked = columns(&["a", "b"], true);
        asked.meet(&relation(&[("a", 25)])).expect("b is not there yet");
        assert_eq!(asked.change(Op::Insert, &[Value::Text(b"x".to_vec())], None).unwrap().values[1], Raw::Null);
        asked.meet(&relation(&[("a", 25), ("b", 25)])).expect("now it is");
        assert_eq!(asked.meet(&relation(&[("a", 25), ("b", 25), ("c", 25)])), Err("column `c` is new".to_owned()));
        assert_eq!(asked.meet(&relation(&[("a", 25)])), Err("column `b` is gone".to_owned()));
        assert_eq!(asked.meet(&relation(&[("a", 23), ("b", 25)])), Err("column `a` has another type".to_owned()));

        let mut declared = columns(&["a"], false);
        declared.meet(&relation(&[("a", 25)])).unwrap();
        declared.meet(&relation(&[("a", 25), ("c", 25)])).expect("a column that nobody declared is nobody's");
    }

    #[test]
    fn a_value_that_the_log_leaves_out_comes_from_the_old_row() {
        let mut columns = columns(&["a"], true);
        columns.meet(&relation(&[("a", 25)])).unwrap();
        let old = |is_whole| Old { is_whole, values: vec![Value::Text(b"x".to_vec())] };
        let change = columns.change(Op::Update, &[Value::Unchanged], Some(&old(true))).unwrap();
        assert_eq!(change.values, [Raw::Text(b"x".as_slice().into())]);
        assert_eq!(columns.change(Op::Update, &[Value::Unchanged], Some(&old(false))), Err("a".to_owned()));
    }
}
