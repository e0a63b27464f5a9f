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
    /// C, compiled by zig.
    C,
    /// C++ without exceptions, over the header of C.
    Cpp,
    /// Zig, over the header of C.
    Zig,
    /// Go, with its own runtime inside of the component.
    Go,
}

impl Language {
    /// All of them, in the order in which they are listed to people.
    pub const ALL: [Self; 8] =
        [Self::Rust, Self::Python, Self::JavaScript, Self::TypeScript, Self::Go, Self::C, Self::Cpp, Self::Zig];

    /// The name on the command line and in `plugin.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::TypeScript => "typescript",
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Zig => "zig",
            Self::Go => "go",
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
            Self::C => "plugin.c",
            Self::Cpp => "plugin.cpp",
            Self::Zig => "plugin.zig",
            Self::Go => "go.mod",
        }
    }

    /// The folder of its SDK below `guest-sdk/`.
    pub fn sdk_folder(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript | Self::TypeScript => "javascript",
            Self::C | Self::Cpp | Self::Zig => "c",
            Self::Go => "go",
        }
    }

    /// Whether a new plugin gets the SDK's sources, so that it needs nothing but its own folder and a compiler.
    pub fn copies_sdk(self) -> bool {
        matches!(self, Self::C | Self::Cpp | Self::Zig | Self::Go)
    }

    /// Whether a folder is the language's SDK: a file, and a text in it.
    pub(super) fn is_sdk(self, folder: &Path) -> bool {
        let (file, text) = match self {
            Self::Rust => ("Cargo.toml", "name = \"millstream-sdk\""),
            Self::Python => ("pyproject.toml", "name = \"millstream-sdk\""),
            Self::JavaScript | Self::TypeScript => ("package.json", "\"name\": \"millstream-sdk\""),
            Self::C | Self::Cpp | Self::Zig => ("millstream.h", "#define MILLSTREAM_H"),
            Self::Go => ("go.mod", "module millstream\n"),
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
