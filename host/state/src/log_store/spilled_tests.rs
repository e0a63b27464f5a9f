//! A store whose memory is limited does what one without a limit does.

use super::*;
use crate::Layout;
use crate::contract::state_store;
use millstream_common::{DurableFiles, Hint, MemoryFiles};
use std::collections::BTreeMap;
use std::ops::Range;

fn limited(options: StoreOptions, limit: u64) -> StoreOptions {
    StoreOptions { budget: Some(Arc::new(MemoryBudget::new(limit, std::env::temp_dir()))), ..options }
}

fn options(files: &Arc<MemoryFiles>, writer: &str) -> StoreOptions {
    let files = Arc::clone(files) as Arc<dyn DurableFiles>;
    StoreOptions { files, writer: writer.into(), changelogs_before_snapshot: 3, budget: None }
}

fn spec(layout: Layout) -> FamilySpec {
    FamilySpec { name: "sums".into(), layout, schema_id: "s1".into() }
}

fn numbers(range: Range<u64>, key: impl Fn(u64) -> Vec<u8>) -> ByteRows {
    let mut rows = ByteRows::new();
    range.for_each(|number| rows.push(&key(number)));
    rows
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

fn content(store: &LogStore, id: FamilyId) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = BTreeMap::new();
    let scanned = store.scan(id, &mut |key, value| {
        assert!(all.insert(key.to_vec(), value.to_vec()).is_none(), "a key is scanned twice");
    });
    scanned.unwrap();
    all
}

#[test]
fn keeps_the_contract_with_everything_spilled() {
    state_store(|options, manifest| Ok(Box::new(LogStore::open(limited(options, 1), manifest)?)));
}

#[test]
fn keeps_the_contract_with_about_half_spilled() {
    state_store(|options, manifest| Ok(Box::new(LogStore::open(limited(options, 6000), manifest)?)));
}

#[test]
fn keeps_the_contract_when_now_and_then_something_is_spilled() {
    state_store(|options, manifest| Ok(Box::new(LogStore::open(limited(options, 12_000), manifest)?)));
}

/// Two hundred batches that touch old and new keys, beside a model; answers the last manifest and the model.
fn grown(files: &Arc<MemoryFiles>, limit: u64) -> (StateManifest, BTreeMap<Vec<u8>, Vec<u8>>, StateMetrics) {
    let mut store = LogStore::open(limited(options(files, "w"), limit), &StateManifest::default()).unwrap();
    let id = store.family(&spec(Layout::Hash)).unwrap();
    let mut model = BTreeMap::new();
    let mut manifest = StateManifest::default();
    for batch in 0..200_u64 {
        let value = |number: u64| format!("value {number} of batch {batch}").into_bytes();
        let (old, new) = (batch * 37 % 5000, batch * 100);
        for range in [new..new + 100, old..old + 40] {
            let (keys, values) = (numbers(range.clone(), key), numbers(range.clone(), value));
            let found = store.get_many(id, &keys).unwrap();
            let wanted: Vec<Option<&[u8]>> = keys.iter().map(|key| model.get(key).map(Vec::as_slice)).collect();
            assert_eq!(found, wanted, "batch {batch}");
            store.put_many(id, &keys, &values).unwrap();
            if batch % 7 != 3 {
                range.for_each(|number| drop(model.insert(key(number), value(number))));
            }
        }
        if batch % 7 == 3 {
            store.abort();
            assert_eq!(store.metrics().keys, model.len() as u64);
            continue;
        }
        let gone = numbers(old + 10..old + 12, key);
        store.delete_many(id, &gone).unwrap();
        gone.iter().for_each(|key| drop(model.remove(key)));
        manifest = store.prepare().unwrap();
        assert!(store.metrics().memory_bytes <= limit, "{:?} in batch {batch}", store.metrics());
        store.commit();
        assert!(store.metrics().memory_bytes <= limit, "{:?} after batch {batch}", store.metrics());
        assert_eq!(store.metrics().keys, model.len() as u64);
    }
    store.finish_snapshot();
    assert_eq!(content(&store, id), model);
    (manifest, model, store.metrics())
}

#[test]
fn a_state_of_many_times_the_limit_is_right_and_stays_within_it() {
    let files = Arc::new(MemoryFiles::default());
    let limit = 400 << 10;
    let (manifest, model, metrics) = grown(&files, limit);
    assert!(metrics.spilled_keys * 10 > metrics.keys * 7, "{metrics:?}");
    assert!(metrics.spilled_bytes > 0);

    let is_snapshot = |file: &&StateFile| file.kind == StateFileKind::Snapshot;
    let parts: Vec<&StateFile> = manifest.files.iter().filter(is_snapshot).collect();
    assert!(parts.len() > 10, "{} parts", parts.len());
    assert!(parts.iter().all(|part| part.version == parts[0].version && part.bytes < limit / 16), "{parts:?}");

    // The process dies: the next one has the state files and nothing else.
    let mut again = LogStore::open(limited(options(&files, "again"), limit), &manifest).unwrap();
    assert!(again.metrics().memory_bytes <= limit, "{:?}", again.metrics());
    assert_eq!(again.metrics().keys, model.len() as u64);
    let id = again.family(&spec(Layout::Hash)).unwrap();
    assert_eq!(content(&again, id), model);

    // Under another limit, and with another layout, it is the same.
    for (limit, layout) in [(1, Layout::Windowed), (64 << 20, Layout::Hash)] {
        let mut other = LogStore::open(limited(options(&files, "other"), limit), &manifest).unwrap();
        let id = other.family(&spec(layout)).unwrap();
        assert_eq!(content(&other, id), model);
        assert_eq!(other.metrics().spilled_keys == 0, limit > 1);
    }
}

#[test]
fn expired_windows_leave_the_spill_and_come_back_when_the_batch_is_aborted() {
    let files = Arc::new(MemoryFiles::default());
    let budget = Arc::new(MemoryBudget::new(256 << 10, std::env::temp_dir()));
    let options = StoreOptions { budget: Some(Arc::clone(&budget)), ..options(&files, "w") };
    let mut store = LogStore::open(options, &StateManifest::default()).unwrap();
    let id = store.family(&spec(Layout::Windowed)).unwrap();
    let window = |number: u64| [&(number / 1000).to_be_bytes()[..], &number.to_be_bytes()].concat();
    for batch in 0..20 {
        let keys = numbers(batch * 500..(batch + 1) * 500, window);
        store.put_many(id, &keys, &keys).unwrap();
        store.prepare().unwrap();
        store.commit();
    }
    assert!(store.metrics().spilled_keys > 5000, "{:?}", store.metrics());
    let all = content(&store, id);
    assert_eq!(store.delete_through(id, 6).unwrap(), 7000);
    assert_eq!(store.metrics().keys, 3000);
    let late = numbers(0..10, window);
    store.put_many(id, &late, &late).unwrap();
    assert_eq!(store.metrics().keys, 3010);
    store.abort();
    assert_eq!(content(&store, id), all);
    assert_eq!(store.metrics().keys, 10_000);

    let before = store.metrics().spilled_bytes;
    assert_eq!(store.delete_through(id, 8).unwrap(), 9000);
    let manifest = store.prepare().unwrap();
    store.commit();
    assert!(manifest.files.last().unwrap().bytes < 120, "one record in the changelog");
    assert_eq!(store.metrics().keys, 1000);
    // Files that are half expired are merged on a thread of their own.
    for _ in 0..1000 {
        store.prepare().unwrap();
        store.commit();
        if store.metrics().spilled_bytes < before / 2 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(store.metrics().spilled_bytes < before / 2, "{:?}, before {before}", store.metrics());
    assert_eq!(content(&store, id).len(), 1000);
    drop(store);
    assert_eq!(budget.used(), 0, "a store that is dropped gives everything back");
}

#[test]
fn stores_share_one_limit() {
    let files = [Arc::new(MemoryFiles::default()), Arc::new(MemoryFiles::default())];
    let limit = 300 << 10;
    let budget = Arc::new(MemoryBudget::new(limit, std::env::temp_dir()));
    let mut stores: Vec<LogStore> = files
        .iter()
        .map(|files| {
            let options = StoreOptions { budget: Some(Arc::clone(&budget)), ..options(files, "w") };
            LogStore::open(options, &StateManifest::default()).unwrap()
        })
        .collect();
    let ids: Vec<FamilyId> = stores.iter_mut().map(|store| store.family(&spec(Layout::Hash)).unwrap()).collect();
    for batch in 0..100_u64 {
        // The first store grows at first, the second one later.
        let busy = usize::from(batch >= 50);
        let keys = numbers(batch * 100..(batch + 1) * 100, key);
        stores[busy].put_many(ids[busy], &keys, &keys).unwrap();
        for store in &mut stores {
            store.prepare().unwrap();
            store.commit();
        }
        let sum: u64 = stores.iter().map(|store| store.metrics().memory_bytes).sum();
        assert!(sum <= limit, "{sum} bytes after batch {batch}");
    }
    let metrics: Vec<StateMetrics> = stores.iter().map(StateStore::metrics).collect();
    assert!(metrics.iter().all(|metrics| metrics.keys == 5000 && metrics.spilled_keys > 0), "{metrics:?}");
    assert!(metrics[1].spilled_keys < 5000, "the one that works has room: {metrics:?}");
}

#[test]
fn a_spill_that_cannot_be_written_fails_the_batch_and_loses_nothing() {
    let files = Arc::new(MemoryFiles::default());
    let folder = tempfile::tempdir().unwrap();
    let budget = Arc::new(MemoryBudget::new(64 << 10, folder.path()));
    let options = StoreOptions { budget: Some(budget), ..options(&files, "w") };
    let mut store = LogStore::open(options, &StateManifest::default()).unwrap();
    let id = store.family(&spec(Layout::Hash)).unwrap();
    let batch = |store: &mut LogStore, batch: u64| {
        let keys = numbers(batch * 100..(batch + 1) * 100, key);
        store.get_many(id, &keys)?;
        store.put_many(id, &keys, &keys)?;
        store.prepare()?;
        store.commit();
        Ok::<(), StateError>(())
    };
    batch(&mut store, 0).unwrap();
    std::fs::remove_dir(folder.path()).unwrap();
    let (failed, error) = (1..100).find_map(|number| Some((number, batch(&mut store, number).err()?))).unwrap();
    assert!(error.to_string().contains(&folder.path().display().to_string()), "{error}");
    assert!(error.hint().unwrap().contains("directories.spill"));
    store.abort();
    assert_eq!(content(&store, id).len() as u64, failed * 100);
    assert_eq!(store.metrics().keys, failed * 100);

    std::fs::create_dir(folder.path()).unwrap();
    (failed..failed + 20).for_each(|number| batch(&mut store, number).unwrap());
    assert_eq!(content(&store, id).len() as u64, (failed + 20) * 100);
    assert!(store.metrics().spilled_keys > 0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the files have no names");
}

#[test]
fn parts_of_two_snapshots_are_never_one() {
    let files = Arc::new(MemoryFiles::default());
    let (manifest, ..) = grown(&files, 400 << 10);
    let open = |manifest: &StateManifest| LogStore::open(options(&files, "r"), manifest);
    let bytes = files.get(&manifest.files[1].name).unwrap();
    for changed in [24, 40] {
        // Another version, another parent.
        let mut bytes = bytes.to_vec();
        bytes[changed] ^= 1;
        let checksum = crc32fast::hash(&bytes[12..]);
        bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
        let mut manifest = manifest.clone();
        let file = &mut manifest.files[1];
        (file.name, file.crc) = (format!("0-other{changed}.snapshot"), crc32fast::hash(&bytes));
        file.version = u64::from_le_bytes(bytes[24..32].try_into().unwrap());
        files.put_over(&file.name, bytes.into()).unwrap();
        let error = open(&manifest).unwrap_err();
        assert!(matches!(error, StateError::Damaged { .. }), "{error}");
    }
    let mut late = manifest.clone();
    let part = late.files.remove(1);
    late.files.push(part);
    assert!(matches!(open(&late), Err(StateError::Damaged { .. })), "a part after a changelog");
    open(&manifest).unwrap();
}
