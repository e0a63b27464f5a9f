//! Options of object stores: which there are, and how what the host says and what the query says become one.
//!
//! They have the names of the `object_store` crate: `aws_region`, `azure_storage_account_name`, `google_service_account`, and
//! for all stores `allow_http`, `timeout` and their like. A connector takes those that the store at its location knows;
//! a misspelt one is an unknown option.
//!
//! Everything that reads or writes objects asks here: file source and sink, Delta. What the query says wins.

use millstream_common::Options;
use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use object_store::gcp::GoogleConfigKey;
use object_store::{ClientConfigKey, ObjectStoreScheme};
use url::Url;

/// Whether the object store at `location` knows an option of this name. A folder of this machine knows none.
pub fn is_store_option(location: &str, name: &str) -> bool {
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

/// The options of the store at `location` among those of a connector.
pub fn store_options(location: &str, options: &Options) -> Vec<(String, String)> {
    let ours = options.iter().filter(|(name, _)| is_store_option(location, name));
    ours.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect()
}

/// The names of those options, as written.
pub fn store_option_names<'a>(location: &str, options: &'a Options) -> Vec<&'a str> {
    options.iter().map(|(name, _)| name).filter(|name| is_store_option(location, name)).collect()
}

/// What the host says to the store at `location`, and then what the query says, which wins. The host may speak of other
/// stores too.
pub fn with_host_options(
    location: &str,
    host: &[(String, String)],
    own: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let of_host = host.iter().filter(|(name, _)| is_store_option(location, name));
    let of_host = of_host.map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
    let mut all: Vec<(String, String)> = of_host.filter(|(name, _)| !own.iter().any(|(own, _)| own == name)).collect();
    all.extend(own);
    all
}

fn url_of(location: &str) -> Option<Url> {
    if location.contains("://") { Url::parse(location).ok() } else { None }
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
            ("s3://b/x", "aws_regoin", false),
            ("s3://b/x", "google_service_account", false),
            ("s3://b/x", "region", false),
            ("gs://b/x", "google_service_account", true),
            ("abfss://c@a.dfs.core.windows.net/x", "azure_storage_account_name", true),
            ("/data/x", "aws_region", false),
            ("file:///data/x", "timeout", false),
        ] {
            assert_eq!(is_store_option(location, name), known, "{location} {name}");
        }
    }

    #[test]
    fn what_the_query_says_wins_and_other_stores_are_left_out() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let host = [pair("aws_Region", "host"), pair("aws_access_key_id", "id"), pair("google_service_account", "x")];
        let options = Options::new().with("AWS_region", "query").with("path", "y");
        let own = store_options("s3://b/x", &options);
        assert_eq!(own, [pair("aws_region", "query")]);
        assert_eq!(store_option_names("s3://b/x", &options), ["AWS_region"]);
        let all = with_host_options("s3://b/x", &host, own);
        assert_eq!(all, [pair("aws_access_key_id", "id"), pair("aws_region", "query")]);
    }
}
