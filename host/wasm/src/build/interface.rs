//! The plugin interface as files, for generators of bindings.
//!
//! The program carries `wit/` with it, so that a plugin is always built against the interface that this host speaks. The
//! world is made for the plugin: what it exports, and what it asks the host for.

use std::path::Path;

use super::BuildError;
use super::files::write;

/// What a plugin may ask the host for beside `log`.
pub const IMPORTS: [&str; 4] = ["clock", "random", "config", "http"];
/// The kinds that a plugin may have.
pub const EXPORTS: [&str; 6] = ["scalar", "table", "aggregate", "processor", "source", "migration"];
/// The name of the world that [`write_interface`] makes.
pub const WORLD: &str = "plugin";

macro_rules! interface_files {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../../wit/", $name, ".wit")))),*]
    };
}

/// The interfaces, one per file.
const INTERFACES: [(&str, &str); 13] = interface_files!(
    "types" "describe" "log" "clock" "random" "config" "http"
    "scalar" "table" "aggregate" "processor" "source" "migration"
);

/// The line that names the package and its version.
fn package() -> &'static str {
    INTERFACES[0].1.lines().find(|line| line.starts_with("package ")).unwrap_or_default()
}

/// What the interface is made of: a plugin that was built against another one is built again.
pub(super) fn interface_texts() -> impl Iterator<Item = &'static str> {
    INTERFACES.into_iter().map(|(_, text)| text)
}

/// Writes the interface into a folder, with the world [`WORLD`] that exports `describe` and `exports`, and imports `log`
/// and `imports`.
///
/// # Errors
///
/// [`BuildError::File`].
pub fn write_interface<S: AsRef<str>>(folder: &Path, exports: &[S], imports: &[S]) -> Result<(), BuildError> {
    for (name, text) in INTERFACES {
        write(&folder.join(format!("{name}.wit")), text.as_bytes())?;
    }
    let lines = |word: &str, first: &str, names: &[S]| {
        let names = std::iter::once(first).chain(names.iter().map(AsRef::as_ref));
        names.map(|name| format!("    {word} {name};\n")).collect::<String>()
    };
    let (imports, exports) = (lines("import", "log", imports), lines("export", "describe", exports));
    let world = format!("{}\n\nworld {WORLD} {{\n{imports}{exports}}}\n", package());
    write(&folder.join("worlds.wit"), world.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_one_package_with_one_world_of_what_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        write_interface(folder.path(), &["scalar", "aggregate"], &["clock"]).unwrap();
        let mut resolve = wit_parser::Resolve::default();
        let (package, _) = resolve.push_dir(folder.path()).unwrap();
        assert_eq!(resolve.packages[package].worlds.len(), 1);
        let world = &resolve.worlds[resolve.packages[package].worlds[WORLD]];
        let names = |items: Vec<String>| items.join(" ");
        let exports = world.exports.keys().map(|key| resolve.name_world_key(key)).collect();
        assert_eq!(
            names(exports),
            "millstream:plugin/describe@0.2.0 millstream:plugin/scalar@0.2.0 millstream:plugin/aggregate@0.2.0"
        );
        let imports: Vec<_> = world.imports.keys().map(|key| resolve.name_world_key(key)).collect();
        assert!(imports.contains(&"millstream:plugin/clock@0.2.0".to_owned()), "{imports:?}");
        assert!(!imports.contains(&"millstream:plugin/http@0.2.0".to_owned()), "{imports:?}");
    }

    #[test]
    fn every_interface_can_be_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        write_interface(folder.path(), &EXPORTS, &IMPORTS).unwrap();
        wit_parser::Resolve::default().push_dir(folder.path()).unwrap();
    }
}
