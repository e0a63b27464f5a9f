//! The options of the file sink, with Spark's names and defaults.

use super::encode::orc;
use crate::byte_length::byte_length;
use crate::{SinkError, SinkSpec};
use arrow::datatypes::{DataType, Schema};
use arrow_avro::compression::CompressionCodec;
use millstream_client::store_options::{store_option_names, store_options};
use millstream_common::{OptionError, Options, duration};
use orc_rust::compression::CompressionType;
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
    /// Apache ORC.
    Orc,
}

impl FileFormat {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Parquet, Self::Json, Self::Csv, Self::Text, Self::Avro, Self::Orc];

    /// The name in `.format("…")`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Text => "text",
            Self::Avro => "avro",
            Self::Orc => "orc",
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
    Orc { compression: Option<CompressionType>, stripe_bytes: usize },
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
    /// Whether small files are put together, and how.
    pub(super) compaction: Option<CompactionConfig>,
}

/// How small files are put together.
#[derive(Debug, Clone)]
pub(super) struct CompactionConfig {
    /// From how many of them on in a folder.
    pub(super) after_files: usize,
    /// How long a file is to become; one that is shorter than half of it is small.
    pub(super) target_bytes: u64,
    /// How long files stay that another one stands for.
    pub(super) retention_ms: i64,
}

const KNOWN: [&str; 11] = [
    "path",
    "format",
    "maxRecordsPerFile",
    "targetFileSize",
    "partitionBy",
    "compression",
    "sparkMetadata",
    "compactInterval",
    "retention",
    "compactAfterFiles",
    "compactRetention",
];
/// How long files of streams should be where the user did not say: what Spark's readers take at a time.
const TARGET_BYTES: usize = 128 << 20;
/// How long files stay that another one stands for: as long as a source remembers the files it has had.
const COMPACT_RETENTION_MS: i64 = 7 * 24 * 3_600_000;
/// How long a stripe of an ORC file may be in memory, at least and at most.
const STRIPE_BYTES: (usize, usize) = (64 << 10, 64 << 20);

impl FileConfig {
    pub(super) fn new(spec: &SinkSpec, format: Option<FileFormat>) -> Result<Self, SinkError> {
        let options = &spec.options;
        let format = match format {
            Some(format) => format,
            None => {
                let name = options.require("sink `file`", "format")?;
                FileFormat::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name)).ok_or_else(
                    || Options::invalid("sink `file`", "format", name, "write parquet, json, csv, text, avro or orc"),
                )?
            }
        };
        let owner = format!("sink `{}`", format.name());
        let owner = owner.as_str();
        let own: &[&str] = match format {
            FileFormat::Parquet | FileFormat::Avro | FileFormat::Orc => &[],
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
        let path = options.require(owner, "path")?;
        let store = store_option_names(path, options);
        options.only(owner, &[&KNOWN[..], own, &store].concat())?;
        if path.is_empty() {
            return Err(Options::invalid(owner, "path", path, "it cannot be empty").into());
        }
        // A bare `file:` in front is how Spark writes a folder of this machine.
        let path = if path.contains("://") { path } else { path.strip_prefix("file:").unwrap_or(path) };
        let max_rows = options.parse(owner, "maxRecordsPerFile", "write a number of rows, or 0 for no limit")?;
        let max_rows: Option<usize> = max_rows.filter(|rows| *rows > 0);
        let spark_metadata = options.flag(owner, "sparkMetadata", false)?;
        let target_bytes = byte_length(owner, options, "targetFileSize")?;
        let encoding = match format {
            FileFormat::Parquet => Encoding::Parquet { compression: compression(owner, options)? },
            FileFormat::Avro => Encoding::Avro { compression: avro_compression(owner, options)? },
            FileFormat::Orc => Encoding::Orc {
                compression: orc_compression(owner, options)?,
                stripe_bytes: target_bytes.map_or(STRIPE_BYTES.1, |bytes| bytes.clamp(STRIPE_BYTES.0, STRIPE_BYTES.1)),
            },
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
            store: store_options(path, options),
            gzip: matches!(format, FileFormat::Json | FileFormat::Csv | FileFormat::Text) && gzip(owner, options)?,
            encoding,
            max_rows,
            target_bytes,
            compaction: compaction(owner, options, target_bytes, max_rows.is_some())?,
            partition_by: partition_by(owner, options)?,
            spark_metadata,
            compact_interval: compact_interval(owner, options, spark_metadata)?,
            retention_ms: retention(owner, options, "retention")?,
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
            Encoding::Orc { .. } => match orc::unfit(schema) {
                Some((name, data_type)) => Err(fail(format!(
                    "format `orc` cannot hold column `{name}` of type {data_type} here; cast it (a decimal to a string or \
                     double), or use parquet"
                ))),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// Whether and how small files are put together.
fn compaction(
    owner: &str,
    options: &Options,
    target_bytes: Option<usize>,
    limits_rows: bool,
) -> Result<Option<CompactionConfig>, OptionError> {
    let expected = "write a number of files from 2 on, or 0 for never";
    let after_files = options.parse::<usize>(owner, "compactAfterFiles", expected)?.unwrap_or(0);
    let kept_ms = retention(owner, options, "compactRetention")?;
    match after_files {
        0 => match options.get("compactRetention") {
            Some(value) => Err(Options::invalid(
                owner,
                "compactRetention",
                value,
                "nothing is put together without compactAfterFiles",
            )),
            None => Ok(None),
        },
        1 => Err(Options::invalid(owner, "compactAfterFiles", "1", expected)),
        after_files if limits_rows => {
            let reason =
                "maxRecordsPerFile is set too, and what is put together has any number of rows; use targetFileSize";
            Err(Options::invalid(owner, "compactAfterFiles", &after_files.to_string(), reason))
        }
        after_files => Ok(Some(CompactionConfig {
            after_files,
            target_bytes: target_bytes.unwrap_or(TARGET_BYTES) as u64,
            retention_ms: kept_ms.unwrap_or(COMPACT_RETENTION_MS),
        })),
    }
}

fn orc_compression(owner: &str, options: &Options) -> Result<Option<CompressionType>, OptionError> {
    let text = options.get("compression").unwrap_or("zstd");
    match text.to_ascii_lowercase().as_str() {
        "none" | "uncompressed" => Ok(None),
        "snappy" => Ok(Some(CompressionType::Snappy)),
        "zlib" => Ok(Some(CompressionType::Zlib)),
        "lz4" => Ok(Some(CompressionType::Lz4)),
        "zstd" => Ok(Some(CompressionType::Zstd)),
        _ => Err(Options::invalid(owner, "compression", text, "write none, snappy, zlib, lz4 or zstd")),
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
fn retention(owner: &str, options: &Options, name: &str) -> Result<Option<i64>, OptionError> {
    let Some(text) = options.get(name) else { return Ok(None) };
    let ms = match text.trim().parse::<i64>() {
        Ok(ms) => ms,
        Err(_) => {
            let micros = duration::parse_micros(text);
            micros.map_err(|error| Options::invalid(owner, name, text, &error.to_string()))? / 1000
        }
    };
    if ms > 0 { Ok(Some(ms)) } else { Err(Options::invalid(owner, name, text, "write a duration above 0")) }
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
