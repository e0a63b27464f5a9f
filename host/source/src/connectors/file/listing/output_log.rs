//! The log of a file sink, of ours or of Spark's: which files of a folder are output that was committed.
//!
//! A log of ours is read from where the last listing ended; Spark's is read whole, for its entries go away.
//!
//! Small files that were put together are one file then. A stream that has had none of them takes the one; a stream that has
//! had some takes the others, which are there for a while; a stream that has had all takes nothing. What is too old to be
//! taken counts as had: files that are put together are of one day, and `maxFileAge` is longer.

use super::{FoundFile, Sieve};
use crate::SourceError;
use crate::connectors::file::bucket::Bucket;
use crate::connectors::file::config::FileConfig;
use crate::connectors::file::input::to_io;
use bytes::Bytes;
use millstream_client::file_log::{
    CommittedBatches, FOLDER, FileLogError, OWNER, ReplacedFile, SPARK_FOLDER, Segment, read_spark_log, spark_entries,
    unquote,
};
use millstream_common::{DurableError, DurableFiles};
use millstream_store::split;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// The form of the log that a folder has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Form {
    /// Our own.
    Manifests,
    /// Spark's.
    Spark,
}

/// The form of the log, if there is one.
pub(in super::super) fn form(
    name: &str,
    config: &FileConfig,
    bucket: Option<&Arc<Bucket>>,
) -> Result<Option<Form>, SourceError> {
    let Some(root) = config.places.fixed() else { return Ok(None) };
    let place = Place { root: &root, bucket };
    let log = |error| failed(name, error);
    // Spark makes its folder before it writes; on an object store only an entry makes one.
    let is_spark_folder = bucket.is_none() && Path::new(&root).join(SPARK_FOLDER).is_dir();
    if is_spark_folder || !spark_entries(&place).map_err(log)?.is_empty() {
        return Ok(Some(Form::Spark));
    }
    let names = place.list(FOLDER).map_err(|error| log(FileLogError::storage(&place, "list", FOLDER, error)))?;
    // The owner is there before any data: until the first batch nothing is output.
    let is_ours = names.iter().any(|name| Segment::parse(name).is_some() || OWNER == format!("{FOLDER}/{name}"));
    Ok(is_ours.then_some(Form::Manifests))
}

/// Adds the files that were committed; `next` is the first batch that was not looked at, and moves on.
pub(super) fn list(
    name: &str,
    config: &FileConfig,
    bucket: Option<&Arc<Bucket>>,
    (form, next): (Form, &mut u64),
    sieve: &mut Sieve<'_>,
) -> Result<(), SourceError> {
    let root = config.places.base();
    let place = Place { root: &root, bucket };
    let logged = match form {
        Form::Manifests => manifests(&place, next),
        Form::Spark => spark(&place),
    };
    let logged = logged.map_err(|error| failed(name, error))?;
    let replaced: HashSet<String> =
        logged.iter().flat_map(|file| &file.replaced).map(|file| place.location(&file.name)).collect();
    for Logged { file, replaced: members } in logged {
        if replaced.contains(&*file.path) {
            continue;
        }
        let left = left_of(&place, &members, sieve);
        if left.len() == members.len() {
            offer(sieve, &file);
        } else {
            left.iter().for_each(|file| offer(sieve, file));
        }
    }
    Ok(())
}

/// A file in the log, and those that it stands for.
struct Logged {
    file: FoundFile,
    replaced: Vec<ReplacedFile>,
}

fn offer(sieve: &mut Sieve<'_>, file: &FoundFile) {
    if sieve.is_wanted(&file.path) {
        sieve.keep(&file.path, file.modified_ms, file.bytes);
    }
}

/// Those files that the stream has not had.
fn left_of(place: &Place<'_>, members: &[ReplacedFile], sieve: &Sieve<'_>) -> Vec<FoundFile> {
    let found = members.iter().map(|member| FoundFile {
        path: place.location(&member.name).into(),
        modified_ms: member.committed_ms,
        bytes: member.bytes,
    });
    let Some(seen) = sieve.seen else { return found.collect() };
    let found: Vec<FoundFile> = found.collect();
    if !found.iter().any(|file| seen.is_taken(&file.path)) {
        return found;
    }
    found.into_iter().filter(|file| seen.is_new(&file.path, file.modified_ms)).collect()
}

fn manifests(place: &Place<'_>, next: &mut u64) -> Result<Vec<Logged>, FileLogError> {
    let mut logged = Vec::new();
    for batch in CommittedBatches::since(place, *next)? {
        let batch = batch?;
        let file = |name: &str, bytes: u64, modified_ms: i64| FoundFile {
            path: place.location(name).into(),
            modified_ms,
            bytes,
        };
        logged.extend(
            batch
                .files
                .iter()
                .map(|found| Logged { file: file(&found.name, found.bytes, batch.committed_ms), replaced: Vec::new() }),
        );
        logged.extend(batch.merged.into_iter().map(|merged| Logged {
            file: file(&merged.file.name, merged.file.bytes, merged.committed_ms()),
            replaced: merged.replaced,
        }));
        *next = batch.batch.0 + 1;
    }
    Ok(logged)
}

fn spark(place: &Place<'_>) -> Result<Vec<Logged>, FileLogError> {
    let mut by_path: HashMap<String, usize> = HashMap::new();
    let mut logged: Vec<Logged> = Vec::new();
    for found in read_spark_log(place)? {
        let path = place.located(&found.path);
        let file = FoundFile { path: path.as_str().into(), modified_ms: found.modification_time, bytes: found.size };
        // An overwritten file counts as it was last.
        match by_path.get(&path).copied().and_then(|at| logged.get_mut(at)) {
            Some(there) => there.file = file,
            None => {
                by_path.insert(path, logged.len());
                logged.push(Logged { file, replaced: found.replaced });
            }
        }
    }
    Ok(logged)
}

fn failed(name: &str, error: FileLogError) -> SourceError {
    let name = name.to_owned();
    match error {
        FileLogError::Storage { action, place, source } => {
            SourceError::Unavailable { name, action, place, source: Box::new(source) }
        }
        FileLogError::Damaged { place, reason } => SourceError::Damaged { name, place, reason },
        other => SourceError::Damaged { name, place: "the log of the folder".to_owned(), reason: other.to_string() },
    }
}

/// The folder or bucket that is read, as the reader of logs wants it. Nothing is written.
#[derive(Debug)]
struct Place<'a> {
    root: &'a str,
    bucket: Option<&'a Arc<Bucket>>,
}

impl Place<'_> {
    fn location(&self, name: &str) -> String {
        if name.is_empty() { self.root.to_owned() } else { format!("{}/{name}", self.root.trim_end_matches('/')) }
    }

    /// The place of a file that Spark's log names by URL or path.
    fn located(&self, text: &str) -> String {
        match self.bucket {
            // Spark's name of the scheme may be another one.
            Some(bucket) => format!("{}{}", bucket.base(), unquote(split(text).map_or(text, |(_, key)| key))),
            None => match text.strip_prefix("file:") {
                Some(rest) => format!("/{}", unquote(rest).trim_start_matches('/')),
                None => text.to_owned(),
            },
        }
    }

    fn read(&self, path: &str) -> io::Result<Bytes> {
        let location = self.location(path);
        let Some(bucket) = self.bucket else { return fs::read(location).map(Bytes::from) };
        let opened = bucket.key(&location).and_then(|key| bucket.get(key)).map_err(to_io)?;
        match &opened.whole {
            Some(whole) => Ok(whole.clone()),
            None => bucket.range(&opened, 0..opened.bytes).map_err(to_io),
        }
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let location = self.location(folder);
        let mut names = Vec::new();
        match self.bucket {
            Some(bucket) => {
                let prefix = bucket.key(&location).map_err(to_io)?;
                let listed = bucket.list(&prefix, None, |object| {
                    names.extend(object.location.filename().map(str::to_owned));
                    true
                });
                listed.map_err(to_io)?;
            }
            None => match fs::read_dir(location) {
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                entries => {
                    for entry in entries? {
                        names.extend(entry?.file_name().into_string().ok());
                    }
                }
            },
        }
        names.sort();
        Ok(names)
    }
}

fn storage(action: &'static str, path: &str, error: io::Error) -> DurableError {
    match error.kind() {
        ErrorKind::NotFound => DurableError::Missing { path: path.to_owned() },
        _ => DurableError::Storage { action, path: path.to_owned(), source: Box::new(error) },
    }
}

fn read_only(path: &str) -> DurableError {
    let source = "a source does not write".into();
    DurableError::Storage { action: "write", path: path.to_owned(), source }
}

impl DurableFiles for Place<'_> {
    fn put_new(&self, path: &str, _: Bytes) -> Result<(), DurableError> {
        Err(read_only(path))
    }

    fn put_over(&self, path: &str, _: Bytes) -> Result<(), DurableError> {
        Err(read_only(path))
    }

    fn get(&self, path: &str) -> Result<Bytes, DurableError> {
        self.read(path).map_err(|error| storage("read", path, error))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        self.names(folder).map_err(|error| storage("list", folder, error))
    }

    fn list_folders(&self, _: &str) -> Result<Vec<String>, DurableError> {
        Ok(Vec::new())
    }

    fn delete(&self, path: &str) -> Result<(), DurableError> {
        Err(read_only(path))
    }

    fn location(&self) -> String {
        self.root.to_owned()
    }
}
