//! The SDKs' own tests, which need no WebAssembly.

use std::path::Path;
use std::process::Command;

fn passes(command: &mut Command, below: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest-sdk").join(below);
    let ended = command.current_dir(folder).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [ended.stdout, ended.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(ended.status.success(), "{}", said.join("\n"));
}

#[test]
fn the_sdk_of_python_passes_its_tests() {
    let mut tests = Command::new("python3");
    tests.args(["-m", "unittest", "discover", "-s", "tests"]);
    passes(tests.env("PYTHONPATH", ".").env("PYTHONDONTWRITEBYTECODE", "1"), "python");
}

#[test]
fn the_sdk_of_javascript_passes_its_tests() {
    passes(Command::new("node").args(["--test", "test/"]), "javascript");
}

#[test]
fn the_sdk_of_go_passes_its_tests() {
    passes(Command::new("go").args(["test", "-buildvcs=false", "./..."]).env_remove("GOFLAGS"), "go");
}

#[test]
fn the_sdk_of_c_passes_its_tests() {
    let folder = std::env::temp_dir().join(format!("millstream-sdk-of-c-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for sources in [&["tests/functions.c", "millstream.c"][..], &["tests/state.c"], &["tests/source.c"]] {
        let program = folder.join("tests");
        let mut compile = Command::new("cc");
        compile.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I.", "-o"]).arg(&program).args(sources);
        passes(&mut compile, "c");
        passes(&mut Command::new(&program), "c");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
