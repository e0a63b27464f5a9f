//! The schema of a file source: as declared, or found by looking at the files; with the columns of folders.
//!
//! Rule of its life: it looks at the oldest files there are and at a bounded part of them. What it finds holds as long as
//! the query runs; the caller keeps it.

use super::bucket::Bucket;
use super::columnar;
use super::compression::Compression;
use super::config::{Decoding, FileConfig, FileFormat};
use super::input::InputFile;
use super::listing::{self, FoundFile};
use super::partitions;
use super::patterns::parts;
use crate::decode::inference::{CsvInference, JsonInference};
use crate::decode::json::nullable;
use crate::decode::{CsvDecoder, JsonDecoder, TextDecoder};
use crate::{SourceError, SourceSpec};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use millstream_common::guarded;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many files are looked at.
const FILES: usize = 100;
/// How much of a text file is looked at.
const BYTES: u64 = 8 << 20;
/// How many folders of one level, or objects, are looked at for the columns of folders.
const FOLDERS: usize = 10_000;

/// Names and values of the folders that are columns, outermost first.
pub(super) type SeenFolders = Vec<(String, Vec<Option<String>>)>;

/// Completes the schema of a configuration.
pub(super) fn resolve(
    config: &mut FileConfig,
    spec: &SourceSpec,
    bucket: Option<&Arc<Bucket>>,
    folders: SeenFolders,
) -> Result<(), SourceError> {
    let fail = |reason: String| SourceError::Schema { name: spec.name.clone(), reason };
    let declared: Vec<FieldRef> = match &spec.schema {
        Some(declared) => declared.fields().iter().map(|field| nullable(field)).collect(),
        None => Vec::new(),
    };
    for (at, field) in declared.iter().enumerate() {
        if declared[..at].iter().any(|earlier| earlier.name() == field.name()) {
            return Err(fail(format!("column `{}` is declared twice", field.name())));
        }
    }
    let mut partitions = partitions::columns(folders, &declared);
    if config.format == FileFormat::Text && !config.recursive {
        // A text file has one column: what else is declared can only stand in the names of folders.
        let is_known = |field: &FieldRef| partitions.iter().any(|known| known.name() == field.name());
        let others: Vec<FieldRef> = declared.iter().filter(|field| !is_known(field)).skip(1).cloned().collect();
        partitions.extend(others);
    }
    let is_of_folder =
        |field: &FieldRef| partitions.iter().any(|partition| partition.name().eq_ignore_ascii_case(field.name()));
    let data: SchemaRef = match (&spec.schema, config.format) {
        (None, FileFormat::Text) => TextDecoder::full_schema(),
        (None, format) if !config.infers => {
            let example = "declare one, for example `id INT, word STRING`, or set inferSchema to true";
            return Err(fail(format!("format `{}` needs a schema; {example}", format.name())));
        }
        (None, _) => {
            let probe = FileConfig { partitions: partitions.clone(), ..config.clone() };
            infer(&probe, spec, bucket, &fail)?
        }
        (Some(_), _) => Arc::new(Schema::new(declared.clone())),
    };
    let data: Vec<FieldRef> = data.fields().iter().filter(|field| !is_of_folder(field)).cloned().collect();
    let data: SchemaRef = Arc::new(Schema::new(data));
    check(config, &data).map_err(fail)?;
    config.schema = Arc::new(Schema::new(data.fields().iter().chain(&partitions).cloned().collect::<Vec<_>>()));
    if spec.schema.is_some() && config.format != FileFormat::Text && !config.recursive {
        config.of_late_folders = data.fields().clone();
    }
    config.data_schema = data;
    config.partitions = partitions;
    Ok(())
}

/// Whether the decoders of the format can give these columns.
fn check(config: &FileConfig, schema: &SchemaRef) -> Result<(), String> {
    let all: Vec<usize> = (0..schema.fields().len()).collect();
    match &config.decoding {
        Decoding::Text { .. } if schema.fields().len() != 1 || schema.field(0).data_type() != &DataType::Utf8 => {
            Err("format `text` has exactly one column of type string".into())
        }
        Decoding::Json(options) => {
            JsonDecoder::new(schema, &all, options.clone()).map(|_| ()).map_err(|error| error.to_string())
        }
        Decoding::Csv(options) => {
            CsvDecoder::new(schema, &all, options.clone()).map(|_| ()).map_err(|error| error.to_string())
        }
        _ => Ok(()),
    }
}

/// The folders of a place that are columns.
pub(super) fn folders(
    name: &str,
    config: &FileConfig,
    bucket: Option<&Arc<Bucket>>,
) -> Result<SeenFolders, SourceError> {
    if config.recursive {
        return Ok(Vec::new());
    }
    let mut levels: Vec<(String, Vec<Option<String>>)> = Vec::new();
    let mut conflict = None;
    let mut see = |level: usize, folder: &str| {
        let Some((column, value)) = partitions::pair(folder) else { return };
        if level == levels.len() {
            levels.push((column, vec![value]));
            return;
        }
        let Some((known, values)) = levels.get_mut(level) else { return };
        if !known.eq_ignore_ascii_case(&column) {
            conflict.get_or_insert(format!("folders of one level are called `{known}=…` and `{column}=…`"));
        } else if values.len() < FOLDERS && !values.contains(&value) {
            values.push(value);
        }
    };
    match bucket {
        Some(bucket) => stored_folders(name, config, bucket, &mut see)?,
        None => local_folders(name, config, &mut see),
    }
    match conflict {
        Some(reason) => Err(SourceError::Schema { name: name.to_owned(), reason }),
        None => Ok(levels),
    }
}

/// What cannot be listed has no columns; whoever reads it will say so.
fn local_folders(name: &str, config: &FileConfig, see: &mut impl FnMut(usize, &str)) {
    let mut open: Vec<(usize, PathBuf)> = Vec::new();
    for root in listing::roots(name, config).unwrap_or_default().into_iter().take(FOLDERS) {
        let Some(path) = root.to_str() else { continue };
        let is_folder = root.is_dir();
        let folders = parts(path).count().saturating_sub(usize::from(!is_folder));
        // Folders between the base and what is read are columns too.
        for (level, folder) in parts(path).take(folders).skip(config.base_depth).enumerate() {
            see(level, folder);
        }
        if is_folder {
            open.push((folders.saturating_sub(config.base_depth), root));
        }
    }
    while !open.is_empty() {
        let mut next = Vec::new();
        for (level, folder) in open {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if next.len() == FOLDERS {
                    break;
                }
                let name = entry.file_name();
                let Some(name) = name.to_str().filter(|name| partitions::pair(name).is_some()) else { continue };
                if entry.path().is_dir() {
                    see(level, name);
                    next.push((level + 1, entry.path()));
                }
            }
        }
        next.sort();
        open = next;
    }
}

fn stored_folders(
    name: &str,
    config: &FileConfig,
    bucket: &Arc<Bucket>,
    see: &mut impl FnMut(usize, &str),
) -> Result<(), SourceError> {
    let mut left = FOLDERS;
    let prefix = listing::prefix(config, bucket).map_err(|error| listing::failed(name, &config.path, error))?;
    let listed = bucket.list(&prefix, None, |object| {
        let location = format!("{}{}", bucket.base(), object.location);
        let names: Vec<&str> = parts(&location).collect();
        let is_inside = config.places.depths_above(&names).next().is_some();
        let folders = names.iter().take(names.len().saturating_sub(1)).skip(config.base_depth);
        let pairs = folders.take_while(|folder| is_inside && partitions::pair(folder).is_some());
        pairs.enumerate().for_each(|(level, folder)| see(level, folder));
        left -= 1;
        left > 0
    });
    listed.map_err(|error| listing::failed(name, &config.path, error))
}

/// The columns of the files that there are.
fn infer(
    config: &FileConfig,
    spec: &SourceSpec,
    bucket: Option<&Arc<Bucket>>,
    fail: &impl Fn(String) -> SourceError,
) -> Result<SchemaRef, SourceError> {
    let files = listing::once(&spec.name, config, bucket)?;
    let files: Vec<&FoundFile> = files.iter().filter(|file| file.bytes > 0).take(FILES).collect();
    if files.is_empty() {
        return Err(fail(format!("there is no file in `{}` to infer the columns from; declare them", config.path)));
    }
    let open = |file: &FoundFile| {
        let opened = match bucket {
            Some(bucket) => InputFile::stored(bucket, &file.path),
            None => InputFile::local(&file.path),
        };
        opened.map_err(|source| SourceError::Unavailable {
            name: spec.name.clone(),
            action: "read",
            place: file.path.to_string(),
            source: Box::new(source),
        })
    };
    let bad = |file: &FoundFile, reason: String| SourceError::Malformed {
        name: spec.name.clone(),
        place: file.path.to_string(),
        reason,
    };
    let head = |file: &FoundFile| -> Result<Vec<u8>, SourceError> {
        let input = open(file)?;
        let compression = Compression::of(&file.path)
            .map_err(|ending| bad(file, format!("files that end in {ending} are not read")))?;
        let mut bytes = Vec::new();
        // What is damaged further on is met when it is read.
        if let Ok(text) = compression.open(input.sequential(), config.max_decompressed) {
            let read = text.take(BYTES).read_to_end(&mut bytes);
            if read.is_err() || bytes.len() as u64 == BYTES {
                let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                bytes.truncate(whole);
            }
        }
        if bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
        Ok(bytes)
    };
    match &config.decoding {
        Decoding::Json(options) => {
            let mut inference = JsonInference::new(options.clone());
            for file in files {
                inference.see(&head(file)?);
            }
            Ok(Arc::new(inference.schema()))
        }
        Decoding::Csv(options) => {
            let has_types = spec.options.get("inferSchema").is_some_and(|value| value.eq_ignore_ascii_case("true"));
            let mut inference = CsvInference::new(options.clone(), has_types);
            for file in files {
                inference.see(&head(file)?);
            }
            let schema = inference.schema();
            schema.map(Arc::new).ok_or_else(|| fail(format!("the files in `{}` have no lines", config.path)))
        }
        // As in Spark, the first file that can be read speaks for all.
        _ => {
            let read = match config.format {
                FileFormat::Avro => columnar::avro_schema,
                FileFormat::Orc => columnar::orc_schema,
                _ => columnar::parquet_schema,
            };
            let mut first = None;
            for file in files {
                let input = open(file)?;
                let found = guarded(|| read(&input)).unwrap_or_else(|_| Err("its reader gave up".into()));
                match (found.and_then(|schema| ours(&schema)), input.failure()) {
                    (Ok(schema), _) => return Ok(schema),
                    (Err(_), Some(source)) => return Err(listing::io_failed(&spec.name, "read", &file.path, source)),
                    (Err(reason), None) => first = first.or(Some(bad(file, reason))),
                }
            }
            Err(first.unwrap_or_else(|| fail("there is no file to infer the columns from".into())))
        }
    }
}

/// The columns of a file with the types that queries have.
fn ours(schema: &Schema) -> Result<SchemaRef, String> {
    let fields = schema.fields().iter().map(|field| our_field(field)).collect::<Result<Fields, String>>()?;
    Ok(Arc::new(Schema::new(fields)))
}

fn our_field(field: &Field) -> Result<FieldRef, String> {
    let data_type = our_type(field.data_type()).ok_or_else(|| {
        format!("column `{}` is of type {}, which queries do not have", field.name(), field.data_type())
    })?;
    Ok(nullable(&Field::new(field.name(), data_type, true)))
}

fn our_type(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::Null | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 => DataType::Float32,
        DataType::Date64 => DataType::Date32,
        DataType::Timestamp(_, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| Arc::from("UTC")))
        }
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Dictionary(_, value) => our_type(value)?,
        DataType::List(item) | DataType::LargeList(item) => DataType::List(our_field(item).ok()?),
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| our_field(field)).collect::<Result<Fields, String>>().ok()?)
        }
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(entry) if entry.len() == 2 => {
                let key = Arc::new(Field::new(entry[0].name(), our_type(entry[0].data_type())?, false));
                let entry: Fields = vec![key, our_field(&entry[1]).ok()?].into();
                DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(DataType::Struct(entry))), *sorted)
            }
            _ => return None,
        },
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::Binary
        | DataType::Date32
        | DataType::Decimal128(..) => data_type.clone(),
        _ => return None,
    })
}

/// Whether a local place is there.
pub(super) fn is_there(config: &FileConfig) -> bool {
    config.places.fixed().is_none_or(|path| Path::new(&path).exists())
}
