//! A process of Python with Spark and Delta Lake in it.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long an answer may take: the first one starts a virtual machine, which a busy machine makes long.
const PATIENCE: Duration = Duration::from_secs(300);

/// A process that reads and writes as other systems do. It ends when this is dropped.
pub struct Readers {
    child: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<String>,
}

/// A Python that has the packages.
fn python() -> Result<PathBuf> {
    if let Some(python) = std::env::var_os("MILLSTREAM_TEST_SPARK").filter(|value| !value.is_empty()) {
        return Ok(python.into());
    }
    let python = millstream_wasm::build::toolchains_dir().join("spark/bin/python");
    if !python.exists() {
        bail!(
            "Spark is not here: run `./x toolchain`, which gets it, or set MILLSTREAM_TEST_SPARK to a Python with pyspark"
        );
    }
    Ok(python)
}

impl Readers {
    /// Starts the process; Spark in it only when it is asked for.
    ///
    /// # Errors
    /// When there is no Python with the packages.
    pub fn start() -> Result<Self> {
        let mut child = Command::new(python()?)
            .args(["-u", "-c", include_str!("readers.py")])
            .env("SPARK_LOCAL_IP", "127.0.0.1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("Python does not start")?;
        let requests = child.stdin.take();
        let output = child.stdout.take().context("Python has no output")?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, requests, answers })
    }

    fn ask(&mut self, request: &Value) -> Result<Value> {
        let requests = self.requests.as_mut().context("Python has ended")?;
        writeln!(requests, "{request}")?;
        requests.flush()?;
        let answer = self.answers.recv_timeout(PATIENCE).context("Python does not answer")?;
        let answer: Value = serde_json::from_str(&answer)?;
        match answer.get("error") {
            Some(error) => bail!("{}", error.as_str().unwrap_or_default()),
            None => Ok(answer["ok"].clone()),
        }
    }

    fn rows(&mut self, request: &Value) -> Result<Vec<String>> {
        let mut rows: Vec<String> = serde_json::from_value(self.ask(request)?)?;
        rows.sort();
        Ok(rows)
    }

    /// The rows that Spark reads of a folder, as sorted lines of JSON.
    ///
    /// # Errors
    /// What Spark says.
    pub fn spark(&mut self, path: &Path, format: &str, schema: Option<&str>) -> Result<Vec<String>> {
        self.rows(&json!({ "do": "with_spark", "path": path, "format": format, "schema": schema }))
    }

    /// The rows that a stream of Spark reads of a folder.
    ///
    /// # Errors
    /// What Spark says.
    pub fn spark_stream(&mut self, path: &Path, format: &str, schema: &str) -> Result<Vec<String>> {
        self.rows(&json!({ "do": "with_spark_stream", "path": path, "format": format, "schema": schema }))
    }

    /// The rows that the Python package reads of a Delta table, as sorted lines of JSON.
    ///
    /// # Errors
    /// What the package says.
    pub fn delta(&mut self, path: &Path) -> Result<Vec<String>> {
        self.rows(&json!({ "do": "with_delta", "path": path }))
    }

    /// As [`delta`](Self::delta), of a table on an object store with these options.
    ///
    /// # Errors
    /// What the package says.
    pub fn delta_on(&mut self, location: &str, options: &[(String, String)]) -> Result<Vec<String>> {
        let storage: serde_json::Map<String, Value> =
            options.iter().map(|(name, value)| (name.to_ascii_uppercase(), value.as_str().into())).collect();
        self.rows(&json!({ "do": "with_delta", "path": location, "storage": storage }))
    }

    /// Version, partition columns, number of files, operations and schema of a Delta table.
    ///
    /// # Errors
    /// What the package says.
    pub fn about_delta(&mut self, path: &Path) -> Result<Value> {
        self.ask(&json!({ "do": "about_delta", "path": path }))
    }

    /// Lets the Python package do something to a Delta table: `write_delta`, `delete_delta`, `optimize_delta`,
    /// `checkpoint_delta`, with arguments.
    ///
    /// # Errors
    /// What the package says.
    pub fn change_delta(&mut self, what: &str, path: &Path, mut arguments: Value) -> Result<()> {
        arguments["do"] = what.into();
        arguments["path"] = json!(path);
        self.ask(&arguments).map(drop)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        // The end of its input ends it, with its virtual machine; only then is it killed.
        drop(self.requests.take());
        for _ in 0..200 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // Both fail only for a process that has ended.
        let _ = (self.child.kill(), self.child.wait());
    }
}
