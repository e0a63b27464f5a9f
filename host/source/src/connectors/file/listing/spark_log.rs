//! The log of a Spark file sink, `_spark_metadata`: which files of a folder are output that was committed.
//!
//! Batch `N` wrote file `N`, or `N.compact` with everything up to it: a line `v1`, then an object per file with `path`,
//! `size`, `modificationTime` and `action`.

use super::{Sieve, failed, io_failed};
use crate::SourceError;
use crate::connectors::file::bucket::{Bucket, split};
use crate::connectors::file::config::{FileConfig, is_glob};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

const FOLDER: &str = "_spark_metadata";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    path: String,
    size: u64,
    modification_time: i64,
    action: String,
}

/// Whether there is such a log.
pub(in super::super) fn is_there(
    name: &str,
    config: &FileConfig,
    bucket: Option<&Arc<Bucket>>,
) -> Result<bool, SourceError> {
    if is_glob(&config.path) {
        return Ok(false);
    }
    Ok(match bucket {
        Some(_) => !names(name, config, bucket)?.is_empty(),
        None => Path::new(&config.path).join(FOLDER).is_dir(),
    })
}

/// Adds the files that were committed.
pub(super) fn list(
    name: &str,
    config: &FileConfig,
    bucket: Option<&Arc<Bucket>>,
    sieve: &mut Sieve<'_>,
) -> Result<(), SourceError> {
    let names = names(name, config, bucket)?;
    let number = |file: &str, suffix: &str| file.strip_suffix(suffix).and_then(|number| number.parse::<u64>().ok());
    let compacted = names.iter().filter_map(|file| number(file, ".compact")).max();
    let mut logs: BTreeMap<u64, String> =
        compacted.map(|number| (number, format!("{number}.compact"))).into_iter().collect();
    let later = names.iter().filter_map(|file| number(file, "")).filter(|number| compacted.is_none_or(|c| *number > c));
    logs.extend(later.map(|number| (number, number.to_string())));
    let mut files: BTreeMap<String, Line> = BTreeMap::new();
    for log in logs.values() {
        let damaged = |reason: String| SourceError::Damaged {
            name: name.to_owned(),
            place: format!("{}/{FOLDER}/{log}", config.path),
            reason,
        };
        let text = read(name, config, bucket, log)?;
        let body = text.strip_prefix("v1").ok_or_else(|| damaged("it is no log of version v1".into()))?;
        for line in body.lines().filter(|line| !line.trim().is_empty()) {
            let line: Line = serde_json::from_str(line).map_err(|error| damaged(error.to_string()))?;
            match line.action.as_str() {
                "add" => drop(files.insert(line.path.clone(), line)),
                "delete" => drop(files.remove(&line.path)),
                other => return Err(damaged(format!("it has the unknown action `{other}`"))),
            }
        }
    }
    for file in files.into_values() {
        let path = located(&file.path, bucket);
        if sieve.is_wanted(&path) {
            sieve.keep(&path, file.modification_time, file.size);
        }
    }
    Ok(())
}

/// The place of a file that the log names by URL or path.
fn located(text: &str, bucket: Option<&Arc<Bucket>>) -> String {
    match bucket {
        // Spark's name of the scheme may be another one.
        Some(bucket) => format!("{}{}", bucket.base(), unescaped(split(text).map_or(text, |(_, key)| key))),
        None => match text.strip_prefix("file:") {
            Some(rest) => format!("/{}", unescaped(rest).trim_start_matches('/')),
            None => text.to_owned(),
        },
    }
}

/// The text behind a URL's escapes.
fn unescaped(text: &str) -> String {
    crate::connectors::file::partitions::unescaped(text)
}

fn names(name: &str, config: &FileConfig, bucket: Option<&Arc<Bucket>>) -> Result<Vec<String>, SourceError> {
    let place = format!("{}/{FOLDER}", config.path);
    let mut names = Vec::new();
    match bucket {
        Some(bucket) => {
            let prefix = bucket.key(&place).map_err(|error| failed(name, &place, error))?;
            let listed = bucket.list(&prefix, None, |object| {
                names.extend(object.location.filename().map(str::to_owned));
                true
            });
            listed.map_err(|error| failed(name, &place, error))?;
        }
        None => {
            for entry in fs::read_dir(&place).map_err(|error| io_failed(name, "list", &place, error))? {
                let entry = entry.map_err(|error| io_failed(name, "list", &place, error))?;
                names.extend(entry.file_name().into_string().ok());
            }
        }
    }
    Ok(names)
}

fn read(name: &str, config: &FileConfig, bucket: Option<&Arc<Bucket>>, log: &str) -> Result<String, SourceError> {
    let place = format!("{}/{FOLDER}/{log}", config.path);
    let bytes = match bucket {
        Some(bucket) => {
            let opened =
                bucket.key(&place).and_then(|key| bucket.get(key)).map_err(|error| failed(name, &place, error))?;
            match &opened.whole {
                Some(whole) => whole.to_vec(),
                None => bucket.range(&opened, 0..opened.bytes).map_err(|error| failed(name, &place, error))?.to_vec(),
            }
        }
        None => fs::read(&place).map_err(|error| io_failed(name, "read", &place, error))?,
    };
    String::from_utf8(bytes)
        .map_err(|error| io_failed(name, "read", &place, io::Error::new(ErrorKind::InvalidData, error.utf8_error())))
}
