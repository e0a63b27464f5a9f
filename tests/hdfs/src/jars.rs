//! Where the programs are: the jars that `./x toolchain` has fetched.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// What the class path is made of, beside the folder with the configuration.
///
/// # Errors
/// When nobody has fetched them.
pub(crate) fn class_path() -> Result<String> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let toolchains = variable("MILLSTREAM_TOOLCHAINS").or_else(|| Some(cache()?.join("millstream/toolchains")));
    let folder = toolchains.map(|folder| folder.join("hdfs")).filter(|folder| folder.join("installed").is_file());
    let folder = folder.context("HDFS is not here: run `./x toolchain`, which fetches it")?;
    Ok(format!("{}/*", folder.display()))
}

/// The program that runs Java.
pub(crate) fn java() -> PathBuf {
    let home = std::env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    home.filter(|program| program.is_file()).unwrap_or_else(|| "java".into())
}
