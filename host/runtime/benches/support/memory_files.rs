//! Files in memory, for what a query costs beside its disk.

use bytes::Bytes;
use millstream_common::{DurableError, DurableFiles};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files in a map.
#[derive(Debug, Default)]
pub(crate) struct MemoryFiles(Mutex<BTreeMap<String, Bytes>>);

impl MemoryFiles {
    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names directly below a folder: of files, or of folders.
    fn below(&self, folder: &str, folders: bool) -> Vec<String> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let files = self.files();
        let below = files.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        let names: BTreeSet<String> = below
            .filter_map(|(path, _)| match path[prefix.len()..].split_once('/') {
                Some((name, _)) if folders => Some(name.to_owned()),
                None if !folders => Some(path[prefix.len()..].to_owned()),
                _ => None,
            })
            .collect();
        names.into_iter().collect()
    }
}

impl DurableFiles for MemoryFiles {
    fn put_new(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        let mut files = self.files();
        if files.contains_key(path) {
            return Err(DurableError::Exists { path: path.to_owned() });
        }
        files.insert(path.to_owned(), bytes);
        Ok(())
    }

    fn put_over(&self, path: &str, bytes: Bytes) -> Result<(), DurableError> {
        self.files().insert(path.to_owned(), bytes);
        Ok(())
    }

    fn get(&self, path: &str) -> Result<Bytes, DurableError> {
        self.files().get(path).cloned().ok_or_else(|| DurableError::Missing { path: path.to_owned() })
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        Ok(self.below(folder, false))
    }

    fn list_folders(&self, folder: &str) -> Result<Vec<String>, DurableError> {
        Ok(self.below(folder, true))
    }

    fn delete(&self, path: &str) -> Result<(), DurableError> {
        self.files().remove(path);
        Ok(())
    }

    fn location(&self) -> String {
        "memory".into()
    }
}
