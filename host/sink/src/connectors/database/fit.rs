//! Whether a query fits a table: its columns, its key, and what the table is.

use super::columns::{check_table, check_types};
use super::config::DatabaseConfig;
use super::dialect::{Dialect, Load, Session, TRUNCATE};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Schema;
use millstream_client::database::{DatabaseError, TableName};
use millstream_client::patience::Transient;

/// What the table is for the query.
pub(super) enum Fit {
    /// Rows can be loaded.
    Fits(Load),
    /// There is none, and one can be made.
    IsMissing,
    /// Why not, all at once.
    Unfit(Vec<String>),
}

/// What cannot be written anywhere, and where the column is that says what changes.
pub(super) fn check_schema(config: &DatabaseConfig, schema: &Schema) -> (Option<usize>, Vec<String>) {
    let mut wrong = Vec::new();
    check_types(schema, &mut wrong);
    config.check_key(schema, &mut wrong);
    let change = config.change_index(schema, &mut wrong);
    (change, wrong)
}

/// Compares a query with the table; changes nothing.
pub(super) fn compare(
    dialect: &dyn Dialect,
    config: &DatabaseConfig,
    schema: &Schema,
    session: &mut dyn Session,
) -> Result<Fit, DatabaseError> {
    let (change, mut wrong) = check_schema(config, schema);
    let Some(found) = session.columns(&config.table)? else {
        if !config.create {
            let table = config.table.shown();
            wrong.push(format!("there is no table `{table}`; create it, or leave `createTable` at true"));
        }
        return Ok(if wrong.is_empty() { Fit::IsMissing } else { Fit::Unfit(wrong) });
    };
    if let Some(reason) = session.check_table(&config.table)? {
        // Its columns do not matter then.
        return Ok(Fit::Unfit(vec![reason]));
    }
    check_table(schema, change, &found, &mut wrong);
    let indices: Vec<usize> = (0..schema.fields().len()).filter(|at| Some(*at) != change).collect();
    let names: Vec<&str> = indices.iter().map(|at| schema.field(*at).name().as_str()).collect();
    if !config.key.is_empty() {
        let unique = session.unique_keys(&config.table)?;
        wrong.extend(check_unique(config, &unique, &names, dialect.meets_by_any_index()));
    }
    if !wrong.is_empty() {
        return Ok(Fit::Unfit(wrong));
    }
    Ok(Fit::Fits(Load {
        table: config.table.quoted(dialect.product()),
        columns: names.iter().map(|name| dialect.quote(name)).collect(),
        key: config.key.iter().filter_map(|key| names.iter().position(|name| name == key)).collect(),
        indices,
        change,
        batch_size: config.batch_size,
    }))
}

/// Why the table does not keep one row per key, or lets rows of different keys meet.
fn check_unique(
    config: &DatabaseConfig,
    unique: &[Vec<String>],
    written: &[&str],
    meets_by_any_index: bool,
) -> Option<String> {
    let has_key = |index: &&Vec<String>| config.key.iter().all(|name| index.contains(name));
    let (key, table) = (config.key.join(", "), config.table.shown());
    if !unique.iter().any(|index| index.len() == config.key.len() && has_key(&index)) {
        return Some(format!(
            "option `key` is `{key}`, and table `{table}` has no primary key or unique index of exactly these columns; \
             create one"
        ));
    }
    // A column that is not written is a number of the server's own; one without a name is a part of a column.
    let is_written = |name: &String| name.is_empty() || written.contains(&name.as_str());
    let other = unique.iter().find(|index| !has_key(index) && index.iter().all(is_written));
    other.filter(|_| meets_by_any_index).map(|index| {
        format!(
            "option `key` is `{key}`, and table `{table}` has another unique index ({}), by which a row would be written \
             over another one without a word; drop it",
            index.join(", ")
        )
    })
}

/// The first key of the rows that has no value.
pub(super) fn check_keys(load: &Load, rows: &[RecordBatch]) -> Result<(), String> {
    for batch in rows {
        for key in &load.key {
            let column = batch.column(load.indices[*key]);
            let Some(nulls) = column.logical_nulls().filter(|nulls| nulls.null_count() > 0) else { continue };
            let changes = load.change.map(|change| batch.column(change).as_string::<i32>());
            let is_of_all =
                |row| changes.is_some_and(|changes| changes.is_valid(row) && changes.value(row) == TRUNCATE);
            if (0..batch.num_rows()).any(|row| nulls.is_null(row) && !is_of_all(row)) {
                return Err(format!("column {} is of the key, and a row has no value in it", load.columns[*key]));
            }
        }
    }
    Ok(())
}

/// Makes a table, unless somebody else just does.
pub(super) fn create(session: &mut dyn Session, table: &TableName, sql: &str) -> Result<(), DatabaseError> {
    match session.run(sql) {
        // Two that make the same one at the same time get in each other's way, for all that it says IF NOT EXISTS.
        Err(error) if !error.is_transient() => match session.columns(table) {
            Ok(Some(_)) => Ok(()),
            _ => Err(error),
        },
        other => other,
    }
}

/// The statement that makes the table.
pub(super) fn create_table(dialect: &dyn Dialect, config: &DatabaseConfig, schema: &Schema) -> String {
    let mut parts: Vec<String> = Vec::new();
    for field in schema.fields().iter().filter(|field| config.change.as_ref() != Some(field.name())) {
        let is_key = config.key.contains(field.name());
        let required = if is_key { " NOT NULL" } else { "" };
        parts.push(format!("{} {}{required}", dialect.quote(field.name()), dialect.column_type(field, is_key)));
    }
    if !config.key.is_empty() {
        let key: Vec<String> = config.key.iter().map(|name| dialect.quote(name)).collect();
        parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
    }
    let table = config.table.quoted(dialect.product());
    format!("CREATE TABLE IF NOT EXISTS {table} ({}){}", parts.join(", "), dialect.table_options())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SinkSpec;
    use crate::connectors::mysql::dialect::Mysql;
    use millstream_common::Options;

    #[test]
    fn an_index_by_which_rows_of_different_keys_meet_is_refused_where_nobody_would_hear_of_it() {
        let options = Options::new().with("url", "mysql://u@h/d").with("dbtable", "t").with("key", "a,b");
        let config = DatabaseConfig::new(&Mysql, &SinkSpec { format: "mysql".into(), options }).unwrap();
        let index = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (key, number, wide) = (index(&["b", "a"]), index(&["id"]), index(&["a", "b", "c"]));
        let check = |indexes: &[Vec<String>], meets| check_unique(&config, indexes, &["a", "b", "c"], meets);
        assert_eq!(check(&[number.clone(), key.clone(), wide.clone()], true), None);
        assert!(check(&[number, wide], true).unwrap().contains("no primary key"));
        let other = [key, index(&["c"])];
        assert!(check(&other, true).unwrap().contains("another unique index (c)"));
        assert_eq!(check(&other, false), None);
    }
}
