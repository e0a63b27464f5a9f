//! Durable files in memory: for tests and benchmarks of whatever writes durable files.
//!
//! Rule of its life: it keeps the contract to the letter, and ends with its owner.
//!
//! It does not fail on purpose: the crate of checkpoints has files that do.

use crate::{DurableError, DurableFiles};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Durable files in a map.
#[derive(Debug, Default)]
pub struct MemoryFiles(Mutex<BTreeMap<String, Bytes>>);

impl MemoryFiles {
    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names directly below a folder: of files, or of folders.
    fn below(&self, folder: &str, folders: bool) -> Vec<String> {
        let folder = folder.trim_end_matches('/');
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let files = self.files();
        let below = files.range(prefix.clone()..).map_while(|(path, _)| path.strip_prefix(&prefix));
        let mut names: Vec<String> = below
            .filter_map(|rest| match rest.split_once('/') {
                Some((first, _)) => folders.then(|| first.to_owned()),
                None => (!folders).then(|| rest.to_owned()),
            })
            .collect();
        names.dedup();
        names
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
        "memory:".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once_and_folders_show_what_is_directly_below() {
        let files = MemoryFiles::default();
        for path in ["a/1", "a/b/2", "a/b/3", "a-c", "top"] {
            files.put_new(path, Bytes::new()).unwrap();
        }
        assert!(matches!(files.put_new("a/1", Bytes::new()), Err(DurableError::Exists { .. })));
        assert_eq!(files.list("a").unwrap(), ["1"]);
        assert_eq!(
            (files.list_folders("a").unwrap(), files.list("a/b").unwrap()),
            (vec!["b".into()], vec!["2".into(), "3".into()])
        );
        assert_eq!(
            (files.list("").unwrap(), files.list_folders("").unwrap()),
            (vec!["a-c".into(), "top".into()], vec!["a".into()])
        );
        files.put_over("a/1", Bytes::from("new")).unwrap();
        assert_eq!(files.get("a/1").unwrap(), "new");
        files.delete("a/1").unwrap();
        files.delete("a/1").unwrap();
        assert!(matches!(files.get("a/1"), Err(DurableError::Missing { .. })));
    }
}
