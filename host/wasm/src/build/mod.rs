//! Source of a plugin → a component.
//!
//! Beside everything else: the command line, the examples and the tests build plugins with it. A [`Project`] knows its
//! language; each language has a file here that finds its toolchain, says what is missing, and makes the component.
//!
//! ```text
//!   rust.rs         cargo → core module → component.rs
//!   python.rs       componentize-py: the interpreter with the plugin already imported
//!   javascript.rs   rolldown → one script → componentize-qjs: the engine with the script already run
//!   c.rs, zig.rs    zig → core module → wrap.rs
//!   go.rs           go → core module → wrap.rs
//! ```
//!
//! Rule of its life: builds share one target folder, so that what plugins have in common is compiled once; what did not
//! change is not built again.
//!
//! It loads nothing: what comes out goes through [`crate::PluginHost::load`] like any other file.

mod c;
mod component;
mod error;
mod files;
mod go;
mod interface;
mod javascript;
mod job;
mod language;
mod programs;
mod project;
mod python;
mod rust;
mod sdk;
mod toolchain;
mod wrap;
mod zig;

pub use component::componentize;
pub use error::BuildError;
pub use interface::{EXPORTS, IMPORTS, WORLD, write_interface};
pub use job::{Profile, build_plugin, guest_target_dir, test_plugin};
pub use language::Language;
pub use programs::toolchains_dir;
pub use project::{MANIFEST, Project};
pub use rust::{Part, build_rust_plugin, build_with};
pub use sdk::find_sdk;
pub use toolchain::{TARGET, Toolchain, find_toolchain};
