//! C and C++: zig's own clang compiles the plugin and the SDK to one core module, which is wrapped.
//!
//! All sources beside the entry are part of the plugin, apart from tests, whose names begin with `test`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{absolute, failed};
use super::job::Job;
use super::programs::{Tool, run, run_tests};
use super::wrap::{AdapterMemory, wrap};
use super::{BuildError, Language, Profile};

/// One program with a compiler for C, C++ and Zig, a linker, and the libraries of both languages for WebAssembly.
pub(super) const ZIG: Tool =
    Tool { language: Language::C, program: "zig", below: "c/bin", install: "`pip install ziglang==0.17.0`" };
/// What plugins of these languages run on.
pub(super) const TARGET: [&str; 4] = ["-target", "wasm32-wasi", "-mcpu", "generic+simd128+bulk_memory"];

/// Builds the component.
pub(super) fn build(job: &Job<'_>) -> Result<PathBuf, BuildError> {
    let zig = tool(job)?;
    let sdk = job.project.sdk()?;
    job.component(&[&sdk], "zig", |work, component| {
        let optimised = if job.profile == Profile::Release { "-O2" } else { "-O1" };
        let target = |command: &mut Command| {
            command.args(["-target", "wasm32-wasi", "-mcpu=generic+simd128+bulk_memory", optimised, "-g0"]);
        };
        let objects = compile(job, &zig, &sdk, &sources(job)?, work, &target)?;
        let module = work.join("module.wasm");
        let mut link = clang(job, &zig, job.project.language());
        target(&mut link);
        // A plugin has no main; recursion without end meets the end of the stack, not other memory.
        link.args(["-mexec-model=reactor", "-s", "-Wl,--stack,262144", "-o"]).arg(&module).args(objects);
        run(&mut link, job.project.folder())?;
        wrap(&module, work, component, AdapterMemory::Grown)
    })
}

/// Runs the plugin's tests: one program of the files whose names begin with `test`, and the SDK.
pub(super) fn test(job: &Job<'_>) -> Result<(), BuildError> {
    let zig = tool(job)?;
    let sdk = job.project.sdk()?;
    let tests: Vec<_> = files(job)?.into_iter().filter(|path| is_test(path)).collect();
    if tests.is_empty() {
        let ending = ending(job.project.language());
        let reason = format!("it has no tests: no file is named `test….{ending}`");
        return Err(BuildError::Manifest { path: job.project.folder().to_owned(), reason });
    }
    let work = job.folder()?.join(format!("tests-{}", std::process::id()));
    std::fs::create_dir_all(&work).map_err(failed(&work))?;
    let done = compile(job, &zig, &sdk, &tests, &work, &|command| {
        command.arg("-g");
    })
    .and_then(|objects| {
        let program = work.join("tests");
        run(clang(job, &zig, job.project.language()).arg("-o").arg(&program).args(objects), job.project.folder())?;
        run_tests(Command::new(program).current_dir(job.project.folder()), job.project.folder())
    });
    // What is left behind is in the target folder.
    let _ = std::fs::remove_dir_all(&work);
    done
}

/// The compiler, for the language of the project.
pub(super) fn tool(job: &Job<'_>) -> Result<PathBuf, BuildError> {
    Tool { language: job.project.language(), ..ZIG }.find()
}

/// A command of zig with its caches in the target folder.
pub(super) fn zig_command(job: &Job<'_>, zig: &Path) -> Command {
    let mut command = Command::new(zig);
    let cache = job.target_dir.join("zig");
    command.env("ZIG_GLOBAL_CACHE_DIR", &cache).env("ZIG_LOCAL_CACHE_DIR", &cache).current_dir(job.project.folder());
    command
}

fn clang(job: &Job<'_>, zig: &Path, language: Language) -> Command {
    let mut command = zig_command(job, zig);
    command.arg(if language == Language::Cpp { "c++" } else { "cc" });
    command
}

/// Compiles sources and the SDK, an object each.
fn compile(
    job: &Job<'_>,
    zig: &Path,
    sdk: &Path,
    sources: &[PathBuf],
    work: &Path,
    options: &dyn Fn(&mut Command),
) -> Result<Vec<PathBuf>, BuildError> {
    let own = job.project.language();
    let all = sources.iter().map(|source| (source.clone(), own)).chain([(sdk.join("millstream.c"), Language::C)]);
    all.zip(0..)
        .map(|((source, language), number)| {
            let object = work.join(format!("{number}.o"));
            let mut command = clang(job, zig, language);
            options(&mut command);
            match language {
                Language::Cpp => command.args(["-std=c++20", "-fno-exceptions", "-fno-rtti"]),
                _ => command.arg("-std=gnu17"),
            };
            command.args(["-Wall", "-Wextra", "-I"]).arg(sdk).arg("-c").arg(&source).arg("-o").arg(&object);
            run(&mut command, job.project.folder())?;
            Ok(object)
        })
        .collect()
}

fn ending(language: Language) -> &'static str {
    if language == Language::Cpp { "cpp" } else { "c" }
}

fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"test"))
}

fn sources(job: &Job<'_>) -> Result<Vec<PathBuf>, BuildError> {
    Ok(files(job)?.into_iter().filter(|path| !is_test(path)).collect())
}

/// The files of the project's language beside its entry, in the order of their names.
fn files(job: &Job<'_>) -> Result<Vec<PathBuf>, BuildError> {
    let entry = absolute(&job.project.entry())?;
    let folder = entry.parent().unwrap_or(job.project.folder());
    let mut files = Vec::new();
    for found in std::fs::read_dir(folder).map_err(failed(folder))? {
        let path = found.map_err(failed(folder))?.path();
        if path.is_file() && path.extension().is_some_and(|found| found == ending(job.project.language())) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
