//! A folder of compiled components, so that a start or a swap does not compile what was compiled before.
//!
//! An entry is one file, named by the component's digest and by everything of the engine that its code depends on:
//! release, settings, processor. It is written aside and renamed, so readers see all of it or nothing:
//!
//! ```text
//! "millstream compiled 1\n"   SHA-256 of (name, code)   code
//! ```
//!
//! Rule of its life: an entry never changes; using it makes it young. When all entries together are above the limit, the
//! oldest go. Several processes may share the folder.
//!
//! The digest finds damage, not malice: whoever can write to the folder can run code as its user. Therefore the folder
//! must be that user's alone, which is checked when it is opened, and so must each entry. A secret that entries are sealed
//! with would have to lie where the same user reads it, and keep nobody out.

use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use millstream_common::Digest;
use wasmtime::Engine;

use super::code::Code;
use super::{CacheOptions, folder};

const MAGIC: &[u8] = b"millstream compiled 1\n";
const HEADER: usize = MAGIC.len() + 32;
/// How old a file may be that was never renamed; then its writer is gone.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The folder.
#[derive(Debug)]
pub(super) struct CompiledCache {
    folder: PathBuf,
    limit_bytes: u64,
    /// Release, settings and processor.
    engine: Digest,
}

impl CompiledCache {
    /// The reason if the folder cannot be used.
    pub(super) fn open(engine: &Engine, options: &CacheOptions) -> Result<Self, String> {
        folder::private(&options.folder)?;
        let mut collected = Collected::default();
        engine.precompile_compatibility_hash().hash(&mut collected);
        let engine = Digest::of(&collected.0);
        Ok(Self { folder: options.folder.clone(), limit_bytes: options.limit_bytes, engine })
    }

    fn name(&self, component: Digest) -> Digest {
        Digest::of(&[component.into_bytes(), self.engine.into_bytes()].concat())
    }

    /// The code of a component; `None` if it is not here, the reason if its entry is damaged.
    pub(super) fn get(&self, component: Digest) -> Result<Option<Code>, String> {
        let name = self.name(component);
        let path = self.path(name);
        let mut file = match folder::open_own(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("cannot be used: {error}")),
        };
        let mut entry = Vec::new();
        file.read_to_end(&mut entry).map_err(|error| format!("cannot be read: {error}"))?;
        let told = entry.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk::<32>()).copied();
        if told != Some(digest(name, entry.get(HEADER..).unwrap_or_default()).into_bytes()) {
            let _ = fs::remove_file(&path);
            return Err("is damaged".into());
        }
        // For whoever looks for the oldest; an entry that cannot be touched is still good.
        let _ = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        entry.drain(..HEADER);
        Ok(Some(Code::from_checked_cache(entry)))
    }

    /// Keeps the code of a component.
    pub(super) fn put(&self, component: Digest, code: &Code) -> io::Result<()> {
        static WRITES: AtomicU64 = AtomicU64::new(0);
        if (code.bytes().len() + HEADER) as u64 > self.limit_bytes {
            return Ok(());
        }
        let name = self.name(component);
        let write = WRITES.fetch_add(1, Ordering::Relaxed);
        let aside = self.folder.join(format!("{name}.{}-{write}.tmp", std::process::id()));
        let written = write_new(&aside, &[MAGIC, &digest(name, code.bytes()).into_bytes(), code.bytes()])
            .and_then(|()| fs::rename(&aside, self.path(name)));
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
        written.and_then(|()| self.evict())
    }

    /// Removes the oldest entries until the others are within the limit.
    fn evict(&self) -> io::Result<()> {
        let mut entries = Vec::new();
        for file in fs::read_dir(&self.folder)? {
            let file = file?;
            // Another process may have removed it just now.
            let Ok(metadata) = file.metadata() else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let path = file.path();
            if is_entry(&path) {
                entries.push((used, metadata.len(), path));
            } else if path.extension().is_some_and(|end| end == "tmp")
                && used.elapsed().is_ok_and(|age| age > ABANDONED)
            {
                let _ = fs::remove_file(path);
            }
        }
        let mut total: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
        entries.sort();
        for (_, bytes, path) in entries {
            if total <= self.limit_bytes {
                break;
            }
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => total -= bytes,
            }
        }
        Ok(())
    }

    fn path(&self, name: Digest) -> PathBuf {
        self.folder.join(format!("{name}.code"))
    }
}

/// What a folder of compiled components has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheFigures {
    /// Entries, of all engines.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Counts what a folder has; nothing when it is not there.
pub(super) fn figures(folder: &Path) -> io::Result<CacheFigures> {
    let mut figures = CacheFigures::default();
    for path in entries(folder)? {
        // Another process may have removed it just now.
        let Ok(metadata) = path.metadata() else { continue };
        figures.entries += 1;
        figures.bytes += metadata.len();
    }
    Ok(figures)
}

/// Removes all entries of a folder.
pub(super) fn clear(folder: &Path) -> io::Result<()> {
    for path in entries(folder)? {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let files = match fs::read_dir(folder) {
        Ok(files) => files,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for file in files {
        let path = file?.path();
        if is_entry(&path) {
            found.push(path);
        }
    }
    Ok(found)
}

fn is_entry(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "code")
}

fn digest(name: Digest, code: &[u8]) -> Digest {
    Digest::of_parts(&[&name.into_bytes(), code])
}

/// Writes a file that is not there yet, readable for its owner only.
fn write_new(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    parts.iter().try_for_each(|part| file.write_all(part))
}

/// The bytes that a value hashes, for a digest instead of a number.
#[derive(Default)]
struct Collected(Vec<u8>);

impl Hasher for Collected {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests;
