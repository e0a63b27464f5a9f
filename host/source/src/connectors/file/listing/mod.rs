//! Which files there are now.
//!
//! Rule of its life: a listing answers the files that are not seen yet; what it leaves out for the sake of speed is known to
//! be unchanged. Names that begin with `_` or `.` belong to somebody's bookkeeping or are not finished. Where a folder holds
//! the log of a file sink, ours or Spark's, that log decides.

mod local;
mod output_log;
mod stored;

use super::bucket::Bucket;
use super::config::FileConfig;
use super::input::to_io;
use super::partitions;
use super::patterns::{is_hidden, parts};
use super::seen::SeenFiles;
use crate::SourceError;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

pub(super) use local::roots;
pub(super) use output_log::{Form, form as output_log};
pub(super) use stored::prefix;

/// Of how many columns whose folders are passed over the user is told.
pub(super) const PASSED_OVER: usize = 100;

/// A file as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub(super) path: Arc<str>,
    pub(super) modified_ms: i64,
    pub(super) bytes: u64,
}

/// What one listing found.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Files that were never taken, in the order in which they are to be taken but for `latestFirst`.
    pub(super) new: Vec<FoundFile>,
    /// How many files were too old.
    pub(super) too_old: usize,
    /// Folders that would be columns which the source does not have, one for each column.
    pub(super) passed_over: BTreeMap<String, String>,
}

/// Lists a place again and again.
#[derive(Debug)]
pub(super) struct Lister {
    name: String,
    bucket: Option<Arc<Bucket>>,
    folders: local::Folders,
    /// Whether the log of a sink decides which files there are; not known before there is one file.
    log: Option<Option<Form>>,
    /// The first batch of that log that was not looked at.
    next_batch: u64,
}

impl Lister {
    pub(super) fn new(name: &str, bucket: Option<Arc<Bucket>>) -> Self {
        Self { name: name.to_owned(), bucket, folders: local::Folders::default(), log: None, next_batch: 0 }
    }

    /// The files that are new.
    pub(super) fn list(&mut self, config: &FileConfig, seen: &SeenFiles, now_ms: i64) -> Result<Listing, SourceError> {
        let listed = self.list_all(config, seen, now_ms);
        if listed.is_err() {
            self.forget();
        }
        listed
    }

    fn list_all(&mut self, config: &FileConfig, seen: &SeenFiles, now_ms: i64) -> Result<Listing, SourceError> {
        let mut sieve = Sieve { config, seen: Some(seen), listing: Listing::default() };
        let log = match self.log {
            Some(known) => known,
            None => output_log::form(&self.name, config, self.bucket.as_ref())?,
        };
        match (log, &self.bucket) {
            (Some(form), bucket) => {
                let from = (form, &mut self.next_batch);
                output_log::list(&self.name, config, bucket.as_ref(), from, &mut sieve)?;
            }
            (None, Some(bucket)) => stored::list(&self.name, config, bucket, &mut sieve)?,
            (None, None) => self.folders.list(&self.name, config, now_ms, &mut sieve)?,
        }
        // An output that has no batch yet may still get a log of the other form.
        if !sieve.listing.new.is_empty() || self.next_batch > 0 {
            self.log = Some(log);
        }
        Ok(sorted(config, sieve.listing))
    }

    /// Says that files of the last listing were dropped: the next one must find them again.
    pub(super) fn forget(&mut self) {
        self.folders = local::Folders::default();
        self.next_batch = 0;
    }
}

/// All files of a place, once.
pub(super) fn once(
    name: &str,
    config: &FileConfig,
    bucket: Option<&Arc<Bucket>>,
) -> Result<Vec<FoundFile>, SourceError> {
    let mut sieve = Sieve { config, seen: None, listing: Listing::default() };
    match (output_log::form(name, config, bucket)?, bucket) {
        (Some(form), bucket) => output_log::list(name, config, bucket, (form, &mut 0), &mut sieve)?,
        (None, Some(bucket)) => stored::list(name, config, bucket, &mut sieve)?,
        (None, None) => local::Folders::default().list(name, config, 0, &mut sieve)?,
    }
    Ok(sorted(config, sieve.listing).new)
}

fn sorted(config: &FileConfig, mut listing: Listing) -> Listing {
    let new = &mut listing.new;
    if config.by_name {
        new.sort_by(|a, b| a.path.cmp(&b.path));
    } else {
        new.sort_by(|a, b| a.modified_ms.cmp(&b.modified_ms).then_with(|| a.path.cmp(&b.path)));
    }
    new.dedup_by(|a, b| a.path == b.path);
    listing
}

/// Which files of a listing count.
struct Sieve<'a> {
    config: &'a FileConfig,
    /// What was taken before; without it every file is new.
    seen: Option<&'a SeenFiles>,
    listing: Listing,
}

impl Sieve<'_> {
    /// Whether a file of this name may count, and was not taken yet: then it is worth a closer look.
    fn is_wanted(&self, path: &str) -> bool {
        let file_name = file_name(path);
        let is_filtered = self.config.name_filter.as_ref().is_some_and(|filter| !filter.matches(file_name));
        !is_hidden(file_name) && !is_filtered && !self.seen.is_some_and(|seen| seen.is_taken(path))
    }

    /// Keeps a wanted file, if its time fits.
    fn keep(&mut self, path: &str, modified_ms: i64, bytes: u64) {
        let config = self.config;
        if config.modified_before_ms.is_some_and(|limit| modified_ms >= limit)
            || config.modified_after_ms.is_some_and(|limit| modified_ms <= limit)
        {
            return;
        }
        if self.seen.is_some_and(|seen| seen.is_too_old(path, modified_ms)) {
            self.listing.too_old += 1;
            return;
        }
        self.listing.new.push(FoundFile { path: path.into(), modified_ms, bytes });
    }

    /// Remembers a folder that is not entered, if it would be a column.
    fn pass_over(&mut self, folder: &str) {
        let Some((column, _)) = partitions::pair(folder).filter(|_| !is_hidden(folder)) else { return };
        let passed_over = &mut self.listing.passed_over;
        if passed_over.len() < PASSED_OVER {
            passed_over.entry(column).or_insert_with(|| folder.to_owned());
        }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a folder below the one that is read is entered.
fn is_entered(config: &FileConfig, folder: &str) -> bool {
    !is_hidden(folder) && (config.recursive || partitions::is_entered(config, folder))
}

/// Where an object lies, by what the path of the options says.
#[derive(Debug, PartialEq, Eq)]
enum Lies<'a> {
    /// At the path, or below it in folders that are entered.
    Inside,
    /// Below a folder that is not entered.
    Behind(&'a str),
    Elsewhere,
}

fn lies<'a>(config: &FileConfig, location: &'a str) -> Lies<'a> {
    let all: Vec<&str> = parts(location).collect();
    let mut lies = Lies::Elsewhere;
    for depth in config.places.depths_above(&all) {
        let mut below = all.iter().take(all.len().saturating_sub(1)).skip(depth);
        match below.find(|folder| !is_entered(config, folder)) {
            Some(folder) => lies = Lies::Behind(folder),
            None => return Lies::Inside,
        }
    }
    lies
}

/// A failure of an object store.
pub(super) fn failed(name: &str, place: &str, error: object_store::Error) -> SourceError {
    io_failed(name, "list", place, to_io(error))
}

/// A failure of the outside.
pub(super) fn io_failed(name: &str, action: &'static str, place: &str, source: io::Error) -> SourceError {
    SourceError::Unavailable { name: name.to_owned(), action, place: place.to_owned(), source: Box::new(source) }
}
