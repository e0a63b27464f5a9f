//! From a location, as a person writes it, to durable files.

use crate::{CheckpointError, LocalFiles, ObjectFiles};
use millstream_common::DurableFiles;
use std::sync::Arc;
use url::Url;

/// Opens a place for durable files.
///
/// A plain path or `file://` is a folder of this machine; `s3://`, `gs://`, `az://`, `memory://` and their
/// variants are object stores, for which `options` are credentials, region and the like, with the names of the
/// `object_store` crate (`aws_region`, `google_service_account`, …). Memory is new and empty each time.
///
/// Nothing is written before the first file is.
///
/// # Errors
/// [`CheckpointError::Location`] when the scheme is unknown, an option is missing or wrong.
pub fn open_files(url_or_path: &str, options: &[(String, String)]) -> Result<Arc<dyn DurableFiles>, CheckpointError> {
    let refused = |source: Box<dyn std::error::Error + Send + Sync>| CheckpointError::Location {
        location: url_or_path.to_owned(),
        source,
    };
    if url_or_path.is_empty() {
        return Err(refused("it is empty".into()));
    }
    if !url_or_path.contains("://") {
        let files = LocalFiles::open(url_or_path).map_err(|error| refused(error.into()))?;
        return Ok(Arc::new(files));
    }
    let url = Url::parse(url_or_path).map_err(|error| refused(error.into()))?;
    match url.scheme() {
        "file" => {
            let path = url.to_file_path().map_err(|()| refused("the URL names no folder of this machine".into()))?;
            Ok(Arc::new(LocalFiles::open(path).map_err(|error| refused(error.into()))?))
        }
        "http" => Err(refused("plain HTTP has no put-if-absent".into())),
        _ => {
            let options = options.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            let (store, prefix) = object_store::parse_url_opts(&url, options).map_err(|error| refused(error.into()))?;
            let files = ObjectFiles::new(store.into(), prefix, without_secrets(&url));
            Ok(Arc::new(files.map_err(|error| refused(error.into()))?))
        }
    }
}

/// The URL as it may be printed: no user, password or query.
fn without_secrets(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for URLs that cannot have a user, which then have none.
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    url.to_string().trim_end_matches('/').to_owned()
}
