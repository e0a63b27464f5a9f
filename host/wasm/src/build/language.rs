//! The languages that plugins are written in.
//!
//! A language is a name, what its projects look like, and a folder of `guest-sdk/`. How it is built is in the file of
//! its toolchain beside this one.

use std::path::Path;

/// A language of plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// Rust: a crate.
    Rust,
    /// Python: CPython inside of the component.
    Python,
    /// JavaScript: QuickJS inside of the component.
    JavaScript,
    /// TypeScript: JavaScript after its types are removed.
    TypeScript,
}

impl Language {
    /// All of them, in the order in which they are listed to people.
    pub const ALL: [Self; 4] = [Self::Rust, Self::Python, Self::JavaScript, Self::TypeScript];

    /// The name on the command line and in `plugin.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::TypeScript => "typescript",
        }
    }

    /// The language of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.name() == name)
    }

    /// The file that a project of the language has and no project of another language: where its build begins.
    pub fn entry(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Python => "plugin.py",
            Self::JavaScript => "plugin.js",
            Self::TypeScript => "plugin.ts",
        }
    }

    /// The folder of its SDK below `guest-sdk/`.
    pub fn sdk_folder(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript | Self::TypeScript => "javascript",
        }
    }

    /// Whether a folder is the language's SDK: a file, and a text in it.
    pub(super) fn is_sdk(self, folder: &Path) -> bool {
        let (file, text) = match self {
            Self::Rust => ("Cargo.toml", "name = \"millstream-sdk\""),
            Self::Python => ("pyproject.toml", "name = \"millstream-sdk\""),
            Self::JavaScript | Self::TypeScript => ("package.json", "\"name\": \"millstream-sdk\""),
        };
        std::fs::read_to_string(folder.join(file)).is_ok_and(|found| found.contains(text))
    }
}

impl std::fmt::Display for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_an_sdk_a_name_and_an_entry_of_its_own() {
        let sdks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest-sdk");
        for language in Language::ALL {
            assert!(language.is_sdk(&sdks.join(language.sdk_folder())), "{language}");
            assert_eq!(Language::of_name(language.name()), Some(language));
            let same = Language::ALL.iter().filter(|other| other.entry() == language.entry());
            assert_eq!(same.count(), 1, "{language}");
        }
    }
}
