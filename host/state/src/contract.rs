//! The contract suite of [`StateStore`]: what any implementation must do, checked against a map.
//!
//! A test of an implementation calls [`state_store`]. All choices come from a fixed seed, so a failure repeats.
//!
//! It panics with a message when the contract is broken; it is for tests only.

use crate::{ByteRows, FamilyId, FamilySpec, Layout, StateError, StateManifest, StateStore, StoreOptions};
use millstream_common::{DurableFiles, MemoryFiles};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A small random number generator (xorshift64*) that needs nothing.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % sides
    }

    fn value(&mut self) -> Vec<u8> {
        let len = [0, 3, 3, 3, 3, 40][self.roll(6) as usize];
        (0..len).map(|_| self.roll(256) as u8).collect()
    }
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the store must hold: one map per family.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model([Rows; 2]);

/// Why a read or a change does not fail in a test.
const SPILL: &str = "the spill works";

/// The plain family is first, the windowed one second.
const PLAIN: usize = 0;
const WINDOWED: usize = 1;

struct Opened {
    store: Box<dyn StateStore>,
    families: [FamilyId; 2],
}

struct Suite<M> {
    make: M,
    files: Arc<MemoryFiles>,
    dice: Dice,
    runs: u32,
}

fn spec(name: &str, layout: Layout) -> FamilySpec {
    FamilySpec { name: name.into(), layout, schema_id: format!("schema of {name}") }
}

fn rows(items: &[&[u8]]) -> ByteRows {
    let mut rows = ByteRows::new();
    items.iter().for_each(|item| rows.push(item));
    rows
}

/// Checks a store: `make` opens it at exactly the version of the manifest. It may give it another memory budget, as the
/// contract is the same with any.
///
/// # Panics
/// When the contract is broken, with the seed and what differs.
pub fn state_store(make: impl Fn(StoreOptions, &StateManifest) -> Result<Box<dyn StateStore>, StateError>) {
    for seed in 1..=12 {
        let dice = Dice(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        let mut suite = Suite { make: &make, files: Arc::default(), dice, runs: 0 };
        suite.random_batches(seed);
    }
    let suite = || Suite { make: &make, files: Arc::default(), dice: Dice(7), runs: 0 };
    suite().batch_without_changes_writes_no_file();
    suite().abort_restores_the_version_in_every_order_of_changes();
    suite().foreign_schema_is_refused();
    suite().missing_file_is_an_error();
    suite().prepare_after_abort_makes_the_version_anew();
}

impl<M: Fn(StoreOptions, &StateManifest) -> Result<Box<dyn StateStore>, StateError>> Suite<M> {
    fn try_open(&mut self, manifest: &StateManifest) -> Result<Box<dyn StateStore>, StateError> {
        self.runs += 1;
        let options = StoreOptions {
            files: Arc::clone(&self.files) as Arc<dyn DurableFiles>,
            writer: format!("run{}", self.runs),
            changelogs_before_snapshot: 4,
            budget: None,
        };
        (self.make)(options, manifest)
    }

    fn open(&mut self, manifest: &StateManifest) -> Opened {
        let mut store = self.try_open(manifest).expect("a version that was committed opens");
        // The layout of the plain family changes from run to run: files must not depend on it.
        let layout = if self.dice.roll(2) == 0 { Layout::Hash } else { Layout::Windowed };
        let plain = store.family(&spec("plain", layout)).expect("the schema is the same");
        let windowed = store.family(&spec("windowed", Layout::Windowed)).expect("the schema is the same");
        assert_eq!(store.family(&spec("plain", layout)).expect("the schema is the same"), plain);
        assert_eq!(store.version(), manifest.version, "the store opens at the version of the manifest");
        Opened { store, families: [plain, windowed] }
    }

    fn key(&mut self, family: usize) -> Vec<u8> {
        if family == WINDOWED {
            let mut key = self.dice.roll(6).to_be_bytes().to_vec();
            key.push(self.dice.roll(8) as u8);
            return key;
        }
        let len = self.dice.roll(12) as usize;
        (0..len).map(|_| self.dice.roll(2) as u8).collect()
    }

    /// Some changes, to store and model alike.
    fn change(&mut self, opened: &mut Opened, model: &mut Model) {
        let family = self.dice.roll(2) as usize;
        let (id, map) = (opened.families[family], &mut model.0[family]);
        match self.dice.roll(10) {
            0 if family == WINDOWED => {
                let through = if self.dice.roll(20) == 0 { u64::MAX } else { self.dice.roll(5) };
                let before = map.len();
                map.retain(|key, _| prefix(key) > through);
                let gone = (before - map.len()) as u64;
                assert_eq!(opened.store.delete_through(id, through).expect(SPILL), gone, "count of delete_through");
            }
            0..=2 => {
                let keys: Vec<Vec<u8>> = (0..self.dice.roll(6)).map(|_| self.key(family)).collect();
                keys.iter().for_each(|key| drop(map.remove(key)));
                let gone = rows(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>());
                opened.store.delete_many(id, &gone).expect(SPILL);
            }
            _ => {
                let (mut keys, mut values) = (ByteRows::new(), ByteRows::new());
                for _ in 0..self.dice.roll(12) {
                    let (key, value) = (self.key(family), self.dice.value());
                    keys.push(&key);
                    values.push(&value);
                    map.insert(key, value);
                }
                opened.store.put_many(id, &keys, &values).expect(SPILL);
            }
        }
    }

    fn check(&mut self, opened: &mut Opened, model: &Model, at: &str) {
        for family in [PLAIN, WINDOWED] {
            let (id, map) = (opened.families[family], &model.0[family]);
            let mut found = Rows::new();
            let scanned = opened.store.scan(id, &mut |key, value| {
                assert!(found.insert(key.to_vec(), value.to_vec()).is_none(), "{at}: a key is scanned twice");
            });
            scanned.expect(SPILL);
            assert_eq!(&found, map, "{at}: scan of family {family}");
            let keys: Vec<Vec<u8>> = (0..8).map(|_| self.key(family)).collect();
            let asked = rows(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let values = opened.store.get_many(id, &asked).expect(SPILL);
            let wanted: Vec<Option<&[u8]>> = keys.iter().map(|key| map.get(key).map(Vec::as_slice)).collect();
            assert_eq!(values, wanted, "{at}: get_many of family {family}");
        }
        let through = self.dice.roll(6);
        let (mut last, mut found) = (0, Rows::new());
        let scanned = opened.store.scan_through(opened.families[WINDOWED], through, &mut |key, value| {
            assert!(prefix(key) >= last, "{at}: scan_through goes back from {last}");
            last = prefix(key);
            found.insert(key.to_vec(), value.to_vec());
        });
        scanned.expect(SPILL);
        let wanted = model.0[WINDOWED].iter().filter(|(key, _)| prefix(key) <= through);
        assert_eq!(found, wanted.map(|(key, value)| (key.clone(), value.clone())).collect(), "{at}: scan_through");
        let keys = model.0.iter().map(BTreeMap::len).sum::<usize>() as u64;
        assert_eq!(opened.store.metrics().keys, keys, "{at}: count of keys");
    }

    fn random_batches(&mut self, seed: u64) {
        let mut committed = Model::default();
        let mut history = vec![(StateManifest::default(), committed.clone())];
        let mut opened = self.open(&history[0].0);
        for batch in 0..60 {
            let at = format!("seed {seed}, batch {batch}");
            let mut model = committed.clone();
            for _ in 0..self.dice.roll(8) {
                self.change(&mut opened, &mut model);
                self.check(&mut opened, &model, &at);
            }
            let current = history.last().expect("it begins with one").0.clone();
            match self.dice.roll(10) {
                0 => opened.store.abort(),
                1 => {
                    opened.store.prepare().expect("the folder works");
                    opened.store.abort();
                }
                2 => opened = self.open(&current),
                3 => {
                    opened.store.prepare().expect("the folder works");
                    opened = self.open(&current);
                }
                end => {
                    let manifest = opened.store.prepare().expect("the folder works");
                    assert_eq!(manifest.version, current.version + 1, "{at}: a batch makes the next version");
                    self.check(&mut opened, &model, &at);
                    opened.store.commit();
                    assert_eq!(opened.store.version(), manifest.version, "{at}: version after commit");
                    if end == 4 {
                        opened = self.open(&manifest);
                    }
                    committed = model;
                    history.push((manifest, committed.clone()));
                }
            }
            self.check(&mut opened, &committed, &at);
            if self.dice.roll(8) == 0 {
                let keep = history.len().saturating_sub(5);
                history.drain(..keep);
                let manifests: Vec<&StateManifest> = history.iter().map(|(manifest, _)| manifest).collect();
                opened.store.retain(&manifests).expect("the folder works");
            }
            let (manifest, model) = history[self.dice.roll(history.len() as u64) as usize].clone();
            let mut old = self.open(&manifest);
            self.check(&mut old, &model, &format!("{at}: old version {}", manifest.version));
        }
    }

    fn batch_without_changes_writes_no_file(&mut self) {
        let mut opened = self.open(&StateManifest::default());
        let id = opened.families[PLAIN];
        let first = opened.store.prepare().expect("the folder works");
        assert_eq!(first, StateManifest { version: 1, files: Vec::new() });
        opened.store.commit();
        opened.store.put_many(id, &rows(&[b"k"]), &rows(&[b"v"])).expect(SPILL);
        let second = opened.store.prepare().expect("the folder works");
        opened.store.commit();
        opened.store.delete_many(id, &rows(&[b"not there"])).expect(SPILL);
        opened.store.delete_through(opened.families[WINDOWED], 5).expect(SPILL);
        let third = opened.store.prepare().expect("the folder works");
        opened.store.commit();
        assert_eq!((third.version, &third.files), (3, &second.files));
        assert_eq!(self.files.list("").expect("memory works").len(), 1);
        let mut reopened = self.open(&third);
        let id = reopened.families[PLAIN];
        assert_eq!(reopened.store.get_many(id, &rows(&[b"k"])).expect(SPILL), [Some(&b"v"[..])]);
    }

    fn abort_restores_the_version_in_every_order_of_changes(&mut self) {
        let mut opened = self.open(&StateManifest::default());
        let window = |prefix: u64| prefix.to_be_bytes();
        let id = opened.families[WINDOWED];
        opened.store.put_many(id, &rows(&[&window(1), &window(2)]), &rows(&[b"one", b"two"])).expect(SPILL);
        opened.store.prepare().expect("the folder works");
        opened.store.commit();
        for order in 0..120_u32 {
            let mut left: Vec<u32> = (0..5).collect();
            let mut rest = order;
            for size in (1..=5).rev() {
                let store = &mut opened.store;
                let changed = match left.remove((rest % size) as usize) {
                    0 => store.put_many(id, &rows(&[&window(1)]), &rows(&[b"new"])),
                    1 => store.put_many(id, &rows(&[&window(1)]), &rows(&[b"longer"])),
                    2 => store.delete_many(id, &rows(&[&window(1), &window(2)])),
                    3 => store.delete_through(id, 1).map(drop),
                    _ => store.put_many(id, &rows(&[&window(2), &window(2)]), &rows(&[b"a", b"b"])),
                };
                changed.expect(SPILL);
                rest /= size;
            }
            opened.store.abort();
            let values = opened.store.get_many(id, &rows(&[&window(1), &window(2)])).expect(SPILL);
            assert_eq!(values, [Some(&b"one"[..]), Some(&b"two"[..])], "order {order}");
        }
    }

    fn foreign_schema_is_refused(&mut self) {
        let mut opened = self.open(&StateManifest::default());
        opened.store.put_many(opened.families[PLAIN], &rows(&[b"k"]), &rows(&[b"v"])).expect(SPILL);
        let manifest = opened.store.prepare().expect("the folder works");
        let other = FamilySpec { schema_id: "another".into(), ..spec("plain", Layout::Hash) };
        let mut store = self.try_open(&manifest).expect("the files are whole");
        let error = store.family(&other).expect_err("the schema is another");
        assert!(matches!(error, StateError::Schema { .. }), "{error}");
    }

    fn missing_file_is_an_error(&mut self) {
        let mut opened = self.open(&StateManifest::default());
        opened.store.put_many(opened.families[PLAIN], &rows(&[b"k"]), &rows(&[b"v"])).expect(SPILL);
        let manifest = opened.store.prepare().expect("the folder works");
        opened.store.commit();
        self.files.delete(&manifest.files[0].name).expect("memory works");
        let error = self.try_open(&manifest).err().expect("a file is missing");
        assert!(matches!(error, StateError::Missing { .. }), "{error}");
    }

    fn prepare_after_abort_makes_the_version_anew(&mut self) {
        let mut opened = self.open(&StateManifest::default());
        let id = opened.families[PLAIN];
        opened.store.put_many(id, &rows(&[b"k"]), &rows(&[b"wrong"])).expect(SPILL);
        let aborted = opened.store.prepare().expect("the folder works");
        opened.store.abort();
        opened.store.put_many(id, &rows(&[b"k"]), &rows(&[b"right"])).expect(SPILL);
        let manifest = opened.store.prepare().expect("the folder works");
        assert_ne!(aborted.files, manifest.files, "a file name is never used twice");
        opened.store.commit();
        let mut reopened = self.open(&manifest);
        let id = reopened.families[PLAIN];
        assert_eq!(reopened.store.get_many(id, &rows(&[b"k"])).expect(SPILL), [Some(&b"right"[..])]);
    }
}

fn prefix(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(8);
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(bytes)
}
