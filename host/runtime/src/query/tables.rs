//! Static tables that are read anew while the query runs.
//!
//! Before a batch is computed, its tables are as fresh as their option `refresh` asks for. The plan stays what it is; only
//! the rows behind it are others, and they have the columns of the plan: a table that has other ones by now ends the query. A
//! batch that runs again after a crash sees the tables as they are then.

use super::open;
use super::run::QueryRun;
use crate::{RuntimeError, Session, TableSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use millstream_common::StopSignal;
use millstream_plan::StaticTable;
use millstream_source::{Refresh, SourceFactory, SourceSpec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether a table that was read then is to be read again now.
fn is_due(refresh: Refresh, read_ms: i64, now_ms: i64) -> bool {
    match refresh {
        Refresh::Never => false,
        Refresh::EveryBatch => true,
        Refresh::Every { ms } => now_ms.saturating_sub(read_ms) >= ms,
    }
}

/// When the tables were read that change: all of them when the query was opened.
pub(super) fn read_at(tables: &[StaticTable], opened_ms: i64) -> BTreeMap<String, i64> {
    tables.iter().filter(|table| table.live.is_some()).map(|table| (table.name.clone(), opened_ms)).collect()
}

/// Reads what is due.
pub(super) fn refresh(run: &mut QueryRun) -> Result<(), RuntimeError> {
    let now_ms = run.clock.now_ms();
    for (at, table) in run.tables.iter_mut().enumerate() {
        let (Some(live), Some(TableSpec::Files(spec))) = (&table.live, run.spec.tables.get(at)) else { continue };
        // One of which nobody knows when it was read is old.
        let read_ms = run.tables_read_ms.entry(spec.name.clone()).or_insert(i64::MIN);
        if is_due(Refresh::of(spec)?, *read_ms, now_ms) {
            table.rows = read_again(&run.session, spec, &table.schema, &run.stop)?;
            live.fill(table.rows.clone());
            *read_ms = now_ms;
        }
    }
    Ok(())
}

/// The rows of a table as they are now, by the columns of the plan.
fn read_again(
    session: &Session,
    spec: &SourceSpec,
    planned: &SchemaRef,
    stop: &StopSignal,
) -> Result<Vec<RecordBatch>, RuntimeError> {
    let spec = declaring(session.sources().factory(spec)?.as_ref(), spec, planned);
    let (found, rows) = open::read_whole(session, &spec, stop)?;
    match difference(planned, &found) {
        None => Ok(rows),
        Some(difference) => Err(RuntimeError::Invalid {
            reason: format!(
                "table `{}` cannot be read again: its columns are not what they were when the query started: {difference}",
                spec.name
            ),
            hint: Some(
                "start the query again: it takes the columns as they are then; what its SQL names must still be there"
                    .into(),
            ),
        }),
    }
}

/// The table with the columns of the plan declared, where its format lets columns be declared: then nobody asks which there
/// are, and they are read by their names, wherever they stand by now.
fn declaring(factory: &dyn SourceFactory, spec: &SourceSpec, planned: &SchemaRef) -> SourceSpec {
    let declared = SourceSpec { schema: Some(Arc::clone(planned)), ..spec.clone() };
    match factory.schema(&declared) {
        Ok(columns) if difference(planned, &columns).is_none() => declared,
        // It has columns of its own.
        _ => spec.clone(),
    }
}

/// The first column that is not as planned. The plan knows columns by their places.
fn difference(planned: &Schema, found: &Schema) -> Option<String> {
    let mut pairs = planned.fields().iter().zip(found.fields());
    if let Some((then, now)) =
        pairs.find(|(then, now)| (then.name(), then.data_type()) != (now.name(), now.data_type()))
    {
        return Some(match then.name() == now.name() {
            true => format!("column `{}` was {} and is {}", then.name(), then.data_type(), now.data_type()),
            false => format!("where column `{}` was, there is `{}`", then.name(), now.name()),
        });
    }
    let common = planned.fields().len().min(found.fields().len());
    match (planned.fields().get(common), found.fields().get(common)) {
        (Some(gone), _) => Some(format!("column `{}` is gone", gone.name())),
        (None, Some(new)) => Some(format!("column `{}` is new", new.name())),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, AsArray, StringArray};
    use arrow::datatypes::{DataType, Field};
    use millstream_common::{Options, ReadLimit, describe_chain};
    use millstream_source::{Offset, Source, SourceContext, SourceError};
    use std::sync::Mutex;

    #[test]
    fn a_table_is_read_again_when_its_time_has_come() {
        assert!(!is_due(Refresh::Never, 0, i64::MAX));
        assert!(is_due(Refresh::EveryBatch, 5, 5));
        assert!(!is_due(Refresh::Every { ms: 10 }, 5, 14));
        assert!(is_due(Refresh::Every { ms: 10 }, 5, 15));
        assert!(is_due(Refresh::Every { ms: 10 }, i64::MIN, 0));
    }

    fn columns(names: &[&str]) -> SchemaRef {
        Arc::new(Schema::new(names.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect::<Vec<_>>()))
    }

    #[test]
    fn a_column_that_is_not_as_planned_is_named() {
        let of = |names: &[&str]| difference(&columns(&["a", "b"]), &columns(names));
        assert_eq!(of(&["a", "b"]), None);
        assert_eq!(of(&["a"]).unwrap(), "column `b` is gone");
        assert_eq!(of(&["a", "b", "c"]).unwrap(), "column `c` is new");
        assert_eq!(of(&["b", "a"]).unwrap(), "where column `a` was, there is `b`");
        let number = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
        assert_eq!(difference(&columns(&["a"]), &number).unwrap(), "column `a` was Utf8 and is Int64");
    }

    /// A table whose only row has in each column the column's name; its columns are what somebody sets.
    #[derive(Clone)]
    struct Table {
        columns: Arc<Mutex<SchemaRef>>,
        takes_declared: bool,
    }

    impl SourceFactory for Table {
        fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
            match &spec.schema {
                Some(declared) if self.takes_declared => Ok(Arc::clone(declared)),
                Some(_) => Err(SourceError::Schema { name: spec.name.clone(), reason: "leave it out".into() }),
                None => Ok(Arc::clone(&self.columns.lock().unwrap())),
            }
        }

        fn open(&self, spec: &SourceSpec, _: SourceContext) -> Result<Box<dyn Source>, SourceError> {
            self.schema(spec).map(|schema| Box::new(Open(schema)) as _)
        }
    }

    struct Open(SchemaRef);

    impl Source for Open {
        fn schema(&self) -> SchemaRef {
            Arc::clone(&self.0)
        }

        fn description(&self) -> String {
            "Table".into()
        }

        fn latest_offset(&mut self, _: Option<&Offset>, _: ReadLimit) -> Result<Option<Offset>, SourceError> {
            Ok(Some(0.into()))
        }

        fn read(&mut self, _: Option<&Offset>, _: &Offset, _: &[usize]) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
            let array = |field: &Arc<Field>| Arc::new(StringArray::from(vec![field.name().as_str()])) as ArrayRef;
            let arrays = self.0.fields().iter().map(array).collect();
            Ok(vec![vec![RecordBatch::try_new(Arc::clone(&self.0), arrays).unwrap()]])
        }

        fn prepare_available_now(&mut self) -> Result<(), SourceError> {
            Ok(())
        }
    }

    #[test]
    fn a_table_that_has_other_columns_by_now_is_read_by_the_names_of_the_plan_or_refused() {
        for takes_declared in [true, false] {
            let table = Table { columns: Arc::new(Mutex::new(columns(&["a", "b"]))), takes_declared };
            let session = Session::builder().build().with_source("table", Arc::new(table.clone()));
            let spec = SourceSpec { name: "t".into(), format: "table".into(), schema: None, options: Options::new() };
            let again = || read_again(&session, &spec, &columns(&["a", "b"]), &StopSignal::new());
            assert_eq!(again().unwrap()[0].num_columns(), 2);
            *table.columns.lock().unwrap() = columns(&["b", "a"]);
            match takes_declared {
                true => assert_eq!(again().unwrap()[0].column(0).as_string::<i32>().value(0), "a"),
                false => {
                    let text = describe_chain(&again().unwrap_err());
                    assert!(text.contains("table `t` cannot be read again"), "{text}");
                    assert!(text.contains("where column `a` was, there is `b`"), "{text}");
                }
            }
        }
    }
}
