//! The rules of the house, as tests: what can be told by reading the files, nothing that needs a build.
//!
//! The library finds the files and collects what breaks a rule; each file below `tests/` is one family of rules.
//! A rule that fails says what to do, because whoever meets it may not have read the documents yet.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The top of the repository.
pub fn root() -> PathBuf {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests"));
    here.ancestors().nth(2).expect("tests/tidy lies two folders below the top").to_owned()
}

/// A text file of the repository.
#[derive(Debug, Clone)]
pub struct TextFile {
    /// Its path from the top, with `/`.
    pub path: String,
    /// Its content.
    pub text: String,
}

impl TextFile {
    /// Whether it is Rust below one of these folders.
    pub fn is_rust_below(&self, folders: &[&str]) -> bool {
        self.path.ends_with(".rs") && folders.iter().any(|folder| self.path.starts_with(folder))
    }

    /// Its name without the folders.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// Every text file that belongs to the repository: what git tracks and what it would track, without what it ignores.
pub fn files() -> Vec<TextFile> {
    let root = root();
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .expect("git can be run");
    let paths: Vec<String> = if listed.status.success() {
        String::from_utf8_lossy(&listed.stdout).split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect()
    } else {
        // An unpacked archive has no history: everything but build output belongs to it.
        walk(&root)
    };
    let read = |path: String| {
        // A file that was removed but not yet from the index has no text.
        let text = String::from_utf8(std::fs::read(root.join(&path)).ok()?).ok()?;
        Some(TextFile { path, text })
    };
    paths.into_iter().filter_map(read).collect()
}

fn walk(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the repository can be listed").flatten() {
            let path = entry.path();
            if path.is_dir() {
                if path.file_name().is_none_or(|name| name != "target" && name != ".git") {
                    folders.push(path);
                }
            } else if let Some(path) = path.strip_prefix(root).ok().and_then(Path::to_str) {
                found.push(path.to_owned());
            }
        }
    }
    found
}

/// What breaks a rule.
#[derive(Debug, Default)]
pub struct Violations(Vec<String>);

impl Violations {
    /// One more.
    pub fn add(&mut self, place: impl Display, what: impl Display) {
        self.0.push(format!("{place}: {what}"));
    }

    /// Fails with all of them, and with what to do.
    ///
    /// # Panics
    /// When there is one.
    pub fn expect_none(mut self, advice: &str) {
        self.0.sort();
        assert!(self.0.is_empty(), "\n{}\n{advice}\n", self.0.join("\n"));
    }
}
