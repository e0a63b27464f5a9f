//! The options of the file source, with Spark's names and defaults.

use crate::decode::json::nullable;
use crate::decode::{CsvDecoder, CsvOptions, JsonDecoder, JsonOptions, TextDecoder};
use crate::{SourceError, SourceSpec};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use glob::Pattern;
use millstream_common::{Options, ReadLimit, duration};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the files hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Lines, or whole files, as one string.
    Text,
    /// One JSON object per line.
    Json,
    /// Separated values.
    Csv,
    /// Apache Parquet.
    Parquet,
}

impl FileFormat {
    /// The name in `.format("…")`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }

    fn parse(owner: &str, name: &str) -> Result<Self, SourceError> {
        [Self::Text, Self::Json, Self::Csv, Self::Parquet]
            .into_iter()
            .find(|format| format.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| Options::invalid(owner, "format", name, "write text, json, csv or parquet").into())
    }
}

/// The format with its own options.
#[derive(Debug, Clone)]
pub(super) enum Decoding {
    Text { whole: bool, separator: Option<Vec<u8>> },
    Json(JsonOptions),
    Csv(CsvOptions),
    Parquet,
}

/// What becomes of files whose rows are committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CleanSource {
    Off,
    Archive(PathBuf),
    Delete,
}

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct FileConfig {
    pub(super) path: String,
    pub(super) limit: ReadLimit,
    pub(super) latest_first: bool,
    pub(super) file_name_only: bool,
    pub(super) max_file_age_ms: i64,
    pub(super) max_cached_files: usize,
    pub(super) name_filter: Option<Pattern>,
    pub(super) recursive: bool,
    pub(super) clean: CleanSource,
    pub(super) decoding: Decoding,
    pub(super) schema: SchemaRef,
}

const KNOWN: [&str; 13] = [
    "path",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "latestFirst",
    "fileNameOnly",
    "maxFileAge",
    "maxCachedFiles",
    "discardCachedInputRatio",
    "pathGlobFilter",
    "recursiveFileLookup",
    "cleanSource",
    "sourceArchiveDir",
    "format",
];

impl FileConfig {
    /// Checks options and schema; looks at no file.
    pub(super) fn new(spec: &SourceSpec, format: Option<FileFormat>) -> Result<Self, SourceError> {
        let owner = format!("source `{}`", spec.name);
        let owner = owner.as_str();
        let options = &spec.options;
        let format = match format {
            Some(format) => format,
            None => FileFormat::parse(owner, options.require(owner, "format")?)?,
        };
        let format_options: &[&str] = match format {
            FileFormat::Text => &["wholetext", "lineSep"],
            FileFormat::Json => JsonOptions::KNOWN,
            FileFormat::Csv => CsvOptions::KNOWN,
            FileFormat::Parquet => &[],
        };
        options.only(owner, &[&KNOWN[..], format_options].concat())?;
        let path = local_path(owner, "path", options.require(owner, "path")?)?;
        Pattern::new(&path).map_err(|error| Options::invalid(owner, "path", &path, &error.to_string()))?;
        let limit = limit(owner, options)?;
        let latest_first = options.flag(owner, "latestFirst", false)?;
        let mut max_file_age_ms = max_file_age(owner, options)?;
        if latest_first && limit != ReadLimit::AllAvailable {
            // Newest first under a limit leaves old files for later on purpose: they must not be too old then.
            max_file_age_ms = i64::MAX;
        }
        let name_filter = match options.get("pathGlobFilter") {
            Some(text) => Some(
                Pattern::new(text)
                    .map_err(|error| Options::invalid(owner, "pathGlobFilter", text, &error.to_string()))?,
            ),
            None => None,
        };
        if let Some(ratio) = options.parse::<f64>(owner, "discardCachedInputRatio", "write a number from 0 to 1")?
            && !(0.0..=1.0).contains(&ratio)
        {
            let reason = "write a number from 0 to 1";
            return Err(Options::invalid(owner, "discardCachedInputRatio", &ratio.to_string(), reason).into());
        }
        let decoding = match format {
            FileFormat::Text => {
                let separator = options.get("lineSep");
                if separator == Some("") {
                    return Err(Options::invalid(owner, "lineSep", "", "it cannot be empty").into());
                }
                Decoding::Text {
                    whole: options.flag(owner, "wholetext", false)?,
                    separator: separator.map(|text| text.as_bytes().to_vec()),
                }
            }
            FileFormat::Json => Decoding::Json(JsonOptions::from_options(owner, options)?),
            FileFormat::Csv => Decoding::Csv(CsvOptions::from_options(owner, options)?),
            FileFormat::Parquet => Decoding::Parquet,
        };
        Ok(Self {
            schema: schema(spec, format, &decoding)?,
            clean: clean_source(owner, options, &path)?,
            path,
            limit,
            latest_first,
            file_name_only: options.flag(owner, "fileNameOnly", false)?,
            max_file_age_ms,
            max_cached_files: options.parse(owner, "maxCachedFiles", "write a number of files")?.unwrap_or(10_000),
            name_filter,
            recursive: options.flag(owner, "recursiveFileLookup", false)?,
            decoding,
        })
    }
}

/// A folder, file or glob on this machine, absolute.
fn local_path(owner: &str, option: &str, text: &str) -> Result<String, SourceError> {
    let invalid = |reason: &str| SourceError::from(Options::invalid(owner, option, text, reason));
    let plain = match text.split_once("://") {
        Some(("file", rest)) => rest,
        Some(_) => return Err(invalid("only folders of this machine can be read")),
        None => text.strip_prefix("file:").unwrap_or(text),
    };
    if plain.is_empty() {
        return Err(invalid("it cannot be empty"));
    }
    let absolute = std::path::absolute(plain).map_err(|error| invalid(&error.to_string()))?;
    Ok(absolute.to_string_lossy().into_owned())
}

fn limit(owner: &str, options: &Options) -> Result<ReadLimit, SourceError> {
    let expected = "write a whole number greater than 0";
    let files: Option<u64> = options.parse(owner, "maxFilesPerTrigger", expected)?;
    let bytes: Option<u64> = options.parse(owner, "maxBytesPerTrigger", expected)?;
    let (name, limit) = match (files, bytes) {
        (None, None) => return Ok(ReadLimit::AllAvailable),
        (Some(files), None) => ("maxFilesPerTrigger", ReadLimit::MaxFiles(files)),
        (None, Some(bytes)) => ("maxBytesPerTrigger", ReadLimit::MaxBytes(bytes)),
        (Some(_), Some(bytes)) => {
            let reason = "maxFilesPerTrigger is set too; keep one of the two";
            return Err(Options::invalid(owner, "maxBytesPerTrigger", &bytes.to_string(), reason).into());
        }
    };
    match limit {
        ReadLimit::MaxFiles(0) | ReadLimit::MaxBytes(0) => Err(Options::invalid(owner, name, "0", expected).into()),
        limit => Ok(limit),
    }
}

/// `7d`, `12h`, `10 minutes`, or milliseconds.
fn max_file_age(owner: &str, options: &Options) -> Result<i64, SourceError> {
    let text = options.get("maxFileAge").unwrap_or("7d");
    let invalid = |reason: &str| Options::invalid(owner, "maxFileAge", text, reason).into();
    let age = match text.trim().parse::<i64>() {
        Ok(ms) => ms,
        Err(_) => duration::parse_micros(text).map_err(|error| invalid(&error.to_string()))? / 1000,
    };
    if age < 0 { Err(invalid("it cannot be negative")) } else { Ok(age) }
}

fn clean_source(owner: &str, options: &Options, path: &str) -> Result<CleanSource, SourceError> {
    let value = options.get("cleanSource").unwrap_or("off");
    match value.to_ascii_lowercase().as_str() {
        "off" => Ok(CleanSource::Off),
        "delete" => Ok(CleanSource::Delete),
        "archive" => {
            let folder = options.require(owner, "sourceArchiveDir")?;
            let archive = PathBuf::from(local_path(owner, "sourceArchiveDir", folder)?);
            // Archived files keep their whole path below the archive; they must not come back as input.
            let base = fixed_part(path);
            if archive.starts_with(&base) || base.starts_with(&archive) {
                let reason = "it must not lie inside the folder that is read, nor around it";
                return Err(Options::invalid(owner, "sourceArchiveDir", folder, reason).into());
            }
            Ok(CleanSource::Archive(archive))
        }
        _ => Err(Options::invalid(owner, "cleanSource", value, "write off, archive or delete").into()),
    }
}

/// The longest leading part of a path without wildcards.
pub(super) fn fixed_part(path: &str) -> PathBuf {
    Path::new(path).components().take_while(|part| !is_glob(&part.as_os_str().to_string_lossy())).collect()
}

/// Whether a path has wildcards.
pub(super) fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

fn schema(spec: &SourceSpec, format: FileFormat, decoding: &Decoding) -> Result<SchemaRef, SourceError> {
    let fail = |reason: String| SourceError::Schema { name: spec.name.clone(), reason };
    let declared = match (&spec.schema, format) {
        (None, FileFormat::Text) => return Ok(TextDecoder::full_schema()),
        (None, _) => {
            let example = "declare one, for example `id INT, word STRING`";
            return Err(fail(format!("format `{}` needs a schema; {example}", format.name())));
        }
        (Some(declared), _) => declared,
    };
    let fields: Vec<FieldRef> = declared.fields().iter().map(|field| nullable(field)).collect();
    for (at, field) in fields.iter().enumerate() {
        if fields[..at].iter().any(|earlier| earlier.name() == field.name()) {
            return Err(fail(format!("column `{}` is declared twice", field.name())));
        }
    }
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let all: Vec<usize> = (0..schema.fields().len()).collect();
    match decoding {
        Decoding::Text { .. } if schema.fields().len() != 1 || schema.field(0).data_type() != &DataType::Utf8 => {
            Err(fail("format `text` has exactly one column of type string".into()))
        }
        Decoding::Json(options) => match JsonDecoder::new(&schema, &all, options.clone()) {
            Ok(_) => Ok(schema),
            Err(error) => Err(fail(error.to_string())),
        },
        Decoding::Csv(options) => match CsvDecoder::new(&schema, &all, options.clone()) {
            Ok(_) => Ok(schema),
            Err(error) => Err(fail(error.to_string())),
        },
        _ => Ok(schema),
    }
}
