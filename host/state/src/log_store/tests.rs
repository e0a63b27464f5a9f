use super::*;
use crate::Layout;
use crate::contract::state_store;
use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles, MemoryFiles};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

fn rows(items: &[&[u8]]) -> ByteRows {
    let mut rows = ByteRows::new();
    items.iter().for_each(|item| rows.push(item));
    rows
}

fn options(files: &Arc<MemoryFiles>, writer: &str) -> StoreOptions {
    let files = Arc::clone(files) as Arc<dyn DurableFiles>;
    StoreOptions { files, writer: writer.into(), changelogs_before_snapshot: 3, budget: None }
}

fn spec() -> FamilySpec {
    FamilySpec { name: "sums".into(), layout: Layout::Hash, schema_id: "s1".into() }
}

fn content(store: &LogStore) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = BTreeMap::new();
    for family in 0..store.families.len() {
        store
            .scan(FamilyId(family), &mut |key, value| {
                all.insert([&[family as u8], key].concat(), value.to_vec());
            })
            .unwrap();
    }
    all
}

/// A snapshot and two changelogs, and what they hold.
fn written(files: &Arc<MemoryFiles>) -> (StateManifest, BTreeMap<Vec<u8>, Vec<u8>>) {
    let mut store = LogStore::open(options(files, "w"), &StateManifest::default()).unwrap();
    let sums = store.family(&spec()).unwrap();
    let windows = FamilySpec { name: "windows".into(), layout: Layout::Windowed, schema_id: "s2".into() };
    let windows = store.family(&windows).unwrap();
    let mut manifest = StateManifest::default();
    for batch in 0..5_u64 {
        store.put_many(sums, &rows(&[b"a", b"bb", &[batch as u8]]), &rows(&[&[batch as u8], b"", b"value"])).unwrap();
        store.put_many(windows, &rows(&[&batch.to_be_bytes()]), &rows(&[b"w"])).unwrap();
        store.delete_many(sums, &rows(&[&[batch as u8 / 2]])).unwrap();
        store.delete_through(windows, batch.saturating_sub(2)).unwrap();
        manifest = store.prepare().unwrap();
        store.commit();
        store.finish_snapshot();
    }
    let kinds: Vec<StateFileKind> = manifest.files.iter().map(|file| file.kind).collect();
    assert_eq!(kinds, [StateFileKind::Snapshot, StateFileKind::Changelog, StateFileKind::Changelog]);
    (manifest, content(&store))
}

#[test]
fn keeps_the_contract() {
    state_store(|options, manifest| Ok(Box::new(LogStore::open(options, manifest)?)));
}

#[test]
fn keeps_the_contract_when_every_snapshot_is_waited_for() {
    state_store(|options, manifest| Ok(Box::new(Patient(LogStore::open(options, manifest)?))));
}

/// Takes every snapshot up at once.
struct Patient(LogStore);

impl StateStore for Patient {
    fn version(&self) -> u64 {
        self.0.version()
    }
    fn family(&mut self, spec: &FamilySpec) -> Result<FamilyId, StateError> {
        self.0.family(spec)
    }
    fn families(&self) -> Vec<FamilySpec> {
        self.0.families()
    }
    fn get_many(&mut self, family: FamilyId, keys: &ByteRows) -> Result<Vec<Option<&[u8]>>, StateError> {
        self.0.get_many(family, keys)
    }
    fn put_many(&mut self, family: FamilyId, keys: &ByteRows, values: &ByteRows) -> Result<(), StateError> {
        self.0.put_many(family, keys, values)
    }
    fn delete_many(&mut self, family: FamilyId, keys: &ByteRows) -> Result<(), StateError> {
        self.0.delete_many(family, keys)
    }
    fn delete_through(&mut self, family: FamilyId, through: u64) -> Result<u64, StateError> {
        self.0.delete_through(family, through)
    }
    fn scan_through(
        &self,
        family: FamilyId,
        through: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), StateError> {
        self.0.scan_through(family, through, visit)
    }
    fn scan(&self, family: FamilyId, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StateError> {
        self.0.scan(family, visit)
    }
    fn prepare(&mut self) -> Result<StateManifest, StateError> {
        self.0.prepare()
    }
    fn commit(&mut self) {
        self.0.commit();
        self.0.finish_snapshot();
    }
    fn abort(&mut self) {
        self.0.abort();
    }
    fn retain(&mut self, retained: &[&StateManifest]) -> Result<(), StateError> {
        self.0.retain(retained)
    }
    fn metrics(&self) -> StateMetrics {
        self.0.metrics()
    }
}

#[test]
fn every_flipped_byte_is_found() {
    let files = Arc::new(MemoryFiles::default());
    let (manifest, _) = written(&files);
    for file in &manifest.files {
        let whole = files.get(&file.name).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1 << (at % 8);
            files.put_over(&file.name, bytes.into()).unwrap();
            let error = LogStore::open(options(&files, "r"), &manifest).unwrap_err();
            assert!(matches!(&error, StateError::Damaged { file: named, .. } if *named == file.name), "{at}: {error}");
        }
        files.put_over(&file.name, whole).unwrap();
    }
}

#[test]
fn every_truncation_and_every_tail_is_found() {
    let files = Arc::new(MemoryFiles::default());
    let (manifest, _) = written(&files);
    for file in &manifest.files {
        let whole = files.get(&file.name).unwrap();
        let longer = Bytes::from([&whole[..], &[0]].concat());
        for bytes in (0..whole.len()).map(|len| whole.slice(..len)).chain([longer]) {
            files.put_over(&file.name, bytes).unwrap();
            let error = LogStore::open(options(&files, "r"), &manifest).unwrap_err();
            assert!(matches!(error, StateError::Damaged { .. }), "{error}");
        }
        files.put_over(&file.name, whole).unwrap();
    }
}

#[test]
fn a_body_that_lies_behind_right_checksums_is_refused_without_panic() {
    let files = Arc::new(MemoryFiles::default());
    let (manifest, _) = written(&files);
    let file = &manifest.files[0];
    let whole = files.get(&file.name).unwrap();
    let mut refused = 0;
    for at in 12..whole.len() {
        for value in [0, 1, 2, 3, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.to_vec();
            bytes[at] = value;
            let crc = crc32fast::hash(&bytes[12..]);
            bytes[8..12].copy_from_slice(&crc.to_le_bytes());
            let lying = StateFile { crc: crc32fast::hash(&bytes), ..file.clone() };
            files.put_over(&file.name, bytes.into()).unwrap();
            let manifest = StateManifest { version: file.version, files: vec![lying] };
            refused += usize::from(LogStore::open(options(&files, "r"), &manifest).is_err());
        }
    }
    assert!(refused > 100, "lengths and numbers are checked: {refused}");
}

#[test]
fn a_missing_file_a_swapped_order_and_a_foreign_history_are_refused() {
    let files = Arc::new(MemoryFiles::default());
    let (manifest, expected) = written(&files);
    let open = |manifest: &StateManifest| LogStore::open(options(&files, "r"), manifest);
    assert_eq!(content(&open(&manifest).unwrap()), expected);

    let without = |at: usize| {
        let mut manifest = manifest.clone();
        manifest.files.remove(at);
        manifest
    };
    for at in 0..2 {
        assert!(matches!(open(&without(at)), Err(StateError::Damaged { .. })), "file {at} is left out");
    }
    let mut swapped = manifest.clone();
    swapped.files.swap(1, 2);
    assert!(matches!(open(&swapped), Err(StateError::Damaged { .. })));
    let mut twice = manifest.clone();
    twice.files.push(manifest.files[2].clone());
    assert!(matches!(open(&twice), Err(StateError::Damaged { .. })));
    let early = StateManifest { version: 1, ..manifest.clone() };
    assert!(matches!(open(&early), Err(StateError::Damaged { .. })));
    let mut outside = manifest.clone();
    outside.files[0].name = "../w.snapshot".into();
    assert!(matches!(open(&outside), Err(StateError::Damaged { .. })));

    let mut other = open(&without(2)).unwrap();
    other.put_many(FamilyId(0), &rows(&[b"x"]), &rows(&[b"other history"])).unwrap();
    let theirs = other.prepare().unwrap();
    let mut mixed = theirs.clone();
    other.commit();
    other.put_many(FamilyId(0), &rows(&[b"x"]), &rows(&[b"further"])).unwrap();
    mixed.files.push(other.prepare().unwrap().files.pop().unwrap());
    mixed.version += 1;
    open(&mixed).unwrap();
    mixed.files[2] = manifest.files[2].clone();
    let error = open(&mixed).unwrap_err();
    assert!(error.to_string().contains("follows version"), "{error}");

    files.delete(&manifest.files[1].name).unwrap();
    assert!(matches!(open(&manifest), Err(StateError::Missing { .. })));
}

#[test]
fn hot_key_is_logged_once_per_batch() {
    let files = Arc::new(MemoryFiles::default());
    let mut store = LogStore::open(options(&files, "w"), &StateManifest::default()).unwrap();
    let id = store.family(&spec()).unwrap();
    for round in 0..1000_u64 {
        store
            .put_many(id, &rows(&[b"hot", b"growing"]), &rows(&[&round.to_le_bytes(), &vec![1; round as usize % 50]]))
            .unwrap();
    }
    let manifest = store.prepare().unwrap();
    assert!(manifest.files[0].bytes < 250, "{} bytes", manifest.files[0].bytes);
    let mut read = LogStore::open(options(&files, "r"), &manifest).unwrap();
    assert_eq!(read.get_many(FamilyId(0), &rows(&[b"hot"])).unwrap(), [Some(&999_u64.to_le_bytes()[..])]);
}

#[test]
fn expiry_is_one_record_whatever_the_number_of_keys() {
    let files = Arc::new(MemoryFiles::default());
    let mut store = LogStore::open(options(&files, "w"), &StateManifest::default()).unwrap();
    let id = store.family(&FamilySpec { layout: Layout::Windowed, ..spec() }).unwrap();
    let (mut keys, mut values) = (ByteRows::new(), ByteRows::new());
    for key in 0..8000_u64 {
        keys.push_parts(&[&1_u64.to_be_bytes(), &key.to_be_bytes()]);
        values.push(b"12345678");
    }
    store.put_many(id, &keys, &values).unwrap();
    store.prepare().unwrap();
    store.commit();
    assert_eq!(store.delete_through(id, 1).unwrap(), 8000);
    let manifest = store.prepare().unwrap();
    store.commit();
    assert!(manifest.files[1].bytes < 120, "{} bytes", manifest.files[1].bytes);
    assert_eq!(store.metrics().keys, 0);
    assert_eq!(LogStore::open(options(&files, "r"), &manifest).unwrap().metrics().keys, 0);
}

#[test]
fn retain_keeps_what_is_named_and_deletes_the_rest() {
    let files = Arc::new(MemoryFiles::default());
    let (manifest, expected) = written(&files);
    files.put_new("1-zombie.changelog", Bytes::new()).unwrap();
    files.put_new("99-successor.changelog", Bytes::new()).unwrap();
    files.put_new("notes", Bytes::new()).unwrap();
    let mut store = LogStore::open(options(&files, "r"), &manifest).unwrap();
    store.retain(&[&manifest]).unwrap();
    let mut left: Vec<String> = manifest.files.iter().map(|file| file.name.clone()).collect();
    left.extend(["99-successor.changelog".to_owned(), "notes".to_owned()]);
    left.sort();
    assert_eq!(files.list("").unwrap(), left);
    assert_eq!(content(&LogStore::open(options(&files, "r"), &manifest).unwrap()), expected);
}

/// Refuses to write snapshots for as long as `refuse` says.
#[derive(Debug, Default)]
struct NoSnapshots {
    inner: MemoryFiles,
    refuse: AtomicBool,
    refuse_all: AtomicBool,
}

impl DurableFiles for NoSnapshots {
    fn put_new(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        let refused = self.refuse.load(Ordering::SeqCst) && path.ends_with(".snapshot");
        if refused || self.refuse_all.load(Ordering::SeqCst) {
            return Err(DurableError::Storage { action: "write", path: path.into(), source: "disk full".into() });
        }
        self.inner.put_new(path, bytes)
    }
    fn put_over(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.inner.put_over(path, bytes)
    }
    fn get(&self, path: &str) -> Result<Bytes, DurableError> {
        self.inner.get(path)
    }
    fn list(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        self.inner.list(folder)
    }
    fn list_folders(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        self.inner.list_folders(folder)
    }
    fn delete(&self, path: &str) -> Result<(), DurableError> {
        self.inner.delete(path)
    }
    fn location(&self) -> String {
        self.inner.location()
    }
}

#[test]
fn failed_snapshot_costs_no_batch_and_is_made_later() {
    let files = Arc::new(NoSnapshots { refuse: AtomicBool::new(true), ..NoSnapshots::default() });
    let shared = Arc::clone(&files) as Arc<dyn DurableFiles>;
    let options = StoreOptions { files: shared, writer: "w".into(), changelogs_before_snapshot: 3, budget: None };
    let mut store = LogStore::open(options.clone(), &StateManifest::default()).unwrap();
    let id = store.family(&spec()).unwrap();
    let mut manifest = StateManifest::default();
    for batch in 0..20_u8 {
        if batch == 10 {
            assert!(manifest.files.iter().all(|file| file.kind == StateFileKind::Changelog));
            files.refuse.store(false, Ordering::SeqCst);
        }
        store.put_many(id, &rows(&[&[batch]]), &rows(&[b"value"])).unwrap();
        manifest = store.prepare().unwrap();
        store.commit();
        store.finish_snapshot();
    }
    assert_eq!(manifest.files[0].kind, StateFileKind::Snapshot);
    assert_eq!(content(&LogStore::open(options, &manifest).unwrap()), content(&store));
}

#[test]
fn failed_changelog_leaves_the_batch_open_to_be_prepared_again() {
    let files = Arc::new(NoSnapshots { refuse_all: AtomicBool::new(true), ..NoSnapshots::default() });
    let shared = Arc::clone(&files) as Arc<dyn DurableFiles>;
    let options = StoreOptions { files: shared, writer: "w".into(), changelogs_before_snapshot: 3, budget: None };
    let mut store = LogStore::open(options.clone(), &StateManifest::default()).unwrap();
    let id = store.family(&spec()).unwrap();
    store.put_many(id, &rows(&[b"k"]), &rows(&[b"v"])).unwrap();
    assert!(matches!(store.prepare(), Err(StateError::Files { .. })));
    files.refuse_all.store(false, Ordering::SeqCst);
    let manifest = store.prepare().unwrap();
    assert_eq!(manifest, store.prepare().unwrap(), "prepared once, written once");
    store.commit();
    assert_eq!(content(&LogStore::open(options, &manifest).unwrap()), content(&store));
}

#[test]
fn a_run_that_opens_a_store_again_does_not_trip_over_its_own_files() {
    let files = Arc::new(MemoryFiles::default());
    let mut manifest = StateManifest::default();
    for value in 0..5_u8 {
        let mut store = LogStore::open(options(&files, "w"), &StateManifest::default()).unwrap();
        let id = store.family(&spec()).unwrap();
        store.put_many(id, &rows(&[b"k"]), &rows(&[&[value]])).unwrap();
        manifest = store.prepare().unwrap();
    }
    assert_eq!(files.list("").unwrap().len(), 5);
    let mut read = LogStore::open(options(&files, "r"), &manifest).unwrap();
    assert_eq!(read.get_many(FamilyId(0), &rows(&[b"k"])).unwrap(), [Some(&[4_u8][..])]);
}

#[test]
fn undeclared_families_outlive_batches_and_snapshots() {
    let files = Arc::new(MemoryFiles::default());
    let (manifest, expected) = written(&files);
    let mut store = LogStore::open(options(&files, "next"), &manifest).unwrap();
    let other = store.family(&FamilySpec { name: "other".into(), ..spec() }).unwrap();
    let mut manifest = manifest;
    for batch in 0..8_u8 {
        store.put_many(other, &rows(&[b"k"]), &rows(&[&[batch; 64]])).unwrap();
        manifest = store.prepare().unwrap();
        store.commit();
        store.finish_snapshot();
    }
    let mut read = content(&LogStore::open(options(&files, "r"), &manifest).unwrap());
    read.retain(|key, _| key[0] < 2);
    assert_eq!(read, expected);
}

#[test]
fn the_manifest_of_the_format_document_is_read() {
    let document = include_str!("../../FORMAT.md");
    let json = document.split("```json").nth(1).unwrap().split("```").next().unwrap();
    let manifest: StateManifest = serde_json::from_str(json).unwrap();
    assert_eq!((manifest.version, manifest.files.len()), (60, 3));
    assert_eq!(serde_json::from_str::<StateManifest>(&serde_json::to_string(&manifest).unwrap()).unwrap(), manifest);
}

#[test]
fn a_store_follows_another_one_by_its_changelogs_and_versions_without_a_file_are_skipped() {
    let (from, to) = (Arc::new(MemoryFiles::default()), Arc::new(MemoryFiles::default()));
    let mut leader = LogStore::open(options(&from, "w"), &StateManifest::default()).unwrap();
    let mut follower = LogStore::open(options(&to, "f"), &StateManifest::default()).unwrap();
    let windows = FamilySpec { name: "windows".into(), layout: Layout::Windowed, schema_id: "s2".into() };
    let mut manifest = StateManifest::default();
    for batch in 0..6_u64 {
        let (sums, of_time) = (leader.family(&spec()).unwrap(), leader.family(&windows).unwrap());
        if batch != 2 && batch != 5 {
            leader.put_many(sums, &rows(&[b"a", &[batch as u8]]), &rows(&[&[batch as u8], b"v"])).unwrap();
            leader.put_many(of_time, &rows(&[&batch.to_be_bytes()]), &rows(&[b"w"])).unwrap();
            leader.delete_many(sums, &rows(&[&[batch as u8 / 2]])).unwrap();
            leader.delete_through(of_time, batch.saturating_sub(2)).unwrap();
        }
        let prepared = leader.prepare().unwrap();
        leader.commit();
        for file in prepared.files.iter().filter(|file| file.version == batch + 1) {
            follower.skip_to(batch);
            visit_changes(&*from, file, &mut |family, change| {
                let id = follower.family(family).unwrap();
                match change {
                    StateChange::Put { key, value } => follower.put_many(id, &rows(&[key]), &rows(&[value])).unwrap(),
                    StateChange::Delete { key } => follower.delete_many(id, &rows(&[key])).unwrap(),
                    StateChange::DeleteThrough { through } => drop(follower.delete_through(id, through).unwrap()),
                }
            })
            .unwrap();
            manifest = follower.prepare().unwrap();
            follower.commit();
        }
    }
    follower.skip_to(6);
    assert_eq!(content(&follower), content(&leader));
    let sums = follower.family(&spec()).unwrap();
    let mut scanned = 0;
    follower.scan(sums, &mut |_, _| scanned += 1).unwrap();
    assert_eq!(follower.keys_of(sums).unwrap(), scanned);
    assert_eq!(follower.prepare().unwrap().version, 7);
    let again = LogStore::open(options(&to, "g"), &StateManifest { version: 6, ..manifest }).unwrap();
    assert_eq!(content(&again), content(&leader));

    let manifest = leader.prepare().unwrap();
    let snapshot = manifest.files.iter().find(|file| file.kind == StateFileKind::Snapshot);
    let other = snapshot.cloned().unwrap_or_else(|| StateFile { crc: 1, ..manifest.files[0].clone() });
    assert!(visit_changes(&*from, &other, &mut |_, _| {}).is_err(), "only the changelog that is named");
}
