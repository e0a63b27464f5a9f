//! Objects of a bucket, page by page.
//!
//! The store lists what lies below the part of the path that is no pattern. With `incrementalListing` it begins behind the
//! greatest name that was taken: then only what is new is listed.

use super::{Sieve, admits, failed};
use crate::SourceError;
use crate::connectors::file::bucket::Bucket;
use crate::connectors::file::config::{FileConfig, is_glob};
use crate::connectors::file::discovery::base_of;
use glob::Pattern;
use object_store::path::Path;

/// The folder that holds all files.
pub(in super::super) fn prefix(config: &FileConfig, bucket: &Bucket) -> Result<Path, object_store::Error> {
    bucket.key(&base_of(config))
}

/// Adds the objects that are there.
pub(super) fn list(name: &str, config: &FileConfig, bucket: &Bucket, sieve: &mut Sieve<'_>) -> Result<(), SourceError> {
    let fail = |error| failed(name, &config.path, error);
    let pattern = Pattern::new(&config.path).unwrap_or_default();
    let prefix = prefix(config, bucket).map_err(fail)?;
    let greatest = sieve.seen.filter(|_| config.by_name).and_then(|seen| seen.greatest());
    let after = greatest.map(|location| bucket.key(location)).transpose().map_err(fail)?;
    let mut is_empty = after.is_none();
    let listed = bucket.list(&prefix, after, |object| {
        is_empty = false;
        let location = format!("{}{}", bucket.base(), object.location);
        if admits(config, &pattern, &location) && sieve.is_wanted(&location) {
            sieve.keep(&location, object.last_modified.timestamp_millis(), object.size);
        }
        true
    });
    listed.map_err(fail)?;
    if is_empty
        && !is_glob(&config.path)
        && let Some(object) = bucket.head(&prefix).map_err(fail)?
        && sieve.is_wanted(&config.path)
    {
        sieve.keep(&config.path, object.last_modified.timestamp_millis(), object.size);
    }
    Ok(())
}
