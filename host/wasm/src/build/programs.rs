//! Programs of other toolchains: where they are found, how they are run.
//!
//! A program is looked for in the toolchain folder first, which `./x toolchain` fills with the versions that are known to
//! work, then in the `PATH`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{BuildError, Language};

/// Where `./x toolchain` puts toolchains: `$MILLSTREAM_TOOLCHAINS`, else `millstream/toolchains` in the user's cache.
pub fn toolchains_dir() -> PathBuf {
    if let Some(folder) = std::env::var_os("MILLSTREAM_TOOLCHAINS").filter(|value| !value.is_empty()) {
        return PathBuf::from(folder);
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("millstream/toolchains")
}

/// A program that a language needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tool {
    /// Who needs it.
    pub(super) language: Language,
    /// What it is called.
    pub(super) program: &'static str,
    /// Where it is in the toolchain folder.
    pub(super) below: &'static str,
    /// The command that installs it, apart from `./x toolchain`.
    pub(super) install: &'static str,
}

impl Tool {
    /// The program's file.
    pub(super) fn find(&self) -> Result<PathBuf, BuildError> {
        let ours = toolchains_dir().join(self.below).join(self.program);
        if ours.is_file() {
            return Ok(ours);
        }
        in_path(self.program).ok_or(BuildError::MissingTool {
            language: self.language,
            program: self.program,
            looked_in: ours,
            install: self.install,
        })
    }
}

/// The file of a program in the `PATH`.
fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Runs a program to its end. Its output is the error's text when it fails.
pub(super) fn run(command: &mut Command, plugin: &Path) -> Result<Vec<u8>, BuildError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|source| BuildError::Program { program, source })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let errors = text(&output.stderr);
    // What a tool says about its progress is worth something only when it says nothing else.
    let output = if errors.is_empty() { text(&output.stdout) } else { errors };
    Err(BuildError::Compile { manifest_dir: plugin.to_owned(), output })
}

/// Runs a program whose output is for the person who waits: tests.
pub(super) fn run_tests(command: &mut Command, plugin: &Path) -> Result<(), BuildError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().map_err(|source| BuildError::Program { program, source })?;
    if status.success() { Ok(()) } else { Err(BuildError::Tests { folder: plugin.to_owned() }) }
}
