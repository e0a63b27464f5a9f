//! What compiles Rust to WebAssembly on this machine.
//!
//! Three ways, tried in this order: the active toolchain has the target; rustup can add it; the distribution's
//! `rustc-web` with the sources of its standard library, which cargo then builds once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::BuildError;

/// The target of all Rust plugins: no WASI, nothing imported but what the plugin's world says.
pub const TARGET: &str = "wasm32-unknown-unknown";
/// How long a failed `rustup target add` is not tried again.
const RETRY: Duration = Duration::from_secs(3600);

/// How to compile Rust to [`TARGET`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// The toolchain that `cargo` uses has the target.
    Installed,
    /// A compiler without a standard library for the target; cargo builds it.
    BuildStd { rustc: PathBuf, linker: PathBuf },
}

impl Toolchain {
    /// What it is, for a person.
    pub fn description(&self) -> String {
        match &self.kind {
            Kind::Installed => format!("installed target {TARGET}"),
            Kind::BuildStd { rustc, .. } => format!("{} with a standard library built from source", rustc.display()),
        }
    }

    /// Whether the first build also compiles the standard library (about two minutes).
    pub fn builds_std(&self) -> bool {
        matches!(self.kind, Kind::BuildStd { .. })
    }

    /// A `cargo build` for the target, without the flags of a surrounding cargo.
    pub(super) fn cargo_build(&self) -> Command {
        let mut cargo = clean("cargo");
        cargo.args(["build", "--target", TARGET]);
        if let Kind::BuildStd { rustc, linker } = &self.kind {
            cargo.arg("-Zbuild-std=std,panic_abort");
            cargo.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
            cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        cargo
    }

    /// The active toolchain, when it has the target.
    ///
    /// # Errors
    ///
    /// Why it does not do.
    pub fn installed() -> Result<Self, String> {
        let rustc = sysroot("rustc").map_err(|reason| format!("no installed target: {reason}"))?;
        let libraries = rustc.join("lib/rustlib").join(TARGET).join("lib");
        if libraries.is_dir() {
            return Ok(Self { kind: Kind::Installed });
        }
        Err(format!("no installed target: `{}` is not there", libraries.display()))
    }

    /// The distribution's compiler and library sources (`rustc-web`, `rust-web-src`).
    ///
    /// # Errors
    ///
    /// Why they do not do.
    pub fn of_distribution() -> Result<Self, String> {
        let rustc = PathBuf::from("/usr/bin/rustc");
        let root = sysroot(&rustc.to_string_lossy()).map_err(|reason| format!("no distribution compiler: {reason}"))?;
        let sources = root.join("lib/rustlib/src/rust/library/std");
        if !sources.is_dir() {
            return Err(format!("no library sources of the distribution: `{}` is not there", sources.display()));
        }
        let linker = linker().ok_or("no linker for WebAssembly: neither rust-lld nor wasm-ld is there")?;
        Ok(Self { kind: Kind::BuildStd { rustc, linker } })
    }
}

/// Finds a toolchain. Tries, in this order: an installed target, `rustup target add`, the distribution's compiler.
/// `marker_dir` is where a failed attempt of rustup is remembered, so that it is not repeated with every build.
///
/// # Errors
///
/// [`BuildError::NoToolchain`] with what was tried.
pub fn find_toolchain(marker_dir: &Path, progress: &dyn Fn(&str)) -> Result<Toolchain, BuildError> {
    let mut tried = Vec::new();
    let ways: [&dyn Fn() -> Result<Toolchain, String>; 3] =
        [&Toolchain::installed, &|| add_target(marker_dir, progress), &Toolchain::of_distribution];
    for way in ways {
        match way() {
            Ok(toolchain) => return Ok(toolchain),
            Err(reason) => tried.push(reason),
        }
    }
    Err(BuildError::NoToolchain { tried })
}

fn add_target(marker_dir: &Path, progress: &dyn Fn(&str)) -> Result<Toolchain, String> {
    let marker = marker_dir.join("rustup-target-add-failed");
    let age = marker.metadata().and_then(|data| data.modified()).ok().map(|at| SystemTime::now().duration_since(at));
    if matches!(age, Some(Ok(age)) if age < RETRY) {
        return Err("rustup could not add the target less than an hour ago".into());
    }
    let mut rustup = clean("rustup");
    progress("adding the target with rustup");
    let output = rustup.args(["target", "add", TARGET]).output().map_err(|e| format!("no rustup: {e}"))?;
    if output.status.success() {
        return Toolchain::installed();
    }
    // Without the marker the next build tries again: only time is lost.
    let _ = std::fs::create_dir_all(marker_dir).and_then(|()| std::fs::write(&marker, &output.stderr));
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("rustup cannot add the target: {}", said.trim().lines().last().unwrap_or("no reason given")))
}

fn sysroot(rustc: &str) -> Result<PathBuf, String> {
    let output = clean(rustc).args(["--print", "sysroot"]).output().map_err(|e| format!("cannot run {rustc}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{rustc} does not tell its sysroot"));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

fn linker() -> Option<PathBuf> {
    let in_path = |name: &str| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
    };
    let of = |root: PathBuf| {
        let host = root.join("lib/rustlib").read_dir().ok()?;
        host.flatten().map(|folder| folder.path().join("bin/rust-lld")).find(|file| file.is_file())
    };
    sysroot("rustc").ok().and_then(of).or_else(|| in_path("rust-lld")).or_else(|| in_path("wasm-ld"))
}

/// A command that does not inherit the settings of a cargo that may be running us.
pub(super) fn clean(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        let inherited = ["CARGO_PKG_", "CARGO_BIN_", "CARGO_CFG_", "CARGO_FEATURE_", "CARGO_PROFILE_", "CARGO_BUILD_"]
            .iter()
            .any(|prefix| name_text.starts_with(prefix));
        let named = [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTC",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTDOC",
            "RUSTC_BOOTSTRAP",
            "CARGO_TARGET_DIR",
            "CARGO_MANIFEST_DIR",
            "CARGO_MANIFEST_PATH",
            "CARGO_MAKEFLAGS",
            "CARGO_CRATE_NAME",
            "LD_LIBRARY_PATH",
        ];
        if inherited || named.contains(&&*name_text) {
            command.env_remove(name);
        }
    }
    command
}
