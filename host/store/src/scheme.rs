//! Which locations are stores of objects, by their scheme.

/// The schemes of stores.
const SCHEMES: [&str; 11] =
    ["s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "memory", HDFS_SCHEMES[0], HDFS_SCHEMES[1]];
/// Those of HDFS: one cluster, and the mount table over several.
const HDFS_SCHEMES: [&str; 2] = ["hdfs", "viewfs"];
/// What there is to say where HDFS was left out.
const WITHOUT_HDFS: &str = "this program was built without HDFS; \
                            build it with `cargo build --release --package millstream-cli --features hdfs`";

/// Whether a location is one of a store of objects, which this program may have been built without: see [`refusal`].
pub fn is_stored(location: &str) -> bool {
    scheme(location).is_some_and(|scheme| SCHEMES.contains(&scheme))
}

/// Whether a location is one of HDFS.
pub fn is_hdfs(location: &str) -> bool {
    scheme(location).is_some_and(|scheme| HDFS_SCHEMES.contains(&scheme))
}

/// Why this program opens no store at a location, whatever its options are, with the way out; `None` when it may open one.
pub fn refusal(location: &str) -> Option<&'static str> {
    refusal_of(location, cfg!(feature = "hdfs"))
}

fn refusal_of(location: &str, has_hdfs: bool) -> Option<&'static str> {
    match scheme(location)? {
        "http" => Some("plain HTTP has no put-if-absent"),
        _ if is_hdfs(location) && !has_hdfs => Some(WITHOUT_HDFS),
        _ => None,
    }
}

fn scheme(location: &str) -> Option<&str> {
    location.split_once("://").map(|(scheme, _)| scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_known_by_their_scheme() {
        for location in
            ["s3://b/x", "s3a://b", "gs://b/x", "abfss://c@a/x", "memory://m/x", "hdfs://n:1/x", "viewfs://c/x"]
        {
            assert!(is_stored(location), "{location}");
        }
        for location in ["/a/b", "file:///a", "ftp://h/x", "https://h/x", "hdfs:/x", ""] {
            assert!(!is_stored(location), "{location}");
        }
        assert!(is_hdfs("hdfs://n/x") && is_hdfs("viewfs://c/x") && !is_hdfs("s3://hdfs/x"));
    }

    #[test]
    fn without_hdfs_its_locations_are_refused_with_the_way_to_build_it() {
        for location in ["hdfs://n:8020/x", "viewfs://c/x"] {
            let refused = refusal_of(location, false).unwrap();
            assert!(refused.contains("--features hdfs"), "{refused}");
            assert_eq!(refusal_of(location, true), None);
        }
        assert!(refusal_of("http://h/x", true).unwrap().contains("put-if-absent"));
        assert_eq!(refusal_of("s3://b/x", false), None);
        assert_eq!(refusal_of("/a", false), None);
    }
}
