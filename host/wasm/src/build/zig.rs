//! Zig: the plugin and the SDK's source in C become one core module, which is wrapped.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::c::{TARGET, tool, zig_command};
use super::files::{absolute, failed, write};
use super::job::Job;
use super::programs::{run, run_tests};
use super::wrap::{AdapterMemory, wrap};
use super::{BuildError, Profile};

/// Builds the component.
pub(super) fn build(job: &Job<'_>) -> Result<PathBuf, BuildError> {
    let zig = tool(job)?;
    let sdk = job.project.sdk()?;
    job.component(&[&sdk], "zig", |work, component| {
        let header = translate(job, &zig, &sdk, &TARGET[..2], work)?;
        let module = work.join("module.wasm");
        let mut command = zig_command(job, &zig);
        command.arg("build-exe").args(TARGET).args([
            "-fno-entry",
            "-rdynamic",
            "-mexec-model=reactor",
            "--stack",
            "262144",
        ]);
        // A protected stack begins with a random number, which is asked of WASI; code here has no addresses to protect.
        command.arg("-fno-stack-protector");
        // Optimised code keeps its checks: what goes wrong ends in a message, not in a wrong answer.
        command.args(["-O", if job.profile == Profile::Release { "ReleaseSafe" } else { "Debug" }, "-fstrip"]);
        command.arg(format!("-femit-bin={}", module.display()));
        run(add_sources(&mut command, job, &sdk, &header)?, job.project.folder())?;
        wrap(&module, work, component, AdapterMemory::Grown)
    })
}

/// Runs the plugin's tests: those in its own source.
pub(super) fn test(job: &Job<'_>) -> Result<(), BuildError> {
    let zig = tool(job)?;
    let sdk = job.project.sdk()?;
    let work = job.folder()?.join(format!("tests-{}", std::process::id()));
    std::fs::create_dir_all(&work).map_err(failed(&work))?;
    let done = translate(job, &zig, &sdk, &[], &work).and_then(|header| {
        let mut command = zig_command(job, &zig);
        run_tests(add_sources(command.arg("test"), job, &sdk, &header)?, job.project.folder())
    });
    // What is left behind is in the target folder.
    let _ = std::fs::remove_dir_all(&work);
    done
}

/// The header as Zig sees it.
fn translate(job: &Job<'_>, zig: &Path, sdk: &Path, target: &[&str], work: &Path) -> Result<PathBuf, BuildError> {
    let mut command = zig_command(job, zig);
    command.arg("translate-c").args(target).args(["-lc", "-I"]).arg(sdk).arg(sdk.join("millstream.h"));
    let text = run(&mut command, job.project.folder())?;
    let header = work.join("c.zig");
    write(&header, &text)?;
    Ok(header)
}

/// The plugin's entry with the SDK as its module `millstream`, and the header as that module's `c`.
fn add_sources<'a>(
    command: &'a mut Command,
    job: &Job<'_>,
    sdk: &Path,
    header: &Path,
) -> Result<&'a mut Command, BuildError> {
    // Zig runs in the plugin's folder.
    let entry = absolute(&job.project.entry())?;
    let module = |name: &str, file: &Path| format!("-M{name}={}", file.display());
    // What is named before the first module belongs to it.
    command.arg("-I").arg(sdk).arg(sdk.join("millstream.c")).args(["-lc", "--dep", "millstream"]);
    command.arg(module("root", &entry)).args(["--dep", "c"]);
    Ok(command.arg(module("millstream", &sdk.join("millstream.zig"))).arg(module("c", header)))
}
