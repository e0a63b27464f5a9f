//! The lock file beside a query file: which bytes each reference means, so that a tag that moves changes no code.
//!
//! ```toml
//! version = 1
//!
//! [plugin.words]
//! reference = "oci://registry.example.com/acme/words:1.2"
//! manifest = "sha256:…"
//! component = "sha256:…"
//! ```
//!
//! Rule of its life: an entry is made when its plugin's reference has none or another one, and otherwise only when a person
//! asks for it. The file belongs into version control, with the query.

use crate::{PackageError, store};
use millstream_common::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

const VERSION: u32 = 1;
const FILE_BYTES: u64 = 1 << 20;
const HEAD: &str = "# Which bytes the references of the query file mean: keep this file with it.\n\
                    # `millstream plugin lock` adds what is missing, `millstream plugin update` looks where tags lead now.\n";

/// What a reference means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockEntry {
    /// The reference as the query file has it.
    pub reference: String,
    /// The digest of the manifest: what a registry is asked for.
    pub manifest: Digest,
    /// The digest of the component.
    pub component: Digest,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockFile {
    path: PathBuf,
    entries: BTreeMap<String, LockEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    version: u32,
    #[serde(default)]
    plugin: BTreeMap<String, RawEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    reference: String,
    manifest: String,
    component: String,
}

impl LockFile {
    /// Where the lock file of a query file is.
    pub fn path_of(query: &Path) -> PathBuf {
        query.with_extension("lock")
    }

    /// Reads the lock file of a query file; empty when there is none.
    ///
    /// # Errors
    /// When it is there and does not have the form of one.
    pub fn of_query(query: &Path) -> Result<Self, PackageError> {
        let path = Self::path_of(query);
        let mut text = String::new();
        let file = match std::fs::File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self { path, entries: BTreeMap::new() }),
            Err(source) => return Err(PackageError::Io { doing: "read", path, source }),
        };
        let bad = |reason: String| PackageError::Lock { path: path.clone(), reason };
        file.take(FILE_BYTES).read_to_string(&mut text).map_err(|error| bad(error.to_string()))?;
        let raw: Raw = toml::from_str(&text).map_err(|error| bad(error.message().replace('\n', " ")))?;
        if raw.version != VERSION {
            return Err(bad(format!("it has the version {}, and this program knows {VERSION}", raw.version)));
        }
        let entry = |(plugin, raw): (String, RawEntry)| -> Result<(String, LockEntry), PackageError> {
            let digest = |key: &str, text: &str| -> Result<Digest, PackageError> {
                let digest = text.strip_prefix("sha256:").and_then(|hex| hex.parse().ok());
                digest.ok_or_else(|| bad(format!("`{key}` of `{plugin}` is no digest `sha256:…`")))
            };
            let (manifest, component) = (digest("manifest", &raw.manifest)?, digest("component", &raw.component)?);
            Ok((plugin, LockEntry { reference: raw.reference, manifest, component }))
        };
        let entries = raw.plugin.into_iter().map(entry).collect::<Result<_, _>>()?;
        Ok(Self { path, entries })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is known of a plugin.
    pub fn get(&self, plugin: &str) -> Option<&LockEntry> {
        self.entries.get(plugin)
    }

    /// All plugins.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &LockEntry)> {
        self.entries.iter().map(|(plugin, entry)| (plugin.as_str(), entry))
    }

    /// Sets what a plugin's reference means.
    pub fn set(&mut self, plugin: &str, entry: LockEntry) {
        self.entries.insert(plugin.to_owned(), entry);
    }

    /// Forgets plugins that the query does not have.
    pub fn retain(&mut self, is_used: impl Fn(&str) -> bool) {
        self.entries.retain(|plugin, _| is_used(plugin));
    }

    /// Writes it; a file without entries is only written over one that has some.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self) -> Result<(), PackageError> {
        if self.entries.is_empty() && !self.path.exists() {
            return Ok(());
        }
        let plugin = self.entries.iter().map(|(plugin, entry)| {
            let raw = RawEntry {
                reference: entry.reference.clone(),
                manifest: format!("sha256:{}", entry.manifest),
                component: format!("sha256:{}", entry.component),
            };
            (plugin.clone(), raw)
        });
        let raw = Raw { version: VERSION, plugin: plugin.collect() };
        let text = toml::to_string(&raw).expect("texts in tables always have a TOML form");
        store::write(&self.path, format!("{HEAD}{text}").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let query = folder.path().join("query.toml");
        let mut lock = LockFile::of_query(&query).unwrap();
        lock.save().unwrap();
        assert!(!folder.path().join("query.lock").exists(), "nothing is pinned");
        let entry = LockEntry {
            reference: "oci://localhost:1/words:1".into(),
            manifest: Digest::of(b"1"),
            component: Digest::of(b"2"),
        };
        lock.set("words", entry.clone());
        lock.set("old", entry.clone());
        lock.retain(|plugin| plugin == "words");
        lock.save().unwrap();
        let read = LockFile::of_query(&query).unwrap();
        assert_eq!((read.get("words"), read.entries().count()), (Some(&entry), 1));
        assert_eq!(read, lock);
    }

    #[test]
    fn a_lock_file_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let query = folder.path().join("query.toml");
        let error = |text: &str| {
            std::fs::write(folder.path().join("query.lock"), text).unwrap();
            LockFile::of_query(&query).unwrap_err().to_string()
        };
        assert!(error("version = 2").contains("version 2"));
        assert!(error("<<<<<<< ours").contains("cannot use the lock file"));
        assert!(error("version = 1\nplugins = 3").contains("unknown field"));
        let entry = "version = 1\n[plugin.a]\nreference = \"r\"\nmanifest = \"sha256:12\"\ncomponent = \"x\"";
        assert!(error(entry).contains("`manifest` of `a` is no digest"));
    }
}
