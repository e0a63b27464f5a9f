//! From a location to its store.

use crate::error::StoreError;
use crate::location::store_url;
use crate::scheme::{is_hdfs, refusal};
use object_store::ObjectStore;
use object_store::path::Path;
use std::sync::Arc;
use url::Url;

/// Opens the store at a location, a URL; answers it with the path that the location has in it.
///
/// The path is taken as it is written: `%20` in it is these three characters. (That of `https://` is decoded.) `options` are credentials, region, name nodes and the like,
/// with the names of the `object_store` crate and, for HDFS, of Hadoop; those that the store does not know are passed over.
/// Nobody is asked yet. A store of `memory://` is new and empty each time.
///
/// # Errors
/// When the location is no URL of a store, when an option is missing or wrong, and for HDFS in a program that was built
/// without it.
pub fn open_store(location: &str, options: &[(String, String)]) -> Result<(Arc<dyn ObjectStore>, Path), StoreError> {
    if let Some(reason) = refusal(location) {
        return Err(StoreError::refused(reason));
    }
    let url = store_url(location)?;
    if is_hdfs(location) {
        return open_hdfs(&url, options);
    }
    let options = options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let (store, path) = object_store::parse_url_opts(&url, options)?;
    Ok((store.into(), path))
}

#[cfg(feature = "hdfs")]
fn open_hdfs(url: &Url, options: &[(String, String)]) -> Result<(Arc<dyn ObjectStore>, Path), StoreError> {
    let path = Path::from_url_path(url.path()).map_err(object_store::Error::from)?;
    Ok((Arc::new(crate::hdfs::HdfsStore::open(url, options)?), path))
}

#[cfg(not(feature = "hdfs"))]
fn open_hdfs(_url: &Url, _options: &[(String, String)]) -> Result<(Arc<dyn ObjectStore>, Path), StoreError> {
    // Refused before; this is for the compiler.
    Err(StoreError::refused("this program was built without HDFS"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_store_and_a_path_in_it() {
        for written in ["a/b%20c", "a/b c", "100%", "a%2Fb", "ü"] {
            let (_, path) = open_store(&format!("memory:///{written}/"), &[]).unwrap();
            assert_eq!(path.as_ref(), written);
        }
        let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let options = [option("aws_region", "eu-west-1"), option("dfs.replication", "2")];
        assert_eq!(open_store("s3://bucket/x/", &options).unwrap().1.as_ref(), "x");
    }

    #[test]
    fn what_is_no_store_is_refused() {
        for location in ["", "/a/b", "ftp://host/x", "http://host/x", "s3://", "://", "s3://b/x?y", "s3://b/x#y"] {
            assert!(open_store(location, &[]).is_err(), "{location}");
        }
    }
}
