//! The components that stories name, compiled once per process.

use anyhow::{Context, Result, anyhow};
use millstream_wasm::build::{self, Part, Profile};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The bytes of a component by the name of its file: an example of `tests/components`, or a plugin of `plugins/`
/// (`text_plugin`, `tail_plugin`).
///
/// # Errors
/// When it does not compile, or there is none of that name.
pub fn component(name: &str) -> Result<Vec<u8>> {
    static BUILT: OnceLock<Result<HashMap<String, PathBuf>, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build_all().map_err(|error| format!("{error:#}")));
    let built = built.as_ref().map_err(|error| anyhow!("the components do not compile: {error}"))?;
    let file = built.get(name).ok_or_else(|| anyhow!("there is no component `{name}`"))?;
    std::fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))
}

fn build_all() -> Result<HashMap<String, PathBuf>> {
    // Cargo tells where the package of the test is now; a program that is run without cargo is where it was built.
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    let workspace = package.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from).join("../..");
    let target = build::guest_target_dir();
    let toolchain = build::find_toolchain(&target, &|_| {})?;
    let mut files = Vec::new();
    for (folder, part) in
        [("tests/components", Part::Examples), ("plugins/text", Part::Library), ("plugins/tail", Part::Library)]
    {
        let built = build::build_with(&toolchain, &workspace.join(folder), part, Profile::Release, &target, &|_| {});
        files.extend(built.with_context(|| folder.to_owned())?);
    }
    let stem = |file: &PathBuf| file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(files.into_iter().map(|file| (stem(&file), file)).collect())
}
