use hdfs_tests::Hdfs;
use millstream_checkpoint::contract;
use millstream_common::DurableFiles;
use std::sync::Arc;

#[test]
fn durable_files_on_hdfs_keep_the_contract() {
    let hdfs = Hdfs::shared();
    contract::durable_files(&hdfs.files(&hdfs.folder("contract")).unwrap());
    // Names that a URL writes in another way.
    contract::durable_files(&hdfs.files(&hdfs.folder("a folder with ü and %2541")).unwrap());
}

#[test]
fn of_many_writers_of_a_file_on_hdfs_one_wins() {
    let hdfs = Hdfs::shared();
    let place = hdfs.folder("race");
    contract::one_of_many_wins(&hdfs.files(&place).unwrap());
    assert_eq!(hidden(hdfs, &place), [""; 0], "those that lost leave nothing behind");
}

/// Writers on other machines have clients of their own.
#[test]
fn writers_with_clients_of_their_own_meet_at_the_name_node() {
    let hdfs = Hdfs::shared();
    let place = hdfs.folder("clients");
    let files: Vec<Arc<dyn DurableFiles>> = (0..4).map(|_| hdfs.files(&place).unwrap()).collect();
    for round in 0..10 {
        let path = format!("log/{round}");
        let won = std::thread::scope(|scope| {
            let write = |number: usize| {
                let (files, path) = (&files[number], &path);
                scope.spawn(move || files.put_new(path, format!("{number}").into()).is_ok())
            };
            let writers: Vec<_> = (0..files.len()).map(write).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<bool>>()
        });
        let winner = won.iter().position(|won| *won).unwrap();
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "{won:?}");
        assert_eq!(files[0].get(&path).unwrap(), winner.to_string());
    }
}

/// A lease is replaced while others read it: what is read is one of the files, whole.
#[test]
fn a_file_that_is_replaced_all_the_time_is_read_whole() {
    let hdfs = Hdfs::shared();
    let place = hdfs.folder("replaced");
    let (writer, reader) = (hdfs.files(&place).unwrap(), hdfs.files(&place).unwrap());
    let content = |round: usize| vec![b'a' + (round % 26) as u8; 10 + round * 7 % 400];
    writer.put_over("lease", content(0).into()).unwrap();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for round in 1..60 {
                writer.put_over("lease", content(round).into()).unwrap();
            }
        });
        let mut read = 0;
        while !writing.is_finished() {
            // A data node may have forgotten the bytes of a file that is gone; that is an error, and never half a file.
            if let Ok(bytes) = reader.get("lease") {
                assert!(bytes.iter().all(|byte| *byte == bytes[0]) && bytes.len() >= 10, "{bytes:?}");
                read += 1;
            }
        }
        assert!(read > 5, "{read}");
        writing.join().unwrap();
    });
}

/// The names in a folder that begin with a dot, by a client that hides none of them.
fn hidden(hdfs: &Hdfs, location: &str) -> Vec<String> {
    crate::store::all_names(hdfs, location).into_iter().filter(|name| name.contains("/.")).collect()
}
