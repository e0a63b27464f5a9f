//! Which files were seen before.

use super::config::FileConfig;
use std::collections::HashMap;
use std::sync::Arc;

/// The files that were taken, as far back as the age limit goes. Ages count from the newest file ever taken,
/// not from the clock.
#[derive(Debug)]
pub(super) struct SeenFiles {
    file_name_only: bool,
    max_age_ms: i64,
    latest_ms: i64,
    purged_before_ms: i64,
    /// By path, or by name when only names count.
    files: HashMap<Arc<str>, i64>,
    greatest: Option<Arc<str>>,
}

impl SeenFiles {
    /// Nothing seen; files that are older than `forgotten_before_ms` were seen and are not known any more.
    pub(super) fn new(config: &FileConfig, forgotten_before_ms: i64) -> Self {
        Self {
            file_name_only: config.file_name_only,
            max_age_ms: config.max_file_age_ms,
            latest_ms: 0,
            purged_before_ms: forgotten_before_ms,
            files: HashMap::new(),
            greatest: None,
        }
    }

    fn key<'a>(&self, path: &'a str) -> &'a str {
        if self.file_name_only { path.rsplit('/').next().unwrap_or(path) } else { path }
    }

    /// Whether the file was taken.
    pub(super) fn is_taken(&self, path: &str) -> bool {
        self.files.contains_key(self.key(path))
    }

    /// Whether the file was never taken and is not too old.
    pub(super) fn is_new(&self, path: &str, modified_ms: i64) -> bool {
        modified_ms >= self.purged_before_ms && !self.is_taken(path)
    }

    /// Whether the file was never taken, but is too old.
    pub(super) fn is_too_old(&self, path: &str, modified_ms: i64) -> bool {
        modified_ms < self.purged_before_ms && !self.is_taken(path)
    }

    /// The greatest path that was taken.
    pub(super) fn greatest(&self) -> Option<&str> {
        self.greatest.as_deref()
    }

    pub(super) fn add(&mut self, path: &Arc<str>, modified_ms: i64) {
        let key = if self.file_name_only { Arc::from(self.key(path)) } else { Arc::clone(path) };
        self.files.insert(key, modified_ms);
        self.latest_ms = self.latest_ms.max(modified_ms);
        if self.greatest.as_ref().is_none_or(|greatest| *greatest < *path) {
            self.greatest = Some(Arc::clone(path));
        }
    }

    /// Takes back [`add`](Self::add).
    pub(super) fn forget(&mut self, path: &str) {
        let key = self.key(path).to_owned();
        self.files.remove(&*key);
    }

    /// Forgets files that are too old to be taken again anyway; answers how old that is.
    pub(super) fn purge(&mut self) -> i64 {
        self.purged_before_ms = self.latest_ms.saturating_sub(self.max_age_ms).max(self.purged_before_ms);
        let limit = self.purged_before_ms;
        self.files.retain(|_, modified_ms| *modified_ms >= limit);
        limit
    }
}
