//! Locations: their two halves, their URLs, and how they may be shown.
//!
//! A location is taken as it is written, as Spark's paths are: `%20` in it is these three characters.

use crate::error::StoreError;
use crate::scheme::is_stored;
use url::Url;

/// The two halves of a location in a store: scheme and bucket or host, without a slash, and the path in it, without slashes
/// at its ends. `None` for what has no `://`.
pub fn split(location: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = location.split_once("://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let authority = location.get(..scheme.len() + "://".len() + host.len())?;
    Some((authority, path.trim_matches('/')))
}

/// The URL of a location, in which every character of the path stands for itself. Other URLs are as they are.
///
/// # Errors
/// When it is none, or has `?` or `#`: what would stand behind them belongs into options.
pub fn store_url(location: &str) -> Result<Url, StoreError> {
    let Some((authority, path)) = split(location).filter(|_| is_stored(location)) else {
        return Ok(Url::parse(location)?);
    };
    if let Some(sign) = location.chars().find(|sign| ['?', '#'].contains(sign)) {
        let reason =
            format!("its path cannot have `{sign}`; write another name, and what the store must know as options");
        return Err(StoreError::refused(reason));
    }
    let mut url = Url::parse(&format!("{authority}/"))?;
    url.set_path(&path.replace('%', "%25"));
    Ok(url)
}

/// A location as it may be printed: no user, password or query, and no slash at the end. What is no URL stays as it is.
pub fn without_secrets(location: &str) -> String {
    if let Some((authority, path)) = split(location).filter(|_| is_stored(location)) {
        let (scheme, host) = authority.split_once("://").unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        let shown = format!("{scheme}://{host}/{path}");
        return shown.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/').to_owned();
    }
    let Ok(mut url) = Url::parse(location) else { return location.to_owned() };
    // Both fail only for URLs that cannot have a user, which then have none.
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    url.to_string().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown_and_the_path_is_as_it_was_written() {
        for (location, shown) in [
            ("s3://user:secret@bucket/some/folder?x=1", "s3://bucket/some/folder"),
            ("s3://bucket?secret", "s3://bucket"),
            ("hdfs://namenode:8020/a b/", "hdfs://namenode:8020/a b"),
            ("s3://bucket/a%20b/", "s3://bucket/a%20b"),
            ("memory:///x", "memory:///x"),
            ("https://user:secret@host/x?y", "https://host/x"),
            ("/a/b", "/a/b"),
        ] {
            assert_eq!(without_secrets(location), shown);
        }
    }

    #[test]
    fn a_location_has_two_halves() {
        for (location, halves) in [
            ("s3://bucket/a/b/", Some(("s3://bucket", "a/b"))),
            ("s3://bucket", Some(("s3://bucket", ""))),
            ("abfss://c@account/x@y", Some(("abfss://c@account", "x@y"))),
            ("memory:///x", Some(("memory://", "x"))),
            ("/a/b", None),
        ] {
            assert_eq!(split(location), halves, "{location}");
        }
    }

    #[test]
    fn every_character_of_a_path_stands_for_itself() {
        for (location, url) in [
            ("s3://bucket/a%20b/c d", "s3://bucket/a%2520b/c%20d"),
            ("hdfs://host:8020/100%", "hdfs://host:8020/100%25"),
            ("https://host/a%20b?x", "https://host/a%20b?x"),
        ] {
            assert_eq!(store_url(location).unwrap().as_str(), url);
        }
        for location in ["s3://bucket/a?b", "s3://bucket/a#b", "abfss://c@account/x?sig=secret"] {
            let error = store_url(location).unwrap_err().to_string();
            assert!(error.contains("its path cannot have") && !error.contains("secret"), "{error}");
        }
    }
}
