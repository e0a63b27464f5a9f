//! Entries that are there, damaged, old, too many; folders that others can write to.

use super::*;

fn component(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

fn open(folder: &Path, limit_bytes: u64) -> CompiledCache {
    let options = CacheOptions { folder: folder.to_owned(), limit_bytes };
    CompiledCache::open(&Engine::default(), &options).unwrap()
}

fn code(bytes: &[u8]) -> Code {
    Code::from_checked_cache(bytes.to_vec())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect()
}

#[test]
fn what_was_put_is_there_for_the_same_engine_only() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 1 << 20);
    assert!(cache.get(component("a")).unwrap().is_none());
    cache.put(component("a"), &code(b"code of a")).unwrap();
    cache.put(component("a"), &code(b"code of a")).unwrap();
    assert_eq!(open(folder.path(), 1).get(component("a")).unwrap().unwrap().bytes(), b"code of a");
    assert!(cache.get(component("b")).unwrap().is_none());
    assert_eq!(files(folder.path()).len(), 1);

    let mut config = wasmtime::Config::new();
    config.epoch_interruption(true);
    let options = CacheOptions { folder: folder.path().to_owned(), limit_bytes: 1 << 20 };
    let other = CompiledCache::open(&Engine::new(&config).unwrap(), &options).unwrap();
    assert!(other.get(component("a")).unwrap().is_none());
}

#[test]
fn every_damaged_byte_is_found_and_the_entry_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 1 << 20);
    cache.put(component("a"), &code(b"0123456789")).unwrap();
    let path = files(folder.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
    damaged.extend((0..whole.len()).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    }));
    damaged.push([whole.as_slice(), b"more"].concat());
    for bytes in damaged {
        fs::write(&path, bytes).unwrap();
        assert!(cache.get(component("a")).is_err());
        assert!(cache.get(component("a")).unwrap().is_none());
    }
    // The entry of one component in the place of another one's.
    fs::write(cache.path(cache.name(component("b"))), whole).unwrap();
    assert!(cache.get(component("b")).is_err());
}

#[test]
fn the_entries_that_were_not_used_for_longest_go() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 3 * (1000 + HEADER as u64));
    let old = |seconds| SystemTime::now() - Duration::from_secs(seconds);
    for (name, age) in [("a", 300), ("b", 200), ("c", 100)] {
        cache.put(component(name), &code(&[7; 1000])).unwrap();
        let file = File::options().append(true).open(cache.path(cache.name(component(name)))).unwrap();
        file.set_modified(old(age)).unwrap();
    }
    assert!(cache.get(component("a")).unwrap().is_some(), "used again");
    cache.put(component("d"), &code(&[7; 1000])).unwrap();
    let there = |name| cache.get(component(name)).unwrap().is_some();
    assert_eq!([there("a"), there("b"), there("c"), there("d")], [true, false, true, true]);
    cache.put(component("e"), &code(&[7; 10_000])).unwrap();
    assert!(!there("e") && there("d"), "what is larger than all may be is not kept");
}

#[test]
fn what_a_dead_writer_left_is_cleared_away() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 1 << 20);
    for (name, age) in [("old.tmp", 2 * ABANDONED), ("new.tmp", Duration::ZERO)] {
        let file = File::create(folder.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }
    cache.put(component("a"), &code(b"a")).unwrap();
    assert!(!folder.path().join("old.tmp").exists() && folder.path().join("new.tmp").exists());
}

#[cfg(unix)]
#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;

    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("deep/compiled");
    open(&inner, 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&inner), mode(inner.parent().unwrap())), (0o700, 0o700));
    for path in [inner.as_path(), inner.parent().unwrap()] {
        fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
        let options = CacheOptions { folder: inner.clone(), limit_bytes: 1 };
        let reason = CompiledCache::open(&Engine::default(), &options).unwrap_err();
        assert!(reason.contains("others than its owner can write"), "{reason}");
        fs::set_permissions(path, PermissionsExt::from_mode(0o700)).unwrap();
    }
}
