//! `schema_of_csv(text[, options])`: the schema text of one record.
//!
//! Source: Spark's `CSVInferSchema`: of a value, the first of INT, BIGINT, DECIMAL without a fraction, DOUBLE, DATE, TIMESTAMP and
//! BOOLEAN that it is, else STRING. Columns are called `_c0`, `_c1`, …

use super::super::prepared::{Asked, PreparedDefinition, Work};
use super::from_csv::double;
use super::options::{ReadOptions, options};
use super::record::Record;
use crate::functions::text::time::pattern::{Pattern, Use};
use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use std::sync::Arc;

/// The functions of this file.
pub(super) fn definitions() -> Vec<PreparedDefinition> {
    vec![PreparedDefinition { name: "schema_of_csv", arguments: (1, 2), coerce, prepare }]
}

fn coerce(_name: &str, _value: &DataType) -> Result<DataType> {
    Ok(DataType::Utf8)
}

fn prepare(asked: &Asked<'_>) -> Result<Arc<dyn Work>> {
    let constants = if asked.constants.is_empty() { None } else { Some(asked.text(0, "a map of constant options")?) };
    Ok(Arc::new(SchemaOfCsv::new(asked.name, constants)?))
}

/// The schema of a constant text with a map of constant options, as the rewrite of syntax needs it; `None` where it fails.
pub(in super::super) fn constant_schema(text: &str, constants: Option<&str>) -> Option<String> {
    SchemaOfCsv::new("schema_of_csv", constants).and_then(|work| work.schema(text)).ok()
}

/// How the schemas of one call are guessed.
struct SchemaOfCsv {
    options: ReadOptions,
    /// What is guessed to be a DATE.
    date: Option<Pattern>,
}

impl SchemaOfCsv {
    fn new(name: &str, constants: Option<&str>) -> Result<Self> {
        let options = ReadOptions::new(name, &options(name, constants)?)?;
        let date = options.date_format.as_ref().map(|format| Pattern::compile(format, Use::Read)).transpose()?;
        Ok(Self { options, date })
    }

    fn schema(&self, text: &str) -> Result<String> {
        if text.is_empty() {
            return exec_err!("`schema_of_csv` is given an empty text");
        }
        let mut record = Record::default();
        record.split(text, &self.options.shape);
        let columns = (0..record.len()).map(|place| {
            let (value, _) = record.value(place).unwrap_or_default();
            format!("_c{place}: {}", self.type_of(value))
        });
        Ok(format!("STRUCT<{}>", columns.collect::<Vec<_>>().join(", ")))
    }

    fn type_of(&self, value: &str) -> String {
        let digits = value.trim_start_matches(['-', '+']);
        let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let name = match value {
            value if value.is_empty() || value == self.options.null_value => "STRING",
            value if value.parse::<i32>().is_ok() => "INT",
            value if value.parse::<i64>().is_ok() => "BIGINT",
            _ if is_whole && digits.trim_start_matches('0').len() <= 38 => {
                return format!("DECIMAL({},0)", digits.trim_start_matches('0').len().max(1));
            }
            value if double(value, &self.options).is_some() => "DOUBLE",
            value if self.date.as_ref().is_some_and(|date| date.read(value).is_some()) => "DATE",
            value if self.options.times.instant(value).is_some() => "TIMESTAMP",
            value if value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false") => "BOOLEAN",
            _ => "STRING",
        };
        name.to_owned()
    }
}

impl Work for SchemaOfCsv {
    fn output(&self) -> &DataType {
        &DataType::Utf8
    }

    fn run(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = values.as_string::<i32>();
        let schemas = texts.iter().map(|text| text.map(|text| self.schema(text)).transpose());
        Ok(Arc::new(schemas.collect::<Result<StringArray>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts, options, and what Spark 4.3 gives.
    #[test]
    fn schemas_are_guessed_as_spark_guesses_them() {
        for (text, options, expected) in [
            ("1,x", "{}", "_c0: INT, _c1: STRING"),
            (
                "1.5,true,2024-05-01,2024-05-01 12:00:00,,12345678901,12345678901234567890",
                "{}",
                "_c0: DOUBLE, _c1: BOOLEAN, _c2: DATE, _c3: TIMESTAMP, _c4: STRING, _c5: BIGINT, _c6: DECIMAL(20,0)",
            ),
            (
                "+1, 1,1e2,NaN,Inf,INF,1d,1L,01,2024-05",
                "{}",
                "_c0: INT, _c1: DOUBLE, _c2: DOUBLE, _c3: DOUBLE, _c4: DOUBLE, _c5: STRING, _c6: DOUBLE, _c7: STRING, _c8: INT, _c9: TIMESTAMP",
            ),
            ("\"1\",\"1,000\",\"\"", "{}", "_c0: INT, _c1: STRING, _c2: STRING"),
            ("1|x", r#"{"sep":"|"}"#, "_c0: INT, _c1: STRING"),
            (
                "2024/05/01,2024/05/01 10",
                r#"{"dateFormat":"yyyy/MM/dd","timestampFormat":"yyyy/MM/dd HH"}"#,
                "_c0: DATE, _c1: TIMESTAMP",
            ),
            ("2024-05-01", r#"{"preferDate":"false"}"#, "_c0: TIMESTAMP"),
            ("NA,1", r#"{"nullValue":"NA"}"#, "_c0: STRING, _c1: INT"),
        ] {
            assert_eq!(constant_schema(text, Some(options)).unwrap(), format!("STRUCT<{expected}>"), "{text}");
        }
    }
}
