//! Query files over places on HDFS.

use hdfs_tests::Hdfs;
use millstream_runtime::query_file::{LoadedQuery, Overrides, load};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A folder with a query file and a host file.
pub(crate) struct World {
    folder: TempDir,
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

    /// Runs the query in a process of its own, as a user of Hadoop.
    pub(crate) fn spawn(&self, user: Option<&str>) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hdfs-child"));
        command.arg(self.path("query.toml")).arg(self.path("host.toml"));
        if let Some(user) = user {
            command.env("HADOOP_USER_NAME", user);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// Counts rows of windows from a folder of JSON into another one, a file in a batch.
pub(crate) fn counts(place: &str, checkpoint: &str, sink: &str) -> String {
    format!(
        r#"
        name = "counts"
        sql = "SELECT window(at, '10 seconds').start AS start, k, count(*) AS n FROM events GROUP BY window(at, '10 seconds'), k"
        output_mode = "append"
        trigger = "available now"
        checkpoint = "{checkpoint}"

        [[source]]
        name = "events"
        format = "json"
        schema = "k STRING, at TIMESTAMP"
        watermark = {{ column = "at", delay = "0 seconds" }}
        options = {{ path = "{place}/in", maxFilesPerTrigger = 1 }}

        [sink]
        {sink}

        [settings]
        "spark.sql.shuffle.partitions" = 2
        "#
    )
}

/// A sink of JSON into a folder.
pub(crate) fn json_sink(folder: &str) -> String {
    format!("format = \"json\"\n        options = {{ path = \"{folder}\" }}")
}

/// Makes so many files of input, each with two rows of one window and key, and one of another key.
pub(crate) fn fill(hdfs: &Hdfs, place: &str, files: u64) {
    let input = hdfs.files(&format!("{place}/in")).unwrap();
    for number in 0..files {
        let row = |key: &str, second: u64| {
            format!("{{\"k\":\"{key}\",\"at\":\"2024-01-01T00:{:02}:{:02}Z\"}}\n", number / 6, number % 6 * 10 + second)
        };
        let rows = [row("a", 1), row("a", 2), row("b", 3)].concat();
        input.put_new(&format!("{number:03}.json"), rows.into()).unwrap();
        // The source takes files in the order of their times, which count milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// The committed rows of a JSON file sink, sorted.
pub(crate) fn rows(hdfs: &Hdfs, folder: &str) -> Vec<String> {
    let files = hdfs.files(folder).unwrap();
    let mut rows = Vec::new();
    for batch in millstream_sink::connectors::file::read_committed_in(files.as_ref()).unwrap() {
        for file in &batch.files {
            let text = files.get(&file.name).unwrap();
            rows.extend(String::from_utf8(text.to_vec()).unwrap().lines().map(str::to_owned));
        }
    }
    rows.sort();
    rows
}
