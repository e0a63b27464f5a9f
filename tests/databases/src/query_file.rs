//! A query file in a folder of its own, and its runs. What it reads and writes is the test's.

use millstream_common::StopSignal;
use millstream_runtime::query_file::{Overrides, load};
use millstream_runtime::{Progress, QueryRun, QuerySpec, Session};
use tempfile::TempDir;

/// A folder with a query file, and later its checkpoint; it goes with its owner.
pub struct QueryFile(TempDir);

impl QueryFile {
    /// The file has this text.
    pub fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("query.toml"), text).unwrap();
        Self(folder)
    }

    /// What it says.
    pub fn spec(&self) -> QuerySpec {
        load(&self.0.path().join("query.toml"), None, &[], Overrides::default()).unwrap().spec
    }

    /// Runs what there is to run; with `restarting`, each batch in a life of its own.
    pub fn run(&self, restarting: bool) -> Vec<Progress> {
        let session = Session::new().unwrap();
        let mut told = Vec::new();
        let mut run = QueryRun::open(&session, self.spec(), StopSignal::new()).unwrap();
        while let Some(progress) = run.run_next().unwrap() {
            told.push(progress);
            if restarting {
                run.close();
                run = QueryRun::open(&session, self.spec(), StopSignal::new()).unwrap();
            }
        }
        run.close();
        told
    }
}
