//! Runs what the documents and the examples show, as a person would: with the script `x` and the real program.
//!
//! An example that rots, or a command in the README that no longer works, fails here.

pub mod first_steps;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// The top of the repository.
pub fn root() -> PathBuf {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests"));
    here.ancestors().nth(2).expect("tests/examples lies two folders below the top").to_owned()
}

/// Bash at the top of the repository, building where this test was built.
pub fn bash() -> Command {
    // What waits in vain must not hold up the other tests for ever.
    let mut bash = Command::new("timeout");
    bash.args(["--kill-after=30", "1800", "bash"]);
    bash.current_dir(root());
    let built = std::env::current_exe().expect("a test knows its file");
    // TARGET/debug/deps/test
    let target = built.ancestors().nth(3).expect("a test lies in a target folder");
    if target != usual_target_dir() {
        bash.env("MILLSTREAM_TARGET_DIR", target);
    }
    bash
}

/// The target folder of `x`; leaving it unnamed keeps the one of plugins where `x` has it, too.
fn usual_target_dir() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = variable("MILLSTREAM_TARGET_DIR") {
        return folder;
    }
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_default().join("millstream/target")
}

/// Runs a command to its end and answers its standard output.
///
/// # Panics
/// When it fails, with all that it said.
pub fn output_of(mut command: Command) -> String {
    let output = command.output().expect("bash can be run");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n--- output\n{out}\n--- errors\n{err}", output.status);
    out
}
