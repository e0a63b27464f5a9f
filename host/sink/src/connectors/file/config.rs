//! The options of the file sink, with Spark's names and defaults.

use crate::{SinkError, SinkSpec};
use arrow::datatypes::{DataType, Schema};
use millstream_common::{OptionError, Options};
use parquet::basic::{Compression, ZstdLevel};

/// What the files hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// One JSON object per line.
    Json,
    /// Separated values.
    Csv,
    /// One string per line.
    Text,
}

impl FileFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Parquet, Self::Json, Self::Csv, Self::Text];

    /// The name in `.format("…")`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Text => "text",
        }
    }

    /// How names of files end.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Text => "txt",
            other => other.name(),
        }
    }
}

/// The format with its own options.
#[derive(Debug, Clone)]
pub(super) enum Encoding {
    Parquet { compression: Compression },
    Json { ignore_nulls: bool },
    Csv(CsvOptions),
    Text { separator: String },
}

/// How separated values are written.
#[derive(Debug, Clone)]
pub(super) struct CsvOptions {
    pub(super) header: bool,
    pub(super) separator: String,
    pub(super) quote: char,
    pub(super) escape: char,
    pub(super) quote_all: bool,
    pub(super) null_value: String,
    pub(super) empty_value: String,
    pub(super) trim_start: bool,
    pub(super) trim_end: bool,
}

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct FileConfig {
    pub(super) path: String,
    pub(super) format: FileFormat,
    pub(super) encoding: Encoding,
    /// How many rows a file may have; `None` for any number.
    pub(super) max_rows: Option<usize>,
}

impl FileConfig {
    pub(super) fn new(spec: &SinkSpec, format: Option<FileFormat>) -> Result<Self, SinkError> {
        let options = &spec.options;
        let format = match format {
            Some(format) => format,
            None => {
                let name = options.require("sink `file`", "format")?;
                FileFormat::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name)).ok_or_else(
                    || Options::invalid("sink `file`", "format", name, "write parquet, json, csv or text"),
                )?
            }
        };
        let owner = format!("sink `{}`", format.name());
        let owner = owner.as_str();
        let own: &[&str] = match format {
            FileFormat::Parquet => &["compression"],
            FileFormat::Json => &["ignoreNullFields"],
            FileFormat::Csv => &[
                "header",
                "sep",
                "delimiter",
                "quote",
                "escape",
                "quoteAll",
                "nullValue",
                "emptyValue",
                "ignoreLeadingWhiteSpace",
                "ignoreTrailingWhiteSpace",
            ],
            FileFormat::Text => &["lineSep"],
        };
        options.only(owner, &[&["path", "format", "maxRecordsPerFile"][..], own].concat())?;
        let path = options.require(owner, "path")?;
        if path.is_empty() {
            return Err(Options::invalid(owner, "path", path, "it cannot be empty").into());
        }
        // A bare `file:` in front is how Spark writes a folder of this machine.
        let path = if path.contains("://") { path } else { path.strip_prefix("file:").unwrap_or(path) };
        let max_rows = options.parse(owner, "maxRecordsPerFile", "write a number of rows, or 0 for no limit")?;
        let encoding = match format {
            FileFormat::Parquet => Encoding::Parquet { compression: compression(owner, options)? },
            FileFormat::Json => Encoding::Json { ignore_nulls: options.flag(owner, "ignoreNullFields", true)? },
            FileFormat::Csv => Encoding::Csv(csv(owner, options)?),
            FileFormat::Text => {
                let separator = options.get("lineSep").unwrap_or("\n").to_owned();
                if separator.is_empty() {
                    return Err(Options::invalid(owner, "lineSep", "", "it cannot be empty").into());
                }
                Encoding::Text { separator }
            }
        };
        Ok(Self { path: path.to_owned(), format, encoding, max_rows: max_rows.filter(|rows| *rows > 0) })
    }

    /// Whether the format can hold the columns.
    pub(super) fn check_schema(&self, schema: &Schema) -> Result<(), SinkError> {
        let fail = |reason: String| SinkError::Schema { sink: self.format.name().to_owned(), reason };
        if schema.fields().is_empty() {
            return Err(fail("there are none; select at least one".into()));
        }
        match self.encoding {
            Encoding::Text { .. } if schema.fields().len() != 1 || schema.field(0).data_type() != &DataType::Utf8 => {
                Err(fail("format `text` takes exactly one column of type string; select one, or use json".into()))
            }
            Encoding::Csv(_) => match schema.fields().iter().find(|field| {
                let data_type = field.data_type();
                data_type.is_nested() || matches!(data_type, DataType::Binary | DataType::LargeBinary)
            }) {
                Some(field) => Err(fail(format!(
                    "format `csv` cannot hold column `{}` of type {}; cast it to a string, or use json",
                    field.name(),
                    field.data_type()
                ))),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

fn compression(owner: &str, options: &Options) -> Result<Compression, OptionError> {
    let text = options.get("compression").unwrap_or("snappy");
    match text.to_ascii_lowercase().as_str() {
        "none" | "uncompressed" => Ok(Compression::UNCOMPRESSED),
        "snappy" => Ok(Compression::SNAPPY),
        "zstd" => Ok(Compression::ZSTD(ZstdLevel::default())),
        "lz4" | "lz4_raw" => Ok(Compression::LZ4_RAW),
        _ => Err(Options::invalid(owner, "compression", text, "write none, snappy, zstd or lz4")),
    }
}

fn csv(owner: &str, options: &Options) -> Result<CsvOptions, OptionError> {
    let (name, separator) = match options.get("sep") {
        Some(separator) => ("sep", separator),
        None => ("delimiter", options.get("delimiter").unwrap_or(",")),
    };
    let separator = if separator == "\\t" { "\t" } else { separator };
    if separator.is_empty() {
        return Err(Options::invalid(owner, name, separator, "it cannot be empty"));
    }
    let one = |name: &str, default: char| match options.get(name) {
        None => Ok(default),
        Some(text) => {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(character), None) => Ok(character),
                _ => Err(Options::invalid(owner, name, text, "write one character")),
            }
        }
    };
    Ok(CsvOptions {
        header: options.flag(owner, "header", false)?,
        separator: separator.to_owned(),
        quote: one("quote", '"')?,
        escape: one("escape", '\\')?,
        quote_all: options.flag(owner, "quoteAll", false)?,
        null_value: options.get("nullValue").unwrap_or("").to_owned(),
        empty_value: options.get("emptyValue").unwrap_or("\"\"").to_owned(),
        trim_start: options.flag(owner, "ignoreLeadingWhiteSpace", true)?,
        trim_end: options.flag(owner, "ignoreTrailingWhiteSpace", true)?,
    })
}
