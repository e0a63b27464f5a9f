//! The path of a new user, walked and timed: from `plugin new` to the first rows of a query that calls the plugin, and
//! from an edit of the code to the first row that the new code made in the running query.
//!
//! Rule of its life: every step is a command that a person types, and what comes out of the query is compared; a time
//! without the right rows is none.
//!
//! It does not time what is installed once per machine: compilers, and what they compile once for all plugins.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// A language of plugins, and what a person changes in its template: from now on the loudness is in percent.
pub struct Language {
    /// As `plugin new --lang` has it.
    pub name: &'static str,
    source: &'static str,
    from: &'static str,
    to: &'static str,
}

/// All languages that have a template.
pub const LANGUAGES: [Language; 8] = [
    language("rust", "src/lib.rs", "capitals as f64 /", "100.0 * capitals as f64 /"),
    language("python", "plugin.py", "return capitals /", "return 100 * capitals /"),
    language("javascript", "plugin.js", "0 : capitals /", "0 : (100 * capitals) /"),
    language("typescript", "plugin.ts", "0 : capitals /", "0 : (100 * capitals) /"),
    language("go", "plugin.go", "return float64(capitals) /", "return 100 * float64(capitals) /"),
    language("c", "plugin.c", "(double)capitals /", "100.0 * capitals /"),
    language("cpp", "plugin.cpp", "0 : capitals /", "0 : 100 * capitals /"),
    language("zig", "plugin.zig", "0 else capital /", "0 else 100 * capital /"),
];

const fn language(name: &'static str, source: &'static str, from: &'static str, to: &'static str) -> Language {
    Language { name, source, from, to }
}

/// How long the steps took.
pub struct Steps {
    /// `plugin new`.
    pub new: Duration,
    /// The first `plugin build`.
    pub build: Duration,
    /// `run` over one file, to its end.
    pub run: Duration,
    /// `plugin build` after the edit.
    pub rebuild: Duration,
    /// `swap`, with the verdict, until a row of the new code is in the sink.
    pub swap: Duration,
}

impl Steps {
    /// From nothing to the first rows.
    pub fn first_result(&self) -> Duration {
        self.new + self.build + self.run
    }

    /// From the edit to the first row of the new code.
    pub fn edit_to_swapped(&self) -> Duration {
        self.rebuild + self.swap
    }
}

const QUERY: &str = r#"name = "first-steps"
sql = "SELECT word, loudness(word) AS loudness FROM lines LATERAL VIEW words(value) w AS word"
checkpoint = "checkpoint"

[[source]]
name = "lines"
format = "text"
options = { path = "lines" }

[plugin.loud]
component = "loud.wasm"

[sink]
format = "json"
options = { path = "out" }
"#;

/// How long is waited for a step that should take seconds.
const PATIENCE: Duration = Duration::from_secs(300);

/// Walks the path in an empty folder with the program `millstream`.
///
/// # Errors
/// A command that failed, with what it said; rows that are not those that the code makes.
pub fn walk(millstream: &Path, folder: &Path, language: &Language) -> Result<Steps> {
    let walk = Walk { millstream, folder };
    let new = walk.millstream(["plugin", "new", "loud", "--lang", language.name])?;
    let build = walk.millstream(["plugin", "build", "loud", "--out", "loud.wasm"])?;
    fs::write(folder.join("query.toml"), QUERY)?;
    fs::create_dir(folder.join("lines"))?;
    walk.say("1", "HELP me")?;
    let run = walk.millstream(["run", "query.toml", "--trigger", "available now"])?;
    walk.expect(&[("HELP", 1.0), ("me", 0.0)])?;

    let mut query = Running::start(walk.command(["run", "query.toml"]))?;
    let started = Instant::now();
    while walk.millstream(["status", "query.toml"]).is_err() {
        query.is_alive()?;
        ensure!(started.elapsed() < PATIENCE, "the query did not start");
        std::thread::sleep(Duration::from_millis(100));
    }
    let source = folder.join("loud").join(language.source);
    let code = fs::read_to_string(&source)?;
    ensure!(code.matches(language.from).count() == 1, "`{}` is not once in {}", language.from, source.display());
    fs::write(&source, code.replace(language.from, language.to))?;
    let rebuild = walk.millstream(["plugin", "build", "loud", "--out", "loud-2.wasm"])?;
    let swapping = Instant::now();
    walk.millstream(["swap", "query.toml", "loud=loud-2.wasm", "--approve", "--no-wait"])?;
    walk.say("2", "HELP you")?;
    while walk.rows()?.len() < 4 {
        query.is_alive()?;
        ensure!(swapping.elapsed() < PATIENCE, "no row of the new code came");
        std::thread::sleep(Duration::from_millis(20));
    }
    let swap = swapping.elapsed();
    walk.expect(&[("HELP", 1.0), ("HELP", 100.0), ("me", 0.0), ("you", 0.0)])?;
    walk.millstream(["stop", "query.toml"])?;
    query.end()?;
    Ok(Steps { new, build, run, rebuild, swap })
}

struct Walk<'a> {
    millstream: &'a Path,
    folder: &'a Path,
}

impl Walk<'_> {
    fn command<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = Command::new(self.millstream);
        command.current_dir(self.folder).args(arguments);
        command
    }

    /// Runs a command of the program to its end and tells how long it took.
    fn millstream<const N: usize>(&self, arguments: [&str; N]) -> Result<Duration> {
        let start = Instant::now();
        let output = self.command(arguments).output().context("the program `millstream` does not start")?;
        if !output.status.success() {
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            bail!("`millstream {}` failed:\n{out}{err}", arguments.join(" "));
        }
        Ok(start.elapsed())
    }

    /// Puts a line where the query reads, whole at once.
    fn say(&self, file: &str, line: &str) -> Result<()> {
        let hidden = self.folder.join(file);
        fs::write(&hidden, format!("{line}\n"))?;
        fs::rename(hidden, self.folder.join("lines").join(file).with_extension("txt"))?;
        Ok(())
    }

    /// The words and their loudness that are in the sink, in order.
    fn rows(&self) -> Result<Vec<(String, f64)>> {
        let mut rows = Vec::new();
        let Ok(files) = fs::read_dir(self.folder.join("out")) else { return Ok(rows) };
        let files: Vec<PathBuf> = files.map(|file| Ok(file?.path())).collect::<Result<_>>()?;
        for file in files.iter().filter(|file| file.extension() == Some(OsStr::new("json"))) {
            for line in fs::read_to_string(file)?.lines() {
                let row: serde_json::Value = serde_json::from_str(line)?;
                let word = row["word"].as_str().context("a row without its word")?.to_owned();
                rows.push((word, row["loudness"].as_f64().context("a row without its loudness")?));
            }
        }
        rows.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        Ok(rows)
    }

    fn expect(&self, wanted: &[(&str, f64)]) -> Result<()> {
        let rows = self.rows()?;
        let is = |(row, wanted): (&(String, f64), &(&str, f64))| row.0 == wanted.0 && row.1 == wanted.1;
        ensure!(
            rows.len() == wanted.len() && rows.iter().zip(wanted).all(is),
            "the sink holds {rows:?}, not {wanted:?}"
        );
        Ok(())
    }
}

/// A query that runs; it ends with this value.
struct Running(Child);

impl Running {
    fn start(mut command: Command) -> Result<Self> {
        Ok(Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?))
    }

    fn is_alive(&mut self) -> Result<()> {
        match self.0.try_wait()? {
            Some(status) => bail!("the query ended: {status}"),
            None => Ok(()),
        }
    }

    fn end(&mut self) -> Result<()> {
        let status = self.0.wait()?;
        ensure!(status.success(), "the query ended: {status}");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Gone already when the walk ended well.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
