//! What the compiler is asked for, and what not, with entries of the cache that are good, damaged, foreign, forged.

use super::*;
use crate::engine::without_pool;
use std::fs;
use std::path::Path;

const COMPONENT: &str = "(component (core module (func (export \"f\") (result i32) i32.const 7)))";

fn compiler(folder: &Path) -> (Engine, Compiler) {
    let engine = without_pool().unwrap();
    let options = CacheOptions { folder: folder.to_owned(), limit_bytes: 1 << 30 };
    let compiler = Compiler::new(&engine, None, CompileLimits::default(), Some(&options));
    (engine, compiler)
}

/// What a new process has to do for the component.
fn load(folder: &Path) -> Compilations {
    let bytes = wat::parse_str(COMPONENT).unwrap();
    let (engine, compiler) = compiler(folder);
    compiler.component(&engine, "p", &bytes, Digest::of(&bytes)).unwrap();
    compiler.compilations()
}

fn entry(folder: &Path) -> PathBuf {
    let mut entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let entry = entries.next().unwrap();
    assert!(entries.next().is_none());
    entry
}

const COMPILED: Compilations = Compilations { compiled: 1, from_cache: 0, refused: 0 };
const CACHED: Compilations = Compilations { compiled: 0, from_cache: 1, refused: 0 };
const REFUSED: Compilations = Compilations { compiled: 1, from_cache: 0, refused: 1 };

#[test]
fn a_new_process_compiles_nothing_that_is_there_and_anew_what_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(load(folder.path()), COMPILED);
    assert_eq!([load(folder.path()), load(folder.path())], [CACHED, CACHED]);
    let entry = entry(folder.path());
    let whole = fs::read(&entry).unwrap();
    for at in [0, 30, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&entry, bytes).unwrap();
        assert_eq!(load(folder.path()), REFUSED, "byte {at}");
        assert_eq!(load(folder.path()), CACHED);
    }
}

/// Code that a compiler with other settings made, under the name and with the digest of ours.
#[test]
fn code_for_another_engine_is_not_run_even_if_its_entry_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = wat::parse_str(COMPONENT).unwrap();
    let mut config = wasmtime::Config::new();
    config.epoch_interruption(false).cranelift_opt_level(wasmtime::OptLevel::None);
    let foreign = Engine::new(&config).unwrap().precompile_component(&bytes).unwrap();
    let (_, compiler) = compiler(folder.path());
    compiler.cache.as_ref().unwrap().put(Digest::of(&bytes), &Code::from_checked_cache(foreign)).unwrap();
    assert_eq!(load(folder.path()), REFUSED);
    assert_eq!(load(folder.path()), CACHED, "the entry is ours now");
}

#[cfg(unix)]
#[test]
fn an_entry_that_others_can_write_to_or_that_leads_elsewhere_is_not_run() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = tempfile::tempdir().unwrap();
    assert_eq!(load(folder.path()), COMPILED);
    let entry = entry(folder.path());
    fs::set_permissions(&entry, PermissionsExt::from_mode(0o620)).unwrap();
    assert_eq!(load(folder.path()), REFUSED);
    assert_eq!(load(folder.path()), CACHED, "it was written anew");
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("code");
    fs::rename(&entry, &target).unwrap();
    symlink(&target, &entry).unwrap();
    assert_eq!(load(folder.path()), REFUSED);
    assert_eq!(load(folder.path()), CACHED);
}
