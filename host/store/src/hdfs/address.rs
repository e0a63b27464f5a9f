//! From a URL and options to a name node: which host and port, or which of Hadoop's configuration, and what files get.
//!
//! ```text
//!   hdfs://host:port/…   one name node
//!   hdfs://name/…        a name service, when `dfs.ha.namenodes.name` lists its name nodes; else a host at port 8020
//!   viewfs://name/…      a mount table, `fs.viewfs.mounttable.name.…`
//! ```
//!
//! Options are Hadoop's; they come before what `core-site.xml` and `hdfs-site.xml` say below `HADOOP_CONF_DIR` or
//! `HADOOP_HOME/etc/hadoop`. The user is the Kerberos ticket's, or `HADOOP_USER_NAME`, or the process's, as with Hadoop.

use super::name_node::NameNode;
use super::patience::Patience;
use crate::error::StoreError;
use crate::option::is_store_option;
use hdfs_native::{Client, ClientBuilder, HdfsError, WriteOptions};
use std::io;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use url::Url;

/// The port of a name node that has none in its URL.
const PORT: u16 = 8020;
/// How long one name node is waited for.
const LIMIT: Duration = Duration::from_secs(60);
/// How long a name service is: the machine of its first name node may be gone without a word, which TCP believes after two
/// minutes.
const LIMIT_OF_SERVICE: Duration = Duration::from_secs(180);
/// What changes that time, in milliseconds.
const TIMEOUT: &str = "ipc.client.rpc-timeout.ms";

/// The name node of a URL. Nobody is asked yet.
pub(super) fn name_node(url: &Url, options: &[(String, String)]) -> Result<NameNode, StoreError> {
    let scheme = url.scheme();
    let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
        return Err(StoreError::refused(format!("name the name node: {scheme}://host:port/path")));
    };
    if !url.username().is_empty() || url.password().is_some() {
        let reason = "the user does not stand in the URL: set the environment variable HADOOP_USER_NAME";
        return Err(StoreError::refused(reason));
    }
    let config: Vec<(String, String)> =
        options.iter().filter(|(name, _)| is_store_option(url.as_str(), name)).cloned().collect();
    let value = |name: &str| config.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str());

    let mut file = WriteOptions::default();
    if let Some(text) = value("dfs.replication") {
        let copies = text.trim().parse().ok().filter(|copies| *copies > 0);
        file.replication = Some(copies.ok_or_else(|| unfit("dfs.replication", text, "write a number of copies"))?);
    }
    if let Some(text) = value("dfs.blocksize") {
        let bytes = byte_size(text).filter(|bytes| *bytes > 0);
        file.block_size =
            Some(bytes.ok_or_else(|| unfit("dfs.blocksize", text, "write for example 134217728 or 128m"))?);
    }
    let limit = match value(TIMEOUT) {
        Some(text) => match text.trim().parse() {
            Ok(ms @ 1..) => Some(Duration::from_millis(ms)),
            // Hadoop waits for ever then; here nothing does.
            Ok(0) => None,
            Err(_) => return Err(unfit(TIMEOUT, text, "write a number of milliseconds")),
        },
        None => None,
    };

    let build = |address: &str| {
        let builder = ClientBuilder::new().with_url(address).with_config(config.clone());
        builder.with_io_runtime(runtime()?).build().map_err(|error| refused(address, &error))
    };
    let authority = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let (client, address, is_service) = match url.port() {
        _ if scheme == "viewfs" => (build(&format!("viewfs://{authority}"))?, format!("mount table {authority}"), true),
        Some(_) => (build(&format!("hdfs://{authority}"))?, format!("name node {authority}"), false),
        None => match service(&authority, &config)? {
            Some(client) => (client, format!("name service {authority}"), true),
            None => (build(&format!("hdfs://{authority}:{PORT}"))?, format!("name node {authority}:{PORT}"), false),
        },
    };
    let limit = limit.unwrap_or(if is_service { LIMIT_OF_SERVICE } else { LIMIT });
    Ok(NameNode::new(client, &address, Patience::new(limit), file))
}

/// The name service of this name, if some configuration has one.
fn service(name: &str, config: &[(String, String)]) -> Result<Option<Client>, StoreError> {
    let address = format!("hdfs://{name}");
    let builder = ClientBuilder::new().with_url(address.as_str()).with_config(config.to_vec());
    match builder.with_io_runtime(runtime()?).build() {
        Ok(client) => Ok(Some(client)),
        Err(HdfsError::InvalidArgument(reason)) if reason.contains("No NameNode hosts") => Ok(None),
        Err(error) => Err(refused(&address, &error)),
    }
}

fn refused(address: &str, error: &HdfsError) -> StoreError {
    StoreError::refused(format!("{address} cannot be used: {}", super::failure::short(&error.to_string())))
}

fn unfit(option: &str, value: &str, expected: &str) -> StoreError {
    StoreError::refused(format!("option `{option}` cannot be `{value}`: {expected}"))
}

/// A number of bytes as Hadoop writes it: with a letter for a power of 1024, or without.
fn byte_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let letters = ["k", "m", "g", "t", "p", "e"];
    let power = letters.iter().position(|letter| text.to_ascii_lowercase().ends_with(letter));
    let digits = if power.is_some() { &text[..text.len() - 1] } else { text };
    let factor = power.map_or(Some(1), |power| 1024_u64.checked_pow(power as u32 + 1))?;
    digits.trim().parse::<u64>().ok()?.checked_mul(factor)
}

/// Where connections live: longer than every store and every runtime that asks one.
fn runtime() -> Result<Handle, StoreError> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let made =
        RUNTIME.get_or_init(|| Builder::new_multi_thread().worker_threads(2).thread_name("hdfs").enable_all().build());
    match made {
        Ok(runtime) => Ok(runtime.handle().clone()),
        Err(error) => Err(StoreError::refused(format!("the threads for HDFS cannot be started: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(url: &str, options: &[(&str, &str)]) -> Result<NameNode, StoreError> {
        let options: Vec<_> = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        name_node(&Url::parse(url).unwrap(), &options)
    }

    #[test]
    fn an_address_is_a_name_node_a_name_service_or_a_mount_table() {
        let service = [
            ("dfs.ha.namenodes.Sales", "nn1,nn2"),
            ("dfs.namenode.rpc-address.Sales.nn1", "one:8020"),
            ("dfs.namenode.rpc-address.Sales.nn2", "two:8020"),
        ];
        let mounts = [("fs.viewfs.mounttable.all.linkFallback", "hdfs://one:8020/")];
        for (url, options, address) in [
            ("hdfs://host:9000/x", &[][..], "name node host:9000"),
            ("hdfs://[::1]:9000/x", &[], "name node [::1]:9000"),
            ("hdfs://host/x", &[], "name node host:8020"),
            ("hdfs://Sales/x", &service, "name service Sales"),
            ("viewfs://all/x", &mounts, "mount table all"),
        ] {
            assert_eq!(open(url, options).unwrap().address(), address, "{url}");
        }
    }

    #[test]
    fn what_names_no_cluster_is_refused_with_the_way_out() {
        for (url, options, words) in [
            ("hdfs:///x", &[][..], "hdfs://host:port/path"),
            ("hdfs://ann@host:8020/x", &[], "HADOOP_USER_NAME"),
            ("viewfs://all/x", &[], "fallback"),
            ("hdfs://host:1/x", &[("dfs.replication", "two")], "a number of copies"),
            ("hdfs://host:1/x", &[("dfs.replication", "0")], "a number of copies"),
            ("hdfs://host:1/x", &[("dfs.blocksize", "128 q")], "128m"),
            ("hdfs://host:1/x", &[("ipc.client.rpc-timeout.ms", "1 s")], "milliseconds"),
        ] {
            let text = open(url, options).unwrap_err().to_string();
            assert!(text.contains(words), "{url} {options:?}: {text}");
        }
        // What other stores are told is none of HDFS's business.
        open("hdfs://host:1/x", &[("aws_region", "x"), ("DFS.replication", "two")]).unwrap();
    }

    #[test]
    fn sizes_are_written_as_in_hadoop() {
        for (text, bytes) in [("134217728", Some(134_217_728)), ("128m", Some(134_217_728)), ("1G", Some(1 << 30))] {
            assert_eq!(byte_size(text), bytes);
        }
        for text in ["", "m", "1.5g", "-1", "99999e"] {
            assert_eq!(byte_size(text), None, "{text}");
        }
    }
}
