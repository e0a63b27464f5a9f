//! Query files, and what is in the folders that they name.

use millstream_runtime::query_file::{LoadedQuery, Overrides, load};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// A folder with a query file and a host file.
pub(crate) struct World {
    pub(crate) folder: TempDir,
}

impl World {
    pub(crate) fn new(query: &str, host: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("query.toml"), query).unwrap();
        fs::write(folder.path().join("host.toml"), host).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn load(&self) -> LoadedQuery {
        let host = self.path("host.toml");
        load(&self.path("query.toml"), Some(&host), &[], Overrides::default()).unwrap()
    }

    /// Writes an input file, a second after the one before it.
    pub(crate) fn put(&self, name: &str, content: &[u8], seconds: u64) {
        put(&self.path(name), content, seconds);
    }

    /// The rows of the output of a JSON file sink, sorted.
    pub(crate) fn rows(&self, output: &str) -> Vec<String> {
        let mut rows = Vec::new();
        for batch in millstream_sink::connectors::file::read_committed(self.path(output).to_str().unwrap()).unwrap() {
            for file in &batch.files {
                let text = fs::read_to_string(self.path(output).join(&file.name)).unwrap();
                rows.extend(text.lines().map(str::to_owned));
            }
        }
        rows.sort();
        rows
    }
}

fn put(path: &Path, content: &[u8], seconds: u64) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}
