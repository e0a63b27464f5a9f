//! The store below, by the contract of the `object_store` crate.

use futures::TryStreamExt;
use hdfs_tests::Hdfs;
use millstream_store::open_store;
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions,
    RenameOptions, RenameTargetMode, UpdateVersion,
};
use std::sync::Arc;
use tokio::runtime::Runtime;

fn open(hdfs: &Hdfs, like: &str) -> (Arc<dyn ObjectStore>, Path, Runtime) {
    let options = [("dfs.replication".to_owned(), "1".to_owned()), ("dfs.blocksize".to_owned(), "1m".to_owned())];
    let (store, path) = open_store(&hdfs.folder(like), &options).unwrap();
    (store, path, Runtime::new().unwrap())
}

/// All names below a location; Hadoop's own program lists them, which hides nothing.
pub(crate) fn all_names(hdfs: &Hdfs, location: &str) -> Vec<String> {
    hdfs.list_all(location).unwrap()
}

#[test]
fn objects_are_written_read_in_parts_listed_copied_renamed_and_removed() {
    let hdfs = Hdfs::shared();
    let (store, root, runtime) = open(hdfs, "objects");
    runtime.block_on(async {
        let at = |name: &str| Path::parse(format!("{root}/{name}")).unwrap();
        // More than two blocks, in pieces that do not fit them.
        let big: Vec<u8> = (0..2_500_000_u32).map(|at| (at % 251) as u8).collect();
        store.put(&at("deep/big"), big.clone().into()).await.unwrap();
        for (name, text) in [("b", "bb"), ("a", "aaa"), ("deep/c", ""), ("deep/er/d", "d"), ("a b%41ü#?", "odd")] {
            store.put(&at(name), text.into()).await.unwrap();
        }
        assert_eq!(store.get(&at("deep/big")).await.unwrap().bytes().await.unwrap(), big);
        assert_eq!(store.get(&at("a b%41ü#?")).await.unwrap().bytes().await.unwrap(), "odd");
        assert_eq!(store.get(&at("deep/c")).await.unwrap().bytes().await.unwrap(), "");
        let ranges = [0..10, 1_048_570..1_048_590, 2_499_990..2_500_000];
        let read = store.get_ranges(&at("deep/big"), &ranges.clone()).await.unwrap();
        for (range, bytes) in ranges.iter().zip(read) {
            assert_eq!(bytes, big[range.start as usize..range.end as usize]);
        }
        let end = GetOptions { range: Some(GetRange::Suffix(7)), ..GetOptions::default() };
        let end = store.get_opts(&at("deep/big"), end).await.unwrap().bytes().await.unwrap();
        assert_eq!(end, big[big.len() - 7..]);

        let listed = |after: Option<&'static str>| {
            let store = Arc::clone(&store);
            let (root, prefix) = (root.clone(), root.to_string());
            let after = after.map(at);
            async move {
                let stream = match &after {
                    Some(after) => store.list_with_offset(Some(&root), after),
                    None => store.list(Some(&root)),
                };
                let found: Vec<_> = stream.try_collect().await.unwrap();
                found.iter().map(|object| object.location.as_ref()[prefix.len() + 1..].to_owned()).collect::<Vec<_>>()
            }
        };
        assert_eq!(listed(None).await, ["a", "a b%41ü#?", "b", "deep/big", "deep/c", "deep/er/d"]);
        assert_eq!(listed(Some("b")).await, ["deep/big", "deep/c", "deep/er/d"]);
        let beside = store.list_with_delimiter(Some(&root)).await.unwrap();
        assert_eq!((beside.objects.len(), beside.common_prefixes), (3, vec![at("deep")]));
        assert!(store.list(Some(&at("nowhere"))).try_collect::<Vec<_>>().await.unwrap().is_empty());
        assert!(store.list(Some(&at("a"))).try_collect::<Vec<_>>().await.unwrap().is_empty(), "a file is no folder");
        assert!(matches!(store.get(&at("deep")).await, Err(Error::NotFound { .. })), "a folder is no file");

        let create = || CopyOptions::new().with_mode(CopyMode::Create);
        store.copy(&at("deep/big"), &at("copies/big")).await.unwrap();
        assert_eq!(store.get(&at("copies/big")).await.unwrap().bytes().await.unwrap(), big);
        let again = store.copy_opts(&at("a"), &at("copies/big"), create()).await;
        assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
        store.copy(&at("a"), &at("copies/big")).await.unwrap();
        assert_eq!(store.get(&at("copies/big")).await.unwrap().bytes().await.unwrap(), "aaa");

        let create = || RenameOptions::new().with_target_mode(RenameTargetMode::Create);
        store.rename_opts(&at("b"), &at("new/folder/b"), create()).await.unwrap();
        let taken = store.rename_opts(&at("a"), &at("new/folder/b"), create()).await;
        assert!(matches!(taken, Err(Error::AlreadyExists { .. })), "{taken:?}");
        assert!(matches!(store.rename(&at("b"), &at("x")).await, Err(Error::NotFound { .. })));
        store.rename(&at("a"), &at("new/folder/b")).await.unwrap();
        assert_eq!(store.get(&at("new/folder/b")).await.unwrap().bytes().await.unwrap(), "aaa");

        store.delete(&at("new/folder/b")).await.unwrap();
        assert!(matches!(store.head(&at("new/folder/b")).await, Err(Error::NotFound { .. })));
    });
}

#[test]
fn conditions_on_tags_hold_and_what_hdfs_cannot_do_is_said() {
    let hdfs = Hdfs::shared();
    let (store, root, runtime) = open(hdfs, "conditions");
    runtime.block_on(async {
        let path = Path::parse(format!("{root}/file")).unwrap();
        store.put(&path, "one".into()).await.unwrap();
        let tag = store.head(&path).await.unwrap().e_tag;
        let options = || GetOptions { if_match: tag.clone(), range: Some((0..2).into()), ..GetOptions::default() };
        assert_eq!(store.get_opts(&path, options()).await.unwrap().bytes().await.unwrap(), "on");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        store.put(&path, "two".into()).await.unwrap();
        let changed = store.get_opts(&path, options()).await;
        assert!(matches!(changed, Err(Error::Precondition { .. })), "{changed:?}");
        let update = PutMode::Update(UpdateVersion { e_tag: tag.clone(), version: None });
        let updated = store.put_opts(&path, "three".into(), update.into()).await;
        assert!(matches!(updated, Err(Error::NotImplemented { .. })), "{updated:?}");
    });
}

#[test]
fn a_file_in_parts_is_seen_when_it_is_whole_and_leaves_nothing_when_it_is_given_up() {
    let hdfs = Hdfs::shared();
    let location = hdfs.folder("parts");
    let (store, root) = open_store(&location, &[]).unwrap();
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let at = |name: &str| Path::parse(format!("{root}/{name}")).unwrap();
        let mut upload = store.put_multipart_opts(&at("whole"), PutMultipartOptions::default()).await.unwrap();
        let parts = (0..5_u8).map(|part| upload.put_part(vec![part; 300_000].into())).collect::<Vec<_>>();
        // Whoever waits for the last one first gets them in order all the same.
        for part in parts.into_iter().rev() {
            part.await.unwrap();
        }
        assert!(matches!(store.head(&at("whole")).await, Err(Error::NotFound { .. })), "not before it is whole");
        assert!(store.list(Some(&root)).try_collect::<Vec<_>>().await.unwrap().is_empty(), "nor is it listed");
        upload.complete().await.unwrap();
        let bytes = store.get(&at("whole")).await.unwrap().bytes().await.unwrap();
        let wanted: Vec<u8> = (0..5_u8).flat_map(|part| vec![part; 300_000]).collect();
        assert_eq!(bytes, wanted);

        let mut upload = store.put_multipart_opts(&at("given up"), PutMultipartOptions::default()).await.unwrap();
        upload.put_part("x".into()).await.unwrap();
        upload.abort().await.unwrap();
        assert!(upload.complete().await.is_err());
        let mut upload = store.put_multipart_opts(&at("forgotten"), PutMultipartOptions::default()).await.unwrap();
        upload.put_part("x".into()).await.unwrap();
        drop(upload);
        let names = || all_names(hdfs, &location);
        for _ in 0..100 {
            if names().len() == 1 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert_eq!(names().len(), 1, "{:?}", names());
    });
}
