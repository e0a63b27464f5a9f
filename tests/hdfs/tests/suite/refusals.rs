//! Addresses that lead nowhere, and rights that are missing: one sentence each, with the place and the way out.

use crate::world::{World, counts, fill, json_sink};
use hdfs_tests::Hdfs;
use millstream_checkpoint::open_files;
use millstream_common::{StopSignal, describe_chain};
use millstream_runtime::{QueryRun, Session};
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// What is said when a query with its checkpoint there is opened.
fn refusal(checkpoint: &str, host: &str) -> String {
    let rows = "[[source]]\nname = \"n\"\nformat = \"rate-micro-batch\"\noptions = { rowsPerBatch = 1 }";
    let query = format!(
        "name = \"q\"\nsql = \"SELECT value FROM n\"\noutput_mode = \"append\"\ncheckpoint = \"{checkpoint}\"\n{rows}\n\
         [sink]\nformat = \"noop\"\n"
    );
    let world = World::new(&query, host);
    let opened = QueryRun::open(&Session::new().unwrap(), world.load().spec, StopSignal::new());
    let Err(error) = opened else { panic!("`{checkpoint}` is opened") };
    describe_chain(&error)
}

#[test]
fn an_address_where_nobody_listens_is_told_at_once() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let began = Instant::now();
    let text = refusal(&format!("hdfs://127.0.0.1:{port}/x"), "");
    assert!(text.contains(&format!("nobody listens at name node 127.0.0.1:{port}")), "{text}");
    assert!(text.contains(&format!("`hdfs://127.0.0.1:{port}/x`")) && text.contains("correct host and port"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_host_that_nobody_knows_is_told() {
    let text = refusal("hdfs://no-such-host.invalid:8020/x", "");
    assert!(text.contains("name node no-such-host.invalid:8020") && text.contains("correct its name"), "{text}");
}

#[test]
fn a_port_that_says_nothing_is_waited_for_as_long_as_the_host_file_says() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let began = Instant::now();
    let text = refusal(
        &format!("hdfs://127.0.0.1:{port}/x"),
        "[object_store]\n\"ipc.client.rpc-timeout.ms\" = \"1500\"\naws_region = \"of another store\"\n",
    );
    assert!(text.contains("did not answer within 1.5 s"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_port_of_another_server_is_told() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in other.incoming() {
            use std::io::Write;
            let _ = stream.unwrap().write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let text =
        refusal(&format!("hdfs://127.0.0.1:{port}/x"), "[object_store]\n\"ipc.client.rpc-timeout.ms\" = \"5000\"\n");
    assert!(text.contains(&format!("127.0.0.1:{port}")), "{text}");
}

#[test]
fn what_names_no_cluster_and_options_that_do_not_fit_are_refused_before_anything_is_asked() {
    for (location, host, words) in [
        ("hdfs:///x", "", "hdfs://host:port/path"),
        ("hdfs://ann@h:1/x", "", "HADOOP_USER_NAME"),
        ("viewfs://nowhere/x", "", "fallback"),
        ("hdfs://h:1/x", "[object_store]\n\"dfs.replication\" = \"two\"\n", "a number of copies"),
    ] {
        let text = refusal(location, host);
        assert!(text.contains(words), "{location}: {text}");
    }
}

#[test]
fn a_file_is_no_folder_for_a_checkpoint() {
    let hdfs = Hdfs::shared();
    let place = hdfs.folder("file");
    hdfs.files(&place).unwrap().put_new("file", "x".into()).unwrap();
    let text = refusal(&format!("{place}/file"), "");
    assert!(text.contains("is a file"), "{text}");
}

#[test]
fn a_user_without_rights_is_told_who_he_is_and_what_he_may_not() {
    let hdfs = Hdfs::shared();
    let place = hdfs.folder("rights");
    fill(hdfs, &place, 1);
    let world = World::new(&counts(&place, &format!("{place}/checkpoint"), &json_sink(&format!("{place}/out"))), "");
    let output = world.spawn(Some("a-stranger")).wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(text.contains("user=a-stranger") && text.contains("access=WRITE"), "{text}");
    assert!(text.contains("HADOOP_USER_NAME") && text.contains(&place) && !text.contains("\tat "), "{text}");
}

#[test]
fn the_source_names_a_place_that_cannot_be_reached() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = format!("hdfs://127.0.0.1:{port}/data");
    let world = World::new(&counts(&place, "checkpoint", "format = \"noop\""), "");
    let Err(error) = QueryRun::open(&Session::new().unwrap(), world.load().spec, StopSignal::new()) else {
        panic!("a source without a name node is opened")
    };
    let text = describe_chain(&error);
    assert!(text.contains(&format!("{place}/in")) && text.contains("nobody listens at"), "{text}");
}

#[test]
fn a_name_service_is_asked_at_the_name_nodes_that_the_host_file_lists() {
    let hdfs = Hdfs::shared();
    let live = hdfs.authority().trim_start_matches("hdfs://");
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let option = |name: &str, value: String| (name.to_owned(), value);
    let options = [
        option("dfs.ha.namenodes.Sales", "nn1,nn2".to_owned()),
        option("dfs.namenode.rpc-address.Sales.nn1", dead.to_string()),
        option("dfs.namenode.rpc-address.Sales.nn2", live.to_owned()),
        option("fs.viewfs.mounttable.all.linkFallback", format!("hdfs://{live}/")),
    ];
    let folder = hdfs.folder("service");
    let path = &folder[hdfs.authority().len()..];
    for location in [format!("hdfs://Sales{path}"), format!("viewfs://all{path}/mounted")] {
        let files = open_files(&location, &options).unwrap();
        files.put_new("a/file", "x".into()).unwrap();
        assert_eq!(open_files(&location, &options).unwrap().list("a").unwrap(), ["file"], "{location}");
    }
}
