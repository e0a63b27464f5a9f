//! Partition columns: which folder a row belongs to, named as Spark names it.
//!
//! ```text
//!   partitionBy = "day, country"      day=2024-05-01/country=__HIVE_DEFAULT_PARTITION__/part-…
//! ```
//!
//! The columns are taken out of the files: their values are in the folders' names, as text, with what a file system may
//! not like written as `%` and two hexadecimal digits. Null and the empty string are one folder, as in Spark.

use crate::grouping::group;
use crate::render;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// The folder of rows whose value is null or empty.
const NONE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The partition columns of one schema.
pub(super) struct Partitioning {
    columns: Vec<usize>,
    kept: Vec<usize>,
    names: Vec<String>,
    /// The columns that the files have.
    pub(super) schema: SchemaRef,
}

/// The rows of one folder.
pub(super) struct Partition {
    /// `k=v/…/`, or empty.
    pub(super) folder: String,
    pub(super) rows: Vec<RecordBatch>,
}

impl Partitioning {
    /// The columns `names` of a schema.
    ///
    /// # Errors
    /// A sentence about a column that cannot be one.
    pub(super) fn new(names: &[String], schema: &SchemaRef) -> Result<Self, String> {
        let mut columns = Vec::new();
        for name in names {
            let found = schema.fields().iter().position(|field| field.name() == name);
            let found = found
                .or_else(|| schema.fields().iter().position(|field| field.name().eq_ignore_ascii_case(name)))
                .ok_or_else(|| format!("option `partitionBy` names column `{name}`, which the query does not have"))?;
            if columns.contains(&found) {
                return Err(format!("option `partitionBy` names column `{name}` twice"));
            }
            let field = schema.field(found);
            if field.data_type().is_nested() || is_bytes(field.data_type()) {
                return Err(format!(
                    "column `{name}` of type {} cannot be in the name of a folder; partition by a column of a plain type",
                    field.data_type()
                ));
            }
            if field.name().starts_with('.') {
                return Err(format!("column `{name}` would make hidden folders; rename it"));
            }
            columns.push(found);
        }
        let kept: Vec<usize> = (0..schema.fields().len()).filter(|column| !columns.contains(column)).collect();
        if kept.is_empty() {
            return Err("all columns are partition columns; leave at least one for the files".into());
        }
        let fields: Vec<_> = kept.iter().map(|column| Arc::clone(&schema.fields()[*column])).collect();
        let names = columns.iter().map(|column| escape(schema.field(*column).name())).collect();
        let schema = if columns.is_empty() { Arc::clone(schema) } else { Arc::new(Schema::new(fields)) };
        Ok(Self { columns, kept, names, schema })
    }

    /// The rows by folder, folders in the order of their first rows, rows in order.
    pub(super) fn split(&self, rows: &[RecordBatch]) -> Result<Vec<Partition>, ArrowError> {
        if self.columns.is_empty() {
            let rows: Vec<RecordBatch> = rows.iter().filter(|batch| batch.num_rows() > 0).cloned().collect();
            let whole = Partition { folder: String::new(), rows };
            return Ok(if whole.rows.is_empty() { vec![] } else { vec![whole] });
        }
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut partitions: Vec<Partition> = Vec::new();
        for batch in rows {
            for (folder, indices) in self.folders(batch)? {
                let at = *known.entry(folder).or_insert_with_key(|folder| {
                    partitions.push(Partition { folder: folder.clone(), rows: Vec::new() });
                    partitions.len() - 1
                });
                let part = take_record_batch(&batch.project(&self.kept)?, &UInt32Array::from(indices))?;
                partitions[at].rows.push(part);
            }
        }
        Ok(partitions)
    }

    /// The rows of one batch by folder: groups that differ may still share one, as null and "" do.
    fn folders(&self, batch: &RecordBatch) -> Result<Vec<(String, Vec<u32>)>, ArrowError> {
        let columns: Vec<ArrayRef> = self.columns.iter().map(|column| Arc::clone(batch.column(*column))).collect();
        let mut found: Vec<(String, Vec<u32>)> = Vec::new();
        let mut by_folder: HashMap<String, usize> = HashMap::new();
        for rows in group(&columns)? {
            let Some(first) = rows.first() else { continue };
            let folder = self.folder(&columns, *first as usize)?;
            match by_folder.get(&folder) {
                Some(at) => {
                    found[*at].1.extend(rows);
                    found[*at].1.sort_unstable();
                }
                None => {
                    by_folder.insert(folder.clone(), found.len());
                    found.push((folder, rows));
                }
            }
        }
        Ok(found)
    }

    fn folder(&self, columns: &[ArrayRef], row: usize) -> Result<String, ArrowError> {
        let mut folder = String::new();
        for (name, column) in self.names.iter().zip(columns) {
            let value = value(column.as_ref(), row)?.filter(|value| !value.is_empty());
            folder.push_str(name);
            folder.push('=');
            folder.push_str(&value.map_or_else(|| NONE.to_owned(), |value| escape(&value)));
            folder.push('/');
        }
        Ok(folder)
    }
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_))
}

/// A value as Spark casts it to a string.
fn value(array: &dyn Array, row: usize) -> Result<Option<String>, ArrowError> {
    if array.is_null(row) {
        return Ok(None);
    }
    Ok(Some(match array.data_type() {
        DataType::Null => return Ok(None),
        DataType::Float32 => render::float(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => render::double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Date32 => render::date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(unit, _) => render::timestamp(render::micros(array, *unit, row)),
        _ => ArrayFormatter::try_new(array, &FormatOptions::default())?.value(row).to_string(),
    }))
}

/// What folders' names may not hold, as Spark and Hive escape it.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        let special = character.is_ascii_control()
            || matches!(character, '"' | '#' | '%' | '\'' | '*' | '/' | ':' | '=' | '?' | '\\' | '{' | '[' | ']' | '^');
        if special {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{:02X}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, StringArray};
    use arrow::datatypes::Field;

    fn batch(k: Vec<Option<&str>>) -> RecordBatch {
        let n = Int32Array::from_iter_values(0..k.len() as i32);
        RecordBatch::try_from_iter_with_nullable(vec![
            ("k", Arc::new(StringArray::from(k)) as ArrayRef, true),
            ("n", Arc::new(n) as ArrayRef, true),
        ])
        .unwrap()
    }

    #[test]
    fn rows_go_to_folders_in_order_and_lose_the_column() {
        let rows = [batch(vec![Some("a/b"), None, Some("a/b"), Some("")]), batch(vec![Some("x=1 %"), Some("a/b")])];
        let partitioning = Partitioning::new(&["K".into()], &rows[0].schema()).unwrap();
        let found: Vec<(String, Vec<i32>)> = partitioning
            .split(&rows)
            .unwrap()
            .into_iter()
            .map(|partition| {
                let values = partition.rows.iter().flat_map(|batch| {
                    assert_eq!(batch.num_columns(), 1);
                    batch.column(0).as_primitive::<arrow::datatypes::Int32Type>().values().to_vec()
                });
                (partition.folder, values.collect())
            })
            .collect();
        let expected =
            [("k=a%2Fb/", vec![0, 2, 1]), ("k=__HIVE_DEFAULT_PARTITION__/", vec![1, 3]), ("k=x%3D1 %25/", vec![0])];
        assert_eq!(found, expected.map(|(folder, rows)| (folder.to_owned(), rows)));
    }

    #[test]
    fn columns_that_cannot_name_folders_are_refused() {
        let list = DataType::List(Arc::new(Field::new("item", DataType::Int32, true)));
        let schema = Arc::new(Schema::new(vec![
            Field::new("k", DataType::Utf8, true),
            Field::new("l", list, true),
            Field::new(".h", DataType::Int32, true),
        ]));
        let refused = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Partitioning::new(&names, &schema).err().unwrap()
        };
        assert!(refused(&["z"]).contains("does not have"));
        assert!(refused(&["k", "K"]).contains("twice"));
        assert!(refused(&["l"]).contains("plain type"));
        assert!(refused(&[".h"]).contains("hidden"));
        let one = Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8, true)]));
        assert!(Partitioning::new(&["k".into()], &one).err().unwrap().contains("all columns"));
    }
}
