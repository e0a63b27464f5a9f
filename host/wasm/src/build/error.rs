//! Why a plugin could not be built.

use std::path::PathBuf;

use millstream_common::{Fault, Hint};

use super::Language;

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
    /// The folder is none of a plugin.
    #[error("there is no plugin in `{}`: it has {}", folder.display(), entries())]
    NoPlugin {
        /// The folder.
        folder: PathBuf,
    },
    /// The `plugin.toml` of a plugin cannot be understood.
    #[error("cannot understand `{}`: {reason}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A program that the plugin's language needs is not on this machine.
    #[error("cannot find `{program}`, which builds plugins in {language}: neither in the PATH nor as `{}`", looked_in.display())]
    MissingTool {
        /// The language.
        language: Language,
        /// The program.
        program: &'static str,
        /// Where the toolchain folder would have it.
        looked_in: PathBuf,
        /// The command that installs it.
        install: &'static str,
    },
    /// What was named is not the SDK.
    #[error("there is no millstream-sdk in `{}`", folder.display())]
    WrongSdk {
        /// The language.
        language: Language,
        /// What was named.
        folder: PathBuf,
    },
    /// The SDK was not named, and this program stands in no checkout.
    #[error("millstream-sdk for {language} is not found: this program stands in no checkout")]
    NoSdk {
        /// The language.
        language: Language,
    },
    /// A plugin's own tests failed.
    #[error("the tests of the plugin in `{}` failed", folder.display())]
    Tests {
        /// The plugin's folder.
        folder: PathBuf,
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
    /// The compiler said no.
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

impl BuildError {
    /// What a compiler said, without what is about the compiler.
    pub(super) fn said(self, about_the_plugin: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::Compile { manifest_dir, output } => Self::Compile { manifest_dir, output: about_the_plugin(&output) },
            other => other,
        }
    }
}

/// What begins a plugin, for a person.
fn entries() -> String {
    let names = Language::ALL.map(Language::entry);
    format!("no plugin.toml, and none of {}", names.join(", "))
}

impl Hint for BuildError {
    fn fault(&self) -> Fault {
        match self {
            Self::NoToolchain { .. } | Self::MissingTool { .. } | Self::Program { .. } | Self::File { .. } => {
                Fault::Outside
            }
            Self::NoPlugin { .. } | Self::Manifest { .. } | Self::WrongSdk { .. } | Self::NoSdk { .. } => Fault::Query,
            Self::Compile { .. } | Self::NoCdylib { .. } | Self::Componentize { .. } | Self::Tests { .. } => {
                Fault::Plugin
            }
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NoToolchain { .. } => {
                "run `rustup target add wasm32-unknown-unknown`, or on Debian and Ubuntu \
                 `apt-get install rustc-web rust-web-src`"
            }
            Self::MissingTool { install, .. } => {
                return Some(format!("run `./x toolchain` in a checkout, or {install}"));
            }
            Self::NoPlugin { .. } => "make one with `millstream plugin new NAME`",
            Self::WrongSdk { language, .. } | Self::NoSdk { language } => {
                let folder = language.sdk_folder();
                return Some(format!(
                    "name the folder `guest-sdk/{folder}` of a checkout, with `--sdk`, as `sdk` in plugin.toml, or in \
                     MILLSTREAM_SDK"
                ));
            }
            Self::NoCdylib { .. } => "add `crate-type = [\"cdylib\", \"rlib\"]` to `[lib]` in its Cargo.toml",
            Self::Componentize { .. } => {
                "a plugin exports `describe` and what it has; in Rust, call `millstream_sdk::plugin!` once, in the crate's \
                 root"
            }
            _ => return None,
        };
        Some(text.into())
    }
}
