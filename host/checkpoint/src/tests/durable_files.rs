use super::{local, memory};
use crate::faulty::{Counted, FaultyFiles, Moment};
use crate::{CheckpointError, LocalFiles, contract, open_files};
use millstream_common::{DurableError, DurableFiles, Hint};
use std::fs::{self, File};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

#[test]
fn local_files_keep_the_contract() {
    let (_folder, files) = local();
    contract::durable_files(&files);
}

#[test]
fn object_files_keep_the_contract() {
    contract::durable_files(&memory());
}

#[test]
fn faulty_files_without_a_fault_keep_the_contract() {
    let files: Arc<dyn DurableFiles> = Arc::new(FaultyFiles::new(memory(), Counted::ALL));
    contract::durable_files(&files);
}

#[test]
fn one_of_many_threads_wins_a_new_local_file() {
    let (_folder, files) = local();
    contract::one_of_many_wins(&files);
}

#[test]
fn one_of_many_threads_wins_a_new_object() {
    contract::one_of_many_wins(&memory());
}

#[test]
fn local_paths_never_leave_the_folder() {
    let (folder, files) = local();
    for path in ["", "../x", "a/../../x", "/etc/passwd", "a//b", "a/", ".", ".tmp/x", "a\\b", "a\0b"] {
        assert!(matches!(files.put_new(path, "x".into()), Err(DurableError::Storage { .. })), "{path:?}");
        assert!(matches!(files.get(path), Err(DurableError::Storage { .. })), "{path:?}");
        assert!(files.delete(path).is_err(), "{path:?}");
    }
    assert!(!folder.path().join("x").exists());
}

#[test]
fn opening_a_local_folder_makes_nothing_and_forgets_only_old_temporary_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("a/b");
    let files = LocalFiles::open(&root).unwrap();
    assert!(!root.exists());
    files.put_new("x", "1".into()).unwrap();
    assert_eq!(fs::read_dir(root.join(".tmp")).unwrap().count(), 0, "a write cleans up after itself");

    let (young, old) = (root.join(".tmp/young"), root.join(".tmp/old"));
    fs::write(&young, "half").unwrap();
    fs::write(&old, "half").unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
    let files = LocalFiles::open(&root).unwrap();
    assert!(young.exists() && !old.exists());
    assert_eq!((files.list("").unwrap(), files.list_folders("").unwrap()), (vec!["x".to_owned()], vec![]));
}

#[test]
fn a_folder_that_vanishes_is_made_again() {
    let (_folder, files) = local();
    files.put_new("offsets/0", "0".into()).unwrap();
    fs::remove_dir_all(files.local_folder().unwrap()).unwrap();
    files.put_new("offsets/1", "1".into()).unwrap();
    assert_eq!(files.list("offsets").unwrap(), ["1"]);
}

#[test]
fn object_files_can_be_used_and_dropped_inside_another_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    runtime.block_on(async {
        let files = memory();
        files.put_new("a", "1".into()).unwrap();
        assert_eq!(files.get("a").unwrap(), "1");
        drop(files);
    });
}

#[test]
fn locations_are_opened_by_their_scheme() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plain").display().to_string();
    for location in [path.clone(), format!("file://{path}"), format!("file:{path}")] {
        let files = open_files(&location, &[]).unwrap();
        assert_eq!((files.location(), files.local_folder()), (path.clone(), Some(path.clone().into())));
    }
    assert_eq!(open_files("memory:///x", &[]).unwrap().local_folder(), None);
    let option = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let options = [("aws_region", "eu-west-1"), ("aws_access_key_id", "k"), ("aws_secret_access_key", "s")];
    let options = options.map(|(key, value)| option(key, value));
    let files = open_files("s3://user:secret@bucket/some/folder", &options).unwrap();
    assert_eq!(files.location(), "s3://bucket/some/folder");
}

#[test]
fn a_path_is_taken_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a%20b c").display().to_string();
    let files = open_files(&format!("file://{path}"), &[]).unwrap();
    assert_eq!((files.location(), files.local_folder()), (path.clone(), Some(path.into())));
    assert_eq!(open_files("memory:///a%20b c", &[]).unwrap().location(), "memory:///a%20b c");
}

#[test]
fn wrong_locations_are_refused_with_a_hint() {
    for location in ["", "ftp://host/x", "s3:/", "file://host/x", "http://host/x", "://", "s3://", "memory:///x?y"] {
        match open_files(location, &[]) {
            // A single slash is a path, strange as it is.
            Ok(files) => assert_eq!(location, "s3:/", "{}", files.location()),
            Err(error) => {
                assert!(matches!(error, CheckpointError::Location { .. }), "{location}: {error}");
                assert!(error.hint().is_some());
            }
        }
    }
}

#[test]
fn a_crash_is_before_or_after_its_write_and_nothing_works_after_it() {
    for (moment, written) in [(Moment::Before, 1), (Moment::After, 2)] {
        let inner = memory();
        let faulty = FaultyFiles::new(Arc::clone(&inner), Counted::PUT_NEW).crash_at(2, moment);
        faulty.put_over("not counted", "x".into()).unwrap();
        faulty.put_new("a/1", "x".into()).unwrap();
        assert!(!faulty.crashed());
        faulty.put_new("a/2", "x".into()).unwrap_err();
        assert!(faulty.crashed());
        faulty.put_new("a/3", "x".into()).unwrap_err();
        faulty.put_over("y", "x".into()).unwrap_err();
        faulty.get("a/1").unwrap_err();
        faulty.list("").unwrap_err();
        faulty.list_folders("").unwrap_err();
        let error = faulty.delete("a/1").unwrap_err();
        assert_eq!(millstream_common::describe_chain(&error), "cannot delete `a/1`: crashed");
        assert_eq!(inner.list("a").unwrap().len(), written);
        assert_eq!(faulty.history(), ["put_new a/1", "put_new a/2"]);
    }
}
