//! Objects of a bucket, page by page.
//!
//! The store lists what lies below the part of the path that is no pattern. With `incrementalListing` it begins behind the
//! greatest name that was taken: then only what is new is listed.
//!
//! Consoles, Hadoop and Spark mark folders by empty objects, `in/day=1/` or `in/day=1_$folder$`. A listing shows the first
//! without its slash, as if it were a file, and there is no such file: so empty objects are no files, but where the format has
//! a row for an empty file. Then the store is asked.

use super::{Lies, Sieve, failed, lies};
use crate::SourceError;
use crate::connectors::file::bucket::Bucket;
use crate::connectors::file::config::FileConfig;
use object_store::path::Path;

/// How the name of an object ends that marks a folder.
const FOLDER: &str = "_$folder$";

/// The folder that holds all files.
pub(in super::super) fn prefix(config: &FileConfig, bucket: &Bucket) -> Result<Path, object_store::Error> {
    bucket.key(&config.places.base())
}

/// Adds the objects that are there.
pub(super) fn list(name: &str, config: &FileConfig, bucket: &Bucket, sieve: &mut Sieve<'_>) -> Result<(), SourceError> {
    let fail = |error| failed(name, &config.path, error);
    let prefix = prefix(config, bucket).map_err(fail)?;
    let greatest = sieve.seen.filter(|_| config.by_name).and_then(|seen| seen.greatest());
    let after = greatest.map(|location| bucket.key(location)).transpose().map_err(fail)?;
    let mut is_empty = after.is_none();
    let mut unsure = Vec::new();
    let listed = bucket.list(&prefix, after, |object| {
        is_empty = false;
        let location = format!("{}{}", bucket.base(), object.location);
        match lies(config, &location) {
            Lies::Inside if sieve.is_wanted(&location) => match kind(config, &location, object.size) {
                Kind::File => sieve.keep(&location, object.last_modified.timestamp_millis(), object.size),
                Kind::FileOrMark => unsure.push((location, object)),
                Kind::Nothing => {}
            },
            Lies::Behind(folder) => sieve.pass_over(folder),
            Lies::Inside | Lies::Elsewhere => {}
        }
        true
    });
    listed.map_err(fail)?;
    for (location, object) in unsure {
        if bucket.head(&object.location).map_err(fail)?.is_some() {
            sieve.keep(&location, object.last_modified.timestamp_millis(), object.size);
        }
    }
    if is_empty
        && let Some(path) = config.places.fixed()
        && let Some(object) = bucket.head(&prefix).map_err(fail)?
        && sieve.is_wanted(&path)
        && kind(config, &path, object.size) != Kind::Nothing
    {
        sieve.keep(&path, object.last_modified.timestamp_millis(), object.size);
    }
    Ok(())
}

/// What an object is.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    File,
    /// A file that is empty, or the mark of a folder.
    FileOrMark,
    /// The mark of a folder, or a file without rows.
    Nothing,
}

fn kind(config: &FileConfig, location: &str, bytes: u64) -> Kind {
    match bytes {
        0 if location.ends_with(FOLDER) || config.is_nothing_when_empty(location) => Kind::Nothing,
        0 => Kind::FileOrMark,
        _ => Kind::File,
    }
}
