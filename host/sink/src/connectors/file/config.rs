//! The options of the file sink, with Spark's names and defaults.

use crate::{SinkError, SinkSpec};
use arrow::datatypes::{DataType, Schema};
use arrow_avro::compression::CompressionCodec;
use millstream_client::delta::{is_store_option, store_options};
use millstream_common::{OptionError, Options, duration};
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
    /// Avro object container files.
    Avro,
}

impl FileFormat {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Parquet, Self::Json, Self::Csv, Self::Text, Self::Avro];

    /// The name in `.format("…")`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Text => "text",
            Self::Avro => "avro",
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
    Avro { compression: Option<CompressionCodec> },
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
    /// Whether text is compressed.
    pub(super) gzip: bool,
    /// Credentials, region and the like of an object store.
    pub(super) store: Vec<(String, String)>,
    /// How many rows a file may have; `None` for any number.
    pub(super) max_rows: Option<usize>,
    /// About how long a file may become; `None` for any length.
    pub(super) target_bytes: Option<usize>,
    /// The columns that name folders, in order.
    pub(super) partition_by: Vec<String>,
    /// Whether the log is Spark's.
    pub(super) spark_metadata: bool,
    /// Every how many batches the log is compacted.
    pub(super) compact_interval: u64,
    /// How old a file may be to stay in the log.
    pub(super) retention_ms: Option<i64>,
}

const KNOWN: [&str; 9] = [
    "path",
    "format",
    "maxRecordsPerFile",
    "targetFileSize",
    "partitionBy",
    "compression",
    "sparkMetadata",
    "compactInterval",
    "retention",
];

impl FileConfig {
    pub(super) fn new(spec: &SinkSpec, format: Option<FileFormat>) -> Result<Self, SinkError> {
        let options = &spec.options;
        let format = match format {
            Some(format) => format,
            None => {
                let name = options.require("sink `file`", "format")?;
                FileFormat::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name)).ok_or_else(
                    || Options::invalid("sink `file`", "format", name, "write parquet, json, csv, text or avro"),
                )?
            }
        };
        let owner = format!("sink `{}`", format.name());
        let owner = owner.as_str();
        let own: &[&str] = match format {
            FileFormat::Parquet | FileFormat::Avro => &[],
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
        let store: Vec<&str> = options.iter().map(|(name, _)| name).filter(|name| is_store_option(name)).collect();
        options.only(owner, &[&KNOWN[..], own, &store].concat())?;
        let path = options.require(owner, "path")?;
        if path.is_empty() {
            return Err(Options::invalid(owner, "path", path, "it cannot be empty").into());
        }
        // A bare `file:` in front is how Spark writes a folder of this machine.
        let path = if path.contains("://") { path } else { path.strip_prefix("file:").unwrap_or(path) };
        let max_rows = options.parse(owner, "maxRecordsPerFile", "write a number of rows, or 0 for no limit")?;
        let spark_metadata = options.flag(owner, "sparkMetadata", false)?;
        let encoding = match format {
            FileFormat::Parquet => Encoding::Parquet { compression: compression(owner, options)? },
            FileFormat::Avro => Encoding::Avro { compression: avro_compression(owner, options)? },
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
        Ok(Self {
            path: path.to_owned(),
            format,
            store: store_options(options),
            gzip: !matches!(format, FileFormat::Parquet | FileFormat::Avro) && gzip(owner, options)?,
            encoding,
            max_rows: max_rows.filter(|rows| *rows > 0),
            target_bytes: target_bytes(owner, options)?,
            partition_by: partition_by(owner, options)?,
            spark_metadata,
            compact_interval: compact_interval(owner, options, spark_metadata)?,
            retention_ms: retention(owner, options)?,
        })
    }

    /// How names of files end.
    pub(super) fn ending(&self) -> String {
        format!("{}{}", self.format.ending(), if self.gzip { ".gz" } else { "" })
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

fn avro_compression(owner: &str, options: &Options) -> Result<Option<CompressionCodec>, OptionError> {
    let text = options.get("compression").unwrap_or("snappy");
    match text.to_ascii_lowercase().as_str() {
        "none" | "uncompressed" => Ok(None),
        "snappy" => Ok(Some(CompressionCodec::Snappy)),
        "deflate" => Ok(Some(CompressionCodec::Deflate)),
        "zstandard" | "zstd" => Ok(Some(CompressionCodec::ZStandard)),
        _ => Err(Options::invalid(owner, "compression", text, "write none, snappy, deflate or zstandard")),
    }
}

fn gzip(owner: &str, options: &Options) -> Result<bool, OptionError> {
    let text = options.get("compression").unwrap_or("none");
    match text.to_ascii_lowercase().as_str() {
        "none" | "uncompressed" => Ok(false),
        "gzip" => Ok(true),
        _ => Err(Options::invalid(owner, "compression", text, "write none or gzip")),
    }
}

/// A number of bytes, or one with `kb`, `mb` or `gb` behind it.
fn target_bytes(owner: &str, options: &Options) -> Result<Option<usize>, OptionError> {
    let Some(text) = options.get("targetFileSize") else { return Ok(None) };
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = match lower.strip_suffix("kb").or(lower.strip_suffix('k')) {
        Some(digits) => (digits, 1_usize << 10),
        None => match lower.strip_suffix("mb").or(lower.strip_suffix('m')) {
            Some(digits) => (digits, 1 << 20),
            None => match lower.strip_suffix("gb").or(lower.strip_suffix('g')) {
                Some(digits) => (digits, 1 << 30),
                None => (lower.as_str(), 1),
            },
        },
    };
    let bytes = digits.trim().parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    match bytes.filter(|bytes| *bytes > 0) {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(Options::invalid(owner, "targetFileSize", text, "write a number of bytes, or one such as 128mb")),
    }
}

/// Names with commas between, or a JSON array of names.
fn partition_by(owner: &str, options: &Options) -> Result<Vec<String>, OptionError> {
    let Some(text) = options.get("partitionBy") else { return Ok(Vec::new()) };
    let invalid = || Options::invalid(owner, "partitionBy", text, "write names of columns with commas between");
    let names: Vec<String> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).map_err(|_| invalid())?
    } else {
        text.split(',').map(|name| name.trim().to_owned()).collect()
    };
    if names.iter().any(String::is_empty) { Err(invalid()) } else { Ok(names) }
}

fn compact_interval(owner: &str, options: &Options, spark: bool) -> Result<u64, OptionError> {
    let expected = "write a number of batches, 2 or more";
    let interval = options.parse(owner, "compactInterval", expected)?.unwrap_or(10);
    let text = interval.to_string();
    match interval {
        // Spark looks for its compacted entries where its own default of 10 puts them, or nearer.
        11.. if spark => {
            Err(Options::invalid(owner, "compactInterval", &text, "with sparkMetadata it can be 10 at most"))
        }
        0 | 1 => Err(Options::invalid(owner, "compactInterval", &text, expected)),
        interval => Ok(interval),
    }
}

/// A duration, or milliseconds.
fn retention(owner: &str, options: &Options) -> Result<Option<i64>, OptionError> {
    let Some(text) = options.get("retention") else { return Ok(None) };
    let ms = match text.trim().parse::<i64>() {
        Ok(ms) => ms,
        Err(_) => {
            let micros = duration::parse_micros(text);
            micros.map_err(|error| Options::invalid(owner, "retention", text, &error.to_string()))? / 1000
        }
    };
    if ms > 0 { Ok(Some(ms)) } else { Err(Options::invalid(owner, "retention", text, "write a duration above 0")) }
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
