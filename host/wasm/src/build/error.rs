//! Why a plugin could not be built.

use std::path::PathBuf;

use millstream_common::{Fault, Hint};

/// A plugin could not be built from source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Nothing on this machine compiles Rust to WebAssembly.
    #[error("cannot find a Rust toolchain for wasm32-unknown-unknown: {}", tried.join("; "))]
    NoToolchain {
        /// What was tried, and why it did not do.
        tried: Vec<String>,
    },
    /// A program could not be started.
    #[error("cannot run `{program}`")]
    Program {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Cargo said no.
    #[error("cannot compile the plugin in `{}`:\n{output}", manifest_dir.display())]
    Compile {
        /// The plugin's folder.
        manifest_dir: PathBuf,
        /// What the compiler said.
        output: String,
    },
    /// The crate has no library of the right kind.
    #[error("cannot find a plugin in `{}`: the crate makes no cdylib", manifest_dir.display())]
    NoCdylib {
        /// The plugin's folder.
        manifest_dir: PathBuf,
    },
    /// The core module could not be made a component.
    #[error("cannot make a component of `{}`: {reason}", module.display())]
    Componentize {
        /// The core module.
        module: PathBuf,
        /// What wit-component said.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("cannot read or write `{}`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Hint for BuildError {
    fn fault(&self) -> Fault {
        match self {
            Self::NoToolchain { .. } | Self::Program { .. } | Self::File { .. } => Fault::Outside,
            Self::Compile { .. } | Self::NoCdylib { .. } | Self::Componentize { .. } => Fault::Plugin,
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NoToolchain { .. } => {
                "run `rustup target add wasm32-unknown-unknown`, or on Debian and Ubuntu \
                 `apt-get install rustc-web rust-web-src`"
            }
            Self::NoCdylib { .. } => "add `crate-type = [\"cdylib\", \"rlib\"]` to `[lib]` in its Cargo.toml",
            Self::Componentize { .. } => "call `millstream_sdk::plugin!` once, in the crate's root",
            _ => return None,
        };
        Some(text.into())
    }
}
