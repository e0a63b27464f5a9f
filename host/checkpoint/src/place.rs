//! From a location, as a person writes it, to durable files.

use crate::{CheckpointError, LocalFiles, ObjectFiles};
use millstream_common::DurableFiles;
use millstream_store::{open_store, without_secrets};
use std::sync::Arc;

/// Opens a place for durable files.
///
/// A plain path, `file:` or `file://` is a folder of this machine; `s3://`, `gs://`, `az://`, `hdfs://`, `memory://` and their
/// variants are object stores, for which `options` are credentials, region, name nodes and the like, with the names of the
/// `object_store` crate (`aws_region`, `google_service_account`, …) or of Hadoop (`dfs.replication`, …). Memory is new and
/// empty each time. A path is taken as it is written: `%20` in it is these three characters.
///
/// Nothing is written before the first file is.
///
/// # Errors
/// [`CheckpointError::Location`] when the scheme is unknown, an option is missing or wrong, or HDFS was left out when the
/// program was built.
pub fn open_files(url_or_path: &str, options: &[(String, String)]) -> Result<Arc<dyn DurableFiles>, CheckpointError> {
    let refused = |source: Box<dyn std::error::Error + Send + Sync>| CheckpointError::Location {
        location: url_or_path.to_owned(),
        source,
    };
    if url_or_path.is_empty() {
        return Err(refused("it is empty".into()));
    }
    let folder = match url_or_path.split_once("://") {
        None => Some(url_or_path.strip_prefix("file:").unwrap_or(url_or_path)),
        Some(("file", path)) if path.starts_with('/') => Some(path),
        Some(("file", _)) => return Err(refused("the URL names no folder of this machine".into())),
        Some(_) => None,
    };
    if let Some(folder) = folder {
        return Ok(Arc::new(LocalFiles::open(folder).map_err(|error| refused(error.into()))?));
    }
    let (store, prefix) = open_store(url_or_path, options).map_err(|error| refused(error.into()))?;
    let files = ObjectFiles::new(store, prefix, without_secrets(url_or_path));
    Ok(Arc::new(files.map_err(|error| refused(error.into()))?))
}
