//! Columns that stand in the names of folders: `day=2024-05-01/country=de/part-0.json`.
//!
//! Which there are is found when the source is opened ([`columns`]) and stays so; the values come from the path of each file
//! ([`values`]). A declared column that had no folder then is one of the files, but where a folder that came later has it
//! ([`late`]).
//!
//! Source of the semantics: Spark's partition discovery. Types are as declared, or int, long, double, date, timestamp or
//! string, whichever holds all the values that are there. `__HIVE_DEFAULT_PARTITION__` is null; `%` and two digits stand
//! for a character that a name cannot have.

use super::config::FileConfig;
use super::patterns::parts;
use crate::decode::{one_value, scalar};
use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use std::sync::Arc;

const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Name and value of a folder that is a column.
pub(super) fn pair(folder: &str) -> Option<(String, Option<String>)> {
    let (name, value) = folder.split_once('=')?;
    if name.is_empty() || value.is_empty() {
        return None;
    }
    let value = unescaped(value);
    Some((unescaped(name), (value != NULL).then_some(value)))
}

/// The columns of folders by the values that were seen, outermost first; those that are declared have their type.
pub(super) fn columns(seen: Vec<(String, Vec<Option<String>>)>, declared: &[FieldRef]) -> Vec<FieldRef> {
    seen.into_iter()
        .map(|(name, values)| {
            let declared = declared.iter().find(|field| field.name().eq_ignore_ascii_case(&name));
            declared.cloned().unwrap_or_else(|| {
                let values: Vec<&str> = values.iter().flatten().map(String::as_str).collect();
                Arc::new(Field::new(name, common_type(&values), true))
            })
        })
        .collect()
}

/// The folders of a file that are columns.
fn folders(config: &FileConfig, path: &str) -> Vec<(String, Option<String>)> {
    let folders = parts(path).count().saturating_sub(1);
    parts(path).take(folders).skip(config.base_depth).filter_map(pair).collect()
}

/// The columns that a file has by its folders and not in itself though they are of the files, by their place among those.
pub(super) fn late(config: &FileConfig, path: &str) -> Vec<usize> {
    if config.of_late_folders.is_empty() {
        return Vec::new();
    }
    let folders = folders(config, path);
    let is_late = |field: &FieldRef| folders.iter().any(|(name, _)| name.eq_ignore_ascii_case(field.name()));
    let fields = config.of_late_folders.iter().enumerate();
    fields.filter(|(_, field)| is_late(field)).map(|(place, _)| place).collect()
}

/// The value of each of `columns` for a file, as arrays of one row. A file that is in no such folder has null.
pub(super) fn values(config: &FileConfig, columns: &[FieldRef], path: &str) -> Result<Vec<ArrayRef>, String> {
    let folders = folders(config, path);
    let value = |field: &FieldRef| {
        let found = folders.iter().find(|(name, _)| name.eq_ignore_ascii_case(field.name()));
        match found.and_then(|(_, value)| value.as_deref()) {
            None => Ok(new_null_array(field.data_type(), 1)),
            Some(value) => one_value(field.data_type(), value).ok_or_else(|| {
                format!("its folder says `{}={value}`, and the column is of type {}", field.name(), field.data_type())
            }),
        }
    };
    columns.iter().map(value).collect()
}

/// Whether a folder below the base is one that is entered: its name is a column.
pub(super) fn is_entered(config: &FileConfig, folder: &str) -> bool {
    let Some((name, _)) = pair(folder) else { return false };
    let mut columns = config.partitions.iter().chain(&config.of_late_folders);
    columns.any(|field| field.name().eq_ignore_ascii_case(&name))
}

/// The smallest type that holds all values.
fn common_type(values: &[&str]) -> DataType {
    let all = |fits: fn(&str) -> bool| !values.is_empty() && values.iter().all(|value| fits(value));
    if all(|value| value.parse::<i32>().is_ok()) {
        DataType::Int32
    } else if all(|value| value.parse::<i64>().is_ok()) {
        DataType::Int64
    } else if all(|value| value.parse::<f64>().is_ok_and(f64::is_finite)) {
        DataType::Float64
    } else if all(|value| value.len() == 10 && scalar::parse_date(value).is_some()) {
        DataType::Date32
    } else if all(|value| value.len() > 10 && scalar::parse_timestamp(value).is_some()) {
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
    } else {
        DataType::Utf8
    }
}

/// Text with `%` and two hexadecimal digits replaced.
pub(super) fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_of_folders() {
        assert_eq!(pair("day=2024-05-01"), Some(("day".into(), Some("2024-05-01".into()))));
        assert_eq!(pair("t=12%3A30"), Some(("t".into(), Some("12:30".into()))));
        assert_eq!(pair("a=b=c"), Some(("a".into(), Some("b=c".into()))));
        assert_eq!(pair("x=__HIVE_DEFAULT_PARTITION__"), Some(("x".into(), None)));
        for none in ["plain", "=x", "x="] {
            assert_eq!(pair(none), None, "{none}");
        }
        assert_eq!(unescaped("100%"), "100%");
    }

    #[test]
    fn the_type_is_the_smallest_that_holds_all_values() {
        for (values, expected) in [
            (&["1", "2"][..], DataType::Int32),
            (&["1", "5000000000"], DataType::Int64),
            (&["1", "2.5"], DataType::Float64),
            (&["2024-05-01"], DataType::Date32),
            (&["2024-05-01", "x"], DataType::Utf8),
            (&["2024-05-01 10:00:00"], DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            (&[], DataType::Utf8),
        ] {
            assert_eq!(common_type(values), expected, "{values:?}");
        }
    }
}
