//! Where the programs are: the jars that `./x toolchain` has fetched.

use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// What the class path is made of.
///
/// # Errors
/// When nobody has fetched them.
pub(crate) fn class_path() -> Result<String> {
    match toolchain("kafka") {
        Some(folder) => Ok(format!("{}/*", folder.display())),
        None => bail!("Kafka is not here: run `./x toolchain`, which fetches it"),
    }
}

/// The program of the schema registry.
///
/// # Errors
/// When nobody has fetched it.
pub(crate) fn schema_registry() -> Result<PathBuf> {
    match toolchain("schema-registry") {
        Some(folder) => Ok(folder.join("registry.jar")),
        None => bail!("the schema registry is not here: run `./x toolchain`, which fetches it"),
    }
}

/// The folder of something that was fetched.
fn toolchain(name: &str) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let toolchains = variable("MILLSTREAM_TOOLCHAINS").or_else(|| Some(cache()?.join("millstream/toolchains")));
    toolchains.map(|folder| folder.join(name)).filter(|folder| folder.join("installed").is_file())
}

/// The program that runs Java.
pub(crate) fn java() -> PathBuf {
    let home = std::env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    home.filter(|program| program.is_file()).unwrap_or_else(|| "java".into())
}
