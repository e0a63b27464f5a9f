//! Locations as they may be shown.

use url::Url;

/// A URL as it may be printed: no user, password or query, and no slash at the end. What is no URL stays as it is.
pub fn without_secrets(location: &str) -> String {
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
    fn no_secret_is_shown() {
        for (location, shown) in [
            ("s3://user:secret@bucket/some/folder?x=1", "s3://bucket/some/folder"),
            ("hdfs://namenode:8020/a b/", "hdfs://namenode:8020/a b"),
            ("memory:///x", "memory:///x"),
            ("/a/b", "/a/b"),
        ] {
            assert_eq!(without_secrets(location).replace("%20", " "), shown);
        }
    }
}
