//! Zig: the plugin and the SDK's source in C become one core module, which is wrapped.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::c::{TARGET, tool, zig_command};
use super::job::Job;
use super::programs::{run, run_tests};
use super::wrap::{AdapterMemory, wrap};
use super::{BuildError, Profile};

/// Builds the component.
pub(super) fn build(job: &Job<'_>) -> Result<PathBuf, BuildError> {
    let zig = tool(job)?;
    let sdk = job.project.sdk()?;
    job.component(&[&sdk], "zig", |work, component| {
        let module = work.join("module.wasm");
        let mut command = zig_command(job, &zig);
        command.arg("build-exe").args(TARGET).args(["-fno-entry", "-rdynamic", "-mexec-model=reactor", "--stack", "262144"]);
        // Optimised code keeps its checks: what goes wrong ends in a message, not in a wrong answer.
        command.args(["-O", if job.profile == Profile::Release { "ReleaseSafe" } else { "Debug" }, "-fstrip"]);
        command.arg(format!("-femit-bin={}", module.display()));
        run(add_sources(&mut command, job, &sdk), job.project.folder())?;
        wrap(&module, work, component, AdapterMemory::Grown)
    })
}

/// Runs the plugin's tests: those in its own source.
pub(super) fn test(job: &Job<'_>) -> Result<(), BuildError> {
    let zig = tool(job)?;
    let sdk = job.project.sdk()?;
    let mut command = zig_command(job, &zig);
    run_tests(add_sources(command.arg("test"), job, &sdk), job.project.folder())
}

/// The plugin's entry with the SDK as its module `millstream`.
fn add_sources<'a>(command: &'a mut Command, job: &Job<'_>, sdk: &Path) -> &'a mut Command {
    command.args(["--dep", "millstream"]).arg(format!("-Mroot={}", job.project.entry().display()));
    command.arg(format!("-Mmillstream={}", sdk.join("millstream.zig").display()));
    command.arg("-I").arg(sdk).arg(sdk.join("millstream.c")).arg("-lc")
}
