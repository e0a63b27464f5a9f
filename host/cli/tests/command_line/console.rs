//! A folder with a query in it, and the program that runs there.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take before a test gives up: the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Ten rows per batch, for ever, counted per remainder.
pub(crate) const COUNTS: &str = r#"
name = "counts"
sql = "SELECT value % 3 AS part, count(*) AS n FROM numbers GROUP BY value % 3"
output_mode = "complete"
checkpoint = "checkpoint"
[[source]]
name = "numbers"
format = "rate-micro-batch"
options = { rowsPerBatch = 10 }
[sink]
format = "noop"
"#;

/// Files in, files out.
pub(crate) const COPY: &str = r#"
name = "copy"
sql = "SELECT upper(value) AS value FROM lines"
trigger = "available now"
checkpoint = "checkpoint"
[[source]]
name = "lines"
format = "text"
options = { path = "in", maxFilesPerTrigger = 1 }
[sink]
format = "json"
options = { path = "out" }
"#;

/// What a finished program left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Fails unless the program ended with that code and said these things on standard error.
    pub(crate) fn expect(self, code: i32, said: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for said in said {
            assert!(self.stderr.contains(said), "`{said}` is missing: {self:#?}");
        }
        self
    }

    /// Fails unless standard output has these things.
    pub(crate) fn prints(self, printed: &[&str]) -> Self {
        for printed in printed {
            assert!(self.stdout.contains(printed), "`{printed}` is missing: {self:#?}");
        }
        self
    }
}

/// A folder for one test.
pub(crate) struct Console {
    folder: TempDir,
    environment: Vec<(&'static str, String)>,
}

impl Console {
    /// A folder with a `query.toml`.
    pub(crate) fn with(query: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("ms").tempdir().unwrap();
        let console = Self { folder, environment: Vec::new() };
        console.write("query.toml", query);
        console
    }

    /// Sets a variable for the programs to come.
    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.environment.push((name, value.into()));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names in a folder, sorted; empty when there is none.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(folder)) else { return Vec::new() };
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program, in the folder, with a run directory of the test's own and nothing else of Millstream's environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("MILLSTREAM_")) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.folder.path()).env("MILLSTREAM_RUN_DIR", self.path("run"));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        finish(self.command(arguments).spawn().unwrap())
    }

    /// Starts the program with its output in files, so that nobody has to read it.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running<'_> {
        let file = |name: &str| std::fs::File::create(self.path(name)).unwrap();
        let mut command = self.command(arguments);
        command.stdout(file("stdout.txt")).stderr(file("stderr.txt"));
        Running { console: self, child: command.spawn().unwrap() }
    }
}

/// Waits for the end of a program.
pub(crate) fn finish(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A program at work; killed when the test gives up.
pub(crate) struct Running<'a> {
    console: &'a Console,
    child: Child,
}

impl Running<'_> {
    /// Sends a signal, as a person's shell would.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until it has committed that many batches.
    pub(crate) fn wait_for_batches(&mut self, count: usize) {
        let commits = self.console.path("checkpoint/commits");
        self.wait_until(&format!("{count} batches"), || {
            std::fs::read_dir(&commits).is_ok_and(|entries| entries.count() >= count)
        });
    }

    pub(crate) fn wait_until(&mut self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("it ended with {status} before {what}: {}", self.console.read("stderr.txt"));
            }
            assert!(Instant::now() < deadline, "waited in vain for {what}: {}", self.console.read("stderr.txt"));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end: {}", self.console.read("stderr.txt"));
            std::thread::sleep(Duration::from_millis(10));
        };
        let (stdout, stderr) = (self.console.read("stdout.txt"), self.console.read("stderr.txt"));
        Ended { code: status.code(), stdout, stderr }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Fails when it has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of a file below the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("../..").join(path)
}
