//! Rust source of a plugin → a component.
//!
//! Beside everything else: the command line, the examples and the tests build plugins with it. Cargo compiles the
//! crate to a core module, `wit-component` wraps it.
//!
//! Rule of its life: builds share one target folder, so that the standard library and the SDK are compiled once and an
//! edit of a plugin costs seconds.
//!
//! It loads nothing: what comes out goes through [`crate::PluginHost::load`] like any other file.

mod error;
mod toolchain;

use std::path::{Path, PathBuf};
use std::process::Stdio;

pub use error::BuildError;
pub use toolchain::{TARGET, Toolchain, find_toolchain};

/// Every plugin uses these; all hosts that run components have them.
const FLAGS: &str = "-C target-feature=+simd128,+bulk-memory";

/// How a plugin is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Optimised, one code unit, link-time optimisation.
    #[default]
    Release,
    /// Fast to compile, slow to run.
    Dev,
}

/// The shared target folder for plugins: `$MILLSTREAM_TARGET_DIR/guest`, else the user's cache.
pub fn guest_target_dir() -> PathBuf {
    if let Some(folder) = std::env::var_os("MILLSTREAM_TARGET_DIR") {
        return PathBuf::from(folder).join("guest");
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("millstream/guest")
}

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
    std::fs::create_dir_all(&folder).map_err(|source| BuildError::File { path: folder.clone(), source })?;
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
    let manifest = manifest.canonicalize().map_err(|source| BuildError::File { path: manifest.clone(), source })?;
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

/// Wraps a core module as a component.
///
/// # Errors
///
/// [`BuildError::Componentize`] when the module does not fit the world it was compiled for.
pub fn componentize(module: &Path, component: &Path) -> Result<(), BuildError> {
    let file = |path: &Path| {
        let path = path.to_owned();
        move |source| BuildError::File { path, source }
    };
    let bytes = std::fs::read(module).map_err(file(module))?;
    let encoded = encode(&bytes)
        .map_err(|reason| BuildError::Componentize { module: module.to_owned(), reason: reason.to_string() })?;
    if std::fs::read(component).is_ok_and(|before| before == encoded) {
        return Ok(());
    }
    // Written aside and renamed: a reader sees the old component or the new one.
    let aside = component.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&aside, encoded).map_err(file(&aside))?;
    std::fs::rename(&aside, component).map_err(file(component))
}

fn encode(module: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    let mut encoder = wit_component::ComponentEncoder::default();
    Ok(encoder.validate(true).module(module)?.encode()?)
}

fn absolute(path: &Path) -> Result<PathBuf, BuildError> {
    std::path::absolute(path).map_err(|source| BuildError::File { path: path.to_owned(), source })
}
