//! The options of the file source, with Spark's names and defaults. Nothing is looked at here.

use super::compression::Compression;
use super::patterns::{NameFilter, Places};
use crate::decode::{CsvOptions, JsonOptions, scalar};
use crate::{SourceError, SourceSpec};
use arrow::datatypes::{FieldRef, Fields, Schema, SchemaRef};
use millstream_client::store_options::{store_option_names, store_options};
use millstream_common::{Options, ReadLimit, duration};
use millstream_store::{is_hdfs, is_stored, refusal, split};
use std::path::Path;
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
    /// Apache Avro's container files.
    Avro,
    /// Apache ORC.
    Orc,
}

impl FileFormat {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Text, Self::Json, Self::Csv, Self::Parquet, Self::Avro, Self::Orc];

    /// The name in `.format("…")`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Avro => "avro",
            Self::Orc => "orc",
        }
    }

    fn parse(owner: &str, name: &str) -> Result<Self, SourceError> {
        Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            Options::invalid(owner, "format", name, "write text, json, csv, parquet, avro or orc").into()
        })
    }
}

/// The format with its own options.
#[derive(Debug, Clone)]
pub(super) enum Decoding {
    Text { whole: bool, separator: Option<Vec<u8>> },
    Json(JsonOptions),
    Csv(CsvOptions),
    Parquet,
    Avro,
    Orc,
}

/// What becomes of files whose rows are committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CleanSource {
    Off,
    /// The folder, or the location of one in the same bucket.
    Archive(String),
    Delete,
}

/// What becomes of a file that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadFiles {
    /// The query fails.
    Fail,
    /// The rows before the damage count (Spark's `ignoreCorruptFiles`).
    Keep,
    /// None of its rows count.
    Skip,
    /// As `Skip`, and a dead letter names it.
    DeadLetter,
}

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct FileConfig {
    pub(super) format: FileFormat,
    /// A folder, file or pattern: a path of this machine, or a location in an object store.
    pub(super) path: String,
    /// What the path says.
    pub(super) places: Places,
    /// How many parts of the path of a file stand above the folders whose names are columns.
    pub(super) base_depth: usize,
    pub(super) limit: ReadLimit,
    pub(super) latest_first: bool,
    pub(super) by_name: bool,
    pub(super) file_name_only: bool,
    pub(super) max_file_age_ms: i64,
    pub(super) max_cached_files: usize,
    pub(super) discard_ratio: f64,
    pub(super) name_filter: Option<NameFilter>,
    pub(super) modified_before_ms: Option<i64>,
    pub(super) modified_after_ms: Option<i64>,
    pub(super) recursive: bool,
    pub(super) clean: CleanSource,
    pub(super) decoding: Decoding,
    pub(super) bad_files: BadFiles,
    pub(super) ignore_missing: bool,
    pub(super) max_decompressed: u64,
    pub(super) infers: bool,
    /// What the user wrote for the object store.
    pub(super) store_options: Vec<(String, String)>,
    /// The columns that stand in the files.
    pub(super) data_schema: SchemaRef,
    /// The columns that stand in the names of folders.
    pub(super) partitions: Vec<FieldRef>,
    /// The columns of the files that stand in the names of folders where there are such folders: all of them, or none.
    pub(super) of_late_folders: Fields,
    /// Those of the files, then those of the folders.
    pub(super) schema: SchemaRef,
}

const KNOWN: [&str; 22] = [
    "path",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "latestFirst",
    "incrementalListing",
    "fileNameOnly",
    "maxFileAge",
    "maxCachedFiles",
    "discardCachedInputRatio",
    "pathGlobFilter",
    "recursiveFileLookup",
    "modifiedBefore",
    "modifiedAfter",
    "basePath",
    "cleanSource",
    "sourceArchiveDir",
    "ignoreCorruptFiles",
    "ignoreMissingFiles",
    "badFiles",
    "maxDecompressedBytes",
    "inferSchema",
    "format",
];
/// How large a file may become when it is decompressed: 4 GiB.
const MAX_DECOMPRESSED: u64 = 4 << 30;

impl FileConfig {
    /// Checks the options. The schema is still empty.
    pub(super) fn new(spec: &SourceSpec, format: Option<FileFormat>) -> Result<Self, SourceError> {
        let owner = format!("source `{}`", spec.name);
        let owner = owner.as_str();
        let options = &spec.options;
        let format = match format {
            Some(format) => format,
            None => FileFormat::parse(owner, options.require(owner, "format")?)?,
        };
        let location = options.require(owner, "path")?;
        let store_options = only_known(owner, options, format, location)?;
        let path = place(owner, "path", location)?;
        let places = Places::parse(&path).map_err(|reason| Options::invalid(owner, "path", &path, &reason))?;
        let recursive = options.flag(owner, "recursiveFileLookup", false)?;
        let limit = limit(owner, options)?;
        let latest_first = options.flag(owner, "latestFirst", false)?;
        let by_name = options.flag(owner, "incrementalListing", false)?;
        if by_name && latest_first {
            let reason = "latestFirst is set too, and the newest name must then come last";
            return Err(Options::invalid(owner, "incrementalListing", "true", reason).into());
        }
        let mut max_file_age_ms = max_file_age(owner, options)?;
        if latest_first && limit != ReadLimit::AllAvailable {
            // Newest first under a limit leaves old files for later on purpose: they must not be too old then.
            max_file_age_ms = i64::MAX;
        }
        let empty: SchemaRef = Arc::new(Schema::empty());
        Ok(Self {
            format,
            base_depth: base_depth(owner, options, (&path, &places), recursive)?,
            clean: clean_source(owner, options, (&path, &places))?,
            path,
            places,
            limit,
            latest_first,
            by_name,
            file_name_only: options.flag(owner, "fileNameOnly", false)?,
            max_file_age_ms,
            max_cached_files: options.parse(owner, "maxCachedFiles", "write a number of files")?.unwrap_or(10_000),
            discard_ratio: ratio(owner, options)?,
            name_filter: name_filter(owner, options)?,
            modified_before_ms: moment(owner, options, "modifiedBefore")?,
            modified_after_ms: moment(owner, options, "modifiedAfter")?,
            recursive,
            decoding: decoding(owner, options, format)?,
            bad_files: bad_files(owner, options)?,
            ignore_missing: options.flag(owner, "ignoreMissingFiles", false)?,
            max_decompressed: options
                .parse(owner, "maxDecompressedBytes", "write a number of bytes")?
                .unwrap_or(MAX_DECOMPRESSED),
            infers: options.flag(owner, "inferSchema", false)?,
            store_options,
            data_schema: Arc::clone(&empty),
            partitions: Vec::new(),
            of_late_folders: Fields::empty(),
            schema: empty,
        })
    }

    /// Whether the files are objects.
    pub(super) fn is_stored(&self) -> bool {
        is_stored(&self.path)
    }

    /// Whether an empty file of this name has no rows, whatever its format. Spark cuts files into pieces, and an empty one has
    /// none; a whole text and a compressed file are never cut.
    pub(super) fn is_nothing_when_empty(&self, path: &str) -> bool {
        match self.decoding {
            Decoding::Text { whole: true, .. } => false,
            Decoding::Text { .. } | Decoding::Json(_) | Decoding::Csv(_) => {
                Compression::of(path) == Ok(Compression::Nothing)
            }
            Decoding::Parquet | Decoding::Avro | Decoding::Orc => true,
        }
    }
}

/// Refuses options that nobody reads; answers those of the object store.
fn only_known(
    owner: &str,
    options: &Options,
    format: FileFormat,
    location: &str,
) -> Result<Vec<(String, String)>, SourceError> {
    let of_format: &[&str] = match format {
        FileFormat::Text => &["wholetext", "lineSep"],
        FileFormat::Json => JsonOptions::KNOWN,
        FileFormat::Csv => CsvOptions::KNOWN,
        FileFormat::Parquet | FileFormat::Avro | FileFormat::Orc => &[],
    };
    let of_store = store_option_names(location, options);
    options.only(owner, &[&KNOWN[..], of_format, &of_store].concat())?;
    Ok(store_options(location, options))
}

fn decoding(owner: &str, options: &Options, format: FileFormat) -> Result<Decoding, SourceError> {
    Ok(match format {
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
        FileFormat::Avro => Decoding::Avro,
        FileFormat::Orc => Decoding::Orc,
    })
}

fn bad_files(owner: &str, options: &Options) -> Result<BadFiles, SourceError> {
    let keeps = options.flag(owner, "ignoreCorruptFiles", false)?;
    let Some(value) = options.get("badFiles") else {
        return Ok(if keeps { BadFiles::Keep } else { BadFiles::Fail });
    };
    if keeps {
        let reason = "ignoreCorruptFiles is set too; keep one of the two";
        return Err(Options::invalid(owner, "badFiles", value, reason).into());
    }
    match value.to_ascii_lowercase().as_str() {
        "fail" => Ok(BadFiles::Fail),
        "skip" => Ok(BadFiles::Skip),
        "dead-letter" => Ok(BadFiles::DeadLetter),
        _ => Err(Options::invalid(owner, "badFiles", value, "write fail, skip or dead-letter").into()),
    }
}

/// A folder, file or glob on this machine, absolute; or a location in an object store.
fn place(owner: &str, option: &str, text: &str) -> Result<String, SourceError> {
    let invalid = |reason: &str| SourceError::from(Options::invalid(owner, option, text, reason));
    if is_stored(text) {
        if let Some(reason) = refusal(text) {
            return Err(invalid(reason));
        }
        let Some((base, key)) = split(text) else { return Err(invalid("it is no URL")) };
        if base.ends_with("://") {
            return Err(invalid(if is_hdfs(text) { "it names no name node" } else { "it names no bucket" }));
        }
        return Ok(format!("{base}/{key}"));
    }
    let plain = match text.split_once("://") {
        Some(("file", rest)) if rest.starts_with('/') => rest,
        Some(("file", _)) => return Err(invalid("a folder of this machine is file:///path")),
        Some(_) => {
            return Err(invalid(
                "only folders of this machine, s3://, gs://, az://, hdfs:// and their like can be read",
            ));
        }
        None => text.strip_prefix("file:").unwrap_or(text),
    };
    if plain.is_empty() {
        return Err(invalid("it cannot be empty"));
    }
    let absolute = std::path::absolute(plain).map_err(|error| invalid(&error.to_string()))?;
    Ok(absolute.to_string_lossy().into_owned())
}

fn base_depth(
    owner: &str,
    options: &Options,
    (path, places): (&str, &Places),
    recursive: bool,
) -> Result<usize, SourceError> {
    let invalid =
        |option: &str, text: &str, reason: &str| SourceError::from(Options::invalid(owner, option, text, reason));
    let Some(text) = options.get("basePath") else {
        let reason = "its braces stand for folders of different depth; set basePath to the folder above them";
        return match places.depth() {
            // No folder is a column then.
            None if recursive => Ok(0),
            depth => depth.ok_or_else(|| invalid("path", path, reason)),
        };
    };
    let base = place(owner, "basePath", text)?;
    let base = Places::parse(&base).map_err(|reason| invalid("basePath", text, &reason))?;
    if !places.are_below(&base) {
        return Err(invalid("basePath", text, "the path does not lie below it"));
    }
    base.depth().ok_or_else(|| invalid("basePath", text, "its braces stand for folders of different depth"))
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

fn ratio(owner: &str, options: &Options) -> Result<f64, SourceError> {
    let expected = "write a number from 0 to 1";
    let ratio = options.parse::<f64>(owner, "discardCachedInputRatio", expected)?.unwrap_or(0.2);
    if (0.0..=1.0).contains(&ratio) {
        return Ok(ratio);
    }
    Err(Options::invalid(owner, "discardCachedInputRatio", &ratio.to_string(), expected).into())
}

fn name_filter(owner: &str, options: &Options) -> Result<Option<NameFilter>, SourceError> {
    let Some(text) = options.get("pathGlobFilter") else { return Ok(None) };
    let filter = NameFilter::parse(text);
    Ok(Some(filter.map_err(|reason| Options::invalid(owner, "pathGlobFilter", text, &reason))?))
}

/// A point in time, in milliseconds.
fn moment(owner: &str, options: &Options, name: &str) -> Result<Option<i64>, SourceError> {
    let Some(text) = options.get(name) else { return Ok(None) };
    let micros = scalar::parse_timestamp(text)
        .ok_or_else(|| Options::invalid(owner, name, text, "write a time as 2020-06-01T13:00:00"))?;
    Ok(Some(micros.div_euclid(1000)))
}

fn clean_source(owner: &str, options: &Options, (path, places): (&str, &Places)) -> Result<CleanSource, SourceError> {
    let value = options.get("cleanSource").unwrap_or("off");
    match value.to_ascii_lowercase().as_str() {
        "off" => Ok(CleanSource::Off),
        "delete" => Ok(CleanSource::Delete),
        "archive" => {
            let folder = options.require(owner, "sourceArchiveDir")?;
            let invalid = |reason: &str| Options::invalid(owner, "sourceArchiveDir", folder, reason).into();
            let archive = place(owner, "sourceArchiveDir", folder)?;
            let bucket = |location: &str| is_stored(location).then(|| split(location).map(|(base, _)| base.to_owned()));
            if bucket(&archive) != bucket(path) {
                return Err(invalid("it must be where the files are: on this machine, or in the same bucket"));
            }
            // Archived files keep their whole path below the archive; they must not come back as input.
            let base = places.base();
            if Path::new(&archive).starts_with(&base) || Path::new(&base).starts_with(&archive) {
                return Err(invalid("it must not lie inside the folder that is read, nor around it"));
            }
            Ok(CleanSource::Archive(archive))
        }
        _ => Err(Options::invalid(owner, "cleanSource", value, "write off, archive or delete").into()),
    }
}
