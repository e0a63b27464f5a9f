//! The folder of a plugin: its language, its name, and what its `plugin.toml` says.
//!
//! A crate needs no `plugin.toml`: Cargo.toml says all. In other languages it tells where the SDK is, and may tell more:
//!
//! ```toml
//! language = "python"          # when the files of the folder do not tell
//! name = "words"               # of the component's file; the folder's name when left out
//! entry = "plugin.py"          # where the code begins
//! sdk = "../guest-sdk/python"  # from the plugin's folder
//! imports = ["clock"]          # what the plugin asks the host for beside `log`
//! exports = ["scalar"]         # the kinds it has; every kind that its SDK knows when left out
//! ```

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::interface::{EXPORTS, IMPORTS};
use super::sdk::find_sdk;
use super::{BuildError, Language};

/// The file beside the code.
pub const MANIFEST: &str = "plugin.toml";

/// A plugin's folder, looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    folder: PathBuf,
    language: Language,
    name: String,
    entry: PathBuf,
    sdk: Option<PathBuf>,
    imports: Vec<String>,
    exports: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    language: Option<String>,
    name: Option<String>,
    entry: Option<PathBuf>,
    sdk: Option<PathBuf>,
    #[serde(default)]
    imports: Vec<String>,
    exports: Option<Vec<String>>,
}

impl Project {
    /// Looks at a folder.
    ///
    /// # Errors
    ///
    /// [`BuildError::NoPlugin`] when nothing there begins a plugin; [`BuildError::Manifest`] when its `plugin.toml` cannot
    /// be understood.
    pub fn open(folder: &Path) -> Result<Self, BuildError> {
        let path = folder.join(MANIFEST);
        let wrong = |reason: String| BuildError::Manifest { path: path.clone(), reason };
        let manifest = match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str::<Manifest>(&text).map_err(|error| wrong(error.to_string()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Manifest::default(),
            Err(source) => return Err(BuildError::File { path, source }),
        };
        let found = || Language::ALL.into_iter().find(|language| folder.join(language.entry()).is_file());
        let language = match &manifest.language {
            Some(name) => Language::of_name(name).ok_or_else(|| {
                let names = Language::ALL.map(Language::name).join(", ");
                wrong(format!("`{name}` is no language of plugins; there are {names}"))
            })?,
            None => found().ok_or_else(|| BuildError::NoPlugin { folder: folder.to_owned() })?,
        };
        let known = |names: &[String], known: &[&str], what: &str| match names.iter().find(|n| !known.contains(&&***n))
        {
            Some(name) => {
                Err(wrong(format!("`{name}` is nothing a plugin can {what}; there are {}", known.join(", "))))
            }
            None => Ok(()),
        };
        known(&manifest.imports, &IMPORTS, "import")?;
        known(manifest.exports.as_deref().unwrap_or_default(), &EXPORTS, "export")?;
        let name = manifest.name.unwrap_or_else(|| folder_name(folder));
        if !is_name(&name) {
            return Err(wrong(format!("`{name}` cannot name a plugin: use letters, digits, `-` and `_`")));
        }
        let entry = manifest.entry.unwrap_or_else(|| language.entry().into());
        let sdk = manifest.sdk.map(|sdk| folder.join(sdk));
        let (imports, exports) = (manifest.imports, manifest.exports);
        Ok(Self { folder: folder.to_owned(), language, name, entry, sdk, imports, exports })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The language.
    pub fn language(&self) -> Language {
        self.language
    }

    /// The plugin's name; of a crate only what its folder is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file where the code begins.
    pub fn entry(&self) -> PathBuf {
        self.folder.join(&self.entry)
    }

    /// The name of the component's file.
    pub fn file_name(&self) -> String {
        format!("{}.wasm", self.name.replace('-', "_"))
    }

    /// What the plugin asks the host for beside `log`.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// The kinds that the plugin has; `None` where it does not tell.
    pub fn exports(&self) -> Option<&[String]> {
        self.exports.as_deref()
    }

    /// The SDK of the plugin's language.
    ///
    /// # Errors
    ///
    /// As [`find_sdk`].
    pub fn sdk(&self) -> Result<PathBuf, BuildError> {
        find_sdk(self.language, self.sdk.as_deref())
    }
}

/// The name of a folder, also of `.`.
fn folder_name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    whole.file_name().map_or_else(|| "plugin".into(), |name| name.to_string_lossy().into_owned())
}

/// What stands in a file's name without surprises.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=64).contains(&name.len()) && name.chars().all(fits) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(files: &[(&str, &str)]) -> Result<Project, BuildError> {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("words");
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        Project::open(&folder)
    }

    #[test]
    fn the_files_of_a_folder_tell_the_language() {
        for language in Language::ALL {
            assert_eq!(open(&[(language.entry(), "")]).unwrap().language(), language);
        }
        assert!(matches!(open(&[("main.py", "")]), Err(BuildError::NoPlugin { .. })));
    }

    #[test]
    fn the_manifest_wins_over_files_and_names_the_component() {
        let manifest = "language = \"python\"\nname = \"my-words\"\nentry = \"src/words.py\"\nexports = [\"scalar\"]";
        let project = open(&[("Cargo.toml", ""), (MANIFEST, manifest)]).unwrap();
        assert_eq!(project.language(), Language::Python);
        assert_eq!(project.file_name(), "my_words.wasm");
        assert!(project.entry().ends_with("src/words.py"));
        assert_eq!(project.exports(), Some(&["scalar".to_owned()][..]));
    }

    #[test]
    fn what_a_manifest_gets_wrong_is_told() {
        for (manifest, said) in [
            ("language = \"cobol\"", "`cobol` is no language of plugins; there are rust, python"),
            ("imports = [\"files\"]", "`files` is nothing a plugin can import; there are clock"),
            ("exports = [\"scalars\"]", "`scalars` is nothing a plugin can export; there are scalar"),
            ("nmae = \"words\"", "unknown field `nmae`"),
            ("name = \"../words\"", "`../words` cannot name a plugin"),
        ] {
            let error = open(&[("plugin.py", ""), (MANIFEST, manifest)]).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
