//! Servers that go away while they are used.

use hdfs_tests::{Hdfs, Role};
use millstream_checkpoint::open_files;
use millstream_common::{DurableError, describe_chain};
use std::time::{Duration, Instant};

#[test]
fn a_name_node_that_is_started_again_is_waited_for_and_one_that_is_silent_not_for_ever() {
    let Some(hdfs) = Hdfs::of_own() else { return };
    let place = hdfs.folder("outage");
    let files = hdfs.files(&place).unwrap();
    files.put_new("a", "1".into()).unwrap();

    hdfs.kill(Role::NameNode).unwrap();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| files.put_new("b", "2".into()));
        std::thread::sleep(Duration::from_millis(500));
        hdfs.start_again(Role::NameNode).unwrap();
        writing.join().unwrap().unwrap();
    });
    assert_eq!(files.list("").unwrap(), ["a", "b"]);
    assert_eq!(files.get("b").unwrap(), "2");

    let limit = [("ipc.client.rpc-timeout.ms".to_owned(), "2000".to_owned())];
    let hasty = open_files(&place, &limit).unwrap();
    hasty.get("a").unwrap();
    hdfs.pause(Role::NameNode).unwrap();
    let began = Instant::now();
    let error = hasty.put_new("c", "3".into()).unwrap_err();
    let text = describe_chain(&error);
    assert!(matches!(error, DurableError::Storage { .. }) && text.contains("did not answer within 2 s"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(15));
    hdfs.resume(Role::NameNode).unwrap();
    files.put_new("c", "3".into()).unwrap();

    hdfs.kill(Role::DataNode).unwrap();
    let error = describe_chain(&hasty.get("a").unwrap_err());
    assert!(error.contains("data node"), "{error}");
    let error = describe_chain(&hasty.put_new("d", "4".into()).unwrap_err());
    assert!(error.len() < 1500, "{error}");
    hdfs.start_again(Role::DataNode).unwrap();
    hdfs.wait().unwrap();
    files.put_new("d", "4".into()).unwrap();

    hdfs.kill(Role::NameNode).unwrap();
    let error = describe_chain(&hasty.list("").unwrap_err());
    assert!(error.contains("nobody listens at name node"), "{error}");
}
