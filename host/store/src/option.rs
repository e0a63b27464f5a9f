//! Which options a store knows, by their names.
//!
//! Those of HDFS are Hadoop's and have a case; the others are the `object_store` crate's and have none.

use crate::location::split;
use crate::scheme::{is_hdfs, is_stored};
use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use object_store::gcp::GoogleConfigKey;
use object_store::{ClientConfigKey, ObjectStoreScheme};
use url::Url;

/// How the names of Hadoop's options for clients of HDFS begin.
const OF_HADOOP: [&str; 4] = ["dfs.", "fs.", "hadoop.", "ipc."];

/// Whether the store at `location` knows an option of this name. A folder of this machine knows none.
///
/// Hadoop has too many names to list, and reads them by names that contain those of clusters: for HDFS all that begin as
/// its names do are known.
pub fn is_store_option(location: &str, name: &str) -> bool {
    if is_hdfs(location) {
        return OF_HADOOP.iter().any(|begin| name.starts_with(begin));
    }
    let name = name.to_ascii_lowercase();
    let is_of_all = name.parse::<ClientConfigKey>().is_ok();
    let begins = |prefix: &str| is_of_all || name.starts_with(prefix);
    let Some(Ok((scheme, _))) = url_of(location).map(|url| ObjectStoreScheme::parse(&url)) else { return false };
    match scheme {
        ObjectStoreScheme::AmazonS3 => begins("aws_") && name.parse::<AmazonS3ConfigKey>().is_ok(),
        ObjectStoreScheme::MicrosoftAzure => begins("azure_") && name.parse::<AzureConfigKey>().is_ok(),
        ObjectStoreScheme::GoogleCloudStorage => begins("google_") && name.parse::<GoogleConfigKey>().is_ok(),
        _ => false,
    }
}

/// The name of an option as the store at `location` compares it: without a case, except on HDFS.
pub fn option_name(location: &str, name: &str) -> String {
    if is_hdfs(location) { name.to_owned() } else { name.to_ascii_lowercase() }
}

/// The URL of a location without its path, which may be a pattern; all of it where the path says which store it is.
fn url_of(location: &str) -> Option<Url> {
    let (authority, _) = split(location)?;
    if is_stored(location) { Url::parse(&format!("{authority}/")).ok() } else { Url::parse(location).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_knows_its_own_options_and_those_of_all() {
        for (location, name, known) in [
            ("s3://b/x", "aws_region", true),
            ("s3a://b/x", "AWS_Endpoint", true),
            ("s3://b/x", "allow_http", true),
            ("s3://b/x", "connect_timeout", true),
            ("s3://b/100%/{a,b}/[^x]?", "aws_region", true),
            ("s3://b/%ff", "aws_region", true),
            ("s3://b/x", "aws_regoin", false),
            ("s3://b/x", "google_service_account", false),
            ("s3://b/x", "dfs.replication", false),
            ("s3://b/x", "region", false),
            ("gs://b/x", "google_service_account", true),
            ("abfss://c@a.dfs.core.windows.net/x", "azure_storage_account_name", true),
            ("hdfs://n:8020/x", "dfs.ha.namenodes.Sales", true),
            ("hdfs://n:8020/x", "hadoop.security.authentication", true),
            ("viewfs://c/x", "fs.viewfs.mounttable.c.linkFallback", true),
            ("hdfs://n:8020/x", "ipc.client.rpc-timeout.ms", true),
            ("hdfs://n:8020/x", "DFS.replication", false),
            ("hdfs://n:8020/x", "aws_region", false),
            ("hdfs://n:8020/x", "timeout", false),
            ("/data/x", "aws_region", false),
            ("/data/x", "dfs.replication", false),
            ("file:///data/x", "timeout", false),
        ] {
            assert_eq!(is_store_option(location, name), known, "{location} {name}");
        }
    }

    #[test]
    fn names_of_hadoop_keep_their_case() {
        assert_eq!(option_name("hdfs://n/x", "dfs.ha.namenodes.Sales"), "dfs.ha.namenodes.Sales");
        assert_eq!(option_name("s3://b/x", "AWS_Region"), "aws_region");
    }
}
