//! What durable files must do wherever they lie, as tests to run on each kind of place.
//!
//! [`durable_files`] goes through all calls of [`DurableFiles`], [`one_of_many_wins`] lets writers meet. Both panic with what
//! was broken, and leave files behind.

use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles, ScopedFiles};
use std::sync::{Arc, Barrier};

const NONE: [&str; 0] = [];

/// Runs the suite on a place that is empty.
///
/// # Panics
/// When a promise is broken.
pub fn durable_files(files: &Arc<dyn DurableFiles>) {
    let list = |folder: &str| files.list(folder).expect("a folder is listed");
    let folders = |folder: &str| files.list_folders(folder).expect("a folder is listed");
    let get = |path: &str| files.get(path).expect("a file that is there is read");
    let put_new = |path: &str, bytes: Bytes| files.put_new(path, bytes).expect("a new file is written");
    assert_eq!(list(""), NONE, "the place is empty at first");
    assert_eq!(list("offsets"), NONE, "a folder that is not there has no files");
    let missing = files.get("offsets/0");
    assert!(matches!(&missing, Err(DurableError::Missing { path }) if path == "offsets/0"), "{missing:?}");
    files.delete("offsets/0").expect("a file that is not there is deleted without an error");

    put_new("offsets/0", "zero".into());
    put_new("offsets/10", "ten".into());
    put_new("offsets/deep/er/file", Bytes::new());
    put_new("top", "t".into());
    let exists = files.put_new("offsets/0", "other".into());
    assert!(matches!(&exists, Err(DurableError::Exists { path }) if path == "offsets/0"), "{exists:?}");
    assert_eq!(get("offsets/0"), "zero", "a file is written once");
    assert_eq!(get("offsets/deep/er/file"), "", "a file may be empty");

    for (path, bytes) in [("top", "over"), ("new", "new")] {
        files.put_over(path, bytes.into()).expect("a file is replaced, or new");
    }
    assert_eq!(get("top"), "over", "a file is replaced as a whole");

    assert_eq!(list(""), ["new", "top"], "files and not folders are listed, sorted");
    assert_eq!(folders(""), ["offsets"], "folders and not files are listed");
    assert_eq!(list("offsets"), ["0", "10"], "only what is directly in a folder is listed");
    assert_eq!(folders("offsets"), ["deep"], "only folders directly in a folder are listed");
    assert_eq!(folders("nowhere"), NONE, "a folder that is not there has no folders");

    let scoped = ScopedFiles::new(Arc::clone(files), "offsets");
    assert_eq!(scoped.get("10").expect("a folder is a place of its own"), "ten");
    assert_eq!(scoped.list("").expect("a folder is a place of its own"), ["0", "10"]);
    assert!(scoped.location().ends_with("/offsets"), "{}", scoped.location());

    files.delete("offsets/0").expect("a file is deleted");
    assert_eq!(list("offsets"), ["10"], "what is deleted is gone");
    put_new("offsets/0", "again".into());
}

/// Of many threads that write the same new file exactly one succeeds, and its bytes stand.
///
/// # Panics
/// When another number succeeds, or other bytes stand.
pub fn one_of_many_wins(files: &Arc<dyn DurableFiles>) {
    for round in 0..20 {
        let path = format!("offsets/{round}");
        let start = Barrier::new(8);
        let winners: Vec<u8> = std::thread::scope(|scope| {
            let race = |writer: u8| {
                let (start, path) = (&start, &path);
                scope.spawn(move || {
                    start.wait();
                    match files.put_new(path, vec![writer; 5000].into()) {
                        Ok(()) => Some(writer),
                        Err(error) => {
                            assert!(matches!(error, DurableError::Exists { .. }), "{error:?}");
                            None
                        }
                    }
                })
            };
            let threads: Vec<_> = (0..8).map(race).collect();
            threads.into_iter().filter_map(|thread| thread.join().expect("a writer ends")).collect()
        });
        assert_eq!(winners.len(), 1, "round {round}");
        assert_eq!(files.get(&path).expect("the file is there"), vec![winners[0]; 5000], "round {round}");
    }
}
