//! Options of object stores: how what the host says and what the query says become one.
//!
//! They have the names of the `object_store` crate: `aws_region`, `azure_storage_account_name`, `google_service_account`, and
//! for all stores `allow_http`, `timeout` and their like; on HDFS those of Hadoop, `dfs.replication` and its like, whose case
//! counts. A connector takes those that the store at its location knows; a misspelt one is an unknown option.
//!
//! Everything that reads or writes objects asks here: file source and sink, Delta. What the query says wins.

use millstream_common::Options;
use millstream_store::{is_store_option, option_name};

/// The options of the store at `location` among those of a connector.
pub fn store_options(location: &str, options: &Options) -> Vec<(String, String)> {
    let ours = options.iter().filter(|(name, _)| is_store_option(location, name));
    ours.map(|(name, value)| (option_name(location, name), value.to_owned())).collect()
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
    let of_host = of_host.map(|(name, value)| (option_name(location, name), value.clone()));
    let mut all: Vec<(String, String)> = of_host.filter(|(name, _)| !own.iter().any(|(own, _)| own == name)).collect();
    all.extend(own);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn options_of_hadoop_keep_their_names() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let host = [pair("dfs.ha.namenodes.Sales", "nn1"), pair("dfs.replication", "3"), pair("aws_region", "x")];
        let options = Options::new().with("dfs.replication", "2").with("path", "y");
        let own = store_options("hdfs://Sales/x", &options);
        let all = with_host_options("hdfs://Sales/x", &host, own);
        assert_eq!(all, [pair("dfs.ha.namenodes.Sales", "nn1"), pair("dfs.replication", "2")]);
    }
}
