//! Rust: cargo compiles the crate to a core module, which is wrapped as a component.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::BuildError;
use super::component::componentize;
use super::files::{absolute, failed};
use super::job::Profile;
use super::programs::run_tests;
use super::toolchain::{Toolchain, clean, find_toolchain};

/// Every plugin uses these; all hosts that run components have them.
const FLAGS: &str = "-C target-feature=+simd128,+bulk-memory";

/// Builds the plugin crate in `manifest_dir` and returns the component's file. `progress` gets a line per step.
///
/// # Errors
///
/// [`BuildError`], with the compiler's words where it has some.
pub fn build_rust_plugin(
    manifest_dir: &Path,
    profile: Profile,
    target_dir: &Path,
    progress: &dyn Fn(&str),
) -> Result<PathBuf, BuildError> {
    let toolchain = find_toolchain(target_dir, progress)?;
    let mut built = build_with(&toolchain, manifest_dir, Part::Library, profile, target_dir, progress)?;
    built.pop().ok_or_else(|| BuildError::NoCdylib { manifest_dir: manifest_dir.to_owned() })
}

/// What of a crate is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Its library: one plugin.
    Library,
    /// Its examples: one plugin each.
    Examples,
}

/// Builds one part of a crate with a given toolchain and returns the components' files, named like library or
/// example.
///
/// # Errors
///
/// As [`build_rust_plugin`].
pub fn build_with(
    toolchain: &Toolchain,
    manifest_dir: &Path,
    part: Part,
    profile: Profile,
    target_dir: &Path,
    progress: &dyn Fn(&str),
) -> Result<Vec<PathBuf>, BuildError> {
    progress(&format!("compiling {} ({})", manifest_dir.display(), toolchain.description()));
    let modules = compile(toolchain, manifest_dir, part, profile, target_dir)?;
    if modules.is_empty() {
        return Err(BuildError::NoCdylib { manifest_dir: manifest_dir.to_owned() });
    }
    let folder = target_dir.join("components");
    std::fs::create_dir_all(&folder).map_err(failed(&folder))?;
    modules
        .iter()
        .map(|module| {
            let component = folder.join(module.file_name().unwrap_or_default());
            componentize(module, &component)?;
            progress(&format!("component {}", component.display()));
            Ok(component)
        })
        .collect()
}

/// Runs cargo and returns the core modules it made for the crate itself.
fn compile(
    toolchain: &Toolchain,
    manifest_dir: &Path,
    part: Part,
    profile: Profile,
    target_dir: &Path,
) -> Result<Vec<PathBuf>, BuildError> {
    let manifest = manifest_dir.join("Cargo.toml");
    let mut cargo = toolchain.cargo_build();
    // The toolchain of the plugin's folder decides, not that of whoever started us.
    cargo.current_dir(manifest_dir);
    cargo.arg("--manifest-path").arg("Cargo.toml").arg("--target-dir").arg(absolute(target_dir)?);
    cargo.args(["--message-format", "json-render-diagnostics", "--quiet"]);
    cargo.arg(if part == Part::Library { "--lib" } else { "--examples" });
    if profile == Profile::Release {
        cargo.arg("--release");
        for setting in ["debug=false", "strip='debuginfo'", "lto=true", "codegen-units=1", "opt-level=3"] {
            cargo.arg("--config").arg(format!("profile.release.{setting}"));
        }
    }
    cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", FLAGS);
    let program = |source| BuildError::Program { program: "cargo".into(), source };
    let output = cargo.stdin(Stdio::null()).output().map_err(program)?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(BuildError::Compile { manifest_dir: manifest_dir.to_owned(), output });
    }
    let manifest = manifest.canonicalize().map_err(failed(&manifest))?;
    Ok(modules(&output.stdout, &manifest))
}

/// The `.wasm` files that cargo's messages name for the crate of `manifest`.
fn modules(messages: &[u8], manifest: &Path) -> Vec<PathBuf> {
    let mut modules = Vec::new();
    for line in messages.split(|byte| *byte == b'\n') {
        let Ok(message) = serde_json::from_slice::<serde_json::Value>(line) else { continue };
        let ours = message["reason"] == "compiler-artifact"
            && message["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest);
        let files = message["filenames"].as_array().filter(|_| ours);
        let files = files.into_iter().flatten().filter_map(serde_json::Value::as_str).map(PathBuf::from);
        modules.extend(files.filter(|file| file.extension().is_some_and(|extension| extension == "wasm")));
    }
    modules
}

/// Runs the crate's own tests, for this machine.
pub(super) fn test(manifest_dir: &Path) -> Result<(), BuildError> {
    let mut cargo = clean("cargo");
    // Where compiled code of tests goes is the surrounding's business: nothing else is kept there.
    if let Some(target) = std::env::var_os("CARGO_TARGET_DIR") {
        cargo.env("CARGO_TARGET_DIR", target);
    }
    run_tests(cargo.arg("test").current_dir(manifest_dir), manifest_dir)
}
