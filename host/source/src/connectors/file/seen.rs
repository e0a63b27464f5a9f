//! Which files were seen before.

use super::config::FileConfig;
use std::collections::HashMap;
use std::path::Path;

/// The files that were taken, as far back as the age limit goes. Ages count from the newest file ever taken,
/// not from the clock.
#[derive(Debug)]
pub(super) struct SeenFiles {
    file_name_only: bool,
    max_age_ms: i64,
    latest_ms: i64,
    purged_before_ms: i64,
    files: HashMap<String, i64>,
}

impl SeenFiles {
    pub(super) fn new(config: &FileConfig) -> Self {
        Self {
            file_name_only: config.file_name_only,
            max_age_ms: config.max_file_age_ms,
            latest_ms: 0,
            purged_before_ms: 0,
            files: HashMap::new(),
        }
    }

    fn key<'a>(&self, path: &'a str) -> &'a str {
        if self.file_name_only {
            return Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path);
        }
        path
    }

    /// Whether the file was never taken and is not too old.
    pub(super) fn is_new(&self, path: &str, modified_ms: i64) -> bool {
        modified_ms >= self.purged_before_ms && !self.files.contains_key(self.key(path))
    }

    /// Whether the file was never taken, but is too old.
    pub(super) fn is_too_old(&self, path: &str, modified_ms: i64) -> bool {
        modified_ms < self.purged_before_ms && !self.files.contains_key(self.key(path))
    }

    pub(super) fn add(&mut self, path: &str, modified_ms: i64) {
        let key = self.key(path).to_owned();
        self.files.insert(key, modified_ms);
        self.latest_ms = self.latest_ms.max(modified_ms);
    }

    /// Takes back [`add`](Self::add).
    pub(super) fn forget(&mut self, path: &str) {
        let key = self.key(path).to_owned();
        self.files.remove(&key);
    }

    /// Forgets files that are too old to be taken again anyway.
    pub(super) fn purge(&mut self) {
        self.purged_before_ms = self.latest_ms.saturating_sub(self.max_age_ms).max(self.purged_before_ms);
        let limit = self.purged_before_ms;
        self.files.retain(|_, modified_ms| *modified_ms >= limit);
    }
}
